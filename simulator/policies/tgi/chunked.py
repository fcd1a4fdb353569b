"""The loop where prompts may be computed in chunks, beside the decodes of the others: the default.

Neither the ratio of waiting to running nor the time since the last prefill counts here. After a forward that lets
somebody in comes one that does not look at the queue, so at most every second forward lets anybody in, but for the one
after a fresh start.
Mirrors: text-generation-inference, commit db931fcf, backends/v3 and its server's chunk plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.memory.base import Memory
from simulator.policies.tgi.batching import Batch, Bounds, next_batch, room_left
from simulator.request import Request
from simulator.step import Queue, Step

if TYPE_CHECKING:
    from simulator.policies.tgi.policy import Tgi

Chunks = list[tuple[Request, int]]


class Chunked:
    """The loop, and where it stands."""

    def __init__(self, knobs: Tgi) -> None:
        self.knobs = knobs
        self._must_not_look = False
        self._planned: Chunks = []    # of the next forward, in the order of the batch

    def plan(self, queue: Queue, memory: Memory) -> Step | None:
        """One forward of everybody who runs, the newcomers included; None if there is nobody."""
        fresh = not queue.running
        looks = fresh or not self._must_not_look
        batch = self.newcomers(queue, memory) if looks else Batch()
        self._must_not_look = bool(batch.rows) and not fresh
        if not queue.running:
            return None
        chunks = self._planned + batch.rows
        self._planned = chunk_plan(chunks, queue.decoding.size + len(chunks), self.knobs.prefill_budget)
        return Step(chunks, blocked=batch.blocked, fickle=bool(queue.waiting) and not looks)

    def dropped(self, request: Request) -> None:
        """Plan nothing more for one who is gone."""
        self._planned = [chunk for chunk in self._planned if chunk[0] is not request]

    def newcomers(self, queue: Queue, memory: Memory) -> Batch:
        """Who is let in beside the tokens that the next forward has already."""
        knobs = self.knobs
        current = queue.decoding.size + sum([tokens for _, tokens in self._planned])
        return next_batch(queue, memory, Bounds(
            knobs.prefill_budget - current, room_left(knobs.total_budget, queue, memory), chunking=True,
            phantoms=knobs.quirk_phantom_prefix))


def chunk_plan(chunks: Chunks, rows: int, budget: int) -> Chunks:
    """What the prompts that `chunks` does not finish get in the next forward.

    Every other row of this forward is left a token of the budget. The rest is handed out from the end of the batch, to
    the latest first; nobody gets less than one token.
    """
    left = budget - (rows - 1)
    planned: Chunks = []
    for request, tokens in reversed(chunks):
        lacking = request.lacking - tokens
        if lacking > 0:
            share = max(1, min(lacking, left))
            planned.append((request, share))
            left -= share
    return planned[::-1]
