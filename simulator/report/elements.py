"""Elements: HTML from text. Whatever is not Markup is escaped, so that no file's content becomes markup."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from simulator.tables import Table


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | None
"""Text, Markup, or nothing."""
UNIT = re.compile(r"(?<=\d) (?=m?s\b|slots\b)")
"""The blank between a number and its unit, which must not end a line."""
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that no browser shows, and those that turn what follows around; they are spelled."""
SHORT = 12
"""Letters of a number that stays on one line in any case."""


def element(name: str, *children: Child, **attributes: str) -> Markup:
    """An element. Attributes are spelled as in HTML, with a trailing underscore where Python has the word."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{joined(*children)}</{name}>")


def _escaped(text: str) -> str:
    return escape(HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text))


def joined(*children: Child) -> Markup:
    """The children, one after the other."""
    return Markup("".join(child if isinstance(child, Markup) else _escaped(child) for child in children if child))


def lines(*children: Child) -> Markup:
    """The children, each on a line of its own."""
    return Markup("".join(f"{joined(child)}\n" for child in children if child))


def table(found: Table) -> Markup:
    """A table with its title as caption; where the window is narrow it scrolls beside its first column."""
    head = element("tr", *(element("th", _breakable(name), scope="col", class_=_kind(found, at)) if name else
                           element("td") for at, name in enumerate(found.header)))
    body = lines(*(element("tr", *(_cell(found, at, cell) for at, cell in enumerate(row))) for row in found.rows))
    title = element("caption", element("span", found.title))
    grid = element("table", title, element("thead", head), element("tbody", "\n", body))
    note = element("p", found.note, class_="note") if found.note else None
    return lines(element("div", grid, class_="scroll", tabindex="0", role="region", aria_label=found.title), note)


def _cell(found: Table, at: int, cell: str) -> Markup:
    if not at:
        return element("th", cell, scope="row", class_="word")
    long = " long" if len(cell) > SHORT else ""
    return element("td", UNIT.sub("\N{NO-BREAK SPACE}", cell), class_=f"{_kind(found, at)}{long}")


def _breakable(name: str) -> Markup:
    """A name that may go on in the next line behind an underscore, as knobs are long."""
    return Markup(_escaped(name).replace("_", "_<wbr>"))


def _kind(found: Table, at: int) -> str:
    """Words begin at the left, numbers end at the right."""
    return "word" if at == 0 or found.header[at] in found.words else "number"


def definitions(pairs: Iterable[tuple[str, str]]) -> Markup | None:
    """Words and what they mean; nothing if there are none."""
    told = lines(*(joined(element("dt", word), element("dd", meaning)) for word, meaning in pairs))
    return element("dl", "\n", told) if told else None


def items(found: tuple[str, ...]) -> Markup:
    """A list of sentences."""
    return element("ul", "\n", lines(*(element("li", each) for each in found)))
