"""Replica: the SimPy process that asks a policy, lets time pass and moves the token counters: plan, time, commit.

It owns the clock, the record and the counters, and it knows no metric.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import accumulate
from typing import Any

from simpy import Environment, Event

from cost_models import StepShape
from simulator.batch import ListedSet, LockstepSet
from simulator.contract import LATEST, Contract
from simulator.events import Last, Watcher
from simulator.measure import row_of, rows_of, shape_of
from simulator.memory.base import UNLIMITED, Memory
from simulator.policies.base import Policy
from simulator.pricing import SMALLEST, Pricing
from simulator.recorder import Recorder
from simulator.request import Request
from simulator.step import Queue, Step, Wait
from simulator.stretch import Stretch


class Replica:
    """One engine with one policy, one memory and one price of a step.

    Args:
        env: The SimPy environment; its clock counts integer nanoseconds.
        policy: A resolved policy that nobody else uses.
        memory: Its KV cache.
        pricing: How long steps last.
        outputs: True output tokens by request index. Nobody but the replica reads them.
        exact: Ask the policy at every step and keep the decoding set as a plain list.
        on_finish: Called with each request that leaves.
        on_refuse: Called with each request that is refused because the engine has its hands full.
        on_cancel: Called with each request that is gone because its client cancelled it; without it, nobody cancels.
        watch: See Watcher.
    """

    def __init__(self, env: Environment, policy: Policy, memory: Memory, pricing: Pricing, outputs: Sequence[int], *,
                 exact: bool = False, on_finish: Callable[[Request], None] | None = None,
                 on_refuse: Callable[[Request], None] | None = None,
                 on_cancel: Callable[[Request], None] | None = None, watch: Watcher | None = None) -> None:
        self.env, self.policy, self.memory, self.pricing = env, policy, memory, pricing
        self.record = Recorder()
        self.decoding = (ListedSet if exact else LockstepSet)(memory.block_size, self.record.span)
        self.queue = Queue(self.decoding, policy.urgency())
        self._contract = Contract(policy, self.queue, memory)
        self.finished = 0
        self._outputs, self._watch = outputs, watch
        self._on_finish, self._on_refuse, self._on_cancel = on_finish, on_refuse, on_cancel
        self._cancelled: dict[Request, None] = {}    # in the order in which their clients hung up; they are still here
        self._most = policy.max_outstanding
        self._stretch = Stretch(env, policy, memory, self.decoding, exact=exact, watchful=on_cancel is not None)
        self._emptied = -1      # plans on record after the latest step that computed nothing
        self._waits = 0         # since the latest step
        self._doorbell: Event | None = None
        env.process(self._run())

    @property
    def now(self) -> int:
        """The clock, in nanoseconds."""
        return self.env.now    # type: ignore[return-value]

    def submit(self, request: Request) -> None:
        """Take a request into the queue, or refuse it if the engine has as many as its front end takes."""
        if self._most < UNLIMITED and len(self.queue) >= self._most:
            self.record.refused.extend((request.index, self.now))
            if self._on_refuse:
                self._on_refuse(request)
            return
        self.record.sent.extend((request.index, request.arrival))
        self.queue.wait(request)
        if self._doorbell is not None:
            self._ring()

    def cancel(self, request: Request) -> None:
        """Let a request go unfinished: after the step that runs, at once if none does. One that has left is ignored."""
        assert self._on_cancel, "somebody cancels who said that nobody would"
        self._cancelled[request] = None
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
        env, queue, memory, plan, idle = self.env, self.queue, self.memory, self.policy.plan, self.policy.idle
        yield Last(env, 0)    # whoever is there from the start is seen
        now = self.now
        while True:
            if self._cancelled:
                self._drop_cancelled(now)
            step = plan(queue, memory, now) if queue.running or len(queue) else idle(queue, memory, now)
            if isinstance(step, Step):
                try:
                    ends = self._begin(step, now)
                    yield Last(env, ends[-1] - now)
                    now = ends[-1]
                    self._commit(step, len(ends), now)
                except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
                    self._contract.blame(error, self.now)
            else:
                yield from self._sleep(step)
                now = self.now

    def _sleep(self, decision: Wait | None) -> Generator[Event, Any, None]:
        """Do nothing until a request arrives, or until the policy wanted to be asked again."""
        if (empty := self.memory.empty) is not None:
            self.record.rest(empty)
        self._doorbell = bell = self.env.event()
        if decision is None:
            yield bell
        else:
            self._contract.check_wait(decision, self._waits, self.now)
            self._waits += 1
            yield bell | self.env.timeout(decision.until - self.now)
            self._doorbell = None
        yield Last(self.env, 0)    # requests of the same instant are all seen

    def _begin(self, step: Step, now: int) -> list[int]:
        """Note what the step is, how often it repeats, and when each repetition ends."""
        queue, memory, pricing = self.queue, self.memory, self.pricing
        self._waits = 0
        self._take_note(step, now)
        rows = rows_of(step, queue)
        shape = shape_of(step, rows)
        priced = shape if shape.decodes or shape.chunks else self._barren(step)
        costs = [pricing.cost.time(priced)]
        delay = pricing.delay(step, len(queue.running)) if pricing.delays or step.delay else 0
        row = row_of(step, queue, memory, rows, shape.padded)
        times = 1 if step.chunks and step.times == 1 else self._stretch.at_most(step, costs[0] + delay, now)
        if times > 1:
            costs = pricing.cost.decode_times(priced, times)
        lasts = pricing.lasting(costs, delay, priced, len(self.record.ends)) if delay or pricing.noise else costs
        start, ends = self._timed(now, lasts)
        used = [memory.capacity - memory.free]
        if times > 1:
            ends, used = self._stretch.shorten(step, ends, used)
        if ends[-1] > LATEST or not 0 <= used[-1] <= memory.capacity:
            self._contract.refuse_room(ends[-1], now)
        if self._watch:
            self._watch.planned(step, queue, now)
        excess = pricing.excess(costs[:len(ends)], rows) if shape.padded or step.pad_to else 0
        self._write_down((start, len(ends), *row, excess), ends, used, priced)
        return ends

    def _write_down(self, row: tuple[int, ...], ends: list[int], used: list[int], priced: StepShape) -> None:
        record, pricing, steps = self.record, self.pricing, len(ends)
        record.plans.append(*row)
        record.ends.extend(ends)
        record.used.extend(used)
        if pricing.ranged:
            record.out_of_range += pricing.out_of_range(priced, steps) if steps > 1 else not pricing.in_range(priced)

    def _timed(self, now: int, lasts: list[int]) -> tuple[int, list[int]]:
        """When steps that last so long start and end: at once, and one after the other."""
        if len(lasts) == 1:
            return now, [now + lasts[0]]
        return now, list(accumulate(lasts, initial=now))[1:]

    def _take_note(self, step: Step, now: int) -> None:
        """Close the stays of those preempted and open those of the admitted; look at what each is to compute."""
        for victim in step.preempted:
            self._close_stay(victim, now)
        for request, tokens in step.chunks:
            if not 1 <= tokens <= request.lacking or request._set is not None or step.pad_to:
                self._contract.check_chunk(request, tokens, step, now)
            if request.admitted is None:
                request.admitted = now
                if not request.lost:
                    self.record.admit(request._computed, request.prompt)

    def _barren(self, step: Step) -> StepShape:
        """What is paid for a step that computes nothing: it may if it preempts somebody, but not twice in a row."""
        if not step.preempted or self._emptied == len(self.record.plans):
            self._contract.complain("planned a step that computes nothing", self.now)
        self._emptied = len(self.record.plans) + 1
        return SMALLEST

    def _close_stay(self, request: Request, now: int) -> None:
        if request.admitted is not None:
            self.record.stay(request.index, request.admitted, now)
        request.admitted = None

    def _commit(self, step: Step, steps: int, now: int) -> None:
        """The tokens of the step exist now: count them, and let go who may leave."""
        queue, decoding, finished = self.queue, self.decoding, list[Request]()
        if step.decodes:
            decoding.advance(steps)
            finished = decoding.finish()
        else:
            decoding.pause(steps)
        if step.chunks:
            if done := self._catch_up(step):
                finished = sorted(finished + done, key=_order)
            self.memory.computed(step.chunks)
        if finished:
            queue.hold(finished)
        if self._cancelled:
            self._drop_cancelled(now)
            finished = [request for request in finished if request.order in queue.held]
        if queue.held:
            for request in self.policy.leaving(finished, queue):
                self._let_go(request, now)
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

    def _drop_cancelled(self, now: int) -> None:
        """Forget those whose clients have hung up, but for who computes in a batch that has not returned."""
        for request in [each for each in self._cancelled if each.order not in self.queue.in_flight]:
            del self._cancelled[request]
            if not self.queue.drop(request, self.memory):
                continue
            if request.admitted is not None:
                self._close_stay(request, now)
                self.policy.dropped(request)
            self.record.cancel(request.index, now)
            if self._on_cancel:
                self._on_cancel(request)

    def _let_go(self, request: Request, now: int) -> None:
        if request.order not in self.queue.held:
            self._contract.complain(f"lets go request {request.index}, which has not finished", now)
        self.memory.release(request)
        self.queue.let_go(request)
        self.record.stays.extend((request.index, request.admitted, now))    # type: ignore[arg-type]
        request.admitted = None
        self.finished += 1
        if self._on_finish:
            self._on_finish(request)


def _order(request: Request) -> int:
    assert request.order is not None
    return request.order


__all__ = ["UNLIMITED", "Replica", "Watcher"]
