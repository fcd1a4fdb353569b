"""vLLM 0.33.0's scheduler and KV cache manager, block by block and token by token: slow, plain, and only for tests.

Every block is an object, every list a list, and a request is walked for each decision: nothing here is shared with the
simulator. Rules: running first, then waiting; blocks are published when scheduled; the first copy inserted is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from live.scenarios import Line, Scenario, arrival, identities

UNLIMITED = 1 << 60


@dataclass(eq=False)
class Block:
    """One block of the pool: what it is known as, if it is full and published, and how many requests hold it."""

    key: int | None = None
    holders: int = 0


@dataclass(eq=False)
class Job:
    """One request, with the identity of each of its tokens."""

    name: str
    tokens: list[Any]
    output: int
    priority: int
    arrival: int
    computed: int = 0
    generated: int = 0
    published: int = 0
    preempted: bool = False
    blocks: list[Block] = field(default_factory=list)


class Pool:
    """All blocks; free ones stand in a list and are taken from its front."""

    def __init__(self, blocks: int, size: int, caching: bool) -> None:
        self.size, self.caching = size, caching
        self.blocks = [Block() for _ in range(blocks)]
        self.free = list(self.blocks)
        self.cached: dict[int, list[Block]] = {}    # by key, in the order of insertion
        self.keys: dict[tuple[Any, ...], int] = {}

    def chain(self, job: Job, blocks: int) -> Iterator[int]:
        """The keys of its first full blocks; a key stands for the one before it and the block's own tokens."""
        parent = -1
        for at in range(blocks):
            own = (parent, *job.tokens[at * self.size:(at + 1) * self.size])
            parent = self.keys.setdefault(own, len(self.keys))
            yield parent

    def hits(self, job: Job) -> list[Block]:
        """Cached blocks of its longest known prefix, which never covers its last token."""
        found: list[Block] = []
        for key in self.chain(job, (len(job.tokens) - 1) // self.size):
            if key not in self.cached:
                break
            found.append(self.cached[key][0])
        return found

    def lacks(self, tokens: int, held: int) -> int:
        return -(-tokens // self.size) - held

    def grow(self, job: Job, tokens: int) -> bool:
        """Give it blocks up to `tokens` tokens and publish what is full, if there are enough free ones."""
        need = self.lacks(tokens, len(job.blocks))
        if need > len(self.free):
            return False
        for _ in range(need):
            block = self.free.pop(0)
            if block.key is not None:
                self.cached[block.key].remove(block)
                if not self.cached[block.key]:
                    del self.cached[block.key]
            block.key, block.holders = None, 1
            job.blocks.append(block)
        if self.caching:
            self.publish(job, tokens // self.size)
        return True

    def publish(self, job: Job, full: int) -> None:
        for at, key in enumerate(self.chain(job, full)):
            if at >= job.published:
                job.blocks[at].key = key
                self.cached.setdefault(key, []).append(job.blocks[at])
        job.published = max(job.published, full)

    def hold(self, job: Job, hits: list[Block]) -> None:
        for block in hits:
            if not block.holders:
                self.free.remove(block)
            block.holders += 1
        job.blocks, job.published, job.computed = list(hits), len(hits), len(hits) * self.size

    def release(self, job: Job) -> None:
        """Let go all its blocks, the tail first: those without a key are taken next, the others last."""
        for block in job.blocks:
            block.holders -= 1
        idle = [block for block in reversed(job.blocks) if not block.holders]
        self.free[:0] = [block for block in idle if block.key is None]
        self.free += [block for block in idle if block.key is not None]
        job.blocks, job.published = [], 0


class Engine:
    """The scheduler."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.pool = Pool(options["num_gpu_blocks"] - 1, options["block_size"], options["enable_prefix_caching"])
        self.by_priority = options["policy"] == "priority"
        self.waiting: list[Job] = []
        self.running: list[Job] = []

    def submit(self, job: Job) -> None:
        self.waiting.append(job)
        self.sort()

    def sort(self) -> None:
        if self.by_priority:
            self.waiting.sort(key=lambda job: (job.priority, job.arrival, job.name))

    def step(self) -> Line:
        alone = len(self.running) + len(self.waiting) == 1
        threshold = self.options["long_prefill_token_threshold"]
        self.longest = threshold if threshold and not alone else UNLIMITED
        self.budget = self.options["max_num_batched_tokens"]
        self.batch: dict[Job, int] = {}
        self.victims: list[Job] = []
        known = {*self.running}
        self.serve_running()
        if not self.victims:
            self.admit()
        sched = [[job.name, "running" if job in known else "resumed" if job.preempted else "new", tokens, job.computed]
                 for job, tokens in self.batch.items()]
        line = {"sched": sched, "preempted": [job.name for job in self.victims],
                "tokens": sum(self.batch.values()), "used_sched": self.used}
        return line | self.finish()

    def serve_running(self) -> None:
        at = 0
        while at < len(self.running) and self.budget > 0:
            job = self.running[at]
            tokens = min(len(job.tokens) - job.computed, self.longest, self.budget)
            while job in self.running and not self.pool.grow(job, job.computed + tokens):
                victim = self.choose_victim()
                at -= self.running.index(victim) < at
                self.preempt(victim)
            if job in self.running:
                self.batch[job] = tokens
                self.budget -= tokens
                at += 1

    def choose_victim(self) -> Job:
        if self.by_priority:
            return max(self.running, key=lambda job: (job.priority, job.arrival))
        return self.running[-1]

    def preempt(self, job: Job) -> None:
        self.budget += self.batch.pop(job, 0)
        self.running.remove(job)
        self.pool.release(job)
        job.computed, job.preempted = 0, True
        self.victims.append(job)
        self.waiting.insert(0, job)
        self.sort()

    def admit(self) -> None:
        while self.waiting and self.budget > 0 and len(self.running) < self.options["max_num_seqs"]:
            job = self.waiting[0]
            hits = self.pool.hits(job)
            start = len(hits) * self.pool.size
            tokens = min(len(job.tokens) - start, self.longest)
            if tokens > self.budget and not self.options["enable_chunked_prefill"]:
                return
            tokens = min(tokens, self.budget)
            least = len(job.tokens) if self.options["scheduler_reserve_full_isl"] else start + tokens
            spare = int(self.options["watermark"] * self.options["num_gpu_blocks"]) if self.running else 0
            evictable = sum(not block.holders for block in hits)
            if self.pool.lacks(least, len(hits)) + evictable + spare > len(self.pool.free):
                return
            self.running.append(self.waiting.pop(0))
            self.pool.hold(job, hits)
            assert self.pool.grow(job, start + tokens)
            self.batch[job] = tokens
            self.budget -= tokens

    def finish(self) -> Line:
        sampled, finished = [], []
        for job, tokens in self.batch.items():
            job.computed += tokens
            if job.computed == len(job.tokens):
                job.generated += 1
                job.tokens.append((job.name, "out", job.generated))
                sampled.append(job.name)
                if job.generated == job.output or len(job.tokens) >= self.options["max_model_len"]:
                    finished.append(job)
        for job in finished:
            self.running.remove(job)
            self.pool.release(job)
        return {"sampled": sampled, "finished": [job.name for job in finished], "used": self.used,
                "running": [job.name for job in self.running], "waiting": [job.name for job in self.waiting],
                "n_running": len(self.running), "n_waiting": len(self.waiting), **self.held()}

    @property
    def used(self) -> int:
        return len(self.pool.blocks) - len(self.pool.free)

    def held(self) -> Line:
        """What the pool holds: free blocks, those of them that have a key, and blocks held beyond the first holder."""
        assert self.used == len({block for job in self.running for block in job.blocks})
        return {"free": len(self.pool.free), "evictable": sum(block.key is not None for block in self.pool.free),
                "shared": sum(max(0, block.holders - 1) for block in self.pool.blocks)}


def run(scenario: Scenario) -> list[Line]:
    """All steps, until nobody is left, nothing can run and nobody comes, or there were too many."""
    options, now, lines = scenario.options, 0, []
    engine = Engine(options)
    coming = [Job(row["id"], identities(row), row["output_tokens"], row.get("priority", 0), arrival(row))
              for row in scenario.requests]
    while len(lines) < options["max_steps"] and (coming or engine.running or engine.waiting):
        if not engine.running and not engine.waiting:
            now = max(now, coming[0].arrival)
        arrived = []
        while coming and coming[0].arrival <= now:
            arrived.append(coming.pop(0))
            engine.submit(arrived[-1])
        line = engine.step()
        clock = {"step": now} if options["clock"] == "step" else {"step": len(lines), "t_us": now}
        lines.append(clock | {"arrived": [job.name for job in arrived]} | line)
        now += scenario.base + scenario.per_token * line["tokens"]
        if not line["tokens"] and not line["preempted"] and not coming:
            break
    return lines
