"""Tiny worlds: a replica and a client wired by hand, and a readable log of every step they take.

`play` runs one world, checks all invariants and returns it. `play_both` runs it fast and exact, and compares the two.
Costs are small whole numbers of nanoseconds, so that every time in a log can be worked out by hand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from simpy import Environment

from cost_models import Constant, CostModel, Noise, StepShape
from simulator.clients import Client
from simulator.deployment import Deployment
from simulator.memory import UNLIMITED, Memory
from simulator.patience import Patience
from simulator.pipeline import replica_for
from simulator.policies import Policy
from simulator.pricing import Pricing
from simulator.recorder import Record
from simulator.replica import Replica
from simulator.request import Request
from simulator.step import Queue, Step, Wait
from traces import Trace

SHARED = Path(__file__).resolve().parents[2] / "shared"
"""Recordings and published data beside the project; tests that need them are skipped where they are absent."""

Prefix = tuple[tuple[Any, int], ...]
"""Shared prefix of a prompt, as `Request.prefix` has it."""
STEP = 10
"""Nanoseconds a step lasts unless a world says otherwise."""


@dataclass(frozen=True)
class Affine(CostModel):
    """base + per_row * rows + per_token * chunk tokens + context // context_div, in ns."""

    base: int = 7
    per_row: int = 2
    per_token: int = 1
    context_div: int = 8

    @property
    def name(self) -> str:
        return "affine"

    @property
    def origin(self) -> str:
        return "stated"

    def time(self, shape: StepShape) -> int:
        tokens = sum(new for new, _ in shape.chunks)
        return self.base + self.per_row * shape.decodes + self.per_token * tokens + shape.context // self.context_div


@dataclass
class Tick:
    """One plan, as the watcher saw it, and what its commit changed. Requests are their indices."""

    now: int
    first: int                      # number of its first step
    steps: int                      # how many steps it stands for; set at the commit
    computing: list[tuple[int, int, int]]   # (request, tokens, computed before), in running order
    known: dict[int, int]           # prompt and generated tokens before the step, of all who run
    computed: dict[int, int]        # tokens with KV before the step, of all who run
    running: list[int]
    waiting: list[int]
    decoding: set[int]
    catching_up: set[int]
    held: set[int]
    preempted: list[int]
    spent: int
    pad_to: int
    blocked: str | None
    used: int                       # blocks, right after the plan (a stretch has taken all of its own)
    free: int                       # blocks, likewise
    evictable: int                  # of these, those that still hold reusable KV
    shared: int                     # tokens of KV that several requests hold, once for each holder but one
    paused: bool                    # the decoding set takes no part
    swapped: list[int]              # those whose KV waits outside the GPU
    submitted: int
    gone: int                       # requests that had left or been cancelled before
    answered: int                   # of these, those that had left
    admitted: list[int] = field(default_factory=list)
    sampled: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    running_after: list[int] = field(default_factory=list)
    used_after: int = 0
    evictable_after: int = 0
    intervals: list[tuple[int, int]] = field(default_factory=list)

    def __str__(self) -> str:
        """For example `30: 0+1 1+5 | wait 2 | preempt 3 | emit 0 | leave 0`; a stretch of two starts with `30 x2:`."""
        parts = [" ".join(f"{who}+{tokens}" for who, tokens, _ in self.computing)]
        if self.spent:
            parts[0] += f" spent {self.spent}"
        for word, who in (("held", sorted(self.held)), ("wait", self.waiting), ("preempt", self.preempted),
                          ("emit", self.sampled), ("leave", self.left)):
            if who:
                parts.append(f"{word} " + " ".join(map(str, who)))
        if self.pad_to:
            parts.append(f"pad {self.pad_to}")
        times = f" x{self.steps}" if self.steps > 1 else ""
        return f"{self.now}{times}: " + " | ".join(part.strip() for part in parts if part.strip())


