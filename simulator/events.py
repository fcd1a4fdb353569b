"""Events: when a step ends, and who hears of it. They know no policy and no cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from simpy import Environment, Event

from simulator.step import Queue, Step

PLANS = 1 << 20
"""The lowest rank of what comes after the ends of all steps of an instant, whichever replica they are of."""


class Watcher(Protocol):
    """Hears of every step of a replica: for conformance runs and tests."""

    def planned(self, step: Step, queue: Queue, now: int) -> None:
        """The policy has decided, memory for one step is taken, and nothing is counted yet."""

    def committed(self, steps: int) -> None:
        """The step, repeated `steps` times, is counted, and those who may leave have left."""


class Last(Event):
    """A timeout that calls somebody last at its instant: who arrives when a step ends is seen by the next plan.

    Of several at one instant the one with the lowest rank comes first.
    """

    def __init__(self, env: Environment, delay: int, call: Callable[[Any], None], rank: int = 0) -> None:
        self.env, self.callbacks, self._ok, self._value = env, [call], True, None
        env.schedule(self, 2 + rank, delay)    # type: ignore[arg-type]

    def put_off(self) -> None:
        """Call nobody any more."""
        if self.callbacks:
            self.callbacks.clear()
