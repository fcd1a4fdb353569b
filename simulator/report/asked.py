"""Asked: what a study was asked otherwise than by default, as a table, and the whole record. It imports no file's code.

Knobs have defaults where their policy is a bundled one; those of any other are told one and all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from simulator.policies import POLICIES
from simulator.report.elements import Markup, element, lines, table
from simulator.report.reading import Chapter
from simulator.scenario import FIELDS
from simulator.scenarios.recording import plain
from simulator.scenarios.template import default_of
from simulator.tables import Table


def asked(chapter: Chapter) -> Markup | None:
    """The table and the record; None where there is no record."""
    if not chapter.scenario:
        return None
    where = " at its first point" if chapter.command == "sweep" else ""
    rows = (*_fields(chapter), *_knobs(chapter))
    told = (table(Table(f"What is not as by default{where}", ("field", "value"), rows, words=("value",))) if rows else
            element("p", f"Everything{where} is as by default."))
    whole = element("details", element("summary", "The whole record, as --scenario takes it"),
                    element("pre", json.dumps(chapter.scenario, indent=1)))
    return lines(told, whole)


def _fields(chapter: Chapter) -> Iterator[tuple[str, str]]:
    """The fields that differ; those of the policies that were compared are told with the question."""
    apart = {"knobs", *(("policy",) if chapter.policies else ())}
    for name, value in chapter.scenario.items():
        if name not in apart and (name not in FIELDS or value != plain(default_of(name))):
            yield name, _shown(value)


def _knobs(chapter: Chapter) -> Iterator[tuple[str, str]]:
    """The knobs that differ, named as `--set` names them: with their policy where there are several."""
    for label, asked_of in (chapter.policies or {"": chapter.scenario}).items():
        kind, knobs = POLICIES.get(str(asked_of.get("policy"))), asked_of.get("knobs")
        usual = kind.knobs() if kind else {}
        for knob, value in knobs.items() if isinstance(knobs, dict) else ():
            if knob not in usual or value != plain(usual[knob]):
                yield f"{label}.{knob}" if label else knob, _shown(value)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
