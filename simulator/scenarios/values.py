"""What a text file says of a field of Scenario, as the kind of value that the field holds. It knows no file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from math import inf
from typing import Any, Literal, get_args, get_origin, get_type_hints

from cost_models import CostModelError, ModelSpec, model_spec
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED
from simulator.scenario import Scenario

UNBOUNDED = {"max_model_len": UNLIMITED}
"""What inf means for a count where it is not "none given"."""


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Scenario)


def fitted(name: str, value: Any) -> Any:
    """The value as field `name` holds it: "inf" is no bound, a list of two is a pair. Raises InputError."""
    hint = _hints()[name]
    kinds = _kinds(hint)
    if kinds & {int, float} and (value == inf or value == "inf"):
        return inf if float in kinds or not _may_be_none(hint) else UNBOUNDED.get(name)
    if Mapping in kinds:
        return _mapping(name, value)
    if isinstance(value, Mapping | list):
        if name == "model" and isinstance(value, Mapping):
            return _shape(value)
        raise InputError(f"{name} must be one value, not {_shown(value)}")
    if isinstance(value, str) and str not in kinds:
        raise InputError(f"{name} must be {_wanted(kinds)}, not {_shown(value)}")
    if not isinstance(value, str) and kinds <= {str}:
        raise InputError(f"{name} must be text, not {_shown(value)}: put it in quotes if it is meant so")
    return value


def _kinds(hint: Any) -> set[Any]:
    """The plain kinds of value that a hint allows."""
    if get_origin(hint) is Literal:
        return {str}
    parts = [part for part in get_args(hint) or (hint,) if part is not type(None)]
    if get_origin(hint) is not None and issubclass(_class(get_origin(hint)), Mapping):
        return {Mapping}
    return {part for part in parts if part in (int, float, str, bool)}


def _may_be_none(hint: Any) -> bool:
    """Whether a field may be without a value; a count that must have one has no bound to lift."""
    return type(None) in get_args(hint)


def _class(origin: Any) -> type:
    return origin if isinstance(origin, type) else object


def _shape(value: Mapping[str, Any]) -> ModelSpec:
    try:
        return model_spec(value)
    except CostModelError as error:
        raise InputError(str(error)) from None


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must map names to values, not {_shown(value)}")
    return {key: _entry(name, each) for key, each in value.items()}


def _entry(name: str, value: Any) -> Any:
    """The value of one name in a mapping."""
    if name == "scheduler_overhead":
        return tuple(value) if isinstance(value, list) else (value, 0.0) if _is_number(value) else value
    if isinstance(value, Mapping):
        return {key: _entry(name, each) for key, each in value.items()}
    if isinstance(value, list):
        return tuple(value)
    return inf if value == "inf" else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wanted(kinds: set[Any]) -> str:
    return "true or false" if kinds == {bool} else "a whole number" if kinds == {int} else "a number"


def _shown(value: Any) -> str:
    quoted = re.sub(r"\s+", " ", repr(value))
    return quoted if len(quoted) <= 60 else f"{quoted[:60]}..."
