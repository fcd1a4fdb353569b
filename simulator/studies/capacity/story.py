"""A plan in sentences: the answer, how sure it is, what binds it, and what would change it. It measures nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simulator.studies.capacity.changes import RELAXED, TRIED, words
from simulator.studies.capacity.lab import NOTCH, scale_of
from simulator.studies.capacity.layout import Layout
from simulator.studies.capacity.objectives import Objective, percent
from simulator.studies.capacity.sample import CAUSES, Sample
from simulator.studies.capacity.solving import looser, shortfall

if TYPE_CHECKING:
    from simulator.studies.capacity.around import Relaxed
    from simulator.studies.capacity.planning import Plan

MANY = 0.05
"""Of the requests that miss their limits: a cause below this share is not told."""


def story(found: Plan) -> list[str]:
    """Everything that is to be said, the answer first."""
    if not found.feasible:
        return [*_infeasible(found)]
    return [answer(found), *_sure(found), *_fewer(found), *_binding(found), *_changing(found), *_trust(found)]


def answer(found: Plan) -> str:
    """The answer in a sentence."""
    layout = found.best
    gpus = f"{layout.gpus:,} {layout.gpu}" + (f" ({layout.size} a replica)" if layout.size > 1 else "")
    carried = f"{found.rate:,.4g} requests/s"
    if found.question.find == "rate":
        each = f", {found.rate / layout.replicas:,.4g} a replica" if layout.replicas > 1 else ""    # type: ignore[operator]
        return (f"{carried}{each} (+ {NOTCH - 1:.0%}) is the most that {_count(layout.replicas or 0)} on {gpus} carry, "
                f"{layout.scale:.3g} times the traffic given")
    return f"{_count(layout.replicas or 0)} on {gpus} for {carried}"


def _count(replicas: int) -> str:
    return f"{replicas:,} {_verb(replicas, 'replica', 'replicas')}"


def _verb(replicas: int, one: str, several: str) -> str:
    return one if replicas == 1 else several


def _sure(found: Plan) -> Iterator[str]:
    """How well the objectives are kept, and what that rests on."""
    layout = found.best
    sample, verdict = layout.sample(), layout.verdict()
    for objective, share in zip(found.question.objectives, verdict.shares, strict=True):
        yield (f"{limits(objective)}: met by {share.mean:.2%} of the requests, {share.level:.0%} interval "
               f"{share.low:.2%} to {share.high:.2%}, where {percent(objective.share)} are asked. "
               f"{_basis(found, sample)}")
    yield (f"Completions follow arrivals. The worst of {len(sample.windows[0])} windows, from {sample.worst[1]:,.3g} "
           f"to {sample.worst[2]:,.3g} s, has {sample.worst[0]:.2%}.")
    if layout.bound:
        yield layout.bound.told()


def limits(objective: Objective) -> str:
    """The limits of an objective, to begin a sentence with."""
    return str(objective).partition(" with ")[2]


def _basis(found: Plan, sample: Sample) -> str:
    """From what the interval comes, and what was left out."""
    windows = len(sample.windows[0])
    if found.question.seeds > 1:
        basis = f"From {found.question.seeds} seeds, each cut into {windows} windows"
    else:
        basis = f"From {windows} windows of the one trace there is"
    warm = (f"; as warm-up, what was sent in the first {sample.warm_after:,.3g} s is left out ({sample.left_out:,} of "
            f"{sample.left_out + sample.requests:,})" if sample.left_out else "; nothing is left out as warm-up")
    return f"{basis}{warm}."


def _fewer(found: Plan) -> Iterator[str]:
    """What happens just beyond the answer."""
    assert found.around
    layout, lab = found.best, found.best.runs
    beyond = found.around.neighbours[0] if found.question.find == "replicas" else found.around.neighbours[-1]
    if found.question.find == "replicas" and layout.replicas == 1:
        return
    verdict, sample = lab.verdict(beyond.replicas, beyond.scale), lab.sample(beyond)
    which = (_count(beyond.replicas) if found.question.find == "replicas" else
             f"{layout.offered * beyond.scale:,.4g} requests/s")
    known = ("would do by what was seen, but that is not sure" if verdict.holds_on_the_mean else
             "is too much" if found.question.find == "rate" else f"{_verb(beyond.replicas, 'does', 'do')} not suffice")
    yield f"{which} {known}: {shortfall(verdict)}. {_missed(sample)}".rstrip()


def _missed(sample: Sample) -> str:
    """What those did that miss their limits."""
    missing = sum(sample.causes.values())
    parts = sorted(((count, why) for why, count in sample.causes.items() if count > MANY * missing), reverse=True)
    return "Of those that miss, " + ", ".join(f"{count / missing:.0%} {CAUSES[why]}" for count, why in parts) + (
        "." if parts else "") if missing else ""


def _binding(found: Plan) -> Iterator[str]:
    """What binds, as far as relaxing it shows."""
    assert found.around
    base, top = found.best.replicas or 1, found.around.top
    better = [one for one in found.around.relaxed if one.key in RELAXED and _is_better(one, base, top)]
    if better:
        best = sorted(better, key=lambda one: (one.replicas or 0, -(one.notch or 0)))
        yield "What binds, shown by relaxing it: " + "; ".join(_relaxed(found, one) for one in best) + "."
    others = [RELAXED[one.key][0] for one in found.around.relaxed if one.key in RELAXED and one not in better]
    if others:
        names = ", ".join(others)
        yield (f"What does not bind: {names}. Each was lifted, and the answer stayed." if better else
               f"None of these binds by itself: {names}. Each was lifted, and the answer stayed: what binds is the time "
               "that steps take.")


def _is_better(one: Relaxed, base: int, top: int) -> bool:
    return one.replicas < base if one.replicas is not None else one.notch is not None and one.notch > top


def _relaxed(found: Plan, one: Relaxed) -> str:
    name = RELAXED[one.key][0]
    with_it = words(one.key)
    if one.replicas is not None:
        return f"{name} (with {with_it}, {_count(one.replicas)} would do)"
    more = scale_of((one.notch or 0) - found.around.top)    # type: ignore[union-attr]
    return f"{name} (with {with_it}, {more - 1:.0%} more traffic would do)"


def _changing(found: Plan) -> Iterator[str]:
    """What would change the answer."""
    assert found.around
    layout, about = found.best, found.around
    replicas = layout.replicas or 1
    if about.saturation is not None:
        kept, full = (layout.offered * scale_of(notch) / replicas for notch in (about.top, about.saturation))
        yield (f"A replica keeps the objectives up to {kept:,.4g} requests/s; without them, completions follow arrivals "
               f"up to {full:,.4g} (both to 2%).")
    if found.question.find == "replicas":
        told = (f"Margin: {_count(replicas)} {_verb(replicas, 'carries', 'carry')} up to "
                f"{scale_of(about.top) - 1:.0%} more traffic")
        if about.spare is not None:
            told += f"; with {1 - scale_of(about.spare):.0%} less, {_count(replicas - 1)} would do"
        yield told + "."
        if about.faster is not None:
            yield f"Steps {1 - NOTCH ** -about.faster:.0%} shorter, by a faster GPU or kernel, would save a replica."
        if replicas > 1:
            near = looser(found.question.objectives, layout.runs.sample(about.neighbours[0]))
            yield from (f"With {_count(replicas - 1)}, {each}." for each in near)
    for one in about.relaxed:
        if one.key in TRIED and _is_better(one, replicas, about.top):
            yield f"Worth a try: {_relaxed_setting(found, one)}."


def _relaxed_setting(found: Plan, one: Relaxed) -> str:
    if one.replicas is not None:
        return f"with {words(one.key)}, {_count(one.replicas)} would do"
    return f"with {words(one.key)}, {scale_of((one.notch or 0) - found.around.top) - 1:.0%} more traffic would do"    # type: ignore[union-attr]


def _trust(found: Plan) -> Iterator[str]:
    """What an error of the step times does, and who is left out."""
    assert found.around
    band, layout = found.around.band, found.best
    setup = layout.runs.traffic.setup
    if band is None:
        yield f"{setup.cost.name} states no error of its step times: --error-band 10 tries 10% either way."
    else:
        ends = [band.shorter, band.longer]
        shown = ([f"{layout.offered * scale_of(end):,.4g} requests/s" for end in ends if end is not None]
                 if found.question.find == "rate" else [f"{end:,}" if end is not None else "none" for end in ends])
        if found.question.find == "rate":
            yield (f"With every step {100 * band.bias:.3g}% shorter and longer, as the cost model may err: "
                   f"{' and '.join(shown)}.")
        else:
            same = band.shorter == band.longer
            yield (f"With every step {100 * band.bias:.3g}% shorter or longer, as the cost model may err: "
                   f"{f'{_count(band.shorter or 0)} all the same' if same else f'{shown[0]} to {shown[1]} replicas'}.")
    sample = layout.sample()
    if sample.rejected:
        yield (f"{sample.rejected:,} requests are not counted: no replica of this kind can serve them, they are longer "
               "than the model or the KV cache allows.")


def _infeasible(found: Plan) -> Iterator[str]:
    yield "No answer" if len(found.layouts) == 1 else "No answer on any of these layouts"
    for layout in found.layouts:
        name = "" if len(found.layouts) == 1 else f"{layout.name}: "
        yield f"{name}{layout.why_not}."
        if layout.nearest:
            yield "Nearest: " + "; ".join(layout.nearest) + "."
        if layout.bound and not _is_hopeless(layout):
            yield layout.bound.told()


def _is_hopeless(layout: Layout) -> bool:
    return not layout.nearest
