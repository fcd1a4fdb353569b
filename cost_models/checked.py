"""A cost model of somebody's own, each of whose answers is looked at: a wrong one is refused in a line that names it.

It knows no formula. The bundled models are not looked at, for the tests look at theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from traceback import walk_tb
from typing import Any, TypeVar

from cost_models.around import Around
from cost_models.base import CostModel, CostModelError, StepShape

Answer = TypeVar("Answer")
OURS = ("cost_models.", "simulator.")
LONGEST = 1 << 62
"""Nanoseconds; the clock has no more."""


@dataclass(frozen=True)
class Checked(Around):
    """Another cost model, held to whole nanoseconds of at least 1."""

    cost: CostModel

    def time(self, shape: StepShape) -> int:
        """Duration of one step in ns."""
        return self._duration(self._ask("time", self.cost.time, shape), shape)

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        """Durations in ns of ``k`` decode steps in a row."""
        times = self._ask("decode_times", self.cost.decode_times, shape, k, growth)
        if not hasattr(times, "__len__") or len(times) != k:
            raise CostModelError(f"cost model {self.cost.name}: its decode_times must list {k} durations, one a step, "
                                 f"not {_short(times)}")
        durations = [self._duration(ns, shape) for ns in times]
        self._agree(durations, shape, shape.decodes if growth is None else growth)
        return durations

    @property
    def request_overhead(self) -> int:
        """That of the model inside, in ns."""
        overhead = self._ask("request_overhead", lambda: self.cost.request_overhead)
        return self._whole(overhead, 0, "request_overhead")

    def _agree(self, durations: list[int], shape: StepShape, growth: int) -> None:
        """One of the durations, at a place that looks random and is the same each time, is what `time` says."""
        if not durations or type(self.cost).decode_times is CostModel.decode_times:
            return
        at = (shape.context + shape.decodes) % len(durations)
        ahead = StepShape(shape.decodes, shape.context + at * growth)
        if durations[at] != (alone := self.time(ahead)):
            raise CostModelError(f"cost model {self.cost.name}: its decode_times of {_short(tuple(shape))} says "
                                 f"{durations[at]} ns for step {at}, and its time {alone}: they must agree")

    def _duration(self, ns: Any, shape: StepShape) -> int:
        return self._whole(ns, 1, f"time of {_short(tuple(shape))}")

    def _whole(self, ns: Any, least: int, what: str) -> int:
        """The number as an int; numpy's whole numbers are taken, too."""
        try:
            whole = index(ns)
        except TypeError:
            whole = least - 1
        if not least <= whole <= LONGEST:
            raise CostModelError(f"cost model {self.cost.name}: its {what} is {_short(ns)}: it must be a whole number "
                                 f"of nanoseconds (an int), at least {least} and at most 2^62")
        return whole

    def _ask(self, verb: str, call: Callable[..., Answer], *args: Any) -> Answer:
        try:
            return call(*args)
        except CostModelError:
            raise
        except Exception as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())
            raise CostModelError(f"cost model {self.cost.name}: its {verb} raised {told}{_where(error)}") from error


def checked(cost: CostModel) -> CostModel:
    """The model itself if it is bundled, else the same held to its contract."""
    return cost if type(cost).__module__.startswith(OURS) else Checked(cost)


def _where(error: Exception) -> str:
    """The line that raised it."""
    *_, (frame, line) = walk_tb(error.__traceback__)
    name = frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f" in {name}, line {line}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
