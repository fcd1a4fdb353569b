"""Replica: asks a policy, lets time pass and moves the token counters: plan, time, commit. The clock calls it back.

It owns the clock, the record and the counters, and it knows no metric.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from simpy import Environment, Timeout

from simulator.batch import ListedSet, LockstepSet
from simulator.contract import Contract
from simulator.events import PLANS, Last, Watcher
from simulator.inspection import inspected, inspected_urgency
from simulator.memory.base import UNLIMITED, Memory
from simulator.passes import Pass, Passes
from simulator.policies.base import Policy
from simulator.pricing import Pricing
from simulator.progress import Progress
from simulator.recorder import PAIR, TRIPLE, Recorder
from simulator.request import Request
from simulator.step import Queue, Step, Wait
from simulator.stretch import cut, stretch_for


class Replica:
    """One engine with one policy, one memory and one price of a step.

    Args:
        env: The SimPy environment; its clock counts integer nanoseconds.
        policy: A resolved policy that nobody else uses.
        memory: Its KV cache.
        pricing: How long steps last.
        outputs: True output tokens by request index. Nobody but the replica reads them.
        exact: Ask the policy at every step and keep the decoding set as a plain list.
        rank: Its place among several replicas in one environment; None: it is alone there.
        on_finish: Called with each request that leaves.
        on_refuse: Called with each request that is refused because the engine has its hands full.
        on_cancel: Called with each request that is gone because its client cancelled it; without it, nobody cancels.
        watch: See Watcher.
    """

    def __init__(self, env: Environment, policy: Policy, memory: Memory, pricing: Pricing, outputs: Sequence[int], *,
                 exact: bool = False, rank: int | None = None, on_finish: Callable[[Request], None] | None = None,
                 on_refuse: Callable[[Request], None] | None = None,
                 on_cancel: Callable[[Request], None] | None = None, watch: Watcher | None = None) -> None:
        self.env, self.policy, self.memory = env, policy, memory
        self.record = Recorder()
        self.decoding = (ListedSet if exact else LockstepSet)(memory.block_size, self.record.span)
        self.queue = Queue(self.decoding, inspected_urgency(policy))
        self._contract = Contract(env, policy, self.queue, memory, self.record)
        self._progress = Progress(self.queue, memory, self.record, self._contract)
        verbs = inspected(policy, self.queue, memory, self.record, self._contract, self._progress)
        self._plan, self._idle, self._leaving, self._dropped = verbs.plan, verbs.idle, verbs.leaving, verbs.dropped
        base = Policy.leaving
        self._keeps = getattr(policy.leaving, "__func__", None) is not base    # it may keep those who have finished
        self._tells = type(memory).computed is not Memory.computed    # it wants to hear what has been computed
        self.finished = 0
        self._outputs, self._watch = outputs, watch
        self._on_finish, self._on_refuse, self._on_cancel = on_finish, on_refuse, on_cancel
        self._cancelled: dict[Request, None] = {}    # in the order in which their clients hung up; they are still here
        self._most = policy.max_outstanding
        self._stretch = stretch_for(env, policy, memory, self.decoding, exact=exact, alone=rank is None,
                                    watchful=on_cancel is not None)
        self._passes = self._make_passes(self.queue, memory, pricing, self.record, self._contract, self._progress,
                                         self._stretch, watch)
        self._pass: Pass | None = None    # under way
        self._asleep = False
        self._timer: Timeout | None = None    # of a sleep that the policy wants to end
        self._rank = rank or 0
        self._go_on = self._ask if rank is None else self._ask_last
        self._last = Last(env, 0, self._look, self._rank)    # whoever is there from the start is seen

    def _make_passes(self, *parts: Any) -> Passes:
        return Passes(*parts)

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
        self.record.sent.frombytes(PAIR(request.index, request.arrival))
        self.queue.wait(request)
        if self._asleep or self._pass is not None:
            self._stir()

    def cancel(self, request: Request) -> None:
        """Let a request go unfinished: after the step that runs, at once if none does. One that has left is ignored."""
        assert self._on_cancel, "somebody cancels who said that nobody would"
        self._cancelled[request] = None
        self._stir()

    def close(self) -> None:
        """Say that no request will follow."""
        self.queue.closed = True
        self._stir()

    @property
    def kv_used(self) -> int:
        """Blocks of memory in use now, in the middle of a stretch, too."""
        under_way = self._pass
        return self.memory.used if under_way is None else under_way.used[bisect_left(under_way.ends, self.now)]

    def _stir(self) -> None:
        """Something has happened: see what comes of it, when the step that runs is over."""
        if self._asleep:
            self._wake()
        elif self._pass is not None:
            self._cut(self._pass)

    def _wake(self) -> None:
        """End a sleep, when all requests of the same instant are there."""
        self._asleep = False
        if self._timer is not None:
            self._timer.callbacks = []
            self._timer = None
        self._last = Last(self.env, 0, self._look, self._rank)

    def _cut(self, under_way: Pass) -> None:
        """Let the step that runs be the last of its stretch, if the policy is to be asked again."""
        ends = under_way.ends
        if len(ends) > 1 and self.now <= ends[-2] and self._stretch.heeds(under_way.step):
            cut(ends, self.now)
            del under_way.used[len(ends):]
            self._last.put_off()
            self._last = Last(self.env, ends[-1] - self.now, self._end, self._rank)

    def _look(self, _: Any) -> None:
        self._go_on(self.now)

    def _end(self, _: Any) -> None:
        """What is under way is over."""
        under_way, self._pass = self._pass, None
        assert under_way is not None
        now = under_way.ends[-1]
        try:
            self._passes.write_down(under_way)
            self._commit(under_way, now)
        except Exception as error:
            self._contract.blame(error, "gave a step that cannot be counted")
        self._go_on(now)

    def _ask_last(self, now: int) -> None:
        """Ask the policy once all replicas have told what this instant brings: clients may answer it with requests."""
        if self._cancelled:
            self._drop_cancelled(now)
        self._asleep = False
        self._last.put_off()
        if self.env.peek() > now:    # nothing is left of this instant
            self._ask(now)
        else:
            self._last = Last(self.env, 0, lambda _: self._ask(now), PLANS + self._rank)

    def _ask(self, now: int) -> None:
        """Ask the policy what to do now, and do it."""
        queue, memory = self.queue, self.memory
        if self._cancelled:
            self._drop_cancelled(now)
        decision = (self._plan if queue.running or len(queue) else self._idle)(queue, memory, now)
        if not isinstance(decision, Step):
            self._sleep(decision, now)
            return
        try:
            self._pass = under_way = self._passes.begin(decision, now)
        except Exception as error:
            self._contract.blame(error, "gave a step that cannot be run")
        self._last = Last(self.env, under_way.ends[-1] - now, self._end, self._rank)

    def _sleep(self, decision: Wait | None, now: int) -> None:
        """Do nothing until a request arrives, or until the policy wanted to be asked again."""
        if (empty := self.memory.empty) is not None:
            self.record.rest(empty)
        self._asleep = True
        if decision is not None:
            self._contract.check_wait(decision)
            self._timer = self.env.timeout(decision.until - now)
            self._timer.callbacks.append(lambda _: self._waited())

    def _waited(self) -> None:
        """A wait has ended by its time."""
        self._progress.waited()
        self._wake()

    def _commit(self, under_way: Pass, now: int) -> None:
        """The tokens of the steps exist now: count them, and let go who may leave.

        Memory for those after the first is taken as late as this: a stretch may be cut, and nothing evicted comes back.
        """
        queue, step, used = self.queue, under_way.step, under_way.used
        if len(used) > 1:
            self.memory.extend(used[-1] - used[0])
        if step.decodes:
            self.decoding.advance(len(used))
            finished = self.decoding.finish()
        else:
            self.decoding.pause(len(used))
            finished = []
        if step.chunks:
            if done := self._catch_up(step):
                finished = sorted(finished + done, key=attrgetter("order"))
            if self._tells:
                self.memory.computed(step.chunks)
        if finished and (self._keeps or self._cancelled):
            queue.hold(finished)
        if self._cancelled:
            self._drop_cancelled(now)
            finished = [request for request in finished if request.order in queue.held]
        for request in self._leaving(finished, queue) if queue.held else finished:
            self._let_go(request, now)
        if self._watch:
            self._watch.committed(len(under_way.ends))

    def _catch_up(self, step: Step) -> list[Request]:
        """Count the chunks; who has caught up emits a token. Returns those who are done with it."""
        done = []
        for request, tokens in step.chunks:
            request._computed = computed = request._computed + tokens
            if computed == request.prompt + request._generated:
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
                self._passes.close_stay(request, now)
                self._dropped(request)
            self.record.cancel(request.index, now)
            assert self._on_cancel    # or nobody could cancel
            self._on_cancel(request)

    def _let_go(self, request: Request, now: int) -> None:
        self.memory.release(request)
        self.queue.let_go(request)
        self.record.stays.frombytes(TRIPLE(request.index, request.admitted, now))
        request.admitted = None
        self.finished += 1
        if self._on_finish:
            self._on_finish(request)


__all__ = ["UNLIMITED", "Replica", "Watcher"]
