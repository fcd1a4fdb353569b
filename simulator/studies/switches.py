"""Switches: what tells two policies apart, one habit at a time, and the policies that lie between them.

Everything is told in knobs of `hybrid`, whose docstring states what a switch means where the others are off. It runs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from simulator.errors import InputError
from simulator.policies import Hybrid, Policy, StaticBatching, Vllm


@dataclass(frozen=True)
class Switch:
    """One habit that two policies do not share.

    Attributes:
        key: Its short name.
        words: What changes when it is thrown, in words.
        knobs: Knobs of `hybrid` that it sets.
    """

    key: str
    words: str
    knobs: Mapping[str, Any] = field(default_factory=dict)


HABITS: dict[str, tuple[str, tuple[str, ...]]] = {
    "granularity": ("slots refilled at every step", ("granularity", "scheduling_policy", "max_model_len")),
    "cap": ("the other's batch cap", ("max_batch_size", "max_num_seqs")),
    "reservation": ("declared length reserved", ()),
    "memory": ("paged memory", ("reserve", "placement", "block_size", "watermark", "scheduler_reserve_full_isl")),
    "padding": ("no padding", ("padded",)),
    "forming": ("no wait for full batches", ("max_wait",)),
    "prefill": ("prompts mixed with decodes", (
        "prefill", "max_num_batched_tokens", "enable_chunked_prefill", "long_prefill_token_threshold")),
    "prefix": ("prefixes reused", ("enable_prefix_caching",)),
    "engine": ("the other's host time", ()),
}
"""By key, in the natural order: words, and the knobs that go over with it."""
ARTEFACTS: dict[str, tuple[str, Any]] = {
    "run_to": ("no run to a fixed length", None),
    "sleep_per_batch": ("no sleep before a batch", 0.0),
}
"""Habits of a measured baseline that are no part of an idea, by knob: words for their end, and the value without."""

Test = Callable[[Hybrid], bool]
ACTS: dict[Test, tuple[str, ...]] = {
    lambda one: not one.paged: ("max_batch_size", "placement"),
    lambda one: one.paged: ("max_num_seqs", "block_size", "enable_prefix_caching"),
    lambda one: one.granularity == "batch": ("max_wait", *ARTEFACTS),
    lambda one: one.granularity == "step": ("prefill", "scheduling_policy", "max_model_len"),
    lambda one: one.granularity == "step" and one.prefill == "mixed": (
        "max_num_batched_tokens", "enable_chunked_prefill", "long_prefill_token_threshold"),
    lambda one: one.granularity == "step" and one.paged: ("watermark", "scheduler_reserve_full_isl"),
}
"""Where knobs can act; a knob that is not named acts everywhere."""


def as_hybrid(policy: Policy) -> Hybrid:
    """The `hybrid` that takes the same decisions. Raises InputError for a policy that has none."""
    if isinstance(policy, Hybrid):
        return policy
    if type(policy) is StaticBatching:
        return Hybrid(granularity="batch", prefill="alone", enable_prefix_caching=False, **policy.settings())
    if type(policy) is Vllm:
        return Hybrid(**policy.settings())
    raise InputError(f"{policy.name} cannot be taken apart by switches: choose among static, vllm and hybrid")


def settled(policy: Hybrid) -> Hybrid:
    """The same policy with every knob that cannot act at its default: alike are those that decide alike."""
    idle = [knob for test, knobs in ACTS.items() if not test(policy) for knob in knobs]
    return replace(policy, **{knob: value for knob, value in Hybrid.knobs().items() if knob in idle})


def switches_between(start: Hybrid, end: Hybrid, engines_differ: bool = False) -> tuple[Switch, ...]:
    """Those that differ, in the natural order; thrown all together they make the end of the start."""
    found, differs = [], {"engine": engines_differ, "cap": _caps_differ(start, end)}
    for key, (words, knobs) in HABITS.items():
        changes = {knob: getattr(end, knob) for knob in knobs}
        if key == "reservation" and start.reserve == "model" and end.paged:
            found.append(Switch(key, words, {"reserve": "declared"}))
        elif differs.get(key) or (key != "cap" and any(getattr(start, knob) != changes[knob] for knob in knobs)):
            found.append(Switch(key, words, changes))
    return tuple(found)


def _caps_differ(start: Hybrid, end: Hybrid) -> bool:
    """Whether the knobs that act say so; the default of a batch depends on what it reserves."""
    caps = [getattr(policy, cap_of(policy)) for policy in (start, end)]
    return caps[0] != caps[1] or (caps[0] is None and start.reserve != end.reserve)


def cap_of(policy: Hybrid) -> str:
    """The knob that caps the requests at once."""
    return "max_num_seqs" if policy.paged else "max_batch_size"


def capped(policy: Hybrid, slots: int) -> Hybrid:
    """The policy with up to so many requests at once."""
    cap: dict[str, Any] = {cap_of(policy): slots}
    return settled(replace(policy, **cap))


def between(start: Hybrid, thrown: Iterable[Switch]) -> Hybrid:
    """The policy at the start with these switches thrown, in the natural order: blocks make reservations pointless."""
    changes: dict[str, Any] = {}
    for switch in thrown:
        changes |= switch.knobs
    return settled(replace(start, **changes))


def corrected(start: Hybrid, end: Hybrid) -> list[tuple[str, str, Hybrid]]:
    """The start without each of its artefacts that the end lacks, one after the other: key, words, policy."""
    found = []
    for knob, (words, value) in ARTEFACTS.items():
        if start.granularity == "batch" and getattr(start, knob) and not getattr(end, knob):
            start = replace(start, **{knob: value})
            found.append((knob, words, start))
    return found


def flags_of(policy: Hybrid) -> str:
    """What makes `batchsim run --policy hybrid` this policy."""
    defaults = Hybrid.knobs()
    return " ".join(f"--set {knob}={_typed(value)}" for knob, value in settled(policy).settings().items()
                    if value != defaults[knob])


def _typed(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
