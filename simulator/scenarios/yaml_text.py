"""YAML as people mean it: YAML 1.2's plain words, one document, no tags, no anchors, no key twice.

`no` is a word and not false, 1e-5 is a number, 10:30 is text. It knows no scenario.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from simulator.errors import InputError

MOST_CHARACTERS = 1 << 18
DEEPEST = 20
RULES = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.?(inf|Inf|INF)|\.(nan|NaN|NAN)",
}
"""What a plain word may be besides text, the first rule that matches."""


class _Loader(yaml.SafeLoader):
    """Knows the plain words of YAML 1.2, and `inf` without its dot."""

    yaml_implicit_resolvers = {    # noqa: RUF012
        None: [(f"tag:yaml.org,2002:{kind}", re.compile(f"(?:{rule})$")) for kind, rule in RULES.items()]}

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        return int(node.value)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        return float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


class Written(NamedTuple):
    """What a text says, and the line of each key at its top."""

    content: Any
    lines: dict[str, int]


def parse(text: str, where: str) -> Written:
    """The content of a YAML text; `where` begins what is said of it. Raises InputError, one line."""
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"{where}: holds more than {MOST_CHARACTERS >> 10} KiB of text")
    try:
        for problem, line in _unwanted(text):
            raise InputError(f"{where}, line {line}: {problem}")
        node = yaml.compose(text, _Loader)
        if node is None:
            return Written(None, {})
        _refuse_twice(node, where)
        return Written(_Loader("").construct_document(node), _lines(node))
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        mark = getattr(error, "problem_mark", None)
        at = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"{where}{at}: not YAML: {getattr(error, 'problem', None) or _first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _unwanted(text: str) -> Iterator[tuple[str, int]]:
    """What is YAML, but not for us, and its line. Events come one by one, so nothing has been unfolded yet."""
    deep = 0
    events: Iterator[Any] = yaml.parse(text, _Loader)
    for event in events:
        line = event.start_mark.line + 1
        deep += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if deep > DEEPEST:
            yield f"nested deeper than {DEEPEST} levels", line
        if getattr(event, "anchor", None):
            yield f"anchors and aliases ({event.anchor}) are not read: write the value out", line
        if getattr(event, "tag", None):
            yield f"tags ({event.tag}) are not read: write plain values", line
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style:
            yield "merge keys (<<) are not read: write the keys out", line


def _refuse_twice(node: yaml.Node, where: str) -> None:
    """Refuse a key that is written twice, or is no word."""
    known: set[str] = set()
    for part in node.value if isinstance(node, yaml.CollectionNode) else ():
        if isinstance(part, tuple):
            key, part = part
            if not isinstance(key, yaml.ScalarNode):
                raise InputError(f"{where}, line {key.start_mark.line + 1}: a key must be a word")
            if key.value in known:
                raise InputError(f"{where}, line {key.start_mark.line + 1}: key '{key.value}' appears twice")
            key.tag = "tag:yaml.org,2002:str"    # names are text, whatever they look like
            known.add(key.value)
        _refuse_twice(part, where)


def _lines(node: yaml.Node) -> dict[str, int]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key.value: key.start_mark.line + 1 for key, _ in pairs}
