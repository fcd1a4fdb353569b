"""Router rule: which replica gets a request. It knows no clock, and moves nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.request import Request
from simulator.routing.candidates import Candidates, following


@dataclass(frozen=True)
class Sight:
    """What a rule may look at.

    Attributes:
        candidates: Who takes a request now, and how many each has.
        kv_needed: Blocks of KV cache that the replica of a number uses now, and those that the prompts waiting there
            will; asked when it is needed.
        waiting: How many requests wait at the replica of a number.
        sessions: The conversation of each row of the trace, as a number; -1 where it belongs to none.
        chance: Of everything drawn.
    """

    candidates: Candidates
    kv_needed: Callable[[int], int]
    waiting: Callable[[int], int]
    sessions: Sequence[int]
    chance: np.random.Generator


class Rule(ABC):
    """Base of the rules. Ties go round: to the first after the one chosen last."""

    def __init__(self, sight: Sight) -> None:
        self._sight, self._candidates = sight, sight.candidates
        self._last = -1

    @abstractmethod
    def choose(self, request: Request) -> int:
        """The number of the replica, one that takes requests now; asked only if there is one."""

    def freed(self, number: int) -> None:    # noqa: B027 - most rules need not know
        """Take note that a request has left this replica."""

    def _least_outstanding(self) -> int:
        """The replica with the fewest requests outstanding; of several, the next in turn."""
        self._last = following(self._candidates.least(), self._last)
        return self._last

    def _drawn(self) -> int:
        """Any replica that takes requests, each as likely as another."""
        return self._candidates[int(self._sight.chance.random() * len(self._candidates))]
