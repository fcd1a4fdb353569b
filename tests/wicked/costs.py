"""Cost models that answer wrongly. Each says in its docstring what it does."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from cost_models import CostModel, CostModelError


class Fair(CostModel):
    """Ten nanoseconds a step.

    Class attributes:
        told: What a subclass is told.
    """

    name = "fair"    # type: ignore[assignment]
    origin = "made up"    # type: ignore[assignment]
    told: ClassVar[str] = ""

    def time(self, shape: Any) -> Any:
        return 10


def priced(name: str, does: str, told: str, price: Any) -> type[Fair]:
    """A cost model by which every step costs that."""
    return type(name, (Fair,), {"__doc__": does, "told": told, "name": name, "__module__": __name__,
                                "time": lambda self, shape: price})


WHOLE = "it must be a whole number of nanoseconds (an int), at least 1 and at most 2^62"
FIRST = "its time of (0, 0, ((20, 0), (30, 0)), 0, 'varlen') is"
Negative = priced("Negative", "says that steps last less than no time", f"{FIRST} -5: {WHOLE}", -5)
Free = priced("Free", "says that steps last no time", f"{FIRST} 0: {WHOLE}", 0)
Float = priced("Float", "gives a float", f"{FIRST} 10.0: {WHOLE}", 10.0)
NotANumber = priced("NotANumber", "says that steps last NaN", f"{FIRST} nan: {WHOLE}", float("nan"))
Infinite = priced("Infinite", "says that steps last for ever", f"{FIRST} inf: {WHOLE}", float("inf"))
Nothing = priced("Nothing", "says None", f"{FIRST} None: {WHOLE}", None)
Words = priced("Words", "says that steps last long", f"{FIRST} 'long': {WHOLE}", "long")
Ages = priced("Ages", "says that steps last longer than the clock counts",
              f"{FIRST} 9223372036854775808: {WHOLE}", 1 << 63)


class Raises(Fair):
    """raises"""
    told = "its time raised ZeroDivisionError: division by zero in costs.py, line "

    def time(self, shape: Any) -> Any:
        return 1 / 0


class Short(Fair):
    """lists fewer durations than there are steps"""
    told = "its decode_times must list "

    def decode_times(self, shape: Any, k: int, growth: int | None = None) -> Any:
        return [10]


class Endless(Fair):
    """gives durations without an end"""
    told = "its decode_times must list "

    def decode_times(self, shape: Any, k: int, growth: int | None = None) -> Any:
        return iter(lambda: 10, None)


class TwoMinds(Fair):
    """prices steps in a row otherwise than each alone"""
    told = "says 11 ns for step "

    def decode_times(self, shape: Any, k: int, growth: int | None = None) -> Any:
        return [11] * k


class Overhead(Fair):
    """takes less than no time outside the steps"""
    told = "its request_overhead is -7: it must be a whole number of nanoseconds (an int), at least 0 and at most 2^62"
    request_overhead = -7    # type: ignore[assignment]


class Numpy(Fair):
    """is right, in numpy's whole numbers"""

    def time(self, shape: Any) -> Any:
        return np.int64(10)


class Listed(Fair):
    """is right, in steps in a row of its own"""

    def time(self, shape: Any) -> Any:
        return 10 + shape.context

    def decode_times(self, shape: Any, k: int, growth: int | None = None) -> Any:
        return [10 + shape.context + step * (shape.decodes if growth is None else growth) for step in range(k)]


class Refuses(Fair):
    """may refuse a step, as the bundled ones do"""

    def time(self, shape: Any) -> Any:
        raise CostModelError("no step has two chunks: send one prompt after the other")
