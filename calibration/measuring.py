"""All points of a grid, timed: in each pass ceilings, then kernels and whole steps in new orders. It fits nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import torch

from calibration.grid import PASSES, Grid, Point
from calibration.machine import Machine
from calibration.samples import Sample, SampleFile
from calibration.timing import timed
from calibration.workbench import Workbench
from cost_models.profile import RawRow

Progress = Callable[[int, int], None]
"""Called with (points timed, points in all)."""
LEAST_SHARE = 0.9
"""Of the time that a point's bytes take at the copy bandwidth: what is faster has read a cache."""


@torch.inference_mode()
def measure(bench: Workbench, machine: Machine, grid: Grid, kept: SampleFile, seed: int, progress: Progress) -> None:
    """Time what is not kept yet, pass by pass."""
    timer, done, points = machine.timer(), 0, grid.ceilings + grid.points()
    for turn in range(PASSES):
        rng = np.random.default_rng([seed, turn])
        kernels = [*grid.ceilings, *_shuffled([point for point in grid.points() if point.kernel != "step"], rng)]
        for point in kernels:
            if (turn, point) not in kept:
                work = bench.work(point)
                kept.add(turn, point, Sample(tuple(timer.samples(work, grid.repeats)), work.bytes, work.flops))
            done += 1
            progress(done, PASSES * len(points))
        steps = [point for point in grid.points() if point.kernel == "step"]
        if not all((turn, point) in kept for point in steps):
            _measure_steps(bench, machine, steps, turn, grid.repeats, kept, rng)
        done += len(steps)
        progress(done, PASSES * len(points))


def _measure_steps(bench: Workbench, machine: Machine, steps: list[Point], turn: int, repeats: int, kept: SampleFile,
                   rng: np.random.Generator) -> None:
    """Time whole steps one by one in ever new orders: each finds the caches as another step has left them."""
    works, us = {point: bench.work(point) for point in steps}, defaultdict(list)
    for number in range(repeats + 1):
        for point in _shuffled(steps, rng):
            lasted = timed(works[point].calls[0], machine.torch_device) / 1e3
            if number:    # the first round warms up
                us[point].append(lasted)
    for point, work in works.items():
        kept.add(turn, point, Sample(tuple(us[point]), work.bytes, work.flops))


def _shuffled(points: list[Point], rng: np.random.Generator) -> list[Point]:
    return [points[at] for at in rng.permutation(len(points))]


def raw_rows(found: dict[Point, list[Sample]], machine: Machine) -> tuple[RawRow, ...]:
    """A row a point, over all passes."""
    bandwidth = _bandwidth(found)
    return tuple(_row(point, passes, machine, bandwidth) for point, passes in sorted(found.items()))


def _bandwidth(found: dict[Point, list[Sample]]) -> float:
    """Bytes a microsecond of the copies."""
    return max(sample.bytes / float(np.median(sample.us))
               for point, passes in found.items() if point.kernel == "copy" for sample in passes)


def _row(point: Point, passes: list[Sample], machine: Machine, bandwidth: float) -> RawRow:
    us = np.concatenate([sample.us for sample in passes])
    low, median, high = np.percentile(us, (25, 50, 75))
    moved = passes[0].bytes
    # A model for CPUs lives in the cache, here as when it is served.
    cached = machine.is_gpu and point.kernel != "copy" and median < LEAST_SHARE * moved / bandwidth
    return RawRow(point.kernel, point.dims, _us(median), _us(high - low), _us(us.min()), len(us), moved,
                  passes[0].flops or None, "faster than its bytes allow: it read a cache" if cached else None)


def _us(value: float) -> float:
    return round(float(value), 3)


def drift(found: dict[Point, list[Sample]]) -> float:
    """Middle over all points of how far the medians of the passes lie apart, as a share of the smallest."""
    spreads = []
    for passes in found.values():
        medians = [float(np.median(sample.us)) for sample in passes]
        spreads.append(max(medians) / min(medians) - 1)
    return float(np.median(spreads))
