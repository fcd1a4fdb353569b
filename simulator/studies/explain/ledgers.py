"""Ledgers side by side: several runs, part by part, as amounts and as shares. It computes nothing but shares."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.ledger import LEDGERS
from simulator.result import Result
from simulator.tables import Table

TITLES = {
    "slots": ("Where every slot-second went", "all slot-seconds", 1e9),
    "tokens": ("Where every token position went", "all positions", 1),
    "kv": ("Where the KV cache went, in token-seconds", "all token-seconds", 1e9),
}
"""Of each ledger its title, the name of its total, and how many of its units make one that is shown."""


def ledger_table(name: str, results: Mapping[str, Result], which: str) -> Table:
    """One ledger of all runs; parts that are 0 everywhere are left out. `which` says in words what the runs are."""
    title, whole, unit = TITLES[name]
    ledgers = {label: result.ledgers[name] for label, result in results.items()}
    rows = [(words, *(_part(ledger.parts[part], ledger.total, unit) for ledger in ledgers.values()))
            for part, words in LEDGERS[name].items() if any(ledger.parts[part] for ledger in ledgers.values())]
    rows.append((whole, *(_amount(ledger.total, unit) for ledger in ledgers.values())))
    of = {label: ledger.of for label, ledger in ledgers.items()}
    note = "; ".join(f"{label}: {words}" for label, words in of.items()) + "." if len(set(of.values())) > 1 else ""
    return Table(f"{title} ({which})", ("", *ledgers), tuple(rows), note)


def ledger_records(results: Mapping[str, Result]) -> dict[str, dict[str, dict[str, int | None]]]:
    """By ledger and run, every part in its own unit: exact whole numbers."""
    return {name: {label: dict(result.ledgers[name].parts) for label, result in results.items()} for name in LEDGERS}


def _part(amount: int | None, total: int | None, unit: float) -> str:
    if not amount:
        return "-" if amount is None else "0"
    return f"{_amount(amount, unit)}  {amount / total:6.1%}" if total else _amount(amount, unit)


def _amount(amount: int | None, unit: float) -> str:
    if amount is None:
        return "no bound"
    return f"{amount / unit:,.0f}" if amount >= 100 * unit else f"{amount / unit:.3g}"
