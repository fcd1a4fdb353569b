"""Fleet: the replicas that there are, from when to when each is there. It hands out no request."""

from __future__ import annotations

from collections.abc import Callable

from simulator.replica import Replica
from simulator.routing import Candidates


class Fleet:
    """Replicas by number, from 0 on.

    Args:
        make: Makes the replica of a number.
        limit: Most requests outstanding at one replica.
    """

    def __init__(self, make: Callable[[int], Replica], limit: int) -> None:
        self._make = make
        self.candidates = Candidates(limit)
        self.replicas: list[Replica] = []

    def start(self, count: int) -> None:
        """Have so many more replicas at once."""
        for _ in range(count):
            number = len(self.replicas)
            self.replicas.append(self._make(number))
            self.candidates.join(number)

    def close(self) -> None:
        """Say that no request will follow."""
        for replica in self.replicas:
            replica.close()
