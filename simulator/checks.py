"""Checks of plain values: one refusal in one line for every kind. They know no scenario."""

from __future__ import annotations

from math import inf, isfinite, isnan
from typing import Any

import numpy as np

from simulator.errors import InputError
from simulator.memory.base import UNLIMITED

FARTHEST = 1e8
"""Seconds of the longest timeout, pause or overhead: three years."""


def is_number(value: object) -> bool:
    """Whether it is a number other than NaN; true and false are none, a number of numpy is one."""
    if isinstance(value, float | np.floating):
        return not isnan(value)
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _shown(value: object) -> str:
    """The value as a program has it; of text that spells a number, that it is text."""
    try:
        spells = isinstance(value, str) and isfinite(float(value))
    except ValueError:
        spells = False
    return f"the text {value!r}: leave out its quotes" if spells else repr(value)


def whole(name: str, value: object, least: int = 1) -> int:
    """The whole number of at least `least` within 64 bits, one of numpy as an int; what is none is refused."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, not {_shown(value)}")
    if value > UNLIMITED:
        raise InputError(f"{name} must be at most {UNLIMITED} or inf, not {value}")
    return int(value)


def count(name: str, value: object, least: int = 1) -> int | None:
    """The same, where it need not be set."""
    return None if value is None else whole(name, value, least)


def positive(name: str, value: object) -> float:
    """The number above 0, one of numpy as Python's; what is none, such as None, is refused."""
    if not (is_number(value) and value > 0):    # type: ignore[operator]
        raise InputError(f"{name} must be above 0, not {_shown(value)}")
    return _float(name, value)


def above_zero(name: str, value: object) -> None:
    """Refuse what is set but no such number."""
    if value is not None:
        positive(name, value)


def not_negative(name: str, *found: object) -> None:
    """Refuse what is no finite number of at least 0."""
    for value in found:
        if not (is_number(value) and 0 <= value < inf):    # type: ignore[operator]
            raise InputError(f"{name} must be a number of at least 0, not {_shown(value)}")
        _float(name, value)


def _float(name: str, value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name} is too large, a number of {len(str(abs(value)))} digits") from None


def lasting(name: str, *milliseconds: float) -> None:
    """Refuse what lasts longer than anybody waits."""
    for value in milliseconds:
        if value > FARTHEST * 1e3:
            raise InputError(f"{name} must be at most {FARTHEST * 1e3:g} ms, not {value:g}")


def near(name: str, seconds: float) -> None:
    """Refuse a time that lies farther away than anybody waits."""
    if seconds > FARTHEST:
        raise InputError(f"{name} must be at most {FARTHEST:g} seconds, not {seconds:g}")


def text(name: str, value: str) -> None:
    """Refuse a file's name with bytes that are no text: no record could hold it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name} must be text, and {value!r} has bytes that are none: rename that file") from None


def pair(name: str, value: object) -> tuple[object, ...]:
    """The two numbers of a list of two."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(f"{name} takes two numbers, ms and ms for each running request, not {value!r}")
    return tuple(value)
