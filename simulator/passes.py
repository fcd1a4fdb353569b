"""Passes: what a step of a policy comes to while it runs: how often it repeats, when that ends, what it costs.

It moves no counter and sets no alarm: the replica does.
"""

from __future__ import annotations

from itertools import accumulate

from cost_models import StepShape
from cost_models.ranges import within
from simulator.contract import LATEST, Contract
from simulator.events import Watcher
from simulator.measure import Rows, row_of, rows_of, shape_of
from simulator.memory.base import Memory
from simulator.pricing import SMALLEST, Pricing
from simulator.recorder import Recorder
from simulator.request import Request
from simulator.step import Queue, Step
from simulator.stretch import Stretch


class Pass:
    """A step under way, or a stretch of them.

    Attributes:
        step: What the policy said.
        start: When the first one starts, ns.
        ends: When each is to end, ns; fewer if the stretch is cut.
        used: Blocks of memory that each holds.
        row: The record's columns of it from `decodes` to `paused`.
        costs: What each step costs, ns.
        priced: The shape that costs so much.
        bare: What it computes without padding; None if there is none.
    """

    __slots__ = ("bare", "costs", "ends", "priced", "row", "start", "step", "used")

    def __init__(self, step: Step, start: int, ends: list[int], used: list[int], row: tuple[int, ...],
                 costs: list[int], priced: StepShape, bare: Rows | None) -> None:
        self.step, self.start, self.ends, self.used = step, start, ends, used
        self.row, self.costs, self.priced, self.bare = row, costs, priced, bare


class Passes:
    """The passes of one replica, from the policy's word to the record.

    Args:
        queue, memory, pricing, record, contract, watch: Those of the replica.
        stretch: Its repetitions.
    """

    def __init__(self, queue: Queue, memory: Memory, pricing: Pricing, record: Recorder, contract: Contract,
                 stretch: Stretch, watch: Watcher | None) -> None:
        self._queue, self._memory, self._pricing, self._record = queue, memory, pricing, record
        self._contract, self._stretch, self._watch = contract, stretch, watch
        self._emptied = -1      # plans on record after the latest step that computed nothing

    def begin(self, step: Step, now: int) -> Pass:
        """Take note of what the step is, how often it repeats, and when each repetition ends."""
        queue, memory, pricing = self._queue, self._memory, self._pricing
        self._take_note(step, now)
        rows = rows_of(step, queue)
        priced = shape_of(step, rows)
        decodes, _, chunks, padded, _ = priced
        if not decodes and not chunks:
            priced = self._barren(step, now)
        costs = [pricing.cost.time(priced)]
        delay = pricing.delay(step, len(queue.running)) if pricing.delays or step.delay else 0
        used, empty, shared = memory.levels()
        row = row_of(step, queue, rows, padded, memory.promised, empty, shared)
        times = 1 if step.chunks and step.times == 1 else self._stretch.at_most(step, costs[0] + delay, now)
        if times > 1:
            costs = pricing.cost.decode_times(priced, times)
        lasts = pricing.lasting(costs, delay, priced, len(self._record.ends)) if delay or pricing.noise else costs
        start, ends = self.timed(now, lasts)
        in_use = [used]
        if times > 1:
            self._stretch.foreseen(step, ends, in_use)
        if ends[-1] > LATEST or not 0 <= in_use[-1] <= memory.capacity:
            self._contract.refuse_room(ends[-1], now)
        if self._watch:
            self._watch.planned(step, queue, now)
        return Pass(step, start, ends, in_use, row, costs, priced, rows if padded or step.pad_to else None)

    def timed(self, now: int, lasts: list[int]) -> tuple[int, list[int]]:
        """When steps that last so long start and end: at once, and one after the other."""
        return now, [now + lasts[0]] if len(lasts) == 1 else list(accumulate(lasts, initial=now))[1:]

    def write_down(self, under_way: Pass) -> None:
        """Put on record what has run of it."""
        record, pricing, ends = self._record, self._pricing, under_way.ends
        steps = len(ends)
        excess = pricing.excess(under_way.costs[:steps], under_way.bare) if under_way.bare else 0
        record.plans.append((under_way.start, steps, *under_way.row, excess))
        record.ran(ends, under_way.used)
        if pricing.ranged and (not pricing.bounds or not within(pricing.bounds, under_way.priced, steps)):
            record.out_of_range += pricing.out_of_range(under_way.priced, steps)

    def _take_note(self, step: Step, now: int) -> None:
        """Close the stays of those preempted and open those of the admitted; look at what each is to compute."""
        for victim in step.preempted:
            self.close_stay(victim, now)
        for request, tokens in step.chunks:
            lacking = request.prompt + request._generated - request._computed
            if not 1 <= tokens <= lacking or request._set is not None or step.pad_to:
                self._contract.check_chunk(request, tokens, step, now)
            if request.admitted is None:
                request.admitted = now
                if not request.lost:
                    self._record.admit(request._computed, request.prompt)

    def close_stay(self, request: Request, now: int) -> None:
        """A request gives up its slot, if it has one."""
        if request.admitted is not None:
            self._record.stay(request.index, request.admitted, now)
        request.admitted = None

    def _barren(self, step: Step, now: int) -> StepShape:
        """What is paid for a step that computes nothing: it may if it preempts somebody, but not twice in a row."""
        if not step.preempted or self._emptied == len(self._record.plans):
            self._contract.complain("planned a step that computes nothing", now)
        self._emptied = len(self._record.plans) + 1
        return SMALLEST