@dataclass
class World:
    """What `play` returns."""

    rows: list[tuple[int, ...]]
    policy: Policy
    memory: Memory
    exact: bool
    cost: CostModel
    max_concurrency: int
    replica: Replica
    client: Any
    prefixes: Sequence[Prefix] = ()
    priorities: Sequence[int] = ()
    ticks: list[Tick] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    left_at: dict[int, int] = field(default_factory=dict)
    error: Exception | None = None
    plans: int = 0
    waits: list[int] = field(default_factory=list)    # when the policy said Wait
    patience: Patience = field(default_factory=Patience)
    dropped: list[int] = field(default_factory=list)    # who was cancelled, once for each time

    @property
    def log(self) -> list[str]:
        return [str(tick) for tick in self.ticks]

    @property
    def record(self) -> Record:
        if not hasattr(self, "_record"):
            self._record = self.replica.record.freeze()
        return self._record

    def __post_init__(self) -> None:
        self.output = [row[2] for row in self.rows]

    @property
    def aborted(self) -> set[int]:
        """Who was never answered."""
        return set(range(len(self.rows))) - set(self.left)

    def tokens(self, index: int) -> list[int]:
        """Numbers of the steps in which a request emitted the tokens of its last try."""
        spans = self.record.last_spans
        own, paused = spans[spans[:, 0] == index], self.record.steps["paused"]
        return sorted(step for _, first, last in own.tolist() for step in range(first, last + 1)
                      if step == first or not paused[step])

    def token_times(self, index: int) -> list[int]:
        """When its tokens were made, ns."""
        return self.record.ends[self.tokens(index)].tolist()

    def stays(self, index: int, *, last_try: bool = False) -> list[tuple[int, int]]:
        stays = self.record.last_stays if last_try else self.record.stays
        return [tuple(stay) for stay in stays[stays[:, 0] == index, 1:].tolist()]

    def sent(self) -> dict[int, int]:
        return dict(self.record.sent.tolist())


def deployment_of(rows: Sequence[tuple[int, ...]], capacity: int, max_model_len: int) -> Deployment:
    """The deployment that the rows come to; a row is (arrival, prompt, output[, max_tokens])."""
    return Deployment(capacity, max_model_len, longest_declared=max((r[1] + r[-1] for r in rows), default=1),
                      longest_exact=max((r[1] + r[2] for r in rows), default=1),
                      longest_output=max((r[2] for r in rows), default=1))


def play(rows: Iterable[tuple[int, ...]], policy: Policy, *, capacity: int = UNLIMITED, memory: Memory | None = None,
         cost: CostModel | None = None, exact: bool = False, max_concurrency: int | None = None,
         max_model_len: int = 4096, keep: bool = True, verify: bool = True, fails: bool = False,
         prefixes: Sequence[Prefix] = (), priorities: Sequence[int] = (), noise: Noise | None = None,
         patience: Patience | None = None,
         scheduling: tuple[int, int] = (0, 0)) -> World:
    """Run one world to its end and check every invariant.

    Args:
        rows: (arrival, prompt, output[, max_tokens]) of each request, sorted by arrival.
        policy: Resolved here.
        capacity: KV capacity in tokens; or give `memory` itself.
        keep: Keep a log of every plan.
        verify: Check the invariants.
        fails: Keep an error of the run in `error` and check nothing, instead of raising it.
        prefixes: Shared prefix of each request's prompt; nobody has one by default.
        priorities: Priority of each request; 0 by default.
        patience: Of the client; it waits for ever by default.
        noise, scheduling: See Pricing.
    """
    rows = [(*row, row[2])[:4] for row in rows]
    cost = cost or Constant(STEP)
    deployment = deployment_of(rows, capacity, max_model_len)
    policy = policy.resolve(deployment)
    memory = memory or policy.memory(deployment, np.array([row[2] for row in rows], np.int64))
    env = Environment(initial_time=0)
    prefixes, priorities = prefixes or [()] * len(rows), priorities or [0] * len(rows)
    requests = (Request(index, row[0], row[1], row[3], prefix=prefixes[index], priority=priorities[index])
                for index, row in enumerate(rows))
    limit = max_concurrency or policy.max_outstanding    # a front door that refuses is kept below
    patience = patience or Patience()
    client = Client(env, requests, limit, patience)
    world = World(rows, policy, memory, exact, cost, limit, None, client,    # type: ignore[arg-type]
                  prefixes, priorities, patience=patience)
    replica = attach(world, env, keep, Pricing(cost, noise, scheduling))
    client.send_to(replica)
    try:
        env.run()
    except Exception as error:
        if not fails:
            raise
        world.error = error
    if verify and not fails:
        from invariants import check
        check(world)
    return world


def attach(world: World, env: Environment, keep: bool, pricing: Pricing) -> Replica:
    """Make the replica of a world, with all ears on; somebody must send it requests."""
    def on_finish(request: Request) -> None:
        world.left.append(request.index)
        world.left_at[request.index] = env.now
        world.client.finished(request)

    def on_cancel(request: Request) -> None:
        world.dropped.append(request.index)
        world.client.cancelled(request)

    _listen_for_waits(world, env)
    world.replica = replica_for(env, world.policy, world.memory, pricing, world.output, exact=world.exact,
                                on_finish=on_finish, on_cancel=on_cancel if world.patience.ends else None,
                                watch=_Log(world, keep))
    return world.replica


