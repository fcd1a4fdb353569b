"""Measured operating points of vLLM, simulated: Llama-3.1-70B in FP8 on four H100 or H200, in a closed loop.

    python -m calibration.operating_points --measured ../shared/measured

A point is so many clients that each send the next request when the last is answered, all of equal lengths, and the mean
time per output token that came of it. Step times are those of `aiconfigurator` (extra `aic`), with the host time that
is assumed where only kernels were timed. Nothing is tuned. Of TTFT no claim is made: it depends on how the clients
start, which was not recorded; the simulated ones start together.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibration.bundled import MEASURED
from calibration.published.aiconfigurator import GPUS
from cost_models import CostModel, CostModelError
from simulator.errors import InputError
from simulator.simulation import simulate
from simulator.tables import Table
from traces import Trace

FILE = "aic_derived/silicon_sample_llama31_agg.csv"
MODEL, DTYPE, RANKS = "llama-3.1-70b", "fp8", 4
SYSTEMS = {system: gpu for gpu, system in GPUS.items() if gpu in ("h100-80", "h200")}
TURNS = 4
"""Requests that each client sends."""


class Point(NamedTuple):
    """One measured point."""

    gpu: str
    prompt: int
    output: int
    clients: int
    tpot_ms: float


class Answer(NamedTuple):
    """A point and what the simulation gives for it."""

    point: Point
    tpot_ms: float

    @property
    def error_percent(self) -> float:
        """Simulated over measured, less 1."""
        return 100 * (self.tpot_ms / self.point.tpot_ms - 1)


def points(directory: Path) -> list[Point]:
    """The points in the folder of measured figures, in the order of GPU, lengths and clients.

    Raises CostModelError where the file has none of this deployment.
    """
    with (directory / FILE).open(encoding="utf-8", newline="") as file:
        found = sorted(_point(row) for row in csv.DictReader(file) if _wanted(row))
    if not found:
        raise CostModelError(f"{directory / FILE} has no point of {MODEL} in {DTYPE} on {RANKS} GPUs under vLLM")
    return found


def _wanted(row: dict[str, str]) -> bool:
    return (row["backend"], row["precision"]) == ("vllm", DTYPE) and row["system"] in SYSTEMS and (
        row["model_path"].endswith("Llama-3.1-70B") and float(row["tp_size"]) == RANKS)


def _point(row: dict[str, str]) -> Point:
    return Point(SYSTEMS[row["system"]], int(row["isl"]), int(row["osl"]), round(float(row["batch_size"])),
                 float(row["silicon_tpot_ms"]))


def answer(point: Point, cost: CostModel | str = "aiconfigurator") -> Answer:
    """Simulate one point: every client sends TURNS requests."""
    requests = TURNS * point.clients
    outputs = np.full(requests, point.output)
    trace = Trace("operating point", np.zeros(requests, np.int64), np.full(requests, point.prompt), outputs,
                  max_tokens=outputs)
    result = simulate(trace, "vllm", cost_model=cost, model=MODEL, gpu=point.gpu, dtype=DTYPE,
                      tensor_parallel_size=RANKS, max_concurrency=point.clients)
    return Answer(point, result.summary(metrics=("tpot",))["mean_tpot_ms"])


def mape(answers: Sequence[Answer]) -> float:
    """Mean absolute error of the time per output token, in percent."""
    return float(np.mean([abs(each.error_percent) for each in answers]))


def table(answers: Sequence[Answer]) -> Table:
    """All points side by side."""
    rows = tuple((f"{RANKS} x {point.gpu}", f"{point.prompt:,}", f"{point.output:,}", f"{point.clients}",
                  f"{point.tpot_ms:.2f}", f"{simulated:.2f}", f"{error:+.1f}%")
                 for point, simulated, error in ((*each, each.error_percent) for each in answers))
    bias = np.mean([each.error_percent for each in answers])
    return Table(f"{MODEL} in {DTYPE}, vLLM, closed loop: mean TPOT in ms",
                 ("GPUs", "prompt", "output", "clients", "measured", "simulated", "error"), rows,
                 f"MAPE {mape(answers):.1f}%, bias {bias:+.1f}%, {len(answers)} points")


def main(argv: Iterable[str] | None = None) -> int:
    """Print the table; 2 without the figures or the package."""
    parser = argparse.ArgumentParser(prog="python -m calibration.operating_points", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, default=MEASURED, help="folder of measured figures")
    asked = parser.parse_args(None if argv is None else list(argv))
    try:
        print(table([answer(point) for point in points(asked.measured)]))
    except OSError as error:
        print(f"calibration: {error.filename}: {error.strerror}: give the folder of measured figures with --measured",
              file=sys.stderr)
        return 2
    except (CostModelError, InputError) as error:
        print(f"calibration: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
