"""Why: an attribution in sentences. It measures nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp

from simulator.studies.attribution import Attribution
from simulator.studies.points import METRICS
from simulator.studies.rungs import Rung, ratio

CONVENTIONS = {
    "granularity": "Memory reserved, slots freed at every step: a request enters as soon as its whole reservation "
                   "finds a place, and nobody is preempted.",
    "cap": "The other's cap over one's own memory: as many as its max_num_seqs (or batch) says and the memory lets in, "
           "which its reservations bound. The other's memory under one's own cap: max_num_seqs is the batch that the "
           "baseline would form, and the other way round.",
    "memory": "Blocks, but whole batches: prompts enter by blocks; who has finished gives up its blocks and keeps its "
              "slot; a preempted request leads the next batch.",
    "padding": "Padded steps: prompts are as wide as the longest of the step, contexts too. That changes what steps "
               "cost, not who is in them.",
    "prefill": "Prompts alone: whole, in a step of their own before decodes go on. In a whole batch, mixing them does "
               "nothing.",
    "prefix": "Reuse needs paged memory.",
    "forming": "Nobody forms a batch where slots are filled at every step.",
}
"""What a switch means where the others are off, by key."""


def heading(found: Attribution) -> str:
    """What is taken apart, in a line."""
    load = "every request queued at 0" if found.scenario.load == "saturated" else "at the trace's own times"
    return (f"From {found.names[0]} to {found.names[1]} on {found.trace.name}, {len(found.trace):,} requests, {load}: "
            f"{times(found.total) if found.total else 'no ratio'} in {METRICS[found.metric]}")


def story(found: Attribution) -> list[str]:
    """The ratio and its parts, in sentences."""
    values = (number(rung.point.value(found.metric)) for rung in (found.ladder[0], found.ladder[-1]))
    measured = ", ".join(f"{name} {value}" for name, value in zip(found.names, values, strict=True))
    told = [f"{METRICS[found.metric]}: {measured}."]
    if not found.total:
        return [*told, "That is no ratio: one of the two serves nothing.", *_caveats(found)]
    told[0] += (f" The switch is worth {times(found.total)}; in steps, as if every step cost the same, "
                f"{times(found.total_in_steps)}.")
    told += [*_corrections(found), *(_product(words, rungs) for words, rungs in found.ladders.items())]
    if len(found.ladders) > 1:
        told.append("The order matters: a habit is worth what the others leave it to do.")
    return [*told, *([_shares(found)] if found.shares else []), *_bounds(found), *_caveats(found)]


def _corrections(found: Attribution) -> list[str]:
    """The artefacts of the baseline, outside all shares."""
    if len(found.corrections) == 1:
        return []
    parts = " x ".join(f"{factor(rung.factor)} ({rung.words})" for rung in found.corrections[1:])
    return [f"The baseline as it was measured would make it {times(found.raw)}. The first part of that is an artefact "
            f"of the baseline, and not counted here: {parts}."]


def _product(order: str, rungs: Sequence[Rung]) -> str:
    total = ratio(rungs[0].point.worth(rungs[0].metric), rungs[-1].point.worth(rungs[0].metric))
    factors = " x ".join(f"{factor(rung.factor)} ({_words(rung)})" for rung in rungs[1:])
    return f"{order.capitalize()}: {factor(total)} = {factors}."


def _words(rung: Rung) -> str:
    """The switch, and for cap and memory how much larger the batch becomes."""
    if rung.key not in ("cap", "memory"):
        return rung.words
    return f"{rung.words}: {rung.before.sequences:,} to {rung.point.sequences:,} sequences at once"


def _shares(found: Attribution) -> str:
    assert found.shares
    whole = sum(seconds for seconds, _ in found.shares.values())
    words = {switch.key: switch.words for switch in found.switches}
    parts = " x ".join(f"{exp(seconds):.2f} ({words[key]}{f', {share(seconds, whole)}' if whole else ''})"
                       for key, (seconds, _) in found.shares.items())
    return f"Without an order (Shapley: the mean over all orders, of logarithms): {factor(found.total)} = {parts}."


def _bounds(found: Attribution) -> list[str]:
    """What freed slots alone can be worth, beside what they are."""
    bound, slots = found.bound, found.slots_in_steps
    if bound is None:
        return []
    told = (f"Freed slots alone cannot be worth more than {float(bound.batches):.2f}x in steps with batches of "
            f"{bound.slots:,}: the longest answer of a batch over the mean of all. Batches drawn at random from these "
            f"lengths would give {float(bound.order):.2f}x, exponential lengths {float(bound.harmonic):.2f}x (H_"
            f"{bound.slots}).")
    if slots is not None:
        told += f" Here they come to {times(slots)} with prompts mixed in"
        own = next((rung.factor_in_steps for rung in found.ladder if rung.key == "granularity"), None)
        told += "." if own == slots else f", {times(own)} with prompts in steps of their own."
    return [told]


def _caveats(found: Attribution) -> list[str]:
    served = {rung.point.completed for rungs in found.ladders.values() for rung in rungs}
    return ["The runs serve different requests: some are rejected."] if len(served) > 1 else []


def conventions(found: Attribution) -> list[str]:
    """What the switches mean where the others are off."""
    return [CONVENTIONS[switch.key] for switch in found.switches if switch.key in CONVENTIONS]


def factor(value: Fraction | None) -> str:
    """A ratio as it is read; - where it has no value."""
    return "-" if value is None else f"{float(value):.2f}" if value < 100 else f"{float(value):,.0f}"


def times(value: Fraction | None) -> str:
    """The same with its sign."""
    return "-" if value is None else f"{factor(value)}x"


def share(part: float, whole: float) -> str:
    """A part of the whole in percent, where there is a whole."""
    return f"{round(part / whole, 2) + 0.0:.0%}" if whole else "-"


def number(value: Fraction | None) -> str:
    """A value of the metric as it is read; - where it has none."""
    return "-" if value is None else f"{float(value):,.0f}" if value >= 100 else f"{float(value):.3g}"
