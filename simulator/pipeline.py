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
from functools import cached_property
from typing import Any

from simpy import Environment

from simulator.events import Last
from simulator.passes import Pass, Passes
from simulator.policies.base import Policy
from simulator.replica import Replica
from simulator.request import Request
from simulator.step import Step, Wait


class Staged(Passes):
    """Passes through the stages of a pipeline, which serve one batch each."""

    stages: int

    @cached_property
    def _free_from(self) -> list[int]:
        """When each stage is free."""
        return [0] * self.stages

    def timed(self, now: int, lasts: list[int]) -> tuple[int, list[int]]:
        """The step's way through the stages: it enters each when it has left the one before and the stage is free."""
        at, ends, stages = now, self._record.ends, self.stages
        start = max(at, ends[-1]) if ends else at
        for stage in range(stages):
            part = lasts[0] * (stage + 1) // stages - lasts[0] * stage // stages
            at = self._free_from[stage] = max(at, self._free_from[stage]) + part
        return start, [at]


class PipelinedReplica(Replica):
    """A replica whose policy says how many batches may be in flight. Takes the arguments of Replica."""

    def __init__(self, env: Environment, policy: Policy, *args: Any, **options: Any) -> None:
        self._flight: deque[tuple[Pass, int]] = deque()    # batches and the numbers of their steps, oldest first
        super().__init__(env, policy, *args, **options)

    def _make_passes(self, *parts: Any) -> Passes:
        staged = Staged(*parts)
        staged.stages = self.policy.batches_in_flight
        return staged

    def _ask(self, now: int) -> None:
        """Launch as many batches as the policy makes up and the stages take."""
        if self._cancelled:
            self._drop_cancelled(now)
        decision: Step | Wait | None = None
        while len(self._flight) < self.policy.batches_in_flight and len(self.queue):
            decision = self._plan(self.queue, self.memory, now)
            if not isinstance(decision, Step):
                break
            self._launch(decision)
        if self._flight:
            self._asleep = True
        else:
            self._sleep(decision, now)    # type: ignore[arg-type]

    def _launch(self, step: Step) -> None:
        batch = self._passes.begin(step, self.now)
        self._passes.write_down(batch)
        self.queue.launch(step)
        self._flight.append((batch, len(self.record.ends) - 1))
        Last(self.env, batch.ends[-1] - self.now, self._land, self._rank)

    def _land(self, _: Any) -> None:
        """The oldest batch has returned; who arrives as it does is seen by the next plan."""
        self._last.put_off()
        batch, self._landing = self._flight.popleft()
        self.queue.land(batch.step)
        self._commit(batch, self.now)
        self._go_on(self.now)

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
