"""Reading: what a command left in a directory, as chapters of a page. It checks files, and writes none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from simulator.account import Account
from simulator.documents import document_of, readable, text_of
from simulator.errors import InputError
from simulator.plausible import check
from simulator.report.drawings import drawing
from simulator.report.elements import Markup
from simulator.report.runs import account_of
from simulator.saved import MANIFEST


class Picture(NamedTuple):
    """A drawing with the words around it."""

    title: str
    caption: str
    markup: Markup


@dataclass(frozen=True)
class Chapter:
    """One study, or some runs.

    Attributes:
        command: That wrote it.
        account: Question, answer, tables and facts.
        scenario: What was asked, as a record that `batchsim run --scenario` takes.
        pictures: Its figures, the most telling one first.
        files: What it was made from: names and the beginnings of their SHA-256.
        policies: Policy and knobs of each that was compared, by the name that is shown; empty where there is one.
        definitions: Of the metrics that the study counts in its own way.
    """

    command: str
    account: Account
    scenario: Mapping[str, Any]
    pictures: tuple[Picture, ...]
    files: Mapping[str, str]
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The chapter for JSON, without its figures."""
        return {"command": self.command, **self.account.plain(), "scenario": dict(self.scenario),
                "files": dict(self.files)}


class Kind(NamedTuple):
    """What a study leaves: its command, what its figures show, and which metrics it counts in its own way."""

    command: str
    figures: Mapping[str, tuple[str, str]]
    definitions: Mapping[str, str] = {}


PLANNED = {
    "request_throughput": "Requests that come and can be served at all, over the time in which they come.",
    "request_goodput": (
        "Requests/s offered, times the share of them that meets every service objective, counted from the first try; a "
        "share of those that come once the run is warm. What comes is counted over the time in which it comes, and not "
        "until the last answer is out, as `batchsim run` counts."),
    "ttft": "Time to first token: first token delivered - sent, of requests that come once the run is warm.",
    "tpot": "Time per output token, the first excluded: (E2EL - TTFT) / (output tokens - 1), one value a request; of "
            "requests that come once the run is warm."}
"""How a plan counts: its run has a warm-up, and stands for traffic that goes on."""
STUDIES: dict[str, Kind] = {
    "comparison.json": Kind("compare", {
        "timeline.svg": ("Slots over time", "A row is a slot, a bar a request in it. The panels have equal slots; "
                                            "where a slot is hatched or empty, it makes no tokens."),
        "ladder.svg": ("Where the ratio comes from", "One switch after the other; equal lengths are equal factors."),
        "batch.svg": ("Batch over time", "How many rows of a step compute something new, how long the queue is, and "
                                         "how full the KV cache.")}),
    "plan.json": Kind("plan", {
        "goodput.svg": ("Goodput against rate", "Requests within all objectives, and the latencies with their limits, "
                                                "against the rate offered to a replica."),
        "backlog.svg": ("Backlog over time", "Requests outstanding, with the answer and with its neighbours: where the "
                                             "line keeps rising, the traffic is too much.")}, PLANNED),
    "sweep.json": Kind("sweep", {
        "heatmap.svg": ("The grid", "A cell is a point of the sweep; hatched ones have no value."),
        "pareto.svg": ("Each user against each GPU", "The points that no other one beats in both are joined.")}),
}
"""By the file that tells of the study."""


def chapters(directory: Path) -> list[Chapter]:
    """All studies of a directory; its runs where there is no study. Raises InputError if it holds nothing to tell."""
    if not directory.is_dir():
        raise InputError(f"{directory} is no directory: give one that `batchsim run -o`, compare, sweep or plan wrote")
    found = [_study(directory, name, kind) for name, kind in STUDIES.items() if (directory / name).is_file()]
    if not found and (runs := _runs(directory)):
        found = [_chapter_of(runs)]
    if not found:
        raise InputError(f"{directory} holds nothing to report: give a directory that `batchsim run -o`, compare, "
                         "sweep or plan wrote")
    return found


def _study(directory: Path, name: str, kind: Kind) -> Chapter:
    document = _read(directory / name)
    if "account" not in document:
        raise InputError(f"{directory / name} has no account of itself: write it again with `batchsim {kind.command} "
                         "-o`, as of this version")
    try:
        account = Account.of(document["account"])
    except InputError as error:
        raise InputError(f"{directory / name}: {error}") from None
    told = document.get("figures")
    drawn = told if isinstance(told, list) else []    # a file of that name may be left from an earlier study
    pictures = {file: _picture(directory / file, *words) for file, words in kind.figures.items()
                if file in drawn and (directory / file).is_file()}
    return Chapter(kind.command, account, _scenario(document), tuple(pictures.values()),
                   _checksums([directory / each for each in (name, *pictures)]), _policies(document), kind.definitions)


def _picture(path: Path, title: str, caption: str) -> Picture:
    try:
        return Picture(title, caption, drawing(text_of(path), path.stem, f"{title}. {caption}"))
    except InputError as error:
        raise InputError(f"{path}: {error}: draw it again, or take it away") from None


def _runs(directory: Path) -> dict[Path, dict[str, Any]]:
    """The results in a directory, by their files."""
    names = sorted(path for path in directory.glob("*.json") if path.name != MANIFEST and path.is_file())
    found = {path: _read(path) for path in names}
    runs = {path: document for path, document in found.items() if "backend" in document and "remarks" in document}
    for path, document in runs.items():
        check(document, str(path))
    return runs


def _chapter_of(found: Mapping[Path, dict[str, Any]]) -> Chapter:
    runs = {readable(path.stem): document for path, document in found.items()}
    try:
        account, pictures = account_of(runs), _pictures(runs)
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InputError(f"{' or '.join(runs)} is not as batchsim writes a run ({type(error).__name__}: {error})"
                         ) from None
    return Chapter("run", account, _scenario(next(iter(runs.values()))), pictures, _checksums(found))


def _pictures(runs: Mapping[str, dict[str, Any]]) -> tuple[Picture, ...]:
    from simulator.plots import batches_figure, latencies_figure, queue_figure, svg_of
    words = {"latencies": ("Latencies", "A line a run, from the median to the 99th percentile."),
             "batch": ("Batch over time", "Sequences that compute new tokens."),
             "queue": ("What stops the queue", "The time in steps, by what keeps the next request out of the batch.")}
    drawn = {"latencies": latencies_figure(runs), "batch": batches_figure(runs), "queue": queue_figure(runs)}
    return tuple(Picture(*words[name], drawing(svg_of(figure), name, ". ".join(words[name])))
                 for name, figure in drawn.items())


def _read(path: Path) -> dict[str, Any]:
    document = document_of(path)
    return document if isinstance(document, dict) else {}


def _scenario(document: Mapping[str, Any]) -> Mapping[str, Any]:
    found = document.get("scenario")
    return found if isinstance(found, dict) else {}


def _policies(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    found = document.get("policies")
    return {str(label): each for label, each in found.items() if isinstance(each, dict)} if isinstance(
        found, dict) else {}


def _checksums(paths: Iterable[Path]) -> dict[str, str]:
    return {readable(path.name): sha256(path.read_bytes()).hexdigest()[:16] for path in paths}
