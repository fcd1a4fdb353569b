"""Read a YAML file or a mapping into a dataclass, and refuse whatever does not fit.

Every complaint is one line: where, which key, what is expected. It knows no model and no profile: the
dataclass says which keys exist, which may be absent and what each holds. Numbers are finite and, unless Signed, at
least 0.
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

from cost_models.base import CostModelError, choose

T = TypeVar("T")
Signed = NewType("Signed", float)
"""A number that may be below 0."""


class _Strict(SafeConstructor):
    """Makes a loader refuse a key written twice, and leave dates as they are written."""

    # A date stays text.
    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
        if twice is not None:
            raise yaml.MarkedYAMLError(problem=f"key '{twice}' appears twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


class _Loader(_Strict, yaml.SafeLoader):
    """Says best what is wrong."""


class _Fast(_Strict, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):    # type: ignore[misc]
    """Ten times as fast."""


def read_yaml(path: Path) -> object:
    """Content of a YAML file. Raises CostModelError if it is absent, not text or not YAML."""
    try:
        return parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise CostModelError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CostModelError(f"{path}: not a text file") from None


def _loaded(text: str) -> object:
    try:
        return yaml.load(text, _Fast)
    except (yaml.YAMLError, ValueError, RecursionError):
        return yaml.load(text, _Loader)


def parse_yaml(text: str, where: str) -> object:
    """Content of YAML text; ``where`` names it in the error."""
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
        raise CostModelError(f"{where} must be a list, got {value!r}")
    return tuple(_convert(item, hint, f"{where}[{at}]") for at, item in enumerate(value))


def _mapping(value: object, hint: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise CostModelError(f"{where} must be a mapping of names to values, got {value!r}")
    return {_text(name, where): _convert(each, hint, f"{where}: {name}") for name, each in value.items()}


def _bounds(value: object, where: str) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise CostModelError(f"{where} must be two whole numbers [lowest, highest], got {value!r}")
    low, high = (_whole(item, where) for item in value)
    if low > high:
        raise CostModelError(f"{where} must be [lowest, highest], got {value!r}")
    return low, high


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CostModelError(f"{where} must be a whole number of at least 0, got {value!r}")
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        # YAML reads an exponent only after a decimal point and with a sign; 1e-5 arrives as text.
        hint = " (write 1.0e-5, not 1e-5)" if isinstance(value, str) else ""
        raise CostModelError(f"{where} must be a number of at least 0{hint}, got {value!r}")
    return float(value)


def _signed(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CostModelError(f"{where} must be a number, got {value!r}")
    return float(value)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise CostModelError(f"{where} must be text, got {value!r}")
    return value


def _truth(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise CostModelError(f"{where} must be true or false, got {value!r}")
    return value


def _kind(data: object) -> str:
    return "nothing" if data is None else type(data).__name__
