"""`batchsim conformance`: recorded decisions of an engine, taken again. In a notebook:
`simulator.conformance.conformance(engine, directory)`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Argument, Exit, Option

from cost_models import choose
from simulator.cli import complete
from simulator.cli.console import answers, print_json
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import Told
from simulator.conformance import MODES, Difference, Mode, Verdict
from simulator.conformance import conformance as check
from simulator.counting import counted

IDENTICAL, DIFFERENT, NOTHING_COMPARED = 0, 1, 3
MODE_NAMES: dict[str, tuple[Mode, ...]] = {"exact": ("exact",), "fast": ("fast",), "both": MODES}
ALIKE_BEFORE = 1
"""Elements shown in front of the first that differs, where a list is cut."""
SHOWN = 6
"""Elements of a list that are shown at all."""


@with_flags
def conformance(told: Told,
                engine: Annotated[str, Argument(metavar="ENGINE", autocompletion=complete.engines,
                                                help="Whose recordings these are.")],
                directory: Annotated[str, Argument(metavar="DIR", help="Where they are.")],
                mode: Annotated[str, Option(metavar="exact|fast|both", autocompletion=complete.modes, help=(
                    "Ask the policy at every step, or only when something can change its mind."))] = "both",
                scenario: Annotated[list[str] | None, Option(metavar="NAME", help=(
                    "Only the scenarios of that name, such as 03_kv_preempt or '1*'; repeatable."))] = None) -> None:
    """Replay recorded decisions of an engine, and find the first step that differs.

    Exit status 0 if every field of every step is the same, 1 if one is not, 3 if there was nothing to compare.
    """
    modes = MODE_NAMES[choose("mode", mode, MODE_NAMES)]
    verdicts = []
    for verdict in check(engine, directory, modes=modes, only=scenario or ()):
        verdicts.append(verdict)
        if not told.json:
            _print(answers(), verdict)
    if told.json:
        print_json(_document(engine, modes, verdicts))
    elif verdicts and not told.quiet:
        note(_summary(verdicts))
    if not verdicts:
        note(f"batchsim: {directory} holds no scenario: nothing was compared")
        raise Exit(NOTHING_COMPARED)
    raise Exit(IDENTICAL if all(verdict.identical for verdict in verdicts) else DIFFERENT)


def _document(engine: str, modes: Iterable[Mode], verdicts: list[Verdict]) -> dict[str, Any]:
    identical = sum(verdict.identical for verdict in verdicts)
    return {"engine": engine, "modes": modes, "identical": identical, "different": len(verdicts) - identical,
            "scenarios": [verdict.to_dict() for verdict in verdicts]}


def _summary(verdicts: list[Verdict]) -> str:
    identical = sum(verdict.identical for verdict in verdicts)
    return f"{identical} of {len(verdicts)} identical, {counted(sum(verdict.steps for verdict in verdicts), 'step')}"


def _print(console: Console, verdict: Verdict) -> None:
    """A line if it is identical; else the first difference as a table."""
    last = verdict.outcomes[-1]
    missing = f" (not recorded: {', '.join(last.unrecorded)})" if last.unrecorded else ""
    if verdict.difference is None:
        console.out(f"{verdict.name} identical, {counted(verdict.steps, 'step')}{missing}")
        return
    console.out(f"{verdict.name} differs in {_place(verdict.difference)}, {last.mode} mode{missing}")
    console.print(_sides(verdict.difference))
    if same := _same(verdict.difference):
        console.out(f" the same: {', '.join(same)}\n")


def _place(difference: Difference) -> str:
    if difference.part != "step":
        return f"the {difference.part}"
    number = (difference.recorded or difference.simulated or {}).get("step", difference.number)
    return f"step {number}"


def _sides(difference: Difference) -> Table:
    """Both sides, field by field, of what differs; a side that has no such step leaves the other one whole."""
    recorded, simulated = difference.recorded, difference.simulated
    table = Table("field", "recorded" if recorded is not None else "recorded: ended",
                  "simulated" if simulated is not None else "simulated: ended", box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:]:
        column.overflow = "fold"
    if recorded is None or simulated is None:
        for field, value in (recorded or simulated or {}).items():
            table.add_row(*map(Text, (field, "", _shown(value)) if recorded is None else (field, _shown(value), "")))
        return table
    for field in difference.fields:
        table.add_row(Text(field), *map(Text, _apart(recorded.get(field), simulated.get(field))))
    return table


def _same(difference: Difference) -> list[str]:
    """Names of the fields that both sides have in common."""
    recorded, simulated = difference.recorded or {}, difference.simulated or {}
    return [field for field in simulated if field in recorded and field not in difference.fields]


def _apart(recorded: Any, simulated: Any) -> tuple[str, str]:
    """Both values; of long lists the part from the first difference on."""
    if not isinstance(recorded, list) or not isinstance(simulated, list):
        return _shown(recorded), _shown(simulated)
    pairs = zip(recorded, simulated, strict=False)
    alike = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(recorded), len(simulated)))
    skip = 0 if max(len(recorded), len(simulated)) <= SHOWN else max(0, alike - ALIKE_BEFORE)
    return _shown(recorded, skip), _shown(simulated, skip)


def _shown(value: Any, skip: int = 0) -> str:
    """A value as it stands in the file; a long list is cut, and says how much is left out on either side."""
    if not isinstance(value, list) or len(value) <= SHOWN:
        return _json(value)
    kept, more = value[skip:skip + SHOWN], len(value) - skip - SHOWN
    before, after = f"{skip} alike, " if skip else "", f", {more} more" if more > 0 else ""
    return f"[{before}{', '.join(map(_json, kept))}{after}]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
