"""Page: chapters as one HTML document. Everything is in it: style, script, drawings; nothing is fetched."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from simulator.account import Account
from simulator.metrics import METRICS
from simulator.report.asked import asked
from simulator.report.elements import Markup, definitions, element, items, lines, table
from simulator.report.reading import Chapter, Picture, chapters
from simulator.report.seal import sealed
from simulator.tables import Table
from simulator.version import __version__

TRUST = ("cost model", "its error", "its range")
"""Facts that tell how far to trust the step times."""


def report(directory: str | os.PathLike[str]) -> str:
    """The page of a directory that `batchsim run -o`, `compare`, `sweep` or `plan` wrote.

    The same files give the same bytes. Raises InputError if there is nothing to tell.
    """
    return page_of(chapters(Path(directory)))


def page_of(found: Sequence[Chapter]) -> str:
    """The page of these chapters, of which there is at least one, with its seal."""
    body = lines(*(_article(chapter, f"c{at}") for at, chapter in enumerate(found)), _foot())
    return sealed(f"<!doctype html>\n{element('html', chr(10), _head(found[0]), body, _script(), lang='en')}\n")


def _head(first: Chapter) -> Markup:
    policy = (f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
              f"script-src 'sha256-{b64encode(sha256(_file('page.js').encode()).digest()).decode()}'")
    return element("head", "\n", lines(
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup(f'<meta name="generator" content="batchsim {__version__}">'),
        element("title", first.account.question), element("style", Markup(_file("page.css")))))


def _script() -> Markup:
    return lines(element("script", Markup(_file("page.js"))))


def _file(name: str) -> str:
    return files("simulator.report").joinpath(name).read_text("utf-8")


def _article(chapter: Chapter, key: str) -> Markup:
    """A study under its question; each section has an entry in the list at its top."""
    sections = {title: content for title, content in _sections(chapter) if content}
    links = [element("a", title, href=f"#{key}-{at}") for at, title in enumerate(sections)]
    told = lines(*(element("section", element("h2", title, id=f"{key}-{at}"), "\n", content)
                   for at, (title, content) in enumerate(sections.items())))
    return element("article", "\n", lines(
        element("p", f"batchsim {chapter.command}", class_="kind"), element("h1", chapter.account.question),
        element("nav", *links, aria_label="Sections")), told)


def _sections(chapter: Chapter) -> Iterator[tuple[str, Markup | None]]:
    account = chapter.account
    yield "Answer", _answer(account.answer)
    yield "Warnings", items(account.warnings) if account.warnings else element("p", "The runs gave none.")
    yield "Figures", lines(*map(_figure, chapter.pictures))
    yield "Tables", lines(*map(table, account.tables))
    yield "Inputs", definitions(fact for fact in _facts(account) if fact[0] not in TRUST)
    yield "How far to trust the step times", definitions(fact for fact in _facts(account) if fact[0] in TRUST)
    yield "Scenario", asked(chapter)
    yield "Definitions", definitions(_defined(chapter))
    yield "Made from", table(Table("Files", ("file", "SHA-256 begins with"), tuple(chapter.files.items()),
                                   words=("SHA-256 begins with",)))


def _answer(sentences: tuple[str, ...]) -> Markup:
    first, *others = sentences or ("Nothing was found.",)
    return lines(element("p", first, class_="answer"), items(tuple(others)) if others else None)


def _figure(picture: Picture) -> Markup:
    caption = element("figcaption", element("b", picture.title), " ", picture.caption)
    return element("figure", element("div", picture.markup, class_="scroll drawing", tabindex="0", role="region",
                                     aria_label=picture.title), caption)


def _facts(account: Account) -> list[tuple[str, str]]:
    """What each fact is of, and what it says."""
    return [(name, said) for name, _, said in (fact.partition(": ") for fact in account.facts)]


def _defined(chapter: Chapter) -> list[tuple[str, str]]:
    """The metrics whose labels occur, in the order of METRICS."""
    account = chapter.account
    names = (name for each in account.tables for name in (*each.header, *(row[0] for row in each.rows)))
    text = "\n".join([*account.answer, *names])
    return [(f"{metric.label} ({metric.unit})", chapter.definitions.get(name, metric.definition))
            for name, metric in METRICS.items() if re.search(rf"(?<![\w/]){re.escape(metric.label)}(?![\w/])", text)]


def _foot() -> Markup:
    return element("footer", f"Made by batchsim {__version__} from the files above. The page needs no network; its "
                             "script only sorts tables, enlarges figures and shows the values of curves.")
