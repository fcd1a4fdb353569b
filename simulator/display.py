"""Display: how results show themselves in a notebook - sentences, a sketch, tables - and in a terminal, without it.

A notebook folds away the tables that few look at; they are the same as in a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.account import Account
from simulator.details import parts
from simulator.metrics import METRICS
from simulator.run_tables import tables
from simulator.tables import Table
from traces.sketch import steps

if TYPE_CHECKING:
    from simulator.result import Result

BINS = 120
MAIN = ("completed", "rejected", "duration", "request_throughput", "output_throughput", "slot_utilization",
        "mean_batch_size", "kv_usage_mean", "preemptions")
"""The single numbers of a run that stand first, with its slots."""
FIRST = {"slots", *(METRICS[name].label for name in MAIN)}
OPEN = 2
"""Tables of a run that a notebook does not fold: its main numbers and its latencies."""


def card(title: str, sentences: Sequence[str], sketch: str, found: Sequence[Table], most: int) -> str:
    """HTML of an answer: its sentences, a sketch as inline SVG, its tables; those after so many are folded."""
    said = f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>" if sentences else ""
    shown = "".join(table._repr_html_() for table in found[:most])
    return f"<p><b>{escape(title)}</b></p>{said}{sketch}{shown}{_folded(found[most:])}"


def _folded(found: Sequence[Table]) -> str:
    if not found:
        return ""
    count = "1 more table" if len(found) == 1 else f"{len(found)} more tables"
    inside = "".join(table._repr_html_() for table in found)
    return f"<details><summary>{count}</summary>{inside}</details>"


def account_card(account: Account, sketch: str, most: int) -> str:
    """A card of an account, with so many of its tables unfolded."""
    warned = [f"Warning: {warning}" for warning in account.warnings]
    return card(account.question, [*account.answer, *warned], sketch, account.tables, most)


def result_card(result: Result) -> str:
    """A card of a run: what to know of it, the slots that work over time, and all that was measured."""
    document = _document(result)
    return card(repr(result)[1:-1], document["remarks"], _work(result), _tables(result, document), OPEN)


def result_text(result: Result) -> str:
    """A run as text: one line, what to know of it, then all that was measured."""
    document = _document(result)
    first = "\n".join([repr(result), *document["remarks"]])
    return "\n\n".join([first, *map(str, _tables(result, document))])


def result_tables(result: Result) -> list[Table]:
    """Everything, the main numbers and the latencies first."""
    return _tables(result, _document(result))


def _document(result: Result) -> dict[str, Any]:
    """What the JSON of a run says, without its scenario."""
    summary = result.summary()
    return summary | parts(result, summary)


def _tables(result: Result, document: Mapping[str, Any]) -> list[Table]:
    numbers, latencies, *others = tables({result.policy.name: document})
    main = tuple(row for row in numbers.rows if row[0] in FIRST)
    left = tuple(row for row in numbers.rows if row[0] not in FIRST)
    rest = replace(numbers, title="Also measured", rows=left, note="")
    return [replace(numbers, rows=main), latencies, *others, rest]


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
