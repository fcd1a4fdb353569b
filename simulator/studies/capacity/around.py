"""Around an answer: its neighbours, its margin, what binds it, how an error of the step times moves it, and the curve.

A constraint binds if the answer is better without it. That is shown and not argued: each is relaxed by itself where the
answer just fails - one replica fewer - and the objectives are kept there or not. Where one replica is the answer
already, or where the rate is sought, what counts is how much more traffic is carried without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from simulator.replication import MOST_REPLICAS
from simulator.statistics import Interval
from simulator.studies.capacity.changes import faster, relaxable
from simulator.studies.capacity.lab import NOTCH, Lab, notch_of, scale_of
from simulator.studies.capacity.layout import Layout
from simulator.studies.capacity.search import fewest
from simulator.studies.capacity.solving import FARTHEST
from simulator.studies.capacity.traffic import Probe
from simulator.studies.capacity.verdict import Verdict

LOADS = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0, 1.15, 1.35)
"""Of the curve: parts of the rate of saturated replicas."""
MOST_FASTER = 60
"""Notches by which steps are made shorter to do without a replica: to less than a third."""


@dataclass(frozen=True)
class Relaxed:
    """An answer without one of its constraints.

    Attributes:
        key: Of the change, as in `changes`.
        verdict: On one replica fewer, or on a notch more traffic, with the change.
        gain: By how much more requests meet the objectives with it than without, on one replica fewer, or at the
            traffic that the change allows: the same requests in pairs.
        replicas: The fewest that keep the objectives with it; None where that is not what is sought.
        notch: How much faster the traffic may be with it; None likewise.
    """

    key: str
    verdict: Verdict
    gain: Interval
    replicas: int | None = None
    notch: int | None = None


@dataclass(frozen=True)
class Banded:
    """The answer with every step shorter, and with every step longer.

    Attributes:
        bias: By how much, as a share of the step.
        shorter, longer: Replicas, or notches where the rate is sought; None where there is no answer.
    """

    bias: float
    shorter: int | None
    longer: int | None


@dataclass(frozen=True)
class Around:
    """What lies around an answer.

    Attributes:
        neighbours: One fewer, the answer, one more: replicas, or notches of traffic where the rate is sought.
        top: How many notches faster the traffic may be with the replicas of the answer.
        spare: The same, with one replica fewer: below 0, and None where there is none.
        relaxed: The answer without each of its constraints, and with settings that may be better.
        faster: Notches by which steps must be shorter to do without a replica; None where that is not sought, or
            where more than MOST_FASTER would be.
        band: What an error of the step times does; None where none is stated.
        saturation: How many notches faster the traffic may be for completions to follow arrivals, whatever the latency;
            None where they do not even at a thousandth of it.
        curve: Runs at the rates of LOADS, and at those that mattered.
    """

    neighbours: tuple[Probe, ...]
    top: int
    spare: int | None
    relaxed: tuple[Relaxed, ...]
    faster: int | None
    band: Banded | None
    saturation: int | None
    curve: tuple[Probe, ...]


def around(layout: Layout, find: str, bias: float | None) -> Around:
    """Look around the answer of a layout."""
    lab, replicas = layout.runs, layout.replicas or 1
    fewer = find == "replicas" and replicas > 1
    keys = [key for key in relaxable(lab.traffic.setup, replicas) if lab.traffic.can(key)]
    _ahead(layout, find, keys, bias)
    top = layout.notch if find == "rate" else _margin(layout, replicas)
    spare = lab.highest_sure(replicas - 1, -4, most=0, why="margin") if fewer else None
    relaxed = tuple(_relaxed(lab, key, replicas, top, fewer) for key in keys)
    shorter = _faster(lab, replicas - 1) if fewer else None
    band = None if bias is None else _band(layout, find, bias, top)
    full = _saturation(layout, replicas)
    return Around(_neighbours(layout, find), top, spare, relaxed, shorter, band, full, _curve(layout, top, full))


def _ahead(layout: Layout, find: str, keys: Iterable[str], bias: float | None) -> None:
    """Have made at once what is needed in any case, so that all processes have work."""
    lab, replicas = layout.runs, layout.replicas or 1
    kinds = [(probe.replicas, probe.scale, "") for probe in _neighbours(layout, find)]
    if find == "replicas" and replicas > 1:
        kinds += [(replicas - 1, 1.0, key) for key in keys]
        kinds += [] if bias is None else [(replicas, 1.0, faster(1 + bias)), (replicas - 1, 1.0, faster(1 - bias))]
    probes = [probe for kind in kinds for probe in lab.seeds(*kind)]
    lab.need([*probes, *(Probe(replicas, load) for load in _loads(layout))], "relaxing and curve")


def _neighbours(layout: Layout, find: str) -> tuple[Probe, ...]:
    replicas, notch = layout.replicas or 1, layout.notch
    if find == "rate":
        return tuple(Probe(replicas, scale_of(notch + by)) for by in (-1, 0, 1))
    return tuple(Probe(number) for number in (replicas - 1, replicas, replicas + 1) if 1 <= number <= MOST_REPLICAS)


def _relaxed(lab: Lab, key: str, replicas: int, top: int, fewer: bool) -> Relaxed:
    if not fewer:
        found = lab.highest_sure(replicas, top + 1, least=top, change=key, why="relaxing")
        notch = top if found is None else found
        gain = lab.gain(replicas, scale_of(max(notch, top + 1)), key)
        return Relaxed(key, lab.verdict(replicas, scale_of(top + 1), key), gain, notch=notch)
    verdict, gain = lab.verdict(replicas - 1, change=key, why="relaxing"), lab.gain(replicas - 1, 1.0, key)
    if not verdict.holds:
        return Relaxed(key, verdict, gain, replicas)
    return Relaxed(key, verdict, gain, lab.fewest_replicas(1, replicas - 1, replicas - 1, change=key, why="relaxing"))


def _margin(layout: Layout, replicas: int) -> int:
    """How many notches faster the traffic may be: no more than throughput allows in the long run."""
    most = max(layout.highest_possible(replicas), 0)
    return layout.runs.highest_sure(replicas, min(4, most), least=0, most=most, why="margin") or 0


def _saturation(layout: Layout, replicas: int) -> int | None:
    """How many notches faster the traffic may be for completions to follow arrivals, for all that can be told."""
    most = layout.highest_possible(replicas)
    likely = notch_of(layout.flat_out.served * replicas / layout.offered)
    return layout.runs.highest_followed(replicas, min(likely, most), most, "saturation")


def _faster(lab: Lab, replicas: int) -> int | None:
    """Notches by which steps must be shorter for so many replicas to do."""
    def enough(notches: Iterable[int]) -> list[bool]:
        kinds = [(replicas, 1.0, faster(NOTCH ** -notch)) for notch in notches]
        return lab.hold(kinds, "faster steps")

    return fewest(enough, 1, 4, MOST_FASTER)


def _band(layout: Layout, find: str, bias: float, top: int) -> Banded:
    lab, replicas = layout.runs, layout.replicas or 1
    if find == "rate":
        ends = (lab.highest_sure(replicas, guess, change=faster(factor), why="error band")
                for factor, guess in ((1 - bias, top + 1), (1 + bias, top - 1)))
        return Banded(bias, *ends)
    shorter = lab.fewest_replicas(1, replicas, replicas, change=faster(1 - bias), why="error band")
    longer = lab.fewest_replicas(replicas, replicas + 1, FARTHEST * replicas, change=faster(1 + bias), why="error band")
    return Banded(bias, shorter, longer)


def _loads(layout: Layout) -> list[float]:
    """The rates of the curve, in times the trace's own traffic."""
    full = layout.flat_out.served * (layout.replicas or 1) / layout.offered
    return [float(f"{load * full:.4g}") for load in LOADS]


def _curve(layout: Layout, top: int, saturation: int | None) -> tuple[Probe, ...]:
    replicas = layout.replicas or 1
    notches = {top, top + 1} | (set() if saturation is None else {saturation, saturation + 1})
    told = {1.0, *map(scale_of, notches)}
    told |= {load for load in _loads(layout) if all(abs(load / other - 1) >= NOTCH - 1 for other in told)}
    probes = [Probe(replicas, scale) for scale in sorted(told)]
    layout.runs.need(probes, "curve")
    return tuple(probes)
