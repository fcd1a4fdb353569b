"""One engine once more, in plain Python: a clock, two lists and three rules. It shares no code with the simulator.

Each rule is written as its source states it, one request at a time: vLLM's V1 scheduler (first come, first served, no
prefix cache), Orca's selection, and the textbook's batch. Of a tie it says: who arrives at the instant at which a step
ends is in the queue before the next step is planned. Times are whole nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False)
class Job:
    """A request: what it is, how far it has got, and when."""

    arrival: int
    prompt: int
    output: int
    declared: int
    computed: int = 0
    generated: int = 0
    room: int = 0
    preemptions: int = 0
    admitted: int | None = None
    first: int = -1
    last: int = -1
    left: int = -1

    @property
    def lacking(self) -> int:
        return self.prompt + self.generated - self.computed


Plan = list[tuple[Job, int]]


@dataclass
class Engine:
    """Who waits and who runs, and how much memory is free. A rule says who computes how many tokens next."""

    free: int
    waiting: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)

    def admit(self, room: int) -> Job:
        job = self.waiting.pop(0)
        self.running.append(job)
        self.hold(job, room)
        return job

    def hold(self, job: Job, room: int) -> None:
        self.free -= room - job.room
        job.room = room

    def plan(self) -> Plan:
        raise NotImplementedError

    def leaving(self) -> list[Job]:
        return [job for job in self.running if job.generated == job.output]


@dataclass
class VllmEngine(Engine):
    """Those who run are served in the order in which they came in, and the last one gives way; then the queue."""

    seqs: int = 0
    budget: int = 0
    block: int = 1
    chunked: bool = True
    whole_prompt: bool = True

    def blocks(self, tokens: int) -> int:
        return -(-tokens // self.block)

    def plan(self) -> Plan:
        granted: Plan = []
        budget, preempted = self.budget, False
        for job in list(self.running):
            tokens = min(job.lacking, budget) if job in self.running else 0
            while tokens and self.blocks(job.computed + tokens) - job.room > self.free:
                victim = self.running.pop()
                preempted = True
                self.hold(victim, 0)
                victim.computed = 0
                victim.preemptions += 1
                self.waiting.insert(0, victim)
                if victim is job:
                    tokens = 0
            if tokens:
                self.hold(job, self.blocks(job.computed + tokens))
                granted.append((job, tokens))
                budget -= tokens
        while not preempted and self.waiting and budget and len(self.running) < self.seqs:
            head = self.waiting[0]
            tokens = min(head.lacking, budget)
            if tokens < head.lacking and not self.chunked:
                break
            if self.blocks(head.lacking if self.whole_prompt else tokens) > self.free:
                break
            granted.append((self.admit(self.blocks(tokens)), tokens))
            budget -= tokens
        return granted


@dataclass
class OrcaEngine(Engine):
    """All who run, and from the head of the queue whoever can reserve prompt and declared output."""

    batch: int = 0

    def plan(self) -> Plan:
        while self.waiting and len(self.running) < self.batch:
            head = self.waiting[0]
            if head.prompt + head.declared > self.free:
                break
            self.admit(head.prompt + head.declared)
        return [(job, job.lacking) for job in self.running]


@dataclass
class StaticEngine(OrcaEngine):
    """The same, but nobody comes in while somebody runs, and nobody leaves before all are done."""

    def plan(self) -> Plan:
        if self.running:
            return [(job, 1) for job in self.running if job.generated < job.output]
        return super().plan()

    def leaving(self) -> list[Job]:
        return list(self.running) if super().leaving() == self.running else []


Cost = Callable[[list[int], list[int]], int]
"""What a step costs, of the contexts of rows that make one token of the last one, and the lengths of other chunks."""


def run(engine: Engine, jobs: list[Job], cost: Cost, *, late: bool = False) -> list[int]:
    """Serve all jobs, which come in the order of their arrival; the ends of all steps.

    late: the other rule for ties: who comes as a step ends is seen one step later.
    """
    coming, ends, now, idle = list(jobs), list[int](), 0, True
    while coming or engine.waiting or engine.running:
        while coming and coming[0].arrival <= (now - 1 if late and not idle else now):
            engine.waiting.append(coming.pop(0))
        plan = engine.plan()
        for job in engine.running:
            job.admitted = now if job.admitted is None else job.admitted
        if not plan:
            now, idle = coming[0].arrival, True
            continue
        idle = False
        decodes = [job.computed for job, tokens in plan if job.generated and job.lacking == 1]
        chunks = [tokens for job, tokens in plan if not (job.generated and job.lacking == 1)]
        now += cost(decodes, chunks)
        ends.append(now)
        for job, tokens in plan:
            job.computed += tokens
            if not job.lacking:
                job.generated += 1
                job.first = now if job.generated == 1 else job.first
                job.last = now
        for job in engine.leaving():
            job.left = now
            engine.running.remove(job)
            engine.hold(job, 0)
    return ends
