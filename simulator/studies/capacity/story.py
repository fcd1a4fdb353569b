"""A plan in sentences: the answer, how sure it is, what lies beyond it, and whom it leaves out. It measures nothing.

Why it is the answer, and what would change it, is told by `reasons`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cost_models import CostModel
from simulator.counting import counted, plainly
from simulator.facts import UNTRIED, of_two_kinds
from simulator.studies.capacity.lab import NOTCH, scale_of
from simulator.studies.capacity.layout import Layout
from simulator.studies.capacity.objectives import a_second, count, percent
from simulator.studies.capacity.reasons import binding, changing
from simulator.studies.capacity.sample import CAUSES, Sample
from simulator.studies.capacity.solving import shortfall
from simulator.studies.capacity.traffic import Probe
from simulator.studies.capacity.verdict import Verdict

if TYPE_CHECKING:
    from simulator.studies.capacity.around import Around
    from simulator.studies.capacity.planning import Plan

MANY = 0.05
"""Of the requests that miss their limits: a cause below this share is not told."""
LEAST = 0.001
"""A smaller share of the steps is told as that."""


def story(found: Plan) -> list[str]:
    """Everything that is to be said, the answer first."""
    if found.around is None:
        return list(_infeasible(found))
    layout, find = found.best, found.question.find
    return [answer(found), *_cut(layout), *_sure(layout, found.question.seeds), *_beyond(layout, found.around, find),
            *binding(layout, found.around), *changing(layout, found.around, find), *_trust(layout, found.around, find),
            *_others(found)]


def answer(found: Plan) -> str:
    """The answer in a sentence."""
    layout, rate = found.best, found.rate or 0.0
    replicas = layout.replicas or 1
    fleet = f"{count(replicas)} on {layout.gpus:,} {layout.gpu}"
    fleet += f", {layout.size} each," if layout.size > 1 else ""
    if found.question.find == "replicas":
        return f"{fleet} for {a_second(rate)}"
    each = f", {plainly(rate / replicas, 4)} a replica," if replicas > 1 else ""
    return (f"{a_second(rate)}{each} at most on {fleet.removesuffix(',')}: {plainly(layout.scale)} "
            f"times the traffic given, to {NOTCH - 1:.0%}")


def _cut(layout: Layout) -> Iterator[str]:
    """Whose rate that is, where only the first requests of a trace are replayed."""
    traffic = layout.runs.traffic
    if traffic.uncut is not None:
        yield (f"That rate is the mean over the first {len(traffic.setup.trace):,} requests, all that --num-prompts "
               f"lets come; the whole trace comes at {a_second(traffic.uncut * layout.scale)} at "
               "the same speed.")


def _sure(layout: Layout, seeds: int) -> Iterator[str]:
    """How well the objectives are kept, and what that rests on."""
    sample, verdict = layout.sample(), layout.verdict()
    for at, (objective, share) in enumerate(zip(layout.runs.objectives, verdict.shares, strict=True)):
        yield (f"{objective}: met by {share.mean:.2%} of the requests, {share.level:.0%} interval {share.low:.2%} to "
               f"{share.high:.2%}, where {percent(objective.share)} are asked.{_whole(sample, at, objective.share)}")
    yield (f"The interval is that of {_basis(layout, seeds)}; the worst one, from {plainly(sample.worst[1], 4)} to "
           f"{plainly(sample.worst[2], 4)} s, has {sample.worst[0]:.2%}. {_warm(sample)} {_stable(layout, verdict)}")
    assert layout.bound    # an answer was looked for from there
    yield layout.bound.told()


def _basis(layout: Layout, seeds: int) -> str:
    """What the interval rests on: windows of requests that are not the same ones again."""
    windows, traffic = len(layout.sample().windows[0]), layout.runs.traffic
    if seeds > 1 and traffic.fresh:
        basis = f"{seeds} seeds, each cut into {windows} windows"
    else:
        same = f", each over {seeds} seeds that have the same requests" if seeds > 1 else " of one run"
        basis = f"{windows} windows{same}"
    trace = traffic.setup.trace
    if trace.original is None:
        return basis
    return (f"{basis}, each with its requests in every round of the trace (of {len(trace):,} requests "
            f"{trace.distinct:,} are no copies, and only these count for how sure this is)")


def _stable(layout: Layout, verdict: Verdict) -> str:
    """Whether the backlog stays as it is."""
    if verdict.follows is not None:
        return "Completions follow arrivals."
    come = layout.sample().offered / (layout.replicas or 1)
    if layout.bound and come > layout.bound.rate:
        return (f"That is for this trace alone: {a_second(come)} come a replica, and in the long run "
                f"throughput alone allows {plainly(layout.bound.rate, 4)}.")
    return ("Whether completions follow arrivals cannot be told: requests hold their slots for so large a part of the "
            "run, or are so few, that it ends before the fleet has filled. More requests would show it (--num-prompts, "
            "or --repeat N to go through the trace N times, which lets the fleet fill and makes nothing else surer).")


def _warm(sample: Sample) -> str:
    if not sample.left_out:
        return "No warm-up is left out."
    which = counted(sample.left_out, "request")
    return f"As warm-up, while the fleet fills, the first {plainly(sample.warm_after)} s are left out ({which})."


def _whole(sample: Sample, at: int, wanted: float) -> str:
    """How well an objective is kept with the warm-up, in the run of the first seed; empty where none is left out."""
    if not sample.left_out:
        return ""
    below = f", below the {percent(wanted)} asked" if sample.whole[at] < wanted else ""
    return f" With the warm-up, as `batchsim run` counts, {sample.whole[at]:.2%} do{below}."


def _beyond(layout: Layout, about: Around, find: str) -> Iterator[str]:
    """What happens just beyond the answer."""
    lab, beyond = layout.runs, _next(layout, about, find)
    if beyond is None:
        return
    verdict = lab.verdict(beyond.replicas, beyond.scale)
    which = count(beyond.replicas) if find == "replicas" else a_second(layout.offered * beyond.scale)
    fails = "is too much" if find == "rate" else "does not suffice" if beyond.replicas == 1 else "do not suffice"
    known = (fails if verdict.fails else "would do by what was seen, but not for sure" if verdict.holds_on_the_mean else
             f"{fails} by what was seen, but not for sure")
    yield f"{which} {known}: {shortfall(verdict)}. {_missed(lab.sample(beyond))}".rstrip()


def _next(layout: Layout, about: Around, find: str) -> Probe | None:
    """The neighbour that fails; None where nothing is below the answer."""
    if find == "rate":
        return about.neighbours[-1]
    return about.neighbours[0] if (layout.replicas or 1) > 1 else None


def _missed(sample: Sample) -> str:
    """What those did that miss their limits."""
    missing = sum(sample.causes.values())
    parts = sorted(((many, why) for why, many in sample.causes.items() if many > MANY * missing), reverse=True)
    told = ", ".join(f"{many / missing:.0%} {CAUSES[why]}" for many, why in parts)
    return f"Of those that miss, {told}." if told else ""


def _trust(layout: Layout, about: Around, find: str) -> Iterator[str]:
    """What an error of the step times does, and who is left out."""
    setup, sample, band = layout.runs.traffic.setup, layout.sample(), about.band
    if band is None:
        yield f"{setup.cost.name} states no error of its step times: --error-band 10 tries 10% either way."
    else:
        ends = [_end(layout, end, find) for end in (band.shorter, band.longer)]
        told = f"{ends[0]} all the same" if ends[0] == ends[1] else " and ".join(ends)
        yield f"With every step {100 * band.bias:.3g}% shorter or longer, {_whose(band.bias, setup.cost)}: {told}."
    if sample.out_of_range:
        share = sample.out_of_range / sample.steps
        told = f"{share:.1%}" if share >= LEAST else f"Fewer than {LEAST:.1%}"
        yield f"{told} of the steps lie outside what the cost model was measured for: their times are a guess."
    if sample.rejected:
        yield (f"{counted(sample.rejected, 'request')} not counted: longer than the model or its KV cache allows, so "
               "that no number of replicas serves them.")


def _whose(bias: float, cost: CostModel) -> str:
    """Where such an error comes from, and what it is of."""
    if bias != cost.stated_bias():
        return "as asked"
    if cost.held_against() == "kernels":
        return f"as the cost model errs where it is held against kernel times ({UNTRIED}; --error-band 10 tries 10%)"
    return "as the cost model may err"


def _others(found: Plan) -> Iterator[str]:
    """Which layouts are no answer, and how far the order of those that are is to be trusted."""
    for layout in found.layouts:
        if layout.in_doubt:
            yield f"Whether {layout.name} does is not sure: {layout.why_not}; {layout.nearest[0]}."
        elif layout.why_not:
            yield f"{layout.name} does not do: {layout.why_not}."
    costs = [layout.runs.traffic.setup.cost for layout in found.layouts if layout.replicas is not None]
    if told := of_two_kinds(costs, "The layouts are ranked"):
        yield told


def _end(layout: Layout, end: int | None, find: str) -> str:
    if end is None:
        return "no answer"
    return count(end) if find == "replicas" else a_second(layout.offered * scale_of(end))


def _infeasible(found: Plan) -> Iterator[str]:
    """Why there is no answer, and what comes nearest."""
    yield "No answer" if len(found.layouts) == 1 else "No answer on any of these layouts"
    for layout in found.layouts:
        name = f"{layout.name}: " if len(found.layouts) > 1 else ""
        yield f"{name}{layout.why_not}."
        if layout.nearest:
            yield f"Nearest: {'; '.join(layout.nearest)}."
        if layout.bound and len(found.layouts) == 1:
            yield layout.bound.told()
