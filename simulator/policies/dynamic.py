"""Dynamic batching: a batcher in front of a model that runs one whole batch at a time.

Mirrors: the dynamic batcher of Triton Inference Server, core commit 73aad7c3, transcribed by hand: one model instance,
requests of batch size 1. The batcher moves requests from the head of the queue into a payload, a batch that waits for
the instance. While the instance is busy the payload grows, until it is saturated; it starts when the instance is free.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import ClassVar, Self

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED, Lengths, Memory
from simulator.memory.contiguous import RESERVES, Contiguous, Reserve
from simulator.memory.spaces import SPACES
from simulator.policies.base import at_most, not_negative, one_of, positive, whole_numbers
from simulator.policies.whole_batch import WholeBatch, usual_size
from simulator.step import Queue, Step, Wait

NEVER = 1 << 64
"""Later than any wait can end: that of a request of the last year that the clock counts, too."""


@dataclass
class DynamicBatching(WholeBatch):
    """Triton's dynamic batcher in front of a model that answers whole batches.

    Attributes:
        max_batch_size: Most requests a batch; default min(32, KV pool // longest reservation of the trace).
        preferred_batch_size: Sizes, such as 4,8, at which a batch is sent at once; default max_batch_size alone.
        max_queue_delay_microseconds: How long the oldest request waits for a preferred size; after that all that are
            there are sent, preferred or not.
        reserve: Memory a request reserves, as in `static`: "declared", "exact", "pow2" or "model".
        placement: How a reservation finds its place: "first-fit", "buddy" or "counted".
    """

    name: ClassVar[str] = "dynamic"
    version: ClassVar[str] = "Triton Inference Server, dynamic batcher (core 73aad7c3)"
    evidence: ClassVar[str] = "transcribed"
    left_out: ClassVar[tuple[str, ...]] = ("several model instances", "a second payload behind the one that waits",
                                           "priority levels and queue timeouts", "requests of equal shape only",
                                           "custom batching", "requests that are batches themselves")
    steady: ClassVar[bool] = True    # a batch once started goes on; what the batcher did meanwhile is found at its end

    preferred_batch_size: tuple[int, ...] | None = None
    max_queue_delay_microseconds: int = 0
    reserve: Reserve = "declared"
    placement: str = "first-fit"
    _payload: int = field(default=0, init=False, repr=False)            # requests of the queue's head in the payload
    _saturated: bool = field(default=False, init=False, repr=False)     # it grows no more
    _looked: int = field(default=0, init=False, repr=False)             # when the batcher last looked at the queue

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "max_batch_size")
        whole_numbers(self, "preferred_batch_size")
        one_of(self, "reserve", RESERVES)
        one_of(self, "placement", tuple(SPACES))
        not_negative(self, "max_queue_delay_microseconds")
        at_most(self, "max_queue_delay_microseconds", UNLIMITED // 1000)

    def resolve(self, deployment: Deployment) -> Self:
        size = self.max_batch_size or usual_size(deployment, self.reserve)
        preferred = tuple(sorted(set(self.preferred_batch_size or (size,))))
        if preferred[-1] > size:
            raise InputError(f"dynamic: preferred_batch_size ({preferred[-1]}) is above max_batch_size ({size}): "
                             "lower the one or raise the other")
        return replace(self, max_batch_size=size, preferred_batch_size=preferred)

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        return Contiguous.reserving(self.reserve, deployment.kv_capacity_tokens, deployment.max_model_len, outputs,
                                    self.placement)

    def bounded_by(self, slots: int) -> Self:
        return replace(self, max_batch_size=slots, preferred_batch_size=None)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        if queue.running:
            return self.go_on(queue)
        arrivals = [request.arrival for request in islice(queue.waiting, self.slots + 1)]
        wake = self._catch_up(arrivals, now)
        self._looked = now
        if not self._payload:
            return Wait(wake)
        step = self.start(queue, memory, self._payload)
        self._payload, self._saturated = 0, False    # whoever found no memory is looked at again
        return step

    def _catch_up(self, arrivals: Sequence[int], now: int) -> int:
        """Do all that the batcher has done since it last looked: at each arrival, and when it wanted to wake.

        Before `now` the instance was busy, and the payload grew; now it is free, and takes it as soon as there is one.
        Returns when the batcher wants to wake next.
        """
        at = max(self._looked, arrivals[0])
        while not self._saturated:
            seen = bisect_right(arrivals, at)
            wake = self._look(arrivals[:seen], at)
            following = min(wake, arrivals[seen] if seen < len(arrivals) else NEVER)
            if following > now or (at == now and self._payload):
                return wake
            at = following
        return NEVER

    def _look(self, arrivals: Sequence[int], now: int) -> int:
        """Look once at those who have come: let the payload grow, or say when to look again."""
        payload, preferred = self._payload, self.preferred_batch_size
        assert preferred is not None
        delay = self.max_queue_delay_microseconds * 1000
        pending, best, full = self._scan(len(arrivals))
        if not pending:
            return NEVER
        due = arrivals[payload] + delay
        late = delay > 0 and now >= due
        if best and not late:
            self._payload += best
            self._saturated = self._saturated or not delay
        elif full or late or not delay or (payload and payload not in preferred):
            self._payload += pending
            self._saturated = self._saturated or full
        else:
            return due
        return NEVER if self._payload == len(arrivals) else now    # the rest is looked at right away

    def _scan(self, there: int) -> tuple[int, int, bool]:
        """Who of those there could join the payload, how many of them make it a preferred size, and whether it is full.

        One more than the largest preferred size counts as a preferred size too if no other was met.
        """
        preferred = self.preferred_batch_size
        assert preferred is not None
        payload, largest = self._payload, preferred[-1]
        pending = best = 0
        for size in range(payload + 1, there + 1):
            if size > largest and not best:
                best, self._saturated = pending, True
            if size > self.slots:
                break
            pending += 1
            if size in preferred:
                best = pending
        return pending, best, payload + pending >= largest
