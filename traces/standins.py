"""Bundled stand-ins: traces drawn from the published quantiles and counts of real ones.

The specs in `traces/specs/` hold facts (quantiles, counts, a rank correlation), never rows. A stand-in has
the lengths, the load over time and the slot shares of its source; it has not the source's order of rows, and
conversations and shared prefixes only where its spec tells of turns. The same seed gives the same trace.
"""

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from traces.errors import unknown
from traces.spec import Spec, generate, read_spec
from traces.trace import Trace

OWN = "gen:"
"""Begins the name of a trace that a spec of the user's own describes."""


@dataclass(frozen=True)
class StandIn:
    """What is bundled under one name: its size, its origin, its terms and its limits."""

    name: str
    rows: int
    source: str
    citation: str
    licence: str
    arrivals: str
    notes: str


def names() -> tuple[str, ...]:
    """Names of the bundled stand-ins, in alphabetical order."""
    found = (entry.name for entry in files("traces").joinpath("specs").iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def is_drawn(name: object) -> bool:
    """Whether a trace of that name is drawn: a bundled one, or that of a spec of the user's own, `gen:FILE`."""
    return isinstance(name, str) and (name.startswith(OWN) or name in names())


def drawn(name: str, seed: int = 0) -> Trace:
    """The trace of that name, drawn with `seed`."""
    if name.startswith(OWN):
        return generate(read_spec(Path(name.removeprefix(OWN))), seed)
    return stand_in(name, seed)


def available() -> tuple[StandIn, ...]:
    """All bundled stand-ins with rows, source and licence, in the order of their names."""
    return tuple(_card(bundled(name)) for name in names())


def bundled(name: str) -> Spec:
    """The facts behind a stand-in; raises TraceError for an unknown name."""
    if name not in names():
        raise unknown("bundled trace", name, names())
    with as_file(files("traces").joinpath("specs", f"{name}.yaml")) as path:
        return read_spec(path)


def stand_in(name: str, seed: int = 0) -> Trace:
    """The bundled trace `name`, drawn with `seed`."""
    return generate(bundled(name), seed, "stand-in")


def _card(spec: Spec) -> StandIn:
    return StandIn(spec.name, spec.rows, spec.source, spec.citation, spec.licence, spec.arrivals.said(), spec.notes)
