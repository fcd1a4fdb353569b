"""Remarks: what a reader of a run's numbers must know - who was left out, cut, or counted otherwise."""

from __future__ import annotations

from simulator.gate import REFUSED, TIMED_OUT
from simulator.result import Result


def remarks(result: Result) -> list[str]:
    """One line each; none if there is nothing to say."""
    summary, report = result.summary(metrics=()), result.setup.trace.report
    told = [
        (len(report.rejected), "rows left out of the trace"),
        (report.out_of_order, "rows of the trace sorted by arrival"),
        (summary["cut"], "outputs cut by --max-tokens"),
        (summary["truncated"], "requests shortened to the longest that the model holds"),
        (summary["clipped"], "outputs cut by the engine's max_model_len"),
        (summary["longer_than_declared"], "outputs longer than the default declares; they declare their own"),
        (summary["out_of_range_steps"], "steps outside the measured range of the cost model"),
    ]
    lines = [f"{count:,} {what}" for count, what in told if count]
    lines += report.notes
    if summary["aborted"]:
        lines.insert(0, f"aborted: {TIMED_OUT}: {summary['aborted']:,}")
    if summary["failed"]:
        lines.insert(0, f"failed: {REFUSED}: {summary['failed']:,}")
    if summary["rejected"]:
        largest = summary["largest_rejected_tokens"]
        lines.insert(0, f"rejected: {summary['rejected_reasons']}; the largest has {largest:,} tokens")
    return lines
