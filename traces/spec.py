"""Specs: what is said of a trace that is drawn and not read - lengths, how they go together, arrivals, conversations.

A spec is a YAML file, bundled or a user's own (`--trace gen:FILE`). It holds facts or wishes, never rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from traces.arrivals import MOST_REQUESTS, is_number
from traces.conversing import converse
from traces.dialogue import Dialogue
from traces.errors import TraceError, shown
from traces.laws import LAWS, Law
from traces.lengths import sample_lengths
from traces.processes import PROCESSES, Process
from traces.report import ReadReport
from traces.strict import count, made, one_of, read_yaml, texts
from traces.trace import Trace


@dataclass(frozen=True)
class Spec:
    """A trace to draw.

    Attributes:
        name: What the trace is called.
        prompt, output: Laws of the lengths; in a file mappings with a kind.
        arrivals: The process of the arrivals; in a file a mapping with a kind.
        rows: Requests; by default as many as the arrivals or the turns come to.
        turns: How requests follow each other. Then `prompt` and `spearman` are those of first turns, which alone come
            with `arrivals`.
        spearman: Rank correlation of prompt and output, from -1 to 1.
        source, citation, licence, notes: Where it comes from, on what terms, and what it does not keep.
        slot_shares: Slot utilisation of the source by batch size, as published and shuffled, for tests.
    """

    name: str
    prompt: Law
    output: Law
    arrivals: Process
    rows: int = 0
    turns: Dialogue | None = None
    spearman: float = 0.0
    source: str = ""
    citation: str = ""
    licence: str = ""
    notes: str = ""
    slot_shares: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        texts(self, "name", "source", "citation", "licence", "notes")
        for part, kinds in (("prompt", LAWS), ("output", LAWS), ("arrivals", PROCESSES)):
            object.__setattr__(self, part, one_of(kinds, getattr(self, part), part))
        if isinstance(self.turns, Mapping):
            object.__setattr__(self, "turns", made(Dialogue, self.turns, "turns"))
        if not isinstance(self.turns, Dialogue | None):
            raise TraceError(f"turns must be a mapping of keys, not {shown(self.turns)}")
        self._count_rows()
        if not is_number(self.spearman) or not -1 <= self.spearman <= 1:
            raise TraceError(f"spearman must be a number from -1 to 1, not {shown(self.spearman)}")

    def _count_rows(self) -> None:
        """Rows, turns and arrivals must agree, as far as each is said."""
        all_, first = (self.turns.rows, self.turns.conversations) if self.turns else (self.arrivals.rows, None)
        if not self.rows and all_:
            object.__setattr__(self, "rows", all_)
        count("rows", self.rows, most=MOST_REQUESTS)
        if all_ not in (None, self.rows):
            said = "turns" if self.turns else "counts of the arrivals"
            raise TraceError(f"rows is {self.rows}, but the {said} come to {all_}")
        if first and self.arrivals.rows not in (None, first):
            raise TraceError(f"there are {first} conversations, but the counts of the arrivals come to "
                             f"{self.arrivals.rows}")

    def said(self) -> str:
        """Where the trace comes from, in words."""
        return "; ".join(filter(None, (self.source or self.name, self.citation, self.arrivals.said())))


def spec_of(given: object, where: str) -> Spec:
    """The spec that a mapping holds; raises TraceError with `where` and the key that does not fit."""
    return made(Spec, given, where)


def read_spec(path: Path) -> Spec:
    """The spec in a YAML file; files that it names lie beside it, and its own name is the default for the trace."""
    given = read_yaml(path)
    if isinstance(given, Mapping):
        given = {"name": path.stem, **{key: _beside(path, value) for key, value in given.items()}}
    return spec_of(given, path.name)


def files_in_spec(path: Path) -> tuple[str, ...]:
    """The files that the spec in a YAML file names; raises TraceError where it cannot be read."""
    given = read_yaml(path)
    found = (_beside(path, value) for value in (given.values() if isinstance(given, Mapping) else ()))
    return tuple(value["file"] for value in found if isinstance(value, Mapping) and isinstance(value.get("file"), str))


def generate(spec: Spec, seed: int = 0, kind: str = "generated") -> Trace:
    """The trace of a spec, drawn with `seed`; lengths and arrivals have a stream of chance each.

    kind: what the report calls the format.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise TraceError(f"a seed must be a whole number of 0 or more, not {shown(seed)}")
    lengths_rng, arrivals_rng, turns_rng = np.random.default_rng(int(seed)).spawn(3)
    first = spec.turns.conversations if spec.turns else spec.rows
    prompt, output = sample_lengths(spec.prompt, spec.output, spec.spearman, first, lengths_rng)
    arrival = spec.arrivals.draw(first, arrivals_rng)
    columns = (converse(spec.turns, prompt, output, arrival, spec.output, turns_rng) if spec.turns else
               {"arrival": arrival, "prompt": prompt, "output": output})
    return Trace(
        name=spec.name,
        **columns,
        source=f"{kind} (seed {seed}) for: {spec.said()}",
        licence=spec.licence,
        report=ReadReport(kind, spec.rows),
    )


def _beside(path: Path, value: Any) -> Any:
    """The same value, but a file that it names is seen from the directory of the spec."""
    if isinstance(value, Mapping) and isinstance(value.get("file"), str):
        return {**value, "file": str(path.parent / value["file"])}
    return value
