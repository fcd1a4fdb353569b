"""Progress: whether the steps of a replica bring anybody on. It is asked only where they may not.

Tokens that have KV are lost by preemptions alone, and every other step computes some that never had any, or emits one:
so a run that makes no progress waits, computes nothing, or preempts. These are counted, and nothing else is.

It is a bound and no proof: a rule with a memory of its own may bring somebody on after any number of steps in vain, and
none can tell it from one that never will. A rule that preempts, step after step, is ended where nobody has got further
by a single token between two looks: in LOOKS such steps, and one for each token to be computed again at the first look.
So somebody must get on within as many steps; whoever never does is ended before twice as many have passed.
"""

from __future__ import annotations

from simulator.contract import Contract
from simulator.memory.base import Memory
from simulator.recorder import Recorder
from simulator.step import Queue, Step

MOST_WAITS = 100_000
"""That end by their time, with no step in between."""
MOST_IDLE = 100_000
"""Plans in a row that compute nothing but rows of finished requests; each may stand for many steps."""
LOOKS, PLANS = 256, 4096
"""Steps that preempt somebody, and plans of somebody's own policy, from one look at what has been reached to the next,
beside one for each token to be computed again."""


class Progress:
    """The watchdog of one replica."""

    def __init__(self, queue: Queue, memory: Memory, record: Recorder, contract: Contract) -> None:
        self._queue, self._record, self._contract = queue, record, contract
        self._waits = self._idle = 0
        self._waited_at = -1        # steps on record when the latest wait ended
        self._barren_at = -1        # plans on record after the latest step that computed nothing
        self._preempting, self._planning = Reach(queue, record, LOOKS), Reach(queue, record, PLANS)

    def waited(self) -> None:
        """A wait has ended by its time."""
        steps = len(self._record.ends)
        self._waits = self._waits + 1 if steps == self._waited_at else 1
        self._waited_at = steps
        if self._waits > MOST_WAITS:
            self._contract.complain(f"has waited {MOST_WAITS:,} times since its latest step: return None to sleep until"
                                    " a request arrives")

    def computed_nothing(self, step: Step) -> None:
        """A step computes nothing new: it may if it preempts somebody, but not twice in a row.

        For those who have finished it may compute on, but not for ever.
        """
        plans = len(self._record.plans)
        if step.spent:
            self._idle = self._idle + 1 if plans == self._barren_at else 1
        elif not step.preempted or plans == self._barren_at:
            self._contract.complain("planned a step that computes nothing")
        self._barren_at = plans + 1
        if self._idle > MOST_IDLE:
            self._contract.complain(f"has planned {MOST_IDLE:,} times in a row nothing but rows of finished requests: "
                                    "let them go (leaving)")

    def preempted(self, step: Step) -> None:
        """A step has sent somebody back."""
        if self._preempting.stands_still():
            self._contract.complain(f"has preempted in {self._preempting.steps:,} steps, request "
                                    f"{step.preempted[-1].index} the latest, and nobody got any further: give it more "
                                    "memory, or a rule that lets the oldest end")

    def planned(self) -> None:
        """A policy of somebody's own has planned."""
        if self._planning.stands_still():
            self._contract.complain(f"has planned {self._planning.steps:,} times, and nobody got any further: what is "
                                    "computed must not be thrown away for ever")


class Reach:
    """How far all requests have got, looked at once in a while.

    Attributes:
        steps: Calls from the latest look to the next.
    """

    def __init__(self, queue: Queue, record: Recorder, least: int) -> None:
        self._queue, self._record, self._least = queue, record, least
        self.steps, self._calls = least, 0
        self._who, self._tokens = (-1, -1), -1

    def stands_still(self) -> bool:
        """Whether this call is a look, and nobody has come, gone or got any further since the last one.

        To get further is to emit a token, or to compute one that never had KV. Whoever has lost KV computes at least
        one token a step of it again: so long it may take.
        """
        self._calls += 1
        if self._calls < self.steps:
            return False
        here = [*self._queue.running.values(), *self._queue.waiting, *self._queue.swapped]
        furthest = [max(each.lost, each.computed, each.stashed) for each in here]
        tokens = sum(furthest) + sum([each.generated for each in here])
        who = len(self._record.sent), len(here)
        still = who == self._who and tokens <= self._tokens
        self._who, self._tokens, self._calls = who, tokens, 0
        if not still:
            self.steps = self._least + sum(furthest) - sum([each.computed for each in here])
        return still
