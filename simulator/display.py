"""Display: how results show themselves in a notebook - sentences, a sketch, tables - and in a terminal, without it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from simulator.account import Account
from simulator.details import parts
from simulator.run_tables import latencies, numbers, tables
from simulator.tables import Table
from traces.sketch import steps

if TYPE_CHECKING:
    from simulator.result import Result

BINS = 120
SHOWN = ("completed", "rejected", "duration", "request_throughput", "output_throughput", "slot_utilization",
         "mean_batch_size", "kv_usage_mean", "preemptions", "slots", "slots_counted")
"""What a run shows of its single numbers."""


def card(title: str, sentences: Sequence[str], sketch: str, found: Sequence[Table]) -> str:
    """HTML of an answer: its sentences, a sketch as inline SVG, its tables."""
    said = f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>" if sentences else ""
    return f"<p><b>{escape(title)}</b></p>{said}{sketch}{''.join(table._repr_html_() for table in found)}"


def account_card(account: Account, sketch: str, most: int) -> str:
    """A card of an account, with so many of its tables."""
    left = len(account.tables) - most
    more = f"<p>{left} more tables: .tables()</p>" if left > 0 else ""
    warned = [f"Warning: {warning}" for warning in account.warnings]
    return card(account.question, [*account.answer, *warned], sketch, account.tables[:most]) + more


def result_card(result: Result) -> str:
    """A card of a run: the slots that work over time, and its main numbers."""
    summary = result.summary(metrics=("ttft", "tpot", "e2el"))
    brief = {name: value for name, value in summary.items() if name in SHOWN}
    return card(repr(result)[1:-1], (), _work(result), [numbers({result.policy.name: brief}), latencies(summary)])


def result_text(result: Result) -> str:
    """A run as text: one line, then all that was measured."""
    document = result.summary()
    document |= parts(result, document)
    return "\n\n".join([repr(result), *map(str, tables({result.policy.name: document}))])


def _work(result: Result) -> str:
    """Slots that compute new tokens, on average over each bin of time."""
    if not len(result.record.ends):
        return ""
    binned = result.ledger_over_time("slots", BINS)
    useful = np.array(binned.parts["decode"], float) + np.array(binned.parts["prefill"], float)
    heights = useful / np.diff(binned.edges)
    seconds = (int(binned.edges[-1]) - int(binned.edges[0])) / 1e9
    what = f"slots that compute new tokens, over {seconds:,.4g} s; at most {heights.max():,.4g}"
    return steps(heights.tolist(), what)
