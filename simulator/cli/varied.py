"""What a sweep varies, as it is typed or listed in a file: names and values. It knows no scenario's fields by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any

from typer import Option

from simulator.cli import values
from simulator.cli.flags import Flags
from simulator.cli.options import MEASURES
from simulator.documents import text_of
from simulator.errors import InputError
from simulator.kinds import meant_as
from simulator.studies.sweep import Sweep, sweep
from simulator.studies.sweep.tuning import TRIALS, tune

SPAN, VARIED = "..", "What is varied"
_SPAN = re.compile(r"\s*[-+.\d]+\s*\.\.\s*[-+.\d]+\s*")


@dataclass(frozen=True)
class Varied(Flags):
    """What is varied, and whether all of it is run."""

    vary: Annotated[list[str] | None, Option(metavar="NAME=V,V,V", rich_help_panel=VARIED, help=(
        "A flag's name, a knob, POLICY.KNOB or goodput.ttft, and its values; repeatable, for all combinations. With "
        "--tune also LOW..HIGH."))] = None
    points: Annotated[str | None, Option("--list", metavar="FILE", rich_help_panel=VARIED, help=(
        "Points from a YAML or JSON file, a mapping of names to values each; with --vary each of them in every "
        "combination."))] = None
    search: Annotated[bool, Option("--tune", metavar="", rich_help_panel=VARIED, help=(
        "Search what --vary spans for the best --objective, instead of running all of it."))] = False
    trials: Annotated[str, Option(metavar="N", rich_help_panel=VARIED, help=(
        "Points that --tune proposes."))] = str(TRIALS)
    replications: Annotated[str | None, Option(metavar="N", rich_help_panel=MEASURES, help=(
        "Run each point N times, each time with another seed, or on another window of a recorded trace, and give 95% "
        "intervals of the differences; all points have the same requests and arrivals."))] = None
    objective: Annotated[str | None, Option(metavar="METRIC", rich_help_panel=MEASURES, help=(
        "What --tune improves; request_goodput with --goodput, else output_throughput, if not given."))] = None

    def check(self) -> None:
        """Refuse what says nothing, or two things at once."""
        if not self.vary and self.points is None:
            raise InputError("nothing is varied: give --vary max_num_seqs=32,64,128, for example, or --list FILE")
        if self.search and (self.points is not None or not self.vary):
            raise InputError("--tune proposes points itself: give --vary, without --list")
        if not self.search and (alone := sorted(self.given & {"trials", "objective"})):
            raise InputError(f"--{alone[0]} is for a search: give --tune, or leave it out")
        if self.search and self.replications is not None:
            raise InputError("--tune runs each point once: give --replications with what it found, in --vary or --list")

    def run(self, **options: Any) -> Sweep:
        """What the grid, the list or the search comes to. `options` are those that the two studies share."""
        if self.search:
            return tune(spaces(self.vary), trials=values.count("--trials", self.trials) or 0, objective=self.objective,
                        **options)
        return sweep(vary=varied(self.vary), points=[{}] if self.points is None else listed(self.points),
                     replications=values.count("--replications", self.replications), **options)


def varied(texts: Iterable[str] | None) -> dict[str, list[Any]]:
    """Values by name from --vary NAME=V,V,V. Raises InputError for LOW..HIGH, which has no end of values."""
    given = _given(texts)
    for name, text in given.items():
        if _SPAN.fullmatch(text):
            raise InputError(f"--vary {name} takes values between commas, not {values.shown(text)}: --tune searches "
                             "between two numbers")
    return {name: [values.scalar(word) for word in values.words(f"--vary {name}", text)]
            for name, text in given.items()}


def spaces(texts: Iterable[str] | None) -> dict[str, list[Any] | tuple[float, float]]:
    """The same for a search, in which LOW..HIGH is every number between the two."""
    given = _given(texts)
    listed = varied([f"{name}={text}" for name, text in given.items() if SPAN not in text])
    spans = {name: _span(name, text) for name, text in given.items() if SPAN in text}
    return {name: spans.get(name) or listed[name] for name in given}


def listed(path: str) -> list[dict[str, Any]]:
    """Points from a YAML or JSON file: a list of mappings, or a mapping of names to them.

    Raises InputError, in one line, for whatever is wrong with it.
    """
    with meant_as("a list of points", path):
        return _listed(path)


def _listed(path: str) -> list[dict[str, Any]]:
    from simulator.scenarios.yaml_text import parse
    document = parse(text_of(path, f"--list {path}"), f"--list {path}").content
    points = list(document.values()) if isinstance(document, dict) else document
    if not isinstance(points, list) or not all(isinstance(point, dict) for point in points):
        raise InputError(f"--list {path}: must be a list of mappings, such as '- max_num_seqs: 64', one for each point")
    return [_once(f"--list {path}: a point", {str(name): _meant(value) for name, value in point.items()})
            for point in points]


def spelled(name: str) -> str:
    """A name as fields and knobs are spelled, typed with dashes or not; what stands before a dot stays."""
    owner, dot, rest = name.rpartition(".")
    return f"{owner}{dot}{rest}" if owner in ("mix", "tenants") else f"{owner}{dot}{rest.replace('-', '_')}"


def _given(texts: Iterable[str] | None) -> dict[str, str]:
    return _once("--vary", values.pairs("--vary", texts))


def _once(who: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The same by names as they are spelled. Raises InputError where two of them are one, which `who` said twice."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if spelled(name) in found:
            raise InputError(f"{who} says {values.shown(spelled(name))} twice, with dashes and without: leave one out")
        found[spelled(name)] = value
    return found


def _span(name: str, text: str) -> tuple[float, float]:
    low, _, high = text.partition(SPAN)
    ends = tuple(values.scalar(end.strip()) for end in (low, high))
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends) or not ends[0] < ends[1]:
        raise InputError(f"--vary {name} takes LOW..HIGH, two numbers with the lower one first, not {text!r}")
    return ends


def _meant(value: Any) -> Any:
    """JSON has no word for what has no bound, so there "inf" is one."""
    if isinstance(value, Mapping):
        return {str(key): _meant(part) for key, part in value.items()}
    return inf if value == "inf" else value
