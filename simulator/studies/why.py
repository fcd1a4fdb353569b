"""Why: an attribution in sentences. It measures nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp

from simulator.counting import counted
from simulator.studies.attribution import Attribution
from simulator.studies.points import METRICS
from simulator.studies.rungs import Rung, ratio

CONVENTIONS = {
    "granularity": "Memory reserved, slots freed at every step: a request enters as soon as its whole reservation "
                   "finds a place, and nobody is preempted.",
    "cap": "The other's cap over one's own memory: batches as large as the other's cap and one's own memory rule "
           "allow; reservations that find no place stay out. The other's memory under one's own cap: paged "
           "memory with the baseline's batch as max_num_seqs, or reservations with max_num_seqs as the batch.",
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

ORDER = "The order matters: a habit is worth what the others leave it to do."


def heading(found: Attribution) -> str:
    """What is taken apart, in a line."""
    load = "every request queued at 0" if found.scenario.load == "saturated" else "at the trace's own times"
    return (f"From {found.names[0]} to {found.names[1]} on {found.trace.name}, "
            f"{counted(len(found.trace), 'request')}, {load}: {times(found.total) if found.total else 'no ratio'} in "
            f"{METRICS[found.metric]}")


def story(found: Attribution) -> list[str]:
    """The ratio and its parts, in sentences."""
    if not found.total:
        return brief(found)
    told = [" ".join(_whole(found)), *_corrections(found),
            *(_product(words, rungs) for words, rungs in found.ladders.items())]
    if len(found.ladders) > 1:
        told.append(ORDER)
    return [*told, *([_shares(found)] if found.shares else []), *_bounds(found), *_caveats(found)]


def brief(found: Attribution) -> list[str]:
    """What the tables do not say: the whole, what is left out of it, and what to mind."""
    return [*_whole(found), *(_corrections(found) if found.total else ()), *_caveats(found)]


def _whole(found: Attribution) -> list[str]:
    """Both values, and their ratio."""
    values = (number(rung.point.value(found.metric)) for rung in (found.ladder[0], found.ladder[-1]))
    measured = ", ".join(f"{name} {value}" for name, value in zip(found.names, values, strict=True))
    worth = f"That is no ratio: {idle(found)}." if not found.total else (
        f"The switch is worth {times(found.total)}; in steps, as if every step cost the same, "
        f"{times(found.total_in_steps)}.")
    return [f"{METRICS[found.metric]}: {measured}.", worth]


def idle(found: Attribution) -> str:
    """Which of the two serves nothing that counts, in words."""
    names = [name for name, rung in zip(found.names, (found.ladder[0], found.ladder[-1]), strict=True)
             if not rung.point.worth(found.metric)]
    verb = "serves" if len(names) == 1 else "serve"
    return f"{' and '.join(names)} {verb} nothing{' within the objectives' if found.metric == 'goodput' else ''}"


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
    """The switch; for what bounds the batch how much larger it becomes, and why that loses where it does."""
    if rung.key not in ("cap", "reservation", "memory"):
        return rung.words
    before, after, loss = rung.before.sequences, rung.point.sequences, loss_of(rung)
    many = counted(after, "sequence")
    grown = f"{before:,} to {many} at once" if before != after else f"still {many} at once"
    return f"{rung.words}: {grown}{f'; {loss}' if loss else ''}"


def loss_of(rung: Rung) -> str:
    """Why a larger batch serves less, where it does."""
    if rung.key not in ("cap", "reservation", "memory"):
        return ""
    if rung.metric == "goodput" or not rung.factor or rung.factor >= Fraction(995, 1000):
        return ""
    if "padded=true" in rung.flags and rung.point.sequences > rung.before.sequences:
        return "larger padded batches pad more"
    return "who is preempted is computed again" if rung.point.preemptions > rung.before.preemptions else ""


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
    told = (f"Freed slots alone cannot be worth more than {float(bound.batches):.2f}x in steps with up to "
            f"{bound.slots:,} at once: the longest answer of a batch over the mean of all, for batches in this trace's "
            f"own order of arrival. In another order it may be another: drawn at random, the same lengths have "
            f"{float(bound.order):.2f}x, and exponential lengths {float(bound.harmonic):.2f}x (H_{bound.slots}).")
    own = next((rung for rung in found.ladder if rung.key == "granularity"), None)
    if slots is not None:
        told += f" Here they come to {times(slots)} with prompts mixed in"
        told += "." if not own or own.factor_in_steps == slots else (
            f", {times(own.factor_in_steps)} with prompts in steps of their own.")
    return [told, *seconds_told(found)]


def seconds_told(found: Attribution) -> list[str]:
    """Why slots are worth more, or less, in seconds than in steps."""
    own = next((rung for rung in found.ladder if rung.key == "granularity"), None)
    return [_seconds(found, own)] if own and found.metric == "throughput" else []


def _seconds(found: Attribution, own: Rung) -> str:
    told = (f"Slots are worth {times(own.factor)} in tokens a second beside {times(own.factor_in_steps)} in steps, for "
            "steps differ in what they cost")
    told += ": fuller ones cost more"
    if "padded=true" not in own.flags:
        return f"{told}."
    ragged = next((rung for rung in found.ladders.get("with padding first", ()) if rung.key == "granularity"), None)
    told += ", and refilled slots save padded prompts and finished rows, which cost time but no steps."
    return told if ragged is None else (
        f"{told} Against a ragged baseline there is none of that to save: {times(ragged.factor)} with padding first. "
        "The scheduling ratio of `batchsim compare` is against a ragged one too, with prompts mixed in.")


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
