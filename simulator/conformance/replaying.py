"""Replaying a case: the replica runs it by its own plan and commit, and each step is told as a Decision.

It knows no engine. In fast mode a stretch is one plan: here it is spread over its steps again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from math import inf
from typing import Literal

from simpy import Environment

from simulator.clients import Client
from simulator.conformance.engine import Case, Decision, Row, Totals
from simulator.memory.base import Memory
from simulator.policies.base import Policy
from simulator.pricing import Pricing
from simulator.replica import Replica
from simulator.request import Request
from simulator.step import Queue, Step, Wait


class Replay:
    """One run of a case, driven from outside, event by event.

    Args:
        case: A fresh case.
        exact: The replica's exact mode.
        on_decision: Called with each decision, in the order of time.

    Attributes:
        totals: What it has come to so far.
    """

    def __init__(self, case: Case, *, exact: bool, on_decision: Callable[[Decision], None]) -> None:
        self.totals = Totals()
        self._left: set[str] = set()
        self._case, self._on_decision = case, on_decision
        self._env = Environment(initial_time=0)
        narrator = Narrator(case, self._hear)
        policy = Asking(case, narrator.idle)
        self._replica = Replica(self._env, policy, case.memory, Pricing(case.cost), case.outputs, exact=exact,
                                on_finish=narrator.left, watch=narrator)
        narrator.replica = self._replica
        Client(self._env, iter(case.requests)).send_to(self._replica)

    def advance(self) -> bool:
        """Let one event happen; False if there is none left, or if the recorder would have given up."""
        if self.totals.gave_up or self._env.peek() == inf:
            return False
        self._env.step()
        return True

    def close(self) -> Totals:
        """What it has come to, those who never left included."""
        sent = (self._case.requests[index].name for index in self._replica.record.sent[::2])
        self.totals.unfinished = tuple(name for name in sent if name not in self._left)
        return self.totals

    def _hear(self, decision: Decision) -> None:
        if not self.totals.gave_up:
            self.totals.add(decision)
            self._left.update(decision.finished)
            self.totals.gave_up = self.totals.steps == self._case.most_steps
            self._on_decision(decision)


class Asking(Policy):
    """A policy inside its engine's loop, which asks again after a while where nothing can run."""

    def __init__(self, case: Case, on_idle: Callable[[Queue, Memory, int], None]) -> None:
        rule = case.policy
        self.name = rule.name    # type: ignore[misc]
        self.is_steady = rule.is_steady    # type: ignore[method-assign]
        self.urgency = rule.urgency    # type: ignore[method-assign]
        self.leaving = rule.leaving    # type: ignore[method-assign]
        self._rule, self._on_idle = rule, on_idle
        self._idle, self._never_sleeps = case.idle, case.never_sleeps
        self._until = 0

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        if now < self._until:    # an arrival: the loop takes it in when it asks again
            return Wait(self._until)
        answer = self._rule.plan(queue, memory, now)
        if answer is not None:
            return answer
        return self._turn(queue, memory, now)

    def idle(self, queue: Queue, memory: Memory, now: int) -> Wait | None:
        answer = self._rule.idle(queue, memory, now)
        if answer is not None or queue.closed or not self._never_sleeps:
            return answer
        return self._turn(queue, memory, now)

    def _turn(self, queue: Queue, memory: Memory, now: int) -> Wait | None:
        """The loop comes round once without a step."""
        self._on_idle(queue, memory, now)
        if queue.closed or not self._idle:
            return None
        self._until = now + self._idle
        return Wait(self._until)


class Narrator:
    """A watcher that tells each step of a replica as a Decision."""

    replica: Replica

    def __init__(self, case: Case, tell: Callable[[Decision], None]) -> None:
        self._names = [request.name for request in case.requests]
        self._tell = tell
        self._told = 0                      # decisions
        self._arrived = 0                   # requests of which their arrival was told
        self._admissions = 0                # the highest running order so far
        self._evicted: set[int] = set()     # requests that were ever preempted
        self._left: list[str] = []          # since the latest decision

    def left(self, request: Request) -> None:
        """A request has finished and left."""
        self._left.append(request.name)

    def planned(self, step: Step, queue: Queue, now: int) -> None:
        """See Watcher. What the commit will change is noted."""
        tokens = {request.order: n for request, n in step.chunks}
        computing = [(request, tokens.get(order, 1)) for order, request in queue.running.items()
                     if order in tokens or (step.decodes and request.decoding)]
        self._start, self._running = now, _names(queue.running.values())
        self._rows = [Row(request.name, self._kind(request), n, request.computed) for request, n in computing]
        self._sampled = [request.name for request, n in computing if request.computed + n == request.known]
        self._preempted = _names(step.preempted)
        self._note(queue, self.replica.memory)
        self._admissions = max([self._admissions, *queue.running])
        self._evicted.update(request.index for request in step.preempted)

    def committed(self, steps: int) -> None:
        """See Watcher. Who decodes in a stretch does so in each of its steps, and leaves in the last."""
        record = self.replica.record
        starts, used = [self._start, *record.ends[-steps:-1]], record.used[-steps:]
        for ahead in range(steps - 1):
            self._say(starts[ahead], self._ahead(ahead), used[ahead], used[ahead], self._running, ahead=ahead)
        left, self._left = self._left, []
        running = _names(self.replica.queue.running.values())
        self._say(starts[-1], self._ahead(steps - 1), used[-1], self.replica.memory.used, running, left, steps - 1)

    def idle(self, queue: Queue, memory: Memory, now: int) -> None:
        """Nothing can run."""
        self._sampled = self._preempted = []
        self._note(queue, memory)
        self._say(now, [], memory.used, memory.used, _names(queue.running.values()))

    def _note(self, queue: Queue, memory: Memory) -> None:
        """Keep what is true right after the decision, and may not be after the step."""
        self._decoding = [request.name for request in queue.running.values() if request.decoding]
        self._evictable, self._shared = memory.evictable, memory.shared_tokens

    def _kind(self, request: Request) -> Literal["new", "resumed", "running"]:
        assert request.order is not None
        if request.order <= self._admissions:
            return "running"
        return "resumed" if request.index in self._evicted else "new"

    def _ahead(self, steps: int) -> list[Row]:
        """The rows, so many steps into their stretch."""
        return [row._replace(computed=row.computed + steps) for row in self._rows] if steps else self._rows

    def _say(self, start: int, rows: list[Row], used_planned: int, used: int, running: list[str],
             left: Sequence[str] = (), ahead: int = 0) -> None:
        memory, waiting = self.replica.memory, self.replica.queue.waiting
        self._tell(Decision(self._told, start, self._arrivals(start), rows, self._preempted, self._sampled, list(left),
                            used_planned, self._shared, used, memory.capacity - used, running,
                            _names(request for request in waiting if request.arrival <= start),
                            self._evictable, self._decoding, ahead))
        self._preempted = []
        self._told += 1

    def _arrivals(self, until: int) -> list[str]:
        """Who was sent up to then, and of whom nothing was told yet."""
        sent = self.replica.record.sent[2 * self._arrived:]
        arrived = list(takewhile(lambda pair: pair[1] <= until, zip(sent[::2], sent[1::2], strict=True)))
        self._arrived += len(arrived)
        return [self._names[index] for index, _ in arrived]


def _names(requests: Iterable[Request]) -> list[str]:
    return [request.name for request in requests]
