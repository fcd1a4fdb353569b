"""Why a plan's answer is what it is, and what would change it, in sentences. It measures nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from simulator.counting import plainly
from simulator.studies.capacity.changes import RELAXED, TRIED, words
from simulator.studies.capacity.lab import NOTCH, scale_of
from simulator.studies.capacity.layout import Layout
from simulator.studies.capacity.objectives import a_second, count
from simulator.studies.capacity.solving import looser
from simulator.studies.capacity.traffic import Probe

if TYPE_CHECKING:
    from simulator.studies.capacity.around import Around, Relaxed

SHORT = ", as far as so short a trace can tell"


def binding(layout: Layout, about: Around) -> Iterator[str]:
    """What binds, as far as lifting it shows, and what does not."""
    lifted = [one for one in about.relaxed if one.key in RELAXED]
    better = sorted((one for one in lifted if is_better(one, layout, about)), key=_worth)
    doubtful = [one for one in lifted if one not in better and _is_further(one, layout, about)]
    names = ", ".join(RELAXED[one.key][0] for one in lifted if one not in [*better, *doubtful])
    if better:
        told = "; ".join(f"{RELAXED[one.key][0]} ({_effect(one, about)})" for one in better)
        yield f"What binds, shown by lifting it: {told}."
    if better and names:
        yield f"What does not: {names}. Each was lifted by itself, and the answer stayed."
    elif names and not doubtful:
        yield (f"None of these binds by itself: {names}. Each was lifted, and the answer stayed; what binds is the "
               "time that steps take.")
    if doubtful:
        yield (f"Whether what binds is {_or(RELAXED[one.key][0] for one in doubtful)} cannot be told: without that the "
               "answer is better, but no more of the same requests meet their limits than chance may explain.")


def is_better(one: Relaxed, layout: Layout, about: Around) -> bool:
    """Whether the answer is better with this change, and not by chance."""
    return _is_further(one, layout, about) and one.gain.low > 0


def _is_further(one: Relaxed, layout: Layout, about: Around) -> bool:
    """Whether the answer is better with this change."""
    if one.replicas is not None:
        return one.replicas < (layout.replicas or 1)
    return one.notch is not None and one.notch > about.top


def _or(names: Iterable[str]) -> str:
    """Names as alternatives."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _worth(one: Relaxed) -> tuple[int, int]:
    """The best first."""
    return one.replicas or 0, -(one.notch or 0)


def _effect(one: Relaxed, about: Around) -> str:
    """What would do with this change."""
    if one.replicas is not None:
        return f"with {words(one.key)}, {count(one.replicas)} would do"
    return f"with {words(one.key)}, {scale_of((one.notch or 0) - about.top) - 1:.0%} more traffic would do"


def changing(layout: Layout, about: Around, find: str) -> Iterator[str]:
    """What would change the answer."""
    kept = layout.offered * scale_of(about.top) / (layout.replicas or 1)
    short = f"{SHORT}, in which a backlog may grow unseen" if _is_short(layout, about) else ""
    yield (f"In this fleet a replica keeps the objectives up to {a_second(kept)}, to {NOTCH - 1:.0%}"
           f"{short}. {_saturation(layout, about)}")
    if find == "replicas":
        yield from _margin(layout, about)
    for one in about.relaxed:
        if one.key in TRIED and is_better(one, layout, about):
            yield f"Worth a try: {_effect(one, about)}."


def _saturation(layout: Layout, about: Around) -> str:
    """Up to which rate completions follow arrivals, as far as the trace is long enough to tell."""
    replicas, notch = layout.replicas or 1, about.saturation
    most = f"throughput alone allows {plainly(layout.bound.rate, 4)} at most in the long run" if layout.bound else ""
    if notch is None:
        return f"From which rate on completions no longer follow arrivals, so short a trace cannot tell; {most}."
    full = plainly(layout.offered * scale_of(notch) / replicas, 4)
    beyond = layout.runs.samples.get(Probe(replicas, scale_of(notch + 1)))
    if beyond is not None and beyond.follows is None:
        return (f"Objectives apart, completions are seen to follow arrivals up to {full}; of faster traffic so short a "
                f"trace cannot tell, and {most}.")
    return f"Objectives apart, completions follow arrivals up to {full}."


def _is_short(layout: Layout, about: Around) -> bool:
    """Whether the trace is too short to tell if completions follow arrivals at the most traffic kept."""
    then = layout.runs.samples.get(Probe(layout.replicas or 1, scale_of(about.top)))
    return then is not None and then.follows is None


def _margin(layout: Layout, about: Around) -> Iterator[str]:
    """How much traffic, step time and limits leave."""
    replicas = layout.replicas or 1
    told = f"Margin: {scale_of(about.top) - 1:.0%} more traffic and {count(replicas)} still do"
    if _is_short(layout, about):
        told += SHORT
    if about.spare is not None:
        told += f"; with {1 - scale_of(about.spare):.0%} less, {count(replicas - 1)} would"
    yield f"{told}."
    if about.faster is not None:
        yield f"Steps {1 - NOTCH ** -about.faster:.0%} shorter, by a faster GPU or engine, would save a replica."
    if replicas > 1 and (fewer := layout.runs.sample(about.neighbours[0])).follows is not False:
        yield from (f"With {count(replicas - 1)}, {each}." for each in looser(layout.runs.objectives, fewer))
