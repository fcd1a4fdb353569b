"""Fitting: from a trace to a spec that may be shared, and how well what is drawn from it stands in for the trace.

A spec keeps quantiles of both lengths, their rank correlation, the requests of every minute and how they bunch. It has
no row of the trace, and so neither its conversations, its prefixes and its tenants nor the order of its lengths.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import yaml

from traces.arrivals import SECOND
from traces.describe import describe
from traces.errors import TraceError
from traces.laws import TAIL
from traces.processes import Windows
from traces.profile import slot_utilization
from traces.spec import generate, spec_of
from traces.trace import Trace

Int64 = npt.NDArray[np.int64]
MINUTE, FEWEST_WINDOWS = 60, 10
BATCHES = (8, 32, 64, 128)
"""Sizes of batches at which slot utilisation is compared."""
HALVINGS = 24
STEEPEST, FLATTEST = 0.01, 100.0
"""Bounds on the shape of the gaps."""
NOTES = ("Drawn from quantiles of both lengths, their rank correlation and counts over time. Rows are independent "
         "draws: order between neighbours, conversations, shared prefixes and tenants are not kept.")


class Kept(NamedTuple):
    """One property of a trace, and of what stands in for it; None where it cannot be measured."""

    what: str
    original: float | None
    stand_in: float | None
    around_zero: bool = False
    """Whether 0 is as good a value as any, as of a correlation, so that no share of it says anything."""

    @property
    def error(self) -> float | None:
        """How far the stand-in is off: as a share of the original, or in its own measure where that may be 0."""
        if self.original is None or self.stand_in is None:
            return None
        if self.around_zero:
            return self.stand_in - self.original
        return self.stand_in / self.original - 1 if self.original else None


def fit(trace: Trace, name: str) -> dict[str, Any]:
    """A spec for the trace, as a mapping that can be written as YAML. Raises TraceError for an empty one.

    >>> from traces import load
    >>> spec = fit(load("azure-conv-2023", limit=100), "mine")
    >>> generate(spec_of(spec, "mine"), seed=1)
    <Trace mine: 100 requests over 30.0 s, median prompt 1,010 and output 130 tokens>
    """
    if not len(trace):
        raise TraceError(f"{trace.name} has no requests to fit a spec to")
    return {"name": name, "licence": trace.licence, "notes": NOTES, "rows": len(trace),
            "spearman": round(_spearman(trace.prompt, trace.output), 4), "prompt": _quantiles(trace.prompt),
            "output": _quantiles(trace.output), "arrivals": _arrivals(trace.arrival)}


def kept(trace: Trace, spec: dict[str, Any], seed: int = 0) -> list[Kept]:
    """How well a trace drawn from the spec keeps what matters to a batching engine."""
    other = generate(spec_of(spec, "spec"), seed)
    mine, theirs = describe(trace), describe(other)
    found = [Kept("requests/s", mine["rate"], theirs["rate"]),    # type: ignore[arg-type]
             Kept("variation of gaps", mine["gap_cv"], theirs["gap_cv"]),    # type: ignore[arg-type]
             Kept("mean prompt", float(trace.prompt.mean()), float(other.prompt.mean())),
             Kept("mean output", float(trace.output.mean()), float(other.output.mean())),
             Kept("rank correlation", _spearman(trace.prompt, trace.output), _spearman(other.prompt, other.output),
                  around_zero=True)]
    shares, others = slot_utilization(trace, BATCHES), slot_utilization(other, BATCHES)
    return found + [Kept(f"slots in use, batches of {size}", shares[size], others[size]) for size in shares]


def written(spec: dict[str, Any]) -> str:
    """The spec as YAML."""
    return yaml.safe_dump(spec, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)


def _quantiles(tokens: Int64) -> dict[str, Any]:
    """Quantiles as a spec has them; the tail as far as there are rows to tell it apart."""
    tail = [p for p in TAIL if (1 - p) * len(tokens) >= 1]
    at = [np.rint(np.quantile(tokens, probs)).astype(int).tolist() for probs in (np.arange(101) / 100, tail)]
    return {"kind": "quantiles", "tokens": at[0], "tail": at[1]}


def _spearman(one: Int64, other: Int64) -> float:
    """Rank correlation; 0 where one of the two is always the same."""
    first, second = _ranks(one), _ranks(other)
    if not first.std() or not second.std():
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: Int64) -> npt.NDArray[np.float64]:
    """The mean rank of equal values."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - counts / 2)[places]


def _arrivals(arrival: Int64) -> dict[str, Any]:
    """Counts by the minute, or in ten shorter windows of a short trace; on ticks where the clock is coarse."""
    times = arrival - arrival[0]
    span = int(times[-1])
    if not span:
        return {"kind": "at-once"}
    window = MINUTE if span >= FEWEST_WINDOWS * MINUTE * SECOND else max(1, span // (FEWEST_WINDOWS * SECOND))
    counts = np.bincount(times // (window * SECOND)).tolist()
    if tick := _tick(times, window):
        return {"kind": "ticks", "span_s": span / SECOND, "window_s": window, "tick_s": tick, "counts": counts}
    facts = {"kind": "windows", "span_s": span / SECOND, "window_s": window, "counts": counts}
    return {**facts, "burstiness": _burstiness(times, Windows(counts, window, span / SECOND))}


def _tick(times: Int64, window: int) -> int | None:
    """Seconds of the clock on whose every tick somebody comes; None if there is none that is as coarse as a second."""
    tick, over = divmod(int(np.gcd.reduce(times)), SECOND)
    if over or not tick or window % tick:
        return None
    return tick if len(np.unique(times)) == times[-1] // (tick * SECOND) + 1 else None


def _burstiness(times: Int64, plain: Windows) -> float:
    """The shape of Gamma gaps inside the windows that gives the variation of the trace's gaps, by halving."""
    wanted, low, high = _variation(times), np.log(STEEPEST), np.log(FLATTEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        process = Windows(plain.counts, plain.window_s, plain.span_s, float(np.exp(middle)))
        bursty = _variation(process.draw(len(times), np.random.default_rng(0))) > wanted
        low, high = (middle, high) if bursty else (low, middle)
    return float(f"{np.exp((low + high) / 2):.3g}")


def _variation(times: Int64) -> float:
    gaps = np.diff(times)
    return float(gaps.std() / gaps.mean())
