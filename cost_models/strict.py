"""Read a YAML file or a mapping into a dataclass, and refuse whatever does not fit.

Every complaint is one line: where, which key, what is expected. It knows no model and no profile: the
dataclass says which keys exist, which may be absent and what each holds. Numbers are finite and, unless Signed, at
least 0; none is larger than the largest that anything here has.
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, NewType, TypeVar, get_args, get_origin, get_type_hints

import yaml
from yaml.constructor import SafeConstructor

from cost_models.base import CostModelError, choose, shown

T = TypeVar("T")
N = TypeVar("N", int, float)
Signed = NewType("Signed", float)
"""A number that may be below 0."""
MOST_NUMBER, MOST_WHOLE = 1e18, 1 << 60
"""More than anything here has, and few enough to reckon with."""
MOST_YAML, SMALL = 1 << 20, 2000
"""Characters of a file, and of one that the slower loader reads again to say better what is wrong."""
DEEPEST = 100
"""Sequences and mappings inside each other. Some parsers take ever longer for each level."""


class _Strict(SafeConstructor):
    """Makes a loader refuse a key written twice, and leave dates as they are written."""

    # A date stays text.
    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        written: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in written:
                raise yaml.MarkedYAMLError(problem=f"key '{key.value}' appears twice", problem_mark=node.start_mark)
            written.add(str(key.value))
        return super().construct_mapping(node, deep)


class _Loader(_Strict, yaml.SafeLoader):
    """Says best what is wrong."""


class _Fast(_Strict, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):    # type: ignore[misc]
    """Ten times as fast."""


def read_yaml(path: Path) -> object:
    """Content of a YAML file. Raises CostModelError if it is absent, too large, not text or not YAML."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise CostModelError(f"{path}: is no regular file")
        with path.open(encoding="utf-8-sig") as stream:
            return parse_yaml(stream.read(MOST_YAML + 1), str(path))
    except OSError as error:
        raise CostModelError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        if isinstance(error, CostModelError):
            raise
        raise CostModelError(f"{path}: not a text file") from None    # or a name that no file can have


def _loaded(text: str) -> object:
    """What YAML says that neither unfolds nor makes objects: without anchors, aliases, tags and merged keys."""
    try:
        _refuse_marks(text, _Fast)
        return yaml.load(text, _Fast)
    except (yaml.YAMLError, ValueError, RecursionError):
        if len(text) > SMALL:
            raise
        _refuse_marks(text, _Loader)
        return yaml.load(text, _Loader)


def _refuse_marks(text: str, loader: type[Any]) -> None:
    events: Iterator[Any] = yaml.parse(text, loader)
    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {DEEPEST}", problem_mark=event.start_mark)
        if named := getattr(event, "anchor", None) or getattr(event, "tag", None):
            problem = f"anchors, aliases and tags ({named}) are not read: write the value out"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def parse_yaml(text: str, where: str) -> object:
    """Content of YAML text; ``where`` names it in the error."""
    if len(text) > MOST_YAML:
        raise CostModelError(f"{where}: holds more than {MOST_YAML >> 20} MiB of text")
    try:
        return _loaded(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "unreadable"
        raise CostModelError(f"{where}{line}: not valid YAML: {problem}") from None


def build(cls: type[T], data: object, where: str) -> T:
    """``cls`` filled from a mapping whose keys are its fields; fields with a default may be absent."""
    if not isinstance(data, Mapping):
        raise CostModelError(f"{where}: expected a mapping of keys to values, got {_kind(data)}")
    known = {field.name: field for field in fields(cls) if field.init}  # type: ignore[arg-type]
    with located(where):
        for key in data:
            choose("key", key, known)
    missing = [name for name, field in known.items()
               if name not in data and field.default is MISSING and field.default_factory is MISSING]
    if missing:
        raise CostModelError(f"{where}: missing '{missing[0]}' (needed: {', '.join(missing)})")
    hints = get_type_hints(cls)
    values = {key: _convert(value, hints[key], f"{where}: {key}") for key, value in data.items()}
    with located(where):
        return cls(**values)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put ``where`` in front of the message of a CostModelError raised inside."""
    try:
        yield
    except CostModelError as error:
        raise CostModelError(f"{where}: {error}") from None


def _convert(value: object, hint: Any, where: str) -> Any:
    options = get_args(hint)
    if NoneType in options:
        return None if value is None else _convert(value, options[0], where)
    if Ellipsis in options:
        return _list(value, options[0], where)
    if get_origin(hint) is dict:
        return _mapping(value, options[1], where)
    if options:
        return _bounds(value, where)
    if is_dataclass(hint):
        return build(hint, value, where)  # type: ignore[arg-type]
    if hint is Any:
        return value
    return {int: _whole, float: _number, str: _text, bool: _truth, Signed: _signed}[hint](value, where)


def _list(value: object, hint: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise CostModelError(f"{where} must be a list, got {shown(value)}")
    return tuple(_convert(item, hint, f"{where}[{at}]") for at, item in enumerate(value))


def _mapping(value: object, hint: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise CostModelError(f"{where} must be a mapping of names to values, got {shown(value)}")
    return {_text(name, where): _convert(each, hint, f"{where}: {name}") for name, each in value.items()}


def _bounds(value: object, where: str) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise CostModelError(f"{where} must be two whole numbers [lowest, highest], got {shown(value)}")
    low, high = (_whole(item, where) for item in value)
    if low > high:
        raise CostModelError(f"{where} must be [lowest, highest], got {shown(value)}")
    return low, high


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CostModelError(f"{where} must be a whole number of at least 0, got {shown(value)}")
    return _at_most(value, MOST_WHOLE, where)


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        # YAML reads an exponent only after a decimal point and with a sign; 1e-5 arrives as text.
        hint = " (write 1.0e-5, not 1e-5)" if isinstance(value, str) else ""
        raise CostModelError(f"{where} must be a number of at least 0{hint}, got {shown(value)}")
    return float(_at_most(value, MOST_NUMBER, where))


def _at_most(value: N, most: float, where: str) -> N:
    if abs(value) > most:
        raise CostModelError(f"{where} must be at most {most:g}, got {shown(value)}")
    return value


def _signed(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < math.inf:
        raise CostModelError(f"{where} must be a number, got {shown(value)}")
    return float(_at_most(value, MOST_NUMBER, where))


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise CostModelError(f"{where} must be text, got {shown(value)}")
    return value


def _truth(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise CostModelError(f"{where} must be true or false, got {shown(value)}")
    return value


def _kind(data: object) -> str:
    return "nothing" if data is None else type(data).__name__
