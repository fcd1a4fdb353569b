"""TensorRT-LLM's rules taken apart, request by request, so that a test can make one of them wrong at a time.

Both stages walk the list of active requests at every step, as the engine does: slow, plain, for exact mode only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from simulator.memory import Memory, PagedAhead
from simulator.policies import TensorRtLlm
from simulator.request import Request
from simulator.step import Queue, Step

Requests = list[Request]


@dataclass
class Rules(TensorRtLlm):
    """The engine's rule as it reads."""

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        self.queue, self.pool = queue, cast(PagedAhead, memory)
        step = Step()
        active = sorted([*queue.running.values(), *queue.waiting], key=self.place)
        fits, step.preempted = self.max_utilization(active) if self.evicts else (self.no_evict(active), [])
        for victim in step.preempted:
            queue.preempt(victim, memory)
            self.paused(victim)
        chunks, generations = self.micro_batch(fits)
        self.fitting = [request for request in fits if self.is_context(request)]
        self.contexts = [request for request, _ in chunks]
        self.pushed_out = [request for request in fits if request not in (*self.fitting, *generations)]
        self.run(step, chunks, generations)
        return step if queue.running or step.preempted else None

    def run(self, step: Step, chunks: list[tuple[Request, int]], generations: Requests) -> None:
        queue, pool = self.queue, self.pool
        for request, tokens in sorted(chunks, key=lambda chunk: self.place(chunk[0])):
            if request.order is None:
                assert pool.grow(request, self.room_at_first(request, tokens))
                queue.admit(request)
            elif pool.room(request) < request.computed + tokens:
                assert pool.grow(request, tokens)
        queue.sit_out([request for request in queue.running.values()
                       if request.decoding and request not in generations])
        late = [(request, 1) for request in generations if not request.decoding]
        assert pool.take(queue.decoding, late)
        step.chunks = sorted(chunks + late, key=lambda chunk: chunk[0].order or 0)

    # The states of a request

    def is_context(self, request: Request) -> bool:
        return request.order is None or request.computed < self.pool.room(request)

    def is_started(self, request: Request) -> bool:
        return request.order is not None

    def whole(self, request: Request) -> int:
        if request.order is not None:
            return self.pool.room(request)
        return request.known if request.known <= self.longest_prompt else max(request.prompt, self.longest_prompt)

    def left(self, request: Request) -> int:
        return self.whole(request) - request.computed

    def room_at_first(self, request: Request, tokens: int) -> int:
        return self.whole(request)

    def paused(self, victim: Request) -> None:
        """A paused request keeps its place."""

    # The capacity scheduler

    def held(self, request: Request) -> int:
        return self.pool.held(request) if request.order is not None else 0

    def remaining(self, request: Request) -> int:
        return self.pool.blocks_for(request.prompt + request.max_tokens) - self.held(request)

    def no_evict(self, active: Requests) -> Requests:
        generations = [request for request in active if not self.is_context(request)]
        fits = generations[:self.slots]
        if self.capacity_scheduler_policy == "MAX_REQUESTS":
            return sorted(fits + [r for r in active if r not in fits][:self.slots - len(fits)], key=self.place)
        if fits and self.starts_alone():
            return fits
        available = self.pool.free - sum(map(self.remaining, fits))
        for request in active:
            if request in generations:
                continue
            if len(fits) >= self.most():
                break
            need = self.remaining(request)
            if need > available:
                if self.stops_at_the_first():
                    break
                continue
            available -= need
            fits.append(request)
        return fits

    def starts_alone(self) -> bool:
        return self.capacity_scheduler_policy == "STATIC_BATCH"

    def most(self) -> int:
        return self.slots

    def stops_at_the_first(self) -> bool:
        return True

    def next_step(self, request: Request) -> int:
        if not self.is_started(request):
            return self.pool.blocks_for(self.whole(request))
        if self.is_context(request):
            return 0
        ahead = request.computed + self.tokens_ahead()
        return self.pool.blocks_for(ahead) - self.pool.blocks_for(request.computed)

    def tokens_ahead(self) -> int:
        return 2 if self.two_step_look_ahead else 1

    def max_utilization(self, active: Requests) -> tuple[Requests, Requests]:
        fits: Requests = []
        paused: Requests = []
        free, at, end = self.pool.free, 0, len(active)
        while at < end:
            need = self.next_step(active[at])
            if len(fits) < self.slots and need <= free:
                fits.append(active[at])
                free -= need
                at += 1
                continue
            started = [i for i in range(at, end) if self.is_started(active[i])]
            if not started:
                break
            end = self.victim(started)
            paused.append(active[end])
            free += self.held(active[end])
        return fits, paused

    def victim(self, started: list[int]) -> int:
        return started[-1]

    # The micro-batch scheduler

    def micro_batch(self, fits: Requests) -> tuple[list[tuple[Request, int]], Requests]:
        used, whole, cut, generations = 0, Requests(), Requests(), Requests()
        for request in fits:
            chunked = self.is_context(request) and self.enable_chunked_prefill
            tokens = 0 if chunked else self.left(request) if self.is_context(request) else 1
            if used + tokens > self.max_num_tokens:
                break
            used += tokens
            (cut if chunked else whole if self.is_context(request) else generations).append(request)
            if len(whole) + len(cut) + len(generations) >= self.most():
                break
        sizes = {request: self.left(request) for request in whole + cut}
        if sum(sizes[request] for request in cut) > self.max_num_tokens - used:
            equal = self.context_chunking_policy == "EQUAL_PROGRESS"
            sizes = (self.equal if equal else self.first_come)(cut, self.max_num_tokens - used)
            return self.ordered([(request, n) for request, n in sizes.items() if n]), generations
        return list(sizes.items()), generations

    def ordered(self, chunks: list[tuple[Request, int]]) -> list[tuple[Request, int]]:
        on = [(request, n) for request, n in chunks if n < self.left(request)]
        return on + [chunk for chunk in chunks if chunk not in on]

    def first_come(self, cut: Requests, capacity: int) -> dict[Request, int]:
        sizes = {}
        for request in cut:
            n = min(capacity, self.left(request))
            sizes[request] = n if n == self.left(request) else self.floored(n)
            capacity -= sizes[request]
        return sizes

    def floored(self, tokens: int) -> int:
        return tokens // self.tokens_per_block * self.tokens_per_block

    def equal(self, cut: Requests, capacity: int) -> dict[Request, int]:
        sizes, before = dict.fromkeys(cut, 0), -1
        while sum(sizes.values()) != before:
            before = sum(sizes.values())
            for request in cut:
                size = min(sizes[request] + self.tokens_per_block, self.left(request))
                if sum(sizes.values()) - sizes[request] + size <= capacity:
                    sizes[request] = size
        return sizes