def _listen_for_waits(world: World, env: Environment) -> None:
    """Note when the policy would rather wait: no watcher hears of it, for nothing runs."""
    plan = world.policy.plan

    def listened(queue: Queue, memory: Memory, now: int) -> Any:
        answer = plan(queue, memory, now)
        if isinstance(answer, Wait):
            world.waits.append(env.now)
        return answer

    world.policy.plan = listened    # type: ignore[method-assign]


class _Log:
    """A watcher that counts the plans of a world and, if asked to, keeps a tick of each."""

    def __init__(self, world: World, keep: bool) -> None:
        self._world, self._keep = world, keep
        self._ticks: deque[Tick] = deque()

    def planned(self, step: Step, queue: Queue, now: int) -> None:
        self._world.plans += 1
        memory = self._world.memory
        assert memory.levels() == Memory.levels(memory), "told at one go otherwise than one by one"
        if self._keep:
            self._ticks.append(_tick(self._world, step, queue, now))

    def committed(self, steps: int) -> None:
        if self._keep:
            _finish_tick(self._world, self._ticks.popleft(), steps)


def _tick(world: World, step: Step, queue: Queue, now: int) -> Tick:
    tokens = {request.order: n for request, n in step.chunks}
    computing, seen = [], set()
    for order, request in queue.running.items():
        n = tokens.get(order, 1 if request.decoding and step.decodes else 0)
        if n:
            computing.append((request.index, n, request.computed))
        if order in tokens:
            seen.add(order)
    assert len(seen) == len(step.chunks), "a chunk of somebody who does not run"
    running = list(queue.running.values())
    before = set(world.ticks[-1].running_after) if world.ticks else set()
    back = set(step.preempted)
    tick = Tick(
        now, len(world.replica.record.ends), 0, computing, {r.index: r.known for r in running},
        {r.index: r.computed for r in running}, [r.index for r in running], [r.index for r in queue.waiting],
        {r.index for r in running if r.decoding}, {r.index for r in queue.catching_up.values()},
        {r.index for r in queue.held.values()}, [r.index for r in step.preempted], step.spent, step.pad_to,
        step.blocked, world.memory.used, world.memory.free, world.memory.evictable, world.memory.shared_tokens,
        not step.decodes, [r.index for r in queue.swapped], len(world.replica.record.sent) // 2,
        len(world.left) + len(world.dropped), len(world.left),
        admitted=[r.index for r in running if r.index not in before or r in back])
    if hasattr(world.memory, "_at"):
        tick.intervals = sorted((address, length) for address, length, _ in world.memory._at.values())
    return tick


def _finish_tick(world: World, tick: Tick, steps: int) -> None:
    queue = world.replica.queue
    tick.steps = steps
    tick.left = world.left[tick.answered:]
    tick.sampled = [who for who, n, computed in tick.computing if computed + n == tick.known[who]]
    tick.running_after = [r.index for r in queue.running.values()]
    tick.used_after = world.memory.used
    tick.evictable_after = world.memory.evictable
    world.ticks.append(tick)


def columns(world: World) -> dict[str, Any]:
    """All that a run recorded, step by step, in a form in which fast and exact must agree."""
    record = world.record
    found = {name: values.tolist() for name, values in record.steps.items()}
    found["spans"] = sorted(map(tuple, record.spans.tolist()))
    found["stays"], found["sent"] = record.stays.tolist(), record.sent.tolist()
    found["cancelled"] = record.cancelled.tolist()
    found["left"], found["excess"] = world.left, int(record.plan("excess").sum())
    return found


def differences(one: World, other: World) -> list[str]:
    """Names of the columns in which two runs differ."""
    mine, theirs = columns(one), columns(other)
    return [name for name in mine if mine[name] != theirs[name]]


def play_both(rows: Iterable[tuple[int, ...]], policy: Policy, **options: Any) -> World:
    """Run a world exactly and fast; the two must agree in everything. Returns the exact one."""
    rows = list(rows)
    exact = play(rows, policy, exact=True, **options)
    fast = play(rows, policy, **options)
    assert differences(exact, fast) == []
    return exact


def trace_of(rows: Iterable[tuple[int, ...]], name: str = "made") -> Trace:
    """A trace in memory from (arrival, prompt, output[, max_tokens]) rows."""
    rows = list(rows)
    table = [np.array([row[at] for row in rows], np.int64) for at in range(3)]
    limits = np.array([row[3] for row in rows], np.int64) if rows and len(rows[0]) > 3 else None
    return Trace(name, *table, max_tokens=limits)
