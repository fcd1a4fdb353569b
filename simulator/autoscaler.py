"""Autoscaler: how many replicas the load asks for. It orders and drains them, and hands out no request.

The rule is that of Kubernetes' Horizontal Pod Autoscaler: as many replicas as bring the load of each to its target, at
once if more are needed; fewer only when fewer have been enough for the whole cooldown. Left out: its tolerance of 10 %
and its limits on the speed of change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import ceil, inf

from simpy import Environment

from simulator.fleet import Fleet

EVERY = 10 ** 9
"""Nanoseconds between two looks at the load; those that can find nothing new are left out."""


class Autoscaler:
    """Keeps a fleet as large as its load asks for.

    Args:
        env: The SimPy environment.
        fleet: What it scales; it is ready.
        load: What there is to do now, over all replicas.
        target: How much of that one replica is to have.
        least, most: Replicas that there are at any rate, and at the most.
        cooldown: For how long fewer replicas must have been enough before any is drained, in ns.
    """

    def __init__(self, env: Environment, fleet: Fleet, load: Callable[[], float], target: float, least: int, most: int,
                 cooldown: int) -> None:
        self._env, self._fleet, self._load, self._target = env, fleet, load, target
        self._least, self._most, self._cooldown = least, most, cooldown
        # What was wanted lately and when, as far as nothing later is as large: the first one is the largest.
        self._wanted: deque[tuple[int, int]] = deque([(env.now, fleet.size)])    # type: ignore[list-item]
        self._asleep = True

    @property
    def _now(self) -> int:
        return self._env.now    # type: ignore[return-value]

    def wake(self) -> None:
        """Take note that there is something to do."""
        if self._asleep:
            self._asleep = False
            self._look_in(EVERY)

    def _look_in(self, pause: int) -> None:
        self._env.timeout(pause).callbacks.append(lambda _: self._look())

    def _look(self) -> None:
        """Bring the fleet to the size that the load asks for."""
        wanted = min(max(ceil(self._load() / self._target), self._least), self._most)
        lately, size = self._lately(wanted), self._fleet.size
        if wanted > size and not self._fleet.closed:
            self._fleet.order(wanted - size)
        elif lately < size:
            self._fleet.shrink(size - lately)
        if self._has_work():
            pause = self._pause()
            self._wanted[-1] = (self._now + pause - EVERY, wanted)    # the looks in between would find the same
            self._look_in(pause)
        else:
            self._asleep = True

    def _pause(self) -> int:
        """Until the first look that can find something new: after an event, or when a want is no longer recent."""
        change = self._env.peek()
        if len(self._wanted) > 1:
            change = min(change, self._wanted[0][0] + self._cooldown)
        return max(1, -(-(int(change) - self._now) // EVERY)) * EVERY

    def _lately(self, wanted: int) -> int:
        """The most replicas that were wanted within the cooldown."""
        now, recent = self._now, self._wanted
        while recent and recent[-1][1] <= wanted:
            recent.pop()
        recent.append((now, wanted))
        while recent[0][0] <= now - self._cooldown and len(recent) > 1:
            recent.popleft()
        return recent[0][1]

    def _has_work(self) -> bool:
        """Whether anything can change before the next request comes; not where no event is left to change it."""
        if self._env.peek() == inf:
            return False
        busy = self._fleet.candidates.total > 0
        return busy or (not self._fleet.closed and (self._load() > 0 or self._fleet.size > self._least))
