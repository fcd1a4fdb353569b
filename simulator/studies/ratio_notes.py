"""Ratio notes: what keeps the ratios of a comparison from meaning what they seem to. It measures nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.counting import counted
from simulator.memory.base import UNLIMITED
from simulator.studies.batch_size import sized_by_longest

if TYPE_CHECKING:
    from simulator.studies.compare import Comparison, Ratio

NEARLY_FULL, HALF_FULL = 0.9, 0.5
"""Shares of the KV pool: from the one on, another request hardly finds a place; below the other, one does."""


def ratio_note(found: Comparison) -> str:
    """The last ratio as a product, what bounds the baseline, and who is left out."""
    return " ".join([*map(_chain, *_by_key(found)), *_caveats(found)])


def _by_key(found: Comparison) -> tuple[list[Ratio], list[Ratio], list[Ratio]]:
    """The ratios of each policy, one list a key."""
    return tuple([ratio for ratio in found.ratios if ratio.key == key]    # type: ignore[return-value]
                 for key in ("scheduling", "paged", "deployed"))


def _chain(scheduling: Ratio, paged: Ratio, deployed: Ratio) -> str:
    """The last ratio as a product of what each step adds."""
    if not (scheduling.value and paged.value and deployed.value):
        return ""
    return (f"{deployed.policy}: {deployed.value:.2f} = {scheduling.value:.2f} (no idle slots) "
            f"x {paged.value / scheduling.value:.2f} (its memory rule and its cap) "
            f"x {deployed.value / paged.value:.2f} (no padding).")


def _caveats(found: Comparison) -> list[str]:
    """What keeps the ratios from meaning what they seem to mean."""
    baseline = found.results[found.labels[0], "saturated"].setup
    (scheduling, *_), (paged, *_), _ = _by_key(found)
    told = _what_binds(scheduling, paged, sized_by_longest(baseline))
    uncapped = [label for label, result in found.equal_slots.items() if result.policy.slots >= UNLIMITED]
    told += [f"{label} has no cap on its slots, so they are not equal." for label in uncapped]
    served = {ratio.baseline["completed"] for ratio in found.ratios if ratio.key != "model_length"}
    served |= {ratio.continuous["completed"] for ratio in found.ratios}
    if len(served) > 1:
        told.append("The runs serve different requests: some are rejected.")
    return told


def _what_binds(scheduling: Ratio, paged: Ratio, by_longest: bool) -> list[str]:
    """Whether its cap, its longest reservation or its memory keeps the batches of the baseline small."""
    cap, ran, used = scheduling.baseline["slots"], paged.at_once, paged.baseline["kv_usage_max"]
    if not used:
        return []
    if ran < min(cap, paged.baseline["completed"]) and used >= HALF_FULL:
        return [f"Memory binds the baseline: it runs {ran:,} at once at most, with {used:.0%} of the KV pool in use, "
                f"so memory does not let it have the {counted(cap, 'slot')} of scheduling alone."]
    if used >= NEARLY_FULL:
        return [f"The baseline runs {ran:,} at once at most, with {used:.0%} of the KV pool in use: memory has no room "
                "for a larger batch of its own."]
    if ran == cap and by_longest:
        return [f"Its longest reservation binds the baseline: it leaves room for {counted(ran, 'slot')}, which use "
                f"{used:.0%} of the KV pool at most. A larger batch (static.max_batch_size) would narrow the second "
                "factor; it pads more, so the last ratio may rise."]
    if ran == cap:
        return [f"Its cap binds the baseline: it runs {counted(ran, 'slot')} and uses {used:.0%} of the KV pool at "
                "most, so a larger batch of its own would narrow the second factor."]
    return []
