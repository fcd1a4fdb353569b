"""Result: the answer of one run. It gathers what was measured, as tables, as JSON and as events."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.counting import counted
from simulator.details import BESIDE, array_pieces, details, parts
from simulator.display import result_card, result_tables, result_text
from simulator.errors import InputError
from simulator.frames import csv_pieces, requests_frame, steps_frame
from simulator.measured import Measured
from simulator.saved import load, write_whole
from simulator.summary import LATENCIES, summarise
from simulator.tables import Table
from simulator.trace_events import document, trace_events

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Result", "load"]


@dataclass(frozen=True, eq=False)
class Result(Measured):
    """What a scenario came to, and what happened on the way: all that Measured tells, to be read, kept and drawn."""

    @property
    def requests(self) -> pd.DataFrame:
        """A row a row of the trace, times in seconds; columns as in `frames.REQUEST_COLUMNS`. The caller's own."""
        return self._requests.copy()

    @property
    def steps(self) -> pd.DataFrame:
        """A row a step, replica by replica, times in seconds; columns as in `frames.STEP_COLUMNS`. The caller's own."""
        return self._steps.copy()

    @cached_property
    def _requests(self) -> pd.DataFrame:
        return requests_frame(self.setup, self.outcomes, self.timeline,
                              None if self.cluster is None else self.cluster.last)

    @cached_property
    def _steps(self) -> pd.DataFrame:
        return steps_frame([each.record for each in self.served])

    def summary(self, percentiles: Sequence[float] = (99,), metrics: Sequence[str] = LATENCIES) -> dict[str, Any]:
        """The run as one flat record, latencies in ms; None where nothing was measured."""
        return summarise(self, percentiles, metrics)

    def tables(self) -> list[Table]:
        """All that was measured, as `print` shows it: the main numbers, latencies in ms, parts of the run, the rest."""
        return result_tables(self)

    def labelled(self, label: str | None = None, metadata: Mapping[str, str] | None = None,
                 percentiles: Sequence[float] = (99,), metrics: Sequence[str] = LATENCIES) -> dict[str, Any]:
        """The summary with a label, and with notes under names of their own."""
        document = self.summary(percentiles, metrics) | {"label": label}
        for key in metadata or {}:
            if key in document or key in BESIDE:
                raise InputError(f"metadata {key!r} is a name of the result itself: choose another one")
        return document | dict(metadata or {})

    def to_json(self, detailed: bool = False, **options: Any) -> str:
        """The summary as JSON with the scenario that gives it again, the same bytes for the same run.

        `detailed` adds an array entry a request; `options` are those of `labelled`.
        """
        return "".join(self.json_pieces(detailed, **options))

    def json_pieces(self, detailed: bool = False, **options: Any) -> Iterator[str]:
        """The text of `to_json`, piece by piece: the details of a long run are larger than memory."""
        document = self.labelled(**options)
        document |= parts(self, document) | {"scenario": self.asked}
        text = json.dumps(document, indent=1, allow_nan=False, default=str)
        return chain((text.removesuffix("\n}"),), array_pieces(details(self) if detailed else {}), ("\n}\n",))

    def csv_pieces(self) -> Iterator[str]:
        """The requests as CSV, piece by piece."""
        return csv_pieces(self._requests)

    def save(self, path: str | os.PathLike[str], detailed: bool = False, **options: Any) -> list[Path]:
        """Write the JSON to `path`, with `detailed` also a CSV of the requests beside it. Returns what was written.

        A file is there whole or not at all. `options` are those of `to_json`.
        """
        target = Path(path)
        files = {target: self.json_pieces(detailed, **options)}
        if detailed:
            files[target.with_suffix(".requests.csv")] = self.csv_pieces()
        for file, pieces in files.items():
            write_whole(file, pieces)
        return list(files)

    def trace_events(self) -> Iterator[dict[str, Any]]:
        """The run as events of the Trace Event Format, one by one: replica, slots, requests, KV cache."""
        return trace_events(self)

    def save_trace_events(self, path: str | os.PathLike[str]) -> Path:
        """Write those events as a file that Perfetto opens; it is there whole or not at all. Returns the path."""
        write_whole(Path(path), document(self))
        return Path(path)

    def __repr__(self) -> str:
        line = self.timeline
        return (f"<Result {self.policy.name} on {self.setup.trace.name}, {self.scenario.load}: {len(line)} of "
                f"{len(self.setup.output)} requests in {line.last_delivered.max(initial=0) / 1e9:.3f} s, "
                f"{counted(len(self.record.ends), 'step')}>")

    def __str__(self) -> str:
        return result_text(self)

    def _repr_html_(self) -> str:
        return result_card(self)
