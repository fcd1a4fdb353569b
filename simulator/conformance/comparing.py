"""Comparing a replay with its recording, field by field, up to the first difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from simulator.conformance.engine import Case, Decision, Engine
from simulator.conformance.recording import Line, Recording, known_fields
from simulator.conformance.replaying import Replay
from simulator.errors import InputError, PolicyError

Mode = Literal["exact", "fast"]
Part = Literal["header", "step", "footer"]
MODES: tuple[Mode, ...] = ("exact", "fast")


@dataclass(frozen=True)
class Difference:
    """Where a replay departs from its recording.

    Attributes:
        part: In which part of the trace.
        number: Steps before it.
        recorded, simulated: Both sides, whole; None where a side has no such step. A policy that planned what cannot
            be run shows its `error` on the simulated side.
        fields: Names of the fields that differ.
    """

    part: Part
    number: int
    recorded: Line | None
    simulated: Line | None
    fields: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        return {"part": self.part, "number": self.number, "fields": list(self.fields), "recorded": self.recorded,
                "simulated": self.simulated}


@dataclass(frozen=True)
class Outcome:
    """One recording, replayed in one mode.

    Attributes:
        steps: Steps that are identical.
        unrecorded: Fields that are not in every step, so that they were not always compared; "footer" if there is none.
        difference: The first one; None if there is none.
    """

    mode: Mode
    steps: int
    unrecorded: tuple[str, ...]
    difference: Difference | None


def compare(recording: Recording, engine: Engine, mode: Mode) -> Outcome:
    """Replay a recording and compare each step. Raises InputError for what cannot be read."""
    return _Comparison(recording, engine(recording), mode).run()


class _Comparison:
    """A replay that goes on until something differs."""

    def __init__(self, recording: Recording, case: Case, mode: Mode) -> None:
        self._case, self._mode = case, mode
        self._trace = recording.trace()
        self._steps = 0
        self._unrecorded: dict[str, None] = {}
        self._difference: Difference | None = None

    def run(self) -> Outcome:
        """Compare the header, each step and the footer."""
        if (header := self._trace.header) is not None:
            self._compare("header", header, self._case.tell_header(header))
        if self._difference is None:
            self._replay()
        return Outcome(self._mode, self._steps, tuple(self._unrecorded), self._difference)

    def _replay(self) -> None:
        replay = Replay(self._case, exact=self._mode == "exact", on_decision=self._hear)
        try:
            while self._difference is None and replay.advance():
                pass
        except PolicyError as error:
            self._differ("step", self._next(), {"error": str(error)}, ["error"])
        if self._difference is None and (missing := self._next()) is not None:
            self._differ("step", missing, None)
        if self._difference is None:
            self._compare_footer(replay)

    def _compare_footer(self, replay: Replay) -> None:
        footer = self._trace.footer
        told = self._case.tell_footer(replay.close(), footer or {})
        if footer is not None:
            self._compare("footer", footer, told)
        elif told:
            self._unrecorded["footer"] = None

    def _hear(self, decision: Decision) -> None:
        """The replay has taken a step: the recording's next must be the same."""
        if self._difference is not None:    # of this stretch
            return
        line = self._next()
        all_told = self._case.tell(decision, line or {})
        told = {field: all_told[field] for field in self._case.fields}
        if line is None:
            self._differ("step", None, told)
            return
        self._unrecorded |= dict.fromkeys(field for field in told if field not in line)
        self._compare("step", line, told)
        self._steps += self._difference is None

    def _next(self) -> Line | None:
        """The next recorded step."""
        here = self._trace.step()
        if here is None:
            return None
        where, line = here
        known_fields(line, self._case.fields, where)
        if not line:
            raise InputError(f"{where}: a step without a field says nothing: leave the line out")
        return line

    def _compare(self, part: Part, line: Line, told: Line) -> None:
        fields = [field for field, value in told.items() if field in line and line[field] != value]
        if fields:
            self._differ(part, line, told, fields)

    def _differ(self, part: Part, line: Line | None, told: Line | None, fields: Sequence[str] = ()) -> None:
        self._difference = Difference(part, self._steps, line, told, tuple(fields))
