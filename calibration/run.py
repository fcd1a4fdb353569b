"""Calibrate one machine: choose the attention, time the grid, fit, and write it all down as a profile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
import torch

from calibration.attention import Chosen, working_path
from calibration.attention.check import Heads
from calibration.fit import FitError
from calibration.fitting import Fitted, fit_rows
from calibration.grid import CPU, CPU_QUICK, GPU, GPU_QUICK, PASSES, Grid
from calibration.llama import Llama, pointwise
from calibration.machine import Machine, machine, software
from calibration.measuring import Progress, drift, measure, raw_rows
from calibration.samples import SampleFile
from calibration.shard import LARGEST_ON_CPU, TINY, Shard
from calibration.workbench import Workbench
from cost_models import ModelSpec, Profile, model_spec
from cost_models.profile import SCHEMA_VERSION, Device, Origin, RawRow, Shape
from simulator.errors import InputError

SHARE_FOR_KERNELS, SHARE_FOR_STEPS = 0.2, 0.55
"""Of the memory that the weights leave: for the pages of one layer, and for the KV cache of whole steps."""
LEAST_LEFT = 0.1
"""Share of the device's memory that weights and buffers must leave for KV cache."""
BUFFERS = 4e9
"""Bytes for weights that take turns, and for what a step computes with, on a GPU."""


@dataclass(frozen=True)
class Calibration:
    """What a calibration found.

    Attributes:
        profile: To be used.
        fitted: The fit behind it.
        chosen: The attention that was timed.
        drift: How far the passes lie apart, as `measuring.drift` counts it.
        model: The model that was timed, whole: it can be run again.
    """

    profile: Profile
    fitted: Fitted
    chosen: Chosen
    drift: float
    model: Llama


@dataclass(frozen=True)
class Job:
    """What to calibrate, all of it checked. Made by `job`.

    Attributes:
        spec: The model.
        quick: Fewer sizes and repeats.
        seed: Of inputs and orders.
        machine: The device.
        shard: One rank's share.
        grid: What will be timed.
    """

    spec: ModelSpec
    quick: bool
    seed: int
    machine: Machine
    shard: Shard
    grid: Grid

    @property
    def name(self) -> str:
        """Of the profile."""
        return f"{self.spec.name}-{self.machine.gpu_id()}-{self.machine.dtype}-measured"


def job(model: str | None, device: str, *, quick: bool = False, seed: int = 0) -> Job:
    """Look at what is asked, before anything is timed.

    Args:
        model: A model's name or file; None takes llama-3.1-8b on a GPU and "tiny" on a CPU.
        device: "cuda" or "cpu".
        quick: Fewer sizes and repeats.
        seed: Of inputs and orders.

    Raises:
        InputError: There is no such device, or the model does not fit it.
        CostModelError: There is no such model, or it is not shaped like Llama.
    """
    found = machine(device)
    name = model or ("llama-3.1-8b" if found.is_gpu else TINY.name)
    spec = TINY if name == TINY.name else model_spec(name)
    shard = Shard.of(spec)
    if not found.is_gpu and shard.parameters > LARGEST_ON_CPU:
        raise InputError(f"{spec.name} is too large to be timed on a CPU ({shard.parameters / 1e9:.1f} billion "
                         f"parameters): give --model {TINY.name}, or --device cuda")
    grid = (GPU_QUICK if quick else GPU) if found.is_gpu else (CPU_QUICK if quick else CPU)
    return Job(spec, quick, seed, found, shard, _fitting(grid, shard, found, spec.name))


def _fitting(grid: Grid, shard: Shard, found: Machine, name: str) -> Grid:
    """The grid as far as the device's memory goes."""
    size = found.torch_dtype.itemsize
    weights = shard.parameters * size
    buffers = BUFFERS if found.is_gpu else 0
    left = found.memory_bytes - weights - buffers
    if left <= LEAST_LEFT * found.memory_bytes:
        raise InputError(f"{name} does not fit: its weights take {weights / 1e9:.1f} GB and timing "
                         f"{buffers / 1e9:.0f} GB more, the device has {found.memory_bytes / 1e9:.1f} GB: give a "
                         "smaller --model")
    a_layer = shard.kv_values() * size
    return grid.within(int(SHARE_FOR_KERNELS * left / a_layer), int(SHARE_FOR_STEPS * left / a_layer / shard.layers))


def calibrate(job: Job, samples: Path, *, resume: bool = False,
              progress: Progress = lambda done, total: None) -> Calibration:
    """Time, fit and describe. `samples` is the file that keeps what has been timed.

    Raises:
        InputError: `resume` is asked of a file that is not there or began otherwise; nothing attends to a paged cache
            rightly on this device; its memory runs out.
    """
    found, shard, rng = job.machine, job.shard, np.random.default_rng(job.seed)
    chosen = working_path(Heads(shard.heads, shard.kv_heads, shard.head_dim), found.torch_dtype, found.torch_device,
                          rng)
    before = found.describe()
    what = {"model": job.spec.name, "device": before.name, "dtype": found.dtype, "attention": chosen.path.name,
            "page_size": chosen.page_size, "quick": job.quick, "seed": job.seed, "torch": software().torch}
    with SampleFile(samples, what, resume=resume) as kept, _one_line_without_memory():
        model = Llama(shard, chosen.path, found.torch_dtype, found.torch_device, job.seed)
        bench = Workbench(found, model, chosen, job.grid, rng)
        measure(bench, found, job.grid, kept, job.seed, progress)
        points = kept.points()
    rows = raw_rows(points, found)
    try:
        fitted = fit_rows(rows, shard.layers, job.seed)
    except FitError as error:
        raise InputError(f"{error} (the device has too little memory for larger ones)") from None
    device = replace(before, clocks=_clocks(before, found.describe()))
    return Calibration(_profile(job, fitted, chosen, device, rows), fitted, chosen, drift(points), model)


@contextmanager
def _one_line_without_memory() -> Iterator[None]:
    """What torch says when memory runs out is a page long."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise InputError(f"memory ran out ({str(error).splitlines()[0][:120]}): end other programs that hold memory of "
                         "the device, or give a smaller --model; --resume keeps what has been timed") from None


def _clocks(before: Device, after: Device) -> str | None:
    return f"before: {before.clocks}; after: {after.clocks}" if before.clocks else None


def _profile(job: Job, fitted: Fitted, chosen: Chosen, device: Device, rows: tuple[RawRow, ...]) -> Profile:
    spec, found = job.spec, job.machine
    return Profile(SCHEMA_VERSION, job.name, spec.name, found.gpu_id(), 1, found.dtype, found.dtype, Shape.of(spec),
                   Origin("measured", f"measured here by batchsim calibrate on {device.name}",
                          date.today().isoformat(), _method(job, chosen), job.seed),
                   fitted.fit, fitted.host, page_size=chosen.page_size, device=device, software=software(), raw=rows)


def _method(job: Job, chosen: Chosen) -> str:
    """How everything was timed, in one line."""
    how = "one thread, call by call, medians of the time that it had the CPU"
    if job.machine.is_gpu:
        fused = "fused" if pointwise(job.machine.torch_device.type).fused else "not fused"
        how = ("a CUDA graph of several calls on buffers that take turns, L2 flushed before each replay, medians; what "
               f"lies between matrix products is {fused}")
    return (f"{how}; {job.grid.repeats} samples in each of {PASSES} shuffled passes; attention: {chosen.path.name}, "
            f"error {chosen.error:.1g} against float64; errors are of whole engine steps; host time is that of "
            "batchsim's own engine")
