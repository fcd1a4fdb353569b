"""Facts about a trace: size, rate, burstiness, lengths. Numbers only; nothing is printed here."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from traces.trace import Int64, Trace

PERCENTILES = (1, 10, 25, 50, 75, 90, 99)


def describe(trace: "Trace") -> dict[str, object]:
    """What `batchsim trace describe` shows, by name.

    rate is requests a second over the span, counted in gaps. burstiness is the coefficient of variation of
    the gaps, 1 for a Poisson process; the `burstiness` of `gamma_arrivals` is one over its square.
    Percentiles are linear. What cannot be measured is None.
    """
    report = trace.report
    return {
        "name": trace.name,
        "source": trace.source,
        "licence": trace.licence or None,
        "format": report.format,
        "rows": len(trace),
        "rejects": len(report.rejected),
        "out_of_order": report.out_of_order,
        "span_s": trace.span_s,
        "rate": (len(trace) - 1) / trace.span_s if trace.span_s else None,
        "burstiness": _variation(np.diff(trace.arrival)),
        "prompt": _lengths(trace.prompt),
        "output": _lengths(trace.output),
        "max_tokens": None if trace.max_tokens is None else _lengths(trace.max_tokens),
        "tenants": None if trace.tenant is None else len(set(trace.tenant)),
        "prefix_blocks": None if trace.hash_ids is None else sum(map(len, trace.hash_ids)),
        "digest": trace.digest,
    }


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
