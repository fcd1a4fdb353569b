"""What one replica's slots, memory and steps were used for, walked step by step and row by row; see `plain`."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field

from worlds import Tick, World

from cost_models import CostModel, StepShape
from simulator.memory import UNLIMITED
from simulator.served import Served
from simulator.setup import Setup

STOPS = {"cap": "cap", "budget": "budget", "memory": "memory", "fragmentation": "memory", "batch": "batch",
         None: "step"}


@dataclass
class Work:
    """Amounts of one replica; time in ns.

    Attributes:
        slots, lasts: What it is charged for, and how long.
        capacity: Blocks of KV; None without a bound.
        end: Of its last step.
        busy: Time in steps.
        useful: Rows that compute something new x time.
        slot_ns: Slots x time, by what they do.
        stopped: Time in steps in which somebody waits, by why.
        kv_ns, kv_most: Blocks held x time, and the most at once.
        padded_ns: Rows x the time by which padding makes their steps longer.
    """

    slots: int
    lasts: int
    capacity: int | None
    end: int = 0
    steps: int = 0
    busy: int = 0
    useful: int = 0
    redone: int = 0
    padding: int = 0
    padded_ns: int = 0
    kv_ns: int = 0
    kv_most: int = 0
    slot_ns: Counter[str] = field(default_factory=lambda: Counter(decode=0, prefill=0))
    stopped: Counter[str] = field(default_factory=Counter)


@dataclass
class Rows:
    """The rows of a step: decodes with their contexts, and chunks as (tokens, tokens before); some tokens were lost."""

    contexts: list[int]
    chunks: list[tuple[int, int]]
    redone: int = 0
    redoing: int = 0


def work_of(world: World, served: Served, setup: Setup) -> Work:
    """Walk all steps of a replica, and the gaps between them."""
    unlimited = setup.deployment.kv_capacity_tokens >= UNLIMITED or world.memory.capacity >= UNLIMITED
    since, until = served.there
    work = Work(served.slots.count, until - since, None if unlimited else world.memory.capacity)
    furthest: dict[int, int] = {}    # tokens that each request has ever had KV of, in its present try
    now, last = since, None
    cancelled = [(at, row) for row, at, _ in world.record.cancelled.tolist()]
    for tick in world.ticks:
        forget(furthest, cancelled, tick.now)
        start = max(tick.now, work.end)    # of batches in flight at once, the record has one after the other
        gap(world, work, last, now, start)
        step(world, work, tick, start, furthest, setup.cost)
        now, last = tick.until, tick
        work.end = tick.until
    gap(world, work, last, now, until)
    return work


def forget(furthest: dict[int, int], cancelled: list[tuple[int, int]], now: int) -> None:
    """Whose client has hung up starts anew."""
    while cancelled and cancelled[0][0] <= now:
        furthest.pop(cancelled.pop(0)[1], None)


def rows_of(world: World, tick: Tick, furthest: dict[int, int]) -> Rows:
    """Who computes what; a row that computes just the token emitted last decodes, in the decoding set or outside."""
    rows = Rows([], [])
    for who, tokens, before in tick.computing:
        emitted = tick.known[who] - world.rows[who][1]
        if who in tick.decoding or (tokens == 1 and emitted and tick.known[who] - before == 1):
            rows.contexts.append(before)
        else:
            rows.chunks.append((tokens, before))
        if (lost := furthest.get(who, 0)) > before and who not in tick.decoding:
            rows.redone += min(tokens, lost - before)
            rows.redoing += 1
        furthest[who] = max(furthest.get(who, 0), before + tokens)
    return rows


def step(world: World, work: Work, tick: Tick, start: int, furthest: dict[int, int], cost: CostModel) -> None:
    """Charge a step, or several alike that the policy asked for at once."""
    rows, took = rows_of(world, tick, furthest), tick.until - start
    decodes, chunks, held = len(rows.contexts), len(rows.chunks), len(tick.held)
    running = len(tick.running) - tick.in_flight
    useful = decodes + chunks - rows.redoing
    work.steps += tick.steps
    work.busy += took
    work.useful += useful * took
    work.redone += rows.redone
    wider = sum(tick.widest - tokens for tokens, _ in rows.chunks) if tick.pad_to else 0
    work.padding += (tick.spent + wider) * tick.steps
    work.padded_ns += (decodes + chunks) * tick.steps * excess(tick, rows, cost)
    work.slot_ns["decode"] += decodes * took
    work.slot_ns["prefill"] += (chunks - rows.redoing) * took
    work.slot_ns["recompute"] += rows.redoing * took
    work.slot_ns["held"] += held * took
    rest = running - decodes - chunks - held
    work.slot_ns["behind_prefill" if tick.paused and chunks else "stalled"] += rest * took
    waits = tick.until - waiting_from(world, tick, start)
    reason = tick.blocked or "step"
    work.slot_ns[f"blocked_{reason}"] += (work.slots - running) * waits
    work.slot_ns["no_queue"] += (work.slots - running) * (took - waits)
    work.stopped[STOPS[tick.blocked]] += waits
    work.kv_most = max(work.kv_most, tick.used)
    work.kv_ns += tick.used * took


def waiting_from(world: World, tick: Tick, start: int) -> int:
    """From when on somebody is in the queue: who comes during a step is from its end on."""
    if tick.waiting:
        return start
    ends = world.record.ends[tick.first:tick.first + tick.steps].tolist()
    came = [at for _, at in world.record.sent.tolist() if tick.now < at]
    return min([end for end in ends if came and end >= min(came)], default=tick.until)


def excess(tick: Tick, rows: Rows, cost: CostModel) -> int:
    """By how much padding and rows that compute for nothing make a step dearer, without noise."""
    decodes, context = len(rows.contexts), sum(rows.contexts)
    if not (tick.pad_to or tick.spent) or not (decodes or rows.chunks):
        return 0
    bare = StepShape(decodes, context, tuple(rows.chunks))
    if tick.pad_to:
        before = max((there for _, there in rows.chunks), default=0)
        wide = tuple((tick.widest, before) for _ in rows.chunks)
        whole = StepShape(decodes + tick.spent, (decodes + tick.spent) * tick.pad_to, wide, 1, "padded")
    else:
        whole = StepShape(decodes + tick.spent, context + tick.spent_context, tuple(rows.chunks), tick.spent)
    return cost.time(whole) - cost.time(bare)


def gap(world: World, work: Work, last: Tick | None, since: int, until: int) -> None:
    """Charge the time in which no step runs, cut where requests come or hang up."""
    changes = sorted({since, *(at for at in [*(at for _, at in world.record.sent.tolist()),
                                            *(at for _, at, _ in world.record.cancelled.tolist())]
                               if since < at < until)})
    for at, end in zip(changes, [*changes[1:], until], strict=True):
        if end <= at:
            continue
        slots, waiting = inside(world, at), there(world, at) - inside(world, at)
        work.slot_ns["stalled"] += slots * (end - at)
        work.slot_ns["forming" if waiting > 0 else "idle"] += (work.slots - slots) * (end - at)
        if slots and last is not None:
            work.kv_ns += last.used * (end - at)


def inside(world: World, at: int) -> int:
    """Requests that hold a slot."""
    return sum(since <= at < until for _, since, until in world.record.stays.tolist())


def there(world: World, at: int) -> int:
    """Requests at the replica."""
    gone = sorted([*world.left_at.values(), *(when for _, when, _ in world.record.cancelled.tolist())])
    came = sorted(when for _, when in world.record.sent.tolist())
    return bisect_right(came, at) - bisect_right(gone, at)
