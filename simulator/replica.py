"""Replica: the SimPy process that asks a policy, lets time pass and moves the token counters: plan, time, commit.

It owns the clock, the record and the counters. It is the only place that fast-forwards, and it knows no metric.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from itertools import accumulate
from typing import Any

from simpy import Environment, Event

from cost_models import CostModel, Noise, StepShape
from simulator.batch import ListedSet, LockstepSet
from simulator.contract import Contract
from simulator.events import Last, Watcher
from simulator.measure import excess_of, out_of_range, row_of, shape_of, useful_rows
from simulator.memory.base import UNLIMITED, Memory
from simulator.policies.base import Policy
from simulator.recorder import Recorder
from simulator.request import Request
from simulator.step import Queue, Step, Wait

MOST_WAITS = 10_000
"""In a row, where nobody runs and nobody else will come."""
SMALLEST = StepShape(1, 0)
"""What a step is priced as that computes nothing."""


class Replica:
    """One engine with one policy, one memory and one cost model.

    Args:
        env: The SimPy environment; its clock counts integer nanoseconds.
        policy: A resolved policy that nobody else uses.
        memory: Its KV cache.
        cost: The price of a step.
        outputs: True output tokens by request index. Nobody but the replica reads them.
        exact: Ask the policy at every step and keep the decoding set as a plain list.
        on_finish: Called with each request that leaves.
        on_refuse: Called with each request that is refused because the engine has its hands full.
        watch: See Watcher.
        noise: Draws how long steps last, given what they cost; None: what they cost.
        scheduling: What the scheduler adds to a step: so many ns, and so many more for each request that runs.
    """

    def __init__(self, env: Environment, policy: Policy, memory: Memory, cost: CostModel, outputs: Sequence[int], *,
                 exact: bool = False, on_finish: Callable[[Request], None] | None = None,
                 on_refuse: Callable[[Request], None] | None = None,
                 watch: Watcher | None = None, noise: Noise | None = None,
                 scheduling: tuple[int, int] = (0, 0)) -> None:
        self.env, self.policy, self.memory, self.cost = env, policy, memory, cost
        self.record = Recorder()
        self.decoding = (ListedSet if exact else LockstepSet)(memory.block_size, self.record.span)
        self.queue = Queue(self.decoding, policy.urgency())
        self._contract = Contract(policy, self.queue, memory)
        self.finished = 0
        self._outputs, self._on_finish, self._on_refuse, self._watch = outputs, on_finish, on_refuse, watch
        self._noise, self._scheduling = noise, scheduling
        self._most = policy.max_outstanding
        self._fast = policy.is_steady() and not exact
        self._urgent = policy.urgency() is not None
        self._ranged = cost.in_range(StepShape(1, 1)) is not None
        self._barren = False    # whether the latest step computed nothing
        self._waits = 0         # since the latest step
        self._doorbell: Event | None = None
        env.process(self._run())

    @property
    def now(self) -> int:
        """The clock, in nanoseconds."""
        return self.env.now    # type: ignore[return-value]

    def submit(self, request: Request) -> None:
        """Take a request into the queue, or refuse it if the engine has as many as its front end takes."""
        if len(self.queue) >= self._most:
            self.record.refused.extend((request.index, self.now))
            if self._on_refuse:
                self._on_refuse(request)
            return
        self.record.sent.extend((request.index, request.arrival))
        self.queue.wait(request)
        self._ring()

    def close(self) -> None:
        """Say that no request will follow."""
        self.queue.closed = True
        self._ring()

    def _ring(self) -> None:
        if self._doorbell is not None:
            self._doorbell.succeed()
            self._doorbell = None

    def _run(self) -> Generator[Event, Any, None]:
        queue, memory, plan, idle = self.queue, self.memory, self.policy.plan, self.policy.idle
        yield Last(self.env, 0)    # whoever is there from the start is seen
        while True:
            step = (plan if len(queue) else idle)(queue, memory, self.now)
            if isinstance(step, Step):
                try:
                    ends = self._begin(step)
                    yield Last(self.env, ends[-1] - self.now)
                    self._commit(step, len(ends))
                except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
                    self._contract.blame(error, self.now)
            else:
                yield from self._sleep(step)

    def _sleep(self, decision: Wait | None) -> Generator[Event, Any, None]:
        """Do nothing until a request arrives, or until the policy wanted to be asked again."""
        self._doorbell = bell = self.env.event()
        if decision is None:
            yield bell
        elif not isinstance(decision, Wait):
            self._contract.complain(f"plan must return a Step, a Wait or None, not {decision!r}", self.now)
        elif not isinstance(decision.until, int):
            self._contract.complain(f"waits until {decision.until!r}, no whole number of nanoseconds", self.now)
        elif self.queue.closed and not self.queue.running and self._waits > MOST_WAITS:
            self._contract.complain("waits again and again, although no request will follow", self.now)
        elif decision.until > self.now:
            self._waits += 1
            yield bell | self.env.timeout(decision.until - self.now)
            self._doorbell = None
        else:
            self._contract.complain(f"waits until {decision.until} ns, which is not later", self.now)
        yield Last(self.env, 0)    # requests of the same instant are all seen

    def _begin(self, step: Step) -> list[int]:
        """Note what the step is, how often it repeats, and when each repetition ends."""
        now, record = self.now, self.record
        self._waits = 0
        self._take_note(step)
        useful = useful_rows(step, self.queue)
        shape = shape_of(step, useful)
        priced = self._priced(step, shape)
        row = row_of(step, self.queue, self.memory, useful, shape.padded)
        costs = [self.cost.time(priced)]
        delay = step.delay + self._scheduling[0] + self._scheduling[1] * len(self.queue.running)
        times = self._at_most(step, costs[0] + delay)
        if times > 1:
            costs = self.cost.decode_times(priced, times)
        start, ends = self._timed(self._lasting(costs, delay, priced))
        used = [self.memory.used]
        if times > 1:
            ends, used = self._shorten(step, ends, used)
        self._contract.check_room(ends[-1], now)
        if self._watch:
            self._watch.planned(step, self.queue, now)
        excess = excess_of(self.cost, useful, sum(costs[:len(ends)]), len(ends)) if shape.padded or step.pad_to else 0
        record.plans.extend((start, len(ends), *row, excess))
        record.ends.extend(ends)
        record.used.extend(used)
        if self._ranged:
            record.out_of_range += out_of_range(self.cost, priced, len(ends))
        return ends

    def _lasting(self, costs: list[int], delay: int, shape: StepShape) -> list[int]:
        """How long steps of these costs last: as it is drawn, and with what delays each."""
        if self._noise:
            costs = self._noise.draw(costs, len(self.record.ends), shape)
        return [cost + delay for cost in costs] if delay else costs

    def _timed(self, durations: list[int]) -> tuple[int, list[int]]:
        """When steps that last so long start and end: at once, and one after the other."""
        now = self.now
        if len(durations) == 1:
            return now, [now + durations[0]]
        return now, list(accumulate(durations, initial=now))[1:]

    def _take_note(self, step: Step) -> None:
        """Close the stays of those preempted and open those of the admitted; look at what each is to compute."""
        for victim in step.preempted:
            self._close_stay(victim)
        for request, _ in step.chunks:
            if request.admitted is None:
                request.admitted = self.now
        self._contract.check_chunks(step, self.now)

    def _priced(self, step: Step, shape: StepShape) -> StepShape:
        """The shape that is paid for. A step may compute nothing if it preempts somebody, but not twice in a row."""
        barren = not shape.decodes and not shape.chunks
        if barren and (self._barren or not step.preempted):
            self._contract.complain("planned a step that computes nothing", self.now)
        self._barren = barren
        return SMALLEST if barren else shape

    def _close_stay(self, request: Request) -> None:
        if request.admitted is not None:
            self.record.stay(request.index, request.admitted, self.now)
        request.admitted = None

    def _at_most(self, step: Step, duration: int) -> int:
        """How often this step may run before the policy must be asked again, given how long it takes once."""
        if not step.decodes or not self.decoding.size:
            return step.times
        if step.times > 1:
            return min(step.times, self.decoding.steps_to_finish())
        if not self._fast or step.fickle or step.chunks or step.preempted or step.trimmed or step.delay:
            return 1
        steps = self.decoding.steps_to_finish()
        if self._heeds_arrivals(step) and (horizon := self.env.peek()) < UNLIMITED:
            steps = min(steps, int(horizon - self.now) // duration + 1)    # more would hardly be kept
        return steps

    def _heeds_arrivals(self, step: Step) -> bool:
        """Whether an arrival could be let in: where urgency counts, it may pass a head that does not fit."""
        return step.blocked is None or (step.blocked != "cap" and self._urgent)

    def _shorten(self, step: Step, ends: list[int], used: list[int]) -> tuple[list[int], list[int]]:
        """Keep the repetitions that start before an arrival that could be let in, and that find memory."""
        if self._heeds_arrivals(step):
            horizon = self.env.peek()
            if ends[-1] > horizon:
                del ends[bisect_left(ends, horizon) + 1:]
        if len(ends) > 1:
            more = len(ends) - 1
            used += self.memory.extend(self.decoding, more) if step.decodes else used * more
            del ends[len(used):]
        return ends, used

    def _commit(self, step: Step, steps: int) -> None:
        """The tokens of the step exist now: count them, and let go who may leave."""
        if step.decodes:
            self.decoding.advance(steps)
            finished = self.decoding.finish()
        else:
            self.decoding.pause(steps)
            finished = []
        if step.chunks:
            finished += self._catch_up(step)
            finished.sort(key=_order)
            self.memory.computed(step.chunks)
        self.queue.hold(finished)
        for request in self.policy.leaving(finished, self.queue):
            self._let_go(request)
        if self._watch:
            self._watch.committed(steps)

    def _catch_up(self, step: Step) -> list[Request]:
        """Count the chunks; who has caught up emits a token. Returns those who are done with it."""
        done = []
        for request, tokens in step.chunks:
            request._computed += tokens
            if request.lacking == 0:
                request._generated += 1
                left = self._outputs[request.index] - request._generated
                self.queue.emitted(request, left)
                if not left:
                    last = len(self.record.ends) - 1
                    self.record.span(request.index, last, last)
                    done.append(request)
        return done

    def _let_go(self, request: Request) -> None:
        if request.order not in self.queue.held:
            self._contract.complain(f"lets go request {request.index}, which has not finished", self.now)
        self.memory.release(request)
        self.queue.let_go(request)
        self._close_stay(request)
        self.finished += 1
        if self._on_finish:
            self._on_finish(request)


def _order(request: Request) -> int:
    assert request.order is not None
    return request.order


__all__ = ["UNLIMITED", "Replica", "Watcher"]
