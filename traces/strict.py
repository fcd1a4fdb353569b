"""Read a YAML file, and make the dataclass that a mapping in it describes; whatever does not fit is one line.

It knows no spec: the dataclass says which keys there are, and checks its values itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

import yaml

from traces.arrivals import is_number
from traces.errors import TraceError, plain, shown, unknown

T = TypeVar("T")
# The C parser is ten times as fast; PyYAML is sometimes built without it.
_Safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LARGEST = 1 << 62
MOST_YAML, MOST_NUMBERS = 1 << 20, 16 << 20
"""Characters of a spec, and of a file of numbers."""
DEEPEST = 100
"""Sequences and mappings inside each other. Some parsers take ever longer for each level."""


class _Loader(_Safe):    # type: ignore[misc,valid-type]
    """Refuses a key that is written twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        written: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in written:
                raise yaml.MarkedYAMLError(problem=f"key {shown(key.value)} appears twice",
                                           problem_mark=node.start_mark)
            written.add(str(key.value))
        return super().construct_mapping(node, deep)


def read_text(path: Path, most: int = MOST_YAML) -> str:
    """Content of a text file; raises TraceError for what is no regular file, or holds more than `most` characters."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise TraceError(f"{plain(str(path))}: is no regular file")
    with path.open(encoding="utf-8-sig") as stream:
        text = stream.read(most + 1)
    if len(text) > most:
        raise TraceError(f"{plain(str(path))}: holds more than {most >> 20} MiB of text")
    return text


def _loaded(text: str) -> Any:
    """What YAML says that neither unfolds nor makes objects: without anchors, aliases, tags and merged keys."""
    events: Iterator[Any] = yaml.parse(text, _Safe)
    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {DEEPEST}", problem_mark=event.start_mark)
        if named := getattr(event, "anchor", None) or getattr(event, "tag", None):
            problem = f"anchors, aliases and tags ({shown(named)}) are not read: write the value out"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
    return yaml.load(text, _Loader)


def read_yaml(path: Path) -> Any:
    """Content of a YAML file; raises TraceError if there is none, or it is not YAML."""
    try:
        return _loaded(read_text(path))
    except TraceError:
        raise
    except OSError as error:
        raise TraceError(f"{plain(str(path))}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TraceError(f"{plain(str(path))}: not a text file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise TraceError(f"{plain(str(path))}{where}: {_problem(error)}") from None


def _problem(error: Exception) -> str:
    """What is wrong, on one line."""
    return plain(str(getattr(error, "problem", None) or "not YAML"))


def made(kind: type[T], given: object, where: str) -> T:
    """The dataclass with the values of a mapping; `where` begins what is said of a key that does not fit."""
    if not isinstance(given, Mapping):
        raise TraceError(f"{where}: must be a mapping of keys, not {shown(given)}")
    known = {field.name: field for field in fields(kind) if field.init}    # type: ignore[arg-type]
    for key in given:
        if key not in known:
            raise TraceError(f"{where}: {unknown('key', key, known)}")
    for name, field in known.items():
        if name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise TraceError(f"{where}: lacks {name}")
    try:
        return kind(**given)
    except TraceError as error:
        raise TraceError(f"{where}: {error}") from None


def one_of(kinds: Mapping[str, type[Any]], given: object, where: str) -> Any:
    """The dataclass that the key `kind` of a mapping names, with its other keys."""
    if not isinstance(given, Mapping) or "kind" not in given:
        raise TraceError(f"{where}: must be a mapping with a kind ({', '.join(kinds)})")
    if not isinstance(given["kind"], str) or given["kind"] not in kinds:
        raise TraceError(f"{where}: {unknown('kind', given['kind'], kinds)}")
    return made(kinds[given["kind"]], {key: value for key, value in given.items() if key != "kind"}, where)


def number(name: str, value: object, *, above: float = 0, least: float | None = None, most: float = LARGEST) -> None:
    """Refuse what is no finite number above `above`, or of at least `least` where that is given, up to `most`."""
    if is_number(value) and value <= most and (value > above if least is None else value >= least):    # type: ignore[operator]
        return
    low = f"above {above:g}" if least is None else f"of at least {least:g}"
    high = "" if most == LARGEST else f" and at most {most:g}"
    raise TraceError(f"{name} must be a number {low}{high}, not {shown(value)}")


def count(name: str, value: object, least: int = 1, most: int = LARGEST) -> None:
    """Refuse what is no whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise TraceError(f"{name} must be a whole number of at least {least}, not {shown(value)}")
    if value > most:
        raise TraceError(f"{name} must be at most {most:,}, not {shown(value)}")


def texts(given: object, *names: str) -> None:
    """Refuse fields that are not text."""
    for name in names:
        if not isinstance(value := getattr(given, name), str):
            raise TraceError(f"{name} must be text, not {shown(value)}")
