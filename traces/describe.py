"""Facts about a trace: size, rate, burstiness, lengths, conversations, prefixes. Numbers only; nothing is printed."""

from typing import TYPE_CHECKING

import numpy as np

from traces.arrivals import SECOND
from traces.profile import arrivals_over_time, reused_share, slot_utilization

if TYPE_CHECKING:
    from traces.columns import Int64
    from traces.trace import Trace

PERCENTILES = (1, 10, 25, 50, 75, 90, 99)


def describe(trace: "Trace") -> dict[str, object]:
    """What `batchsim trace describe` shows, by name.

    rate is requests a second over the span, counted in gaps. gap_cv is the coefficient of variation of the gaps: 1 for
    a Poisson process, more for bursts; the `burstiness` of `gamma_arrivals` is one over its square.
    reused_share is of the prompt tokens, with a cache without bounds. Percentiles are linear. What cannot be
    measured is None. clock is the time of day of the first and the last row as read, as a window counts it.
    """
    report = trace.report
    over_time = arrivals_over_time(trace)
    return {
        "name": trace.name,
        "source": trace.source,
        "licence": trace.licence or None,
        "format": report.format,
        "columns": ", ".join(report.columns) or None,
        "rows": len(trace),
        "rejects": len(report.rejected),
        "failed": report.failed,
        "outside": report.outside,
        "out_of_order": report.out_of_order,
        "clock": None if report.clock is None else " to ".join(map(time_of_day, report.clock)),
        "span_s": trace.span_s,
        "rate": (len(trace) - 1) / trace.span_s if trace.span_s else None,
        "gap_cv": _variation(np.diff(trace.arrival)),
        "prompt": _lengths(trace.prompt),
        "output": _lengths(trace.output),
        "max_tokens": None if trace.max_tokens is None else _lengths(trace.max_tokens),
        "tenants": None if trace.tenant is None else len(set(trace.tenant)),
        **_conversations(trace),
        "prompts": report.prompts,
        "prefix_blocks": None if trace.hash_ids is None else len(trace.hash_ids.values),
        "prefix_block_tokens": trace.hash_block,
        "reused_share": reused_share(trace),
        "arrivals": {"window_s": over_time.window_s, "counts": over_time.counts},
        "slot_utilization": {str(batch): share for batch, share in slot_utilization(trace).items()},
        "notes": list(report.notes),
        "digest": trace.digest,
    }


def _conversations(trace: "Trace") -> dict[str, object]:
    """How many rows are later turns, of how many conversations, and how long they think."""
    if trace.parent is None:
        return {"conversations": None, "later_turns": None, "think_s_median": None}
    later = trace.parent >= 0
    think = None if trace.think is None or not later.any() else float(np.median(trace.think[later])) / 1e9
    starts = set(trace.parent[later].tolist())
    return {"conversations": sum(1 for row in starts if trace.parent[row] < 0), "later_turns": int(later.sum()),
            "think_s_median": think}


def time_of_day(ns: int) -> str:
    """As a window spells it; hours may exceed 24."""
    minutes, seconds = divmod(ns // SECOND, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"


def _variation(gaps: "Int64") -> float | None:
    """Standard deviation over mean; None without a positive mean."""
    mean = float(np.mean(gaps)) if len(gaps) else 0.0
    return float(np.std(gaps)) / mean if mean else None


def _lengths(tokens: "Int64") -> dict[str, float | int] | None:
    if not len(tokens):
        return None
    percentiles = {f"p{p}": float(np.percentile(tokens, p)) for p in PERCENTILES}
    ends = {"min": int(tokens.min()), "max": int(tokens.max())}
    return ends | {"mean": float(np.mean(tokens)), "total": int(tokens.sum())} | percentiles
