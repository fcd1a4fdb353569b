"""Who is let in: the queue's `next_batch`. It is scanned in order, and the first that does not fit ends the scan.

Whoever is let in reserves memory for its whole life, so nothing is ever preempted. Devices that pad have no blocks: the
batch is a rectangle as wide as its longest prompt, and a bound on tokens takes the place of memory.
Mirrors: text-generation-inference, commit db931fcf, backends/v3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.memory.base import UNLIMITED, Memory
from simulator.request import Request
from simulator.step import Obstacle, Queue


@dataclass(slots=True)
class Batch:
    """What a scan of the queue came to.

    Attributes:
        rows: Who is let in, each with the tokens that it computes first.
        blocked: Why the next one stays out until somebody leaves; None if there is none, or if it may be let in sooner.
        wanting: There were requests, but too few of them to be worth a prefill.
    """

    rows: list[tuple[Request, int]] = field(default_factory=list)
    blocked: Obstacle | None = None
    wanting: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a batch must keep to.

    Attributes:
        prefill: Prompt tokens computed at once.
        total: Tokens that its requests may come to; where memory has blocks, only whether any are left counts.
        least: Fewer requests than that are not let in.
        most: Requests.
        chunking: The last one may be let in with a part of its prompt.
        padded: All rows count as long as the longest.
        phantoms: Who is sent back because nothing of it can be computed leaves its prompt behind as if it had been.
    """

    prefill: int
    total: int
    least: int = 0
    most: int = UNLIMITED
    chunking: bool = False
    padded: bool = False
    phantoms: bool = False


def next_batch(queue: Queue, memory: Memory, bounds: Bounds) -> Batch:
    """Let in as many from the front of the queue as fit, or nobody if they are too few."""
    if len(queue.waiting) < bounds.least:
        return Batch(wanting=bool(queue.waiting))
    if not queue.waiting:
        return Batch()
    if min(bounds.most, bounds.prefill, bounds.total) <= 0:
        return Batch(blocked="cap" if bounds.most <= 0 else "budget" if bounds.prefill <= 0 else "memory")
    batch = _scan_padded(queue, memory, bounds) if bounds.padded else _scan(queue, memory, bounds)
    if batch.rows and len(batch.rows) < bounds.least:
        for request, _ in batch.rows:
            _send_back(request, memory)
        return Batch(wanting=True)
    for _ in batch.rows:
        queue.admit()
    return batch


def room_left(total: int, queue: Queue, memory: Memory, padded: bool = False) -> int:
    """Tokens of the total that the running batch leaves.

    It holds the blocks of each of its requests, those that several share once for each. A padded batch is a rectangle
    as wide as its longest context, and the answers that are still to come.
    """
    if not padded:
        return total - memory.used * memory.block_size - memory.shared_tokens
    running = queue.running.values()
    longest = max([request.known for request in running], default=0)
    return total - len(running) * longest - sum([request.max_tokens - request.generated for request in running])


def _scan(queue: Queue, memory: Memory, bounds: Bounds) -> Batch:
    """Blocks for the whole life first, then the prompt tokens that are not at hand."""
    batch, left = Batch(), memory.blocks_for(bounds.prefill) * memory.block_size
    for head in queue.waiting:
        if len(batch.rows) == bounds.most:
            batch.blocked = "cap"
        elif not memory.grow(head, head.prompt):
            batch.blocked = memory.shortage
        else:
            tokens = head.lacking if head.lacking <= left else left if bounds.chunking else 0
            if tokens < head.lacking:
                batch.blocked = "budget"
            if tokens:
                batch.rows.append((head, tokens))
                left -= tokens
            else:
                _send_back(head, memory, bounds.phantoms)
        if batch.blocked:
            break
    return batch


def _scan_padded(queue: Queue, memory: Memory, bounds: Bounds) -> Batch:
    """Every prompt counts as long as the longest so far; answers count as long as they were declared."""
    batch, longest, declared = Batch(), 0, 0
    for head in queue.waiting:
        longest, declared = max(longest, head.prompt), declared + head.max_tokens
        rectangle = (len(batch.rows) + 1) * longest
        if len(batch.rows) == bounds.most:
            batch.blocked = "cap"
        elif rectangle > bounds.prefill:
            batch.blocked = "budget"
        elif rectangle + declared > bounds.total:
            batch.blocked = "memory"
        if batch.blocked:
            break
        held = memory.grow(head, head.prompt)
        assert held, "the bound on tokens is the memory's own"
        batch.rows.append((head, head.prompt))
    return batch


def _send_back(request: Request, memory: Memory, as_if_computed: bool = False) -> None:
    """Take back what a request got that is not let in after all. It has not left its place in the queue."""
    memory.release(request, returns=not as_if_computed)
    request.reuse(0)
