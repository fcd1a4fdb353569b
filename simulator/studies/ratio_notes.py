"""Ratio notes: what keeps the ratios of a comparison from meaning what they seem to. It measures nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.counting import counted
from simulator.memory.base import UNLIMITED
from simulator.studies.batch_size import sized_by_longest

if TYPE_CHECKING:
    from simulator.studies.compare import Comparison, Ratio

NEARLY_FULL = 0.9
"""Share of the KV pool from which on another request hardly finds a place."""
HARDLY = 0.01
"""Of the time in steps; whatever stops the queue for less than that does not bind."""
STOPS = {"cap": "its cap on sequences", "budget": "the token budget of a step", "memory": "a lack of free memory",
         "batch": "a batch that lets nobody in until it is done",
         "queue_limit": "its front end, which takes no more requests at once"}
"""What may stop the queue of the baseline, in words."""


def ratio_note(found: Comparison) -> str:
    """The last ratio as a product, what bounds the baseline, and who is left out."""
    chains = [_chain(*ratios, found.padded) for ratios in zip(*_by_key(found), strict=True)]
    return " ".join([*chains, *_caveats(found)])


def _by_key(found: Comparison) -> tuple[list[Ratio], list[Ratio], list[Ratio]]:
    """The ratios of each policy, one list a key."""
    return tuple([ratio for ratio in found.ratios if ratio.key == key]    # type: ignore[return-value]
                 for key in ("scheduling", "paged", "deployed"))


def _chain(scheduling: Ratio, paged: Ratio, deployed: Ratio, padded: bool) -> str:
    """The last ratio as a product of what each step adds."""
    if not (scheduling.value and paged.value and deployed.value):
        return ""
    ragged = f" x {deployed.value / paged.value:.2f} (no padding)" if padded else ""
    return (f"{deployed.policy}: {deployed.value:.2f} = {scheduling.value:.2f} (no idle slots) "
            f"x {paged.value / scheduling.value:.2f} (its memory rule and its cap){ragged}.")


def _caveats(found: Comparison) -> list[str]:
    """What keeps the ratios from meaning what they seem to mean."""
    name = found.labels[0]
    (scheduling, *_), (paged, *_), _ = _by_key(found)
    by_longest = sized_by_longest(found.results[name, "saturated"].setup)
    told = [] if found.padded else [f"There is no padded {name} to set beside it: as deployed, it runs as in the row "
                                    "of its own memory rule."]
    told += _what_binds(name, scheduling.baseline["slots"], paged, by_longest)
    uncapped = [label for label, result in found.equal_slots.items() if result.policy.slots >= UNLIMITED]
    told += [f"{label} has no cap on its slots, so they are not equal." for label in uncapped]
    served = {ratio.baseline["completed"] for ratio in found.ratios if ratio.key != "model_length"}
    served |= {ratio.continuous["completed"] for ratio in found.ratios}
    if len(served) > 1:
        told.append("The runs serve different requests: some are rejected.")
    return told


def _what_binds(name: str, slots: int, paged: Ratio, by_longest: bool) -> list[str]:
    """What keeps the batches of the baseline small: whatever stops its queue for most of the time in steps."""
    run, ran = paged.baseline, paged.at_once
    stops = {reason: run[f"stopped_by_{reason}_share"] or 0.0 for reason in STOPS}
    reason = max(stops, key=lambda each: stops[each])
    share = stops[reason]
    few = [] if run["completed"] > slots else [f"{name} has {counted(run['completed'], 'request')} for the "
                                               f"{counted(slots, 'slot')} of scheduling alone, so those bind nobody."]
    if share < HARDLY:
        return [*few, f"Hardly anything else keeps its batches small: its queue stands still for {share:.1%} of the "
                      "time in steps."] if few else []
    if reason in ("cap", "batch") and ran == slots:
        return [_full(name, ran, run["kv_usage_max"], by_longest)]
    if reason == "memory":
        return [*few, f"Memory binds {name}: for {share:.0%} of the time in steps a lack of it stops the queue, with "
                      f"{run['kv_usage_max'] or 0:.0%} of the KV pool in use at the peak; it runs {ran:,} at once at "
                      f"most."]
    return [*few, f"What binds {name} is {STOPS[reason]}: that stops the queue for {share:.0%} of the time in steps; "
                  f"it runs {ran:,} at once at most."]


def _full(name: str, ran: int, used: float | None, by_longest: bool) -> str:
    """The batches are as large as they may be: why they may not be larger."""
    if used is not None and used >= NEARLY_FULL:
        return (f"{name} runs {ran:,} at once at most, with {used:.0%} of the KV pool in use: memory has no room for a "
                "larger batch of its own.")
    of_pool = "" if used is None else f", which use {used:.0%} of the KV pool at most"
    if by_longest:
        return (f"Its longest reservation binds {name}: it leaves room for {counted(ran, 'slot')}{of_pool}. A larger "
                "batch (static.max_batch_size) would narrow the second factor; it pads more, so the last ratio may "
                "rise.")
    return (f"Its cap binds {name}: it runs {counted(ran, 'slot')}{of_pool}, so a larger batch of its own would narrow "
            "the second factor.")
