"""Record: all that happened on one replica, as columns to read. It knows no metric and draws no conclusion.

Whoever sums up a run works on plans, for a stretch of a thousand steps is one row there. Whoever needs each step by
itself asks for one column of the steps at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simulator.columns import Ints, Packed
from simulator.frozen import Frozen, Kept, frozen

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Record(Kept):
    """What a Recorder wrote down.

    Attributes:
        plans: One row a plan, with the fields of `recorder.PLAN_COLUMNS`.
        ends: End of every step, ns.
        used: Blocks of memory held in every step.
        rests: How many steps had run each time there was nothing to run, and the blocks that held nothing then, where
            KV may outlive its holder.
        spans: Request, first step and last step of each run of tokens, in the order in which they ended. It has a token
            in the first step and in each step after it up to the last, but for those in which the set paused.
        stays: Request, start and end (ns) of each stay in a slot, in the order of their ends.
        sent: Request and when the client sent it (ns), in that order.
        refused: The same of requests that the engine refused at the door; they are not among those sent.
        cancelled: Request, when it was gone after its client had cancelled it (ns), and the next step, in that order. A
            request may be sent again after that, and be cancelled again.
        out_of_range: Steps outside the cost model's measured range.
        found, asked: Prompt tokens whose KV was at hand when requests were first admitted, and all of their prompts.
    """

    plans: NDArray[np.void]
    ends: Ints
    used: Packed
    rests: Ints
    spans: Packed
    stays: Ints
    sent: Ints
    refused: Ints
    cancelled: Ints
    out_of_range: int
    found: int = 0
    asked: int = 0

    @cached_property
    def last_spans(self) -> Packed:
        """The spans of each request's last try: what a try emitted that was cancelled is left out."""
        return frozen(self._of_last_tries(self.spans, self.cancelled[:, 2]))

    @cached_property
    def last_stays(self) -> Ints:
        """The stays of each request's last try."""
        return frozen(self._of_last_tries(self.stays, self.cancelled[:, 1]))

    def _of_last_tries(self, rows: Packed, since: Ints) -> Packed:
        """Those rows of (request, start, ...) that start no earlier than the request's last try may."""
        if not len(self.cancelled):
            return rows
        begins = np.zeros(1 + max(self.cancelled[:, 0].max(), rows[:, 0].max(initial=0)), np.int64)
        begins[self.cancelled[:, 0]] = since    # of the same request, the last one stands
        return rows[rows[:, 1] >= begins[rows[:, 0]]]

    def plan(self, column: str) -> Ints:
        """One column of the plans."""
        return self.plans[column].astype(np.int64)

    @property
    def firsts(self) -> Ints:
        """The number of the first step of each plan."""
        steps = self.plan("steps")
        return np.cumsum(steps) - steps

    @property
    def plan_ends(self) -> Ints:
        """When the last step of each plan ends, ns."""
        return self.ends[np.cumsum(self.plan("steps")) - 1]

    @property
    def bounds(self) -> tuple[int, int]:
        """From the first request sent to the end of the last step, ns."""
        return (int(self.sent[:, 1].min()), int(self.ends.max())) if len(self.ends) else (0, 0)

    @property
    def queued_from(self) -> Ints:
        """From when on each plan has somebody in the queue, ns; its end if nobody is. Nobody leaves it within a plan.

        Who arrives during a step is in the queue of the next one.
        """
        start, end = self.plan("start"), self.plan_ends
        arrivals = np.append(np.sort(self.sent[:, 1]), NEVER)
        arrival = arrivals[np.searchsorted(arrivals, start, side="right")]
        next_step = np.append(self.ends, NEVER)[np.searchsorted(self.ends, arrival)]
        return np.where(self.plan("waiting") > 0, start, np.minimum(next_step, end))

    @cached_property
    def pauses(self) -> Ints:
        """The steps in which the decoding set paused, in order."""
        return frozen(np.flatnonzero(self.step("paused")))

    def tokens_of(self, spans: Packed) -> Ints:
        """Tokens that each of these spans stands for."""
        first, last = spans[:, 1], spans[:, 2]
        before, upto = (np.searchsorted(self.pauses, step, side="right") for step in (first, last))
        return last - first + 1 - (upto - before)

    @property
    def starts(self) -> Ints:
        """When each step starts, ns: a plan's first step with the plan, any other when the one before it ends."""
        starts = np.roll(self.ends, 1)
        starts[self.firsts] = self.plan("start")
        return starts

    def step(self, column: str) -> Ints:
        """One column of the steps: "start", "end", "used", or one of the plans' as it is when each step starts.

        What changes inside a stretch is worked out: contexts grow by one a row, blocks that hold nothing are taken
        before others, and arrivals add to the queue.
        """
        steps = self.plan("steps")
        match column:
            case "start":
                return self.starts
            case "end":
                return self.ends
            case "used":
                return self.used.astype(np.int64)
            case "context" | "resident":
                before = self.plan(column) - self.plan("decodes") * self.firsts
                return np.repeat(before, steps) + np.repeat(self.plan("decodes"), steps) * np.arange(len(self.ends))
            case "empty":
                taken = self.used - np.repeat(self.used[self.firsts].astype(np.int64), steps)
                before = np.repeat(self.plan(column), steps)
                return np.where(before < 0, before, np.maximum(before - taken, 0))
            case "waiting":
                arrivals = np.sort(self.sent[:, 1])
                before = self.plan(column) - np.searchsorted(arrivals, self.plan("start"), side="right")
                return np.repeat(before, steps) + np.searchsorted(arrivals, self.starts, side="right")
            case _:
                return np.repeat(self.plan(column), steps)

    @cached_property
    def steps(self) -> Frozen[str, Ints]:
        """All columns of the steps. They are large after a long run."""
        names = [*(self.plans.dtype.names or ()), "end", "used"]
        return Frozen({name: self.step(name) for name in names if name not in ("steps", "excess")})
