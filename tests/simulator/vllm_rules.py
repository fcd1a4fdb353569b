"""vLLM's rules taken apart, block by block and request by request, so that a test can make one of them wrong at a time.

`Rules` walks its lists at every step, and `Blocks` keeps every block as an object: slow, plain, for exact mode only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from simulator.batch import DecodingSet
from simulator.deployment import Deployment
from simulator.memory import UNLIMITED, Memory
from simulator.memory.base import Chunks, Lengths
from simulator.policies import Vllm
from simulator.request import Request
from simulator.step import Queue, Step


@dataclass(eq=False)
class Block:
    """One block: what a prefix may find it by, and how many requests hold it."""

    key: Any = None
    holders: int = 0


class Blocks(Memory):
    """The pool as a list of free blocks, taken from the front, and a table of published ones."""

    def __init__(self, capacity: int, block_size: int, caching: bool) -> None:
        super().__init__(capacity)
        self.block_size, self.caching = block_size, caching
        self.line = [Block() for _ in range(capacity)]
        self.published: dict[Any, list[Block]] = {}
        self.tables: dict[Request, list[Block]] = {}

    @property
    def free(self) -> int:
        return len(self.line)

    def key(self, request: Request, at: int) -> Any:
        """What the block at a position is known by: the shared prefix that covers it all, or its request."""
        end = (at + 1) * self.block_size
        return next((node for node, tokens in request.prefix if end <= tokens), request.index), at

    def most_hits(self, request: Request) -> int:
        return (request.known - 1) // self.block_size

    def hits(self, request: Request) -> list[Block]:
        found: list[Block] = []
        for at in range(self.most_hits(request)):
            copies = self.published.get(self.key(request, at))
            if not copies:
                break
            found.append(copies[0])
        return found

    def cached(self, request: Request) -> int:
        return min(len(self.hits(request)) * self.block_size, request.known - 1)

    def demand(self, request: Request, tokens: int) -> int:
        hits = self.hits(request)
        return self.blocks_for(tokens) - len(hits) + self.evictable_among(hits)

    def evictable_among(self, hits: list[Block]) -> int:
        return sum(not block.holders for block in hits)

    def grow(self, request: Request, tokens: int) -> bool:
        table = self.tables.get(request)
        if table is None:
            request.reuse(self.cached(request))
            table = self.tables[request] = self.hold(self.hits(request))
        until = request.computed + tokens
        need = self.blocks_for(until) - len(table)
        if need > len(self.line):
            return False
        table += [self.pop() for _ in range(need)]
        if self.caching:
            self.publish(request, table[:until // self.block_size])
        return True

    def hold(self, hits: list[Block]) -> list[Block]:
        for block in hits:
            if not block.holders:
                self.line.remove(block)
            block.holders += 1
        return hits

    def pop(self) -> Block:
        block = self.line.pop(0)
        if block.key is not None:
            self.published[block.key].remove(block)
        block.key, block.holders = None, 1
        return block

    def publish(self, request: Request, full: list[Block]) -> None:
        for at, block in enumerate(full):
            if block.key is None:
                block.key = self.key(request, at)
                self.published.setdefault(block.key, []).append(block)

    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        table = self.tables.pop(request)
        for block in table:
            block.holders -= 1
        self.put_back([block for block in self.in_order_of_release(table) if not block.holders])

    def in_order_of_release(self, table: list[Block]) -> Iterable[Block]:
        return reversed(table)

    def put_back(self, idle: list[Block]) -> None:
        unhashed = [block for block in idle if block.key is None]
        self.line = unhashed + self.line + [block for block in idle if block.key is not None]

    def take(self, decoding: DecodingSet, chunks: Chunks) -> bool:
        raise AssertionError("these rules ask for one request at a time")

    def foresee(self, decoding: DecodingSet, steps: int) -> list[int]:
        raise AssertionError("these rules ask for one request at a time")

    def footprint(self, prompt: Lengths, output: Lengths, max_tokens: Lengths) -> Lengths:
        raise AssertionError("these rules ask for one request at a time")


@dataclass
class Rules(Vllm):
    """The engine's rule as it reads: walk those who run, then those who wait."""

    blocks: ClassVar[type[Blocks]] = Blocks
    null_blocks: ClassVar[int] = 1
    granted: dict[Request, int] = field(init=False, repr=False, default_factory=dict)

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        blocks = deployment.kv_capacity_tokens // self.block_size
        return self.blocks(blocks - self.null_blocks, self.block_size, self.enable_prefix_caching)

    @property
    def by_priority(self) -> bool:
        return self.scheduling_policy == "priority"

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step, self.granted = Step(), {}
        longest = self.longest(queue)
        budget = self.serve(queue, memory, step, longest)
        queue.sit_out([request for request in queue.running.values()
                       if request.decoding and request not in self.granted])
        step.chunks = [(request, self.granted[request]) for request in queue.catching_up.values()
                       if request in self.granted]
        if self.admits(step):
            self.let_in(queue, memory, step, budget, longest)
        return step if queue.running or step.preempted else None

    def longest(self, queue: Queue) -> int:
        alone = len(queue) == 1
        return self.long_prefill_token_threshold if self.long_prefill_token_threshold and not alone else UNLIMITED

    def serve(self, queue: Queue, memory: Memory, step: Step, longest: int) -> int:
        assert self.max_num_batched_tokens is not None
        budget = self.max_num_batched_tokens
        for request in list(queue.running.values()):
            tokens = min(request.known - request.computed, longest, budget) if request.order is not None else 0
            while tokens and request.order is not None and not memory.grow(request, tokens):
                victim = self.victim(queue)
                returned = self.granted.pop(victim, 0)
                budget += self.returned(returned)
                step.preempted.append(queue.preempt(victim, memory, returned))
                self.requeue(queue)
            if tokens and request.order is not None:
                self.granted[request] = tokens
                budget -= tokens
        return budget

    def victim(self, queue: Queue) -> Request:
        if self.by_priority:
            return max(queue.running.values(), key=lambda request: (request.priority, request.arrival))
        return queue.youngest

    def returned(self, tokens: int) -> int:
        return tokens

    def requeue(self, queue: Queue) -> None:
        """The victim stands where it belongs: in front, or by its priority."""

    def admits(self, step: Step) -> bool:
        return not step.preempted

    def let_in(self, queue: Queue, memory: Memory, step: Step, budget: int, longest: int) -> None:
        while queue.waiting and budget > 0 and len(queue.running) < self.slots:
            head = queue.waiting[0]
            cached = memory.cached(head)
            tokens = min(head.known - cached, longest)
            if tokens > budget and not self.enable_chunked_prefill:
                return
            tokens = min(tokens, budget)
            if not self.fits(head, cached + tokens, memory, bool(queue.running)):
                self.refused(queue)
                return
            assert memory.grow(queue.admit(), tokens)
            step.chunks.append((head, tokens))
            budget -= tokens

    def fits(self, head: Request, tokens: int, memory: Memory, others_run: bool) -> bool:
        spare = self.spare(memory) if others_run else 0
        return memory.demand(head, head.known if self.scheduler_reserve_full_isl else tokens) + spare <= memory.free

    def spare(self, memory: Memory) -> int:
        return int(self.watermark * (memory.capacity + 1))

    def refused(self, queue: Queue) -> None:
        """Nobody behind the head is looked at."""
