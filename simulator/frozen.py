"""What stays as it is: values that nobody writes into, of a scenario or of what a run came to. It knows neither.

It keeps accidents off a record. Whoever means to change one finds a way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from types import MemberDescriptorType
from typing import Any, NoReturn, TypeVar

import numpy as np

K = TypeVar("K")
V = TypeVar("V")
A_COPY = "dict(...) makes a copy that can be"


class Frozen(dict[K, V]):
    """A dictionary that cannot be changed, nor can the plain values in it: see `frozen`.

    It equals and prints as a dictionary with the same entries, may be copied and pickled, and JSON takes it.

    Example:
        >>> kept = Frozen({"max_num_seqs": 32})
        >>> kept == {"max_num_seqs": 32}, kept | {"max_num_seqs": 64}
        (True, {'max_num_seqs': 64})
        >>> kept["max_num_seqs"] = 64
        Traceback (most recent call last):
        TypeError: {'max_num_seqs': 32} cannot be changed: dict(...) makes a copy that can be

    Args:
        values: The entries, as `dict` takes them.
        remedy: What to do instead of a change, for the complaint.
    """

    __slots__ = ("_remedy",)

    def __init__(self, values: Mapping[K, V] | Iterable[tuple[K, V]] = (), remedy: str = A_COPY) -> None:
        super().__init__({key: frozen(value, remedy) for key, value in dict(values).items()})
        self._remedy = remedy

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{self!r} cannot be changed: {self._remedy}")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[type[Frozen[K, V]], tuple[dict[K, V], str]]:
        return type(self), (dict(self), self._remedy)


def frozen(value: Any, remedy: str = A_COPY) -> Any:
    """The value as nobody can change it: a mapping is Frozen, a list a tuple, a set a frozenset, down to what is none
    of them; an array is read-only from now on, and a number of numpy one of Python.
    """
    match value:
        case Frozen():
            return value
        case Mapping():
            return Frozen(value, remedy)
        case list() | tuple() if type(value) in (list, tuple):
            return tuple(frozen(each, remedy) for each in value)
        case set():
            return frozenset(value)
        case np.generic():
            return value.item()
        case np.ndarray():
            value.flags.writeable = False
    return value


def of_python(value: Any) -> Any:
    """The value with all that is numpy's in it as Python's: a number, and an array as a list; a copy where it changes.

    So it compares, stands in JSON, and stays what it is whatever becomes of the array.
    """
    match value:
        case np.ndarray():
            return value.tolist()
        case np.generic():
            return value.item()
        case Frozen():
            return value
        case Mapping():
            return {key: of_python(each) for key, each in value.items()}
        case list() | tuple() if type(value) in (list, tuple):
            return type(value)(map(of_python, value))
    return value


class Kept:
    """Base of frozen dataclasses whose fields are frozen, too: when they are made, copied, or read from a pickle."""

    def __post_init__(self) -> None:
        self.__setstate__(vars(self).copy())

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update((name, frozen(value)) for name, value in state.items())


def own_copy(default: Any = None) -> Any:
    """A field of a dataclass that keeps a copy of an object with attributes, and gives a copy of it to whoever asks.

    What is done to either changes nothing here. Text stays what it is. Without a default, the field must be given.
    """
    return _OwnCopy(default)


class _OwnCopy:
    """The descriptor behind `own_copy`."""

    def __init__(self, default: Any) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, holder: object, owner: type) -> Any:
        if holder is not None:
            return _copied(vars(holder)[self._name])
        if self._default is None:
            raise AttributeError(self._name)    # which tells a dataclass that there is no default
        return self._default

    def __set__(self, holder: object, value: Any) -> None:
        vars(holder)[self._name] = _copied(value)


def _copied(value: Any) -> Any:
    """The object once more, with attributes of its own; a class, given in place of one, as it is."""
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return value
    same = copy(value)
    vars(same).update(_unshared(vars(same)))
    for name in _slots(same):
        object.__setattr__(same, name, _unshared(getattr(same, name)))
    return same


def _slots(value: object) -> Iterator[str]:
    """The fields of a dataclass that are slots, and set."""
    for name in getattr(value, "__dataclass_fields__", ()):
        if isinstance(getattr(type(value), name, None), MemberDescriptorType) and hasattr(value, name):
            yield name


def _unshared(value: Any) -> Any:
    """A copy of a plain dictionary, list, set or array, down to what is none of them; a number of numpy is Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is dict:
        return {key: _unshared(each) for key, each in value.items()}
    if type(value) is list:
        return [_unshared(each) for each in value]
    return value.copy() if type(value) in (set, np.ndarray) else value
