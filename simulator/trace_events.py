"""Trace events: a run in the format that Perfetto and chrome://tracing open. It computes no metric.

Each replica is a process; its first thread shows the steps, then each slot is a thread. A request is a slice for each
stay in a slot, and what it does there lies inside of it. Queue and KV cache are counters, preemptions are instants.
A router is one more process: it counts who waits there, and the replicas that are ready.
Source: the Trace Event Format, whose times are in microseconds; three decimals keep whole nanoseconds.
Slices of one thread lie side by side or inside one another, for viewers drop those that cross.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.cluster import Cluster
from simulator.columns import Ints
from simulator.occupancy import Stay, occupancy
from simulator.record import Record
from simulator.recorder import OBSTACLES
from simulator.served import Served
from simulator.version import __version__

if TYPE_CHECKING:
    from simulator.result import Result

ROUTER, REPLICA, STEPS = 0, 1, 1
"""Process ids of router and first replica, and the thread of the steps; slot 1 has the thread after it."""

Event = dict[str, Any]


def trace_events(result: Result) -> Iterator[Event]:
    """All events of a run, one by one, replica by replica."""
    rows = {request: at for at, request in enumerate(result.timeline.request.tolist())}
    for process, served in enumerate(result.served, REPLICA):
        for event in _replica(result, served, rows, f"replica {process}"):
            yield event if process == REPLICA else event | {"pid": process}
    if result.cluster is not None:
        yield from (event | {"pid": ROUTER} for event in _router(result.cluster, result.scenario.router))


def _router(cluster: Cluster, rule: str) -> Iterator[Event]:
    """The events of a router: how many requests wait there, and how many replicas could run something."""
    yield _event("M", "process_name", args={"name": f"router: {rule}"})
    sent, handed = cluster.whole.sent[:, 1], np.concatenate([record.sent[:, 1] for record in cluster.records])
    yield from _counter("router", "waiting", *_level((sent, 1), (handed, -1), (cluster.gave_up, -1)))
    ready, gone = np.array(cluster.there(), np.int64).reshape(-1, 2).T
    yield from _counter("replicas", "ready", *_level((ready, 1), (gone, -1)))


def _replica(result: Result, served: Served, rows: Mapping[int, int], name: str) -> Iterator[Event]:
    """The events of one replica: what things are called, then slots, steps and counters."""
    record = served.record
    yield from _names(record, f"{name}: {result.policy.name}")
    yield from _requests(result, record, rows)
    yield from _steps(record)
    yield from _counter("requests", "waiting", *_waiting(record))
    yield from _counter("requests", "running", *_running(record))
    yield from _counter("KV cache", "used tokens", *_used(served, result.block_size))


def document(result: Result) -> Iterator[str]:
    """The JSON document, piece by piece: a line an event."""
    about = {"policy": result.policy.version, "trace": result.setup.trace.name, "batchsim": __version__}
    yield f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(about)}, "traceEvents": [\n'
    mark = ""
    for event in trace_events(result):
        yield mark + json.dumps(event, separators=(",", ":"))
        mark = ",\n"
    yield "\n]}\n"


def _names(record: Record, process: str) -> Iterator[Event]:
    """Names of the process and its threads, and their order."""
    yield _event("M", "process_name", args={"name": process})
    slots = int(_running(record)[1].max(initial=0))
    for thread in range(STEPS, STEPS + slots + 1):
        name = "steps" if thread == STEPS else f"slot {thread - STEPS}"
        yield _event("M", "thread_name", tid=thread, args={"name": name})
        yield _event("M", "thread_sort_index", tid=thread, args={"sort_index": thread})


def _requests(result: Result, record: Record, rows: Mapping[int, int]) -> Iterator[Event]:
    """A slice a stay, slices inside for what the request does, and an instant where it loses its slot.

    `rows` are the places of the requests in the timeline.
    """
    stays = Counter(record.stays[:, 0].tolist())
    begun: Counter[int] = Counter()
    for stay in occupancy(record):
        begun[stay.request] += 1
        about = _about(result, stay.request, rows.get(stay.request)) | {"stay": begun[stay.request]}
        yield from _slices(stay, about)
        if begun[stay.request] < stays[stay.request]:
            yield _event("i", "preempted", STEPS + stay.slot, stay.until, cat="preemption", s="t",
                         args={"request": stay.request})


def _slices(stay: Stay, about: dict[str, Any]) -> Iterator[Event]:
    yield _slice(f"request {stay.request}", STEPS + stay.slot, stay.since, stay.until, "request", about)
    for start, end, kind in stay.pieces:
        yield _slice(kind, STEPS + stay.slot, start, end, "phase", {"request": stay.request})


def _about(result: Result, request: int, row: int | None) -> dict[str, Any]:
    """What is worth knowing of a request when its slice is clicked on."""
    setup, line = result.setup, result.timeline
    about = {"request": request, "prompt_tokens": int(setup.prompt[request]),
             "output_tokens": int(setup.output[request]), "max_tokens": int(setup.max_tokens[request])}
    if row is None:
        return about
    sent = int(line.sent[row])    # one entry of each column: a latency of the timeline is worked out for all requests
    return about | {"sent_s": sent / 1e9, "queue_ms": (int(line.admitted[row]) - sent) / 1e6,
                    "ttft_ms": (int(line.first_delivered[row]) - sent) / 1e6,
                    "e2el_ms": (int(line.last_delivered[row]) - sent) / 1e6, "preemptions": int(line.preemptions[row])}


def _steps(record: Record) -> Iterator[Event]:
    """A slice a plan: one step, or a stretch of steps that are alike."""
    names = ("start", "steps", "decodes", "chunks", "prompt", "padding", "blocked")
    columns = [record.plan(name).tolist() for name in names]
    for first, end, start, steps, decodes, chunks, prompt, padding, blocked in zip(
            record.firsts.tolist(), record.plan_ends.tolist(), *columns, strict=True):
        kind = "mixed" if decodes and chunks else "prefill" if chunks else "decode"
        about = {"first_step": first, "steps": steps, "decodes": decodes, "chunks": chunks, "prompt_tokens": prompt,
                 "padding": padding, "queue_stopped_by": OBSTACLES[blocked]}
        yield _slice(kind, STEPS, start, end, "step", about)


def _waiting(record: Record) -> tuple[Ints, Ints]:
    """Instants, and how many requests wait from each on: those sent or preempted, and not yet admitted (again)."""
    stays = record.stays
    last = np.zeros(int(stays[:, 0].max(initial=-1)) + 1, np.int64)
    last[stays[:, 0]] = np.arange(len(stays))    # the record lists later stays of a request later
    comes_back = last[stays[:, 0]] != np.arange(len(stays))
    return _level((record.sent[:, 1], 1), (stays[comes_back, 2], 1), (stays[:, 1], -1))


def _running(record: Record) -> tuple[Ints, Ints]:
    return _level((record.stays[:, 1], 1), (record.stays[:, 2], -1))


def _used(served: Served, block_size: int) -> tuple[Ints, Ints]:
    """Tokens of memory held from each instant on; none while nobody is in a slot."""
    record, gaps = served.record, served.gaps
    idle = gaps.start[gaps.in_slots == 0]
    at = np.concatenate((record.starts, idle, record.ends[-1:]))
    used = np.concatenate((record.step("used") * block_size, np.zeros(len(at) - len(record.ends), np.int64)))
    order = np.argsort(at, kind="stable")
    return _changes(at[order], used[order])


def _level(*changes: tuple[Ints, int]) -> tuple[Ints, Ints]:
    """Instants at which a number changes, and what it is from then on."""
    at = np.concatenate([instants for instants, _ in changes])
    by = np.concatenate([np.full(len(instants), change) for instants, change in changes])
    order = np.argsort(at, kind="stable")
    return _changes(at[order], np.cumsum(by[order]))


def _changes(at: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Of each instant only the last value, and that only where it is another one than before."""
    stands = np.append(at[1:] != at[:-1], np.ones(min(len(at), 1), bool))
    at, value = at[stands], value[stands]
    new = np.diff(value, prepend=0) != 0
    return at[new], value[new]


def _counter(name: str, series: str, at: Ints, value: Ints) -> Iterator[Event]:
    for instant, amount in zip(at.tolist(), value.tolist(), strict=True):
        yield _event("C", name, STEPS, instant, args={series: amount})


def _slice(name: str, thread: int, start: int, end: int, category: str, about: dict[str, Any]) -> Event:
    return _event("X", name, thread, start, dur=(end - start) / 1000, cat=category, args=about)


def _event(phase: str, name: str, tid: int = STEPS, at: int = 0, **fields: Any) -> Event:
    return {"ph": phase, "pid": REPLICA, "tid": tid, "ts": at / 1000, "name": name, **fields}
