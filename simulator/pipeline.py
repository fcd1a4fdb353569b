"""Pipelined replica: several batches in flight, one in each stage of the model, in place of one after the other.

A batch passes the stages in turn and never overtakes; a stage serves one batch at a time. The time of a step is
divided evenly over the stages, so a batch alone takes as long as without them. Its requests cannot be selected until it
returns.
The record lays the steps end to end: a step starts when it is launched or when the one before it has returned,
whichever is later, and its row counts its own batch, with queue and memory as they were at the launch.
It has no decoding set (everyone catches up, one token at a time), no stretches and no preemption.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Any

from simpy import Environment, Event

from simulator.events import Last
from simulator.policies.base import Policy
from simulator.replica import Replica
from simulator.request import Request
from simulator.step import Step


class PipelinedReplica(Replica):
    """A replica whose policy says how many batches may be in flight. Takes the arguments of Replica."""

    def __init__(self, env: Environment, policy: Policy, *args: Any, **options: Any) -> None:
        self._free_from = [0] * policy.batches_in_flight    # when each stage is free
        self._flight: deque[tuple[Last, Step, int]] = deque()    # return, step and its number, oldest first
        super().__init__(env, policy, *args, **options)

    def _run(self) -> Generator[Event, Any, None]:
        while True:
            free = len(self._flight) < len(self._free_from)
            decision = self.policy.plan(self.queue, self.memory, self.now) if free and len(self.queue) else None
            if isinstance(decision, Step):
                self._launch(decision)
            elif not self._flight:
                yield from self._sleep(decision)
            else:
                yield from self._until_something_happens()

    def _launch(self, step: Step) -> None:
        ends = self._begin(step, self.now)
        self.queue.launch(step)
        self._flight.append((Last(self.env, ends[-1] - self.now), step, len(self.record.ends) - 1))

    def _until_something_happens(self) -> Generator[Event, Any, None]:
        """Until the oldest batch returns or a request arrives; who arrives as it returns is seen by the next plan."""
        returns = self._flight[0][0]
        self._doorbell = bell = self.env.event()
        yield returns | bell
        self._doorbell = None
        if not returns.processed:
            yield Last(self.env, 0)
        if returns.processed:
            _, step, self._landing = self._flight.popleft()
            self.queue.land(step)
            self._commit(step, 1, self.now)

    def _timed(self, now: int, lasts: list[int]) -> tuple[int, list[int]]:
        """The step's way through the stages: it enters each when it has left the one before and the stage is free."""
        at, ends, stages = now, self.record.ends, len(self._free_from)
        start = max(at, ends[-1]) if ends else at
        for stage in range(stages):
            part = lasts[0] * (stage + 1) // stages - lasts[0] * stage // stages
            at = self._free_from[stage] = max(at, self._free_from[stage]) + part
        return start, [at]

    def _catch_up(self, step: Step) -> list[Request]:
        """Count the tokens of a batch that has returned; who is not done may be selected again."""
        done = []
        for request, tokens in step.chunks:
            request._computed += tokens
            if request.lacking:
                continue
            request._generated += 1
            self.record.span(request.index, self._landing, self._landing)
            if request._generated == self._outputs[request.index]:
                self.queue.emitted(request, 0)
                done.append(request)
        return done


def replica_for(env: Environment, policy: Policy, *args: Any, **options: Any) -> Replica:
    """The replica that runs as many batches at once as the policy says. Takes the arguments of Replica."""
    kind = PipelinedReplica if policy.batches_in_flight > 1 else Replica
    return kind(env, policy, *args, **options)
