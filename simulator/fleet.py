"""Fleet: the replicas that there are, and from when to when each is there. It hands out no request.

A replica is ordered, takes its time to start, takes requests, is drained (it takes no more and answers those it has),
and stops when it has none left. It is paid for from the order until it stops.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from simpy import Environment, Event

from simulator.replica import Replica
from simulator.routing import Candidates


@dataclass(frozen=True, eq=False)
class Life:
    """The instants of one replica, in ns; None: not yet, or never.

    Attributes:
        ordered: It is paid for from here on.
        ready: It takes requests from here on.
        drained: It takes no more.
        stopped: It is paid for until here.
    """

    ordered: int
    ready: int | None = None
    drained: int | None = None
    stopped: int | None = None


class Fleet:
    """Replicas by number, from 0 on, in the order in which they were ready.

    Args:
        env: The SimPy environment.
        make: Makes the replica of a number.
        limit: Most requests outstanding at one replica.
        startup_delay: From the order of a replica until it is ready, in ns.
        on_ready: Called when a replica is ready that was ordered.

    Attributes:
        candidates: Who takes a request now.
        replicas: Those that are or were ready, by number.
        lives: Of all that were ever ordered, in that order.
        closed: No request will follow.
    """

    def __init__(self, env: Environment, make: Callable[[int], Replica], limit: int, startup_delay: int,
                 on_ready: Callable[[], None]) -> None:
        self._env, self._make, self._delay, self._on_ready = env, make, startup_delay, on_ready
        self.candidates = Candidates(limit)
        self.replicas: list[Replica] = []
        self.lives: list[Life] = []
        self.closed = False
        self._starting: deque[int] = deque()    # places among `lives` of those not yet ready, oldest first
        self._served: list[int] = []            # of `replicas`, by number

    @property
    def size(self) -> int:
        """How many take requests or are about to."""
        return self.candidates.serving.bit_count() + len(self._starting)

    @property
    def _now(self) -> int:
        return self._env.now    # type: ignore[return-value]

    def begin(self, count: int) -> None:
        """Have so many replicas ready from the start."""
        for _ in range(count):
            self._begin_serving(self._born())

    def order(self, count: int) -> None:
        """Have so many more replicas, as soon as they have started."""
        for _ in range(count):
            place = self._born()
            self._starting.append(place)
            self._env.timeout(self._delay).callbacks.append(partial(self._started, place))

    def shrink(self, count: int) -> None:
        """Have so many fewer: of those that are still starting the youngest go first, then of the others."""
        for _ in range(count):
            if self._starting:
                self._mark(self._starting.pop(), stopped=self._now)
            else:
                self._drain(self.candidates.serving.bit_length() - 1)

    def left(self, number: int) -> None:
        """Take note that a request has left this replica: it stops if it was drained and has no other."""
        place = self._served[number]
        if self.lives[place].drained is not None and not self.candidates.outstanding[number]:
            self._mark(place, stopped=self._now)

    def close(self) -> None:
        """Say that no request will follow."""
        if not self.closed:
            self.closed = True
            for replica in self.replicas:
                replica.close()

    def _born(self) -> int:
        self.lives.append(Life(self._now))
        return len(self.lives) - 1

    def _mark(self, place: int, **instants: int) -> None:
        """Write down that one of the lives has come so far."""
        self.lives[place] = replace(self.lives[place], **instants)

    def _started(self, place: int, _: Event) -> None:
        """A replica that was ordered is ready, unless it was called off, or nobody will need it."""
        if self.lives[place].stopped is None and not self.closed:
            self._starting.remove(place)
            self._begin_serving(place)
            self._on_ready()

    def _begin_serving(self, place: int) -> None:
        self._mark(place, ready=self._now)
        number = len(self.replicas)
        self._served.append(place)
        self.replicas.append(self._make(number))
        self.candidates.join(number)

    def _drain(self, number: int) -> None:
        self.candidates.leave(number)
        self._mark(self._served[number], drained=self._now)
        self.replicas[number].close()
        self.left(number)
