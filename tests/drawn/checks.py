"""What is true of every run, however many replicas it has: conservation, order of stamps, limits, ledgers.

`check(found)` asks all of it, and of each replica what `invariants` knows.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import invariants
import numpy as np
import pytest
from drawn.hearing import Heard
from worlds import World

from simulator.doors import shut
from simulator.ledger import LEDGERS
from simulator.memory import UNLIMITED

PIPELINED = (invariants.nobody_is_lost, invariants.each_token_is_emitted_once, invariants.tokens_add_up,
             invariants.memory_stays_within_bounds, invariants.reservations_lie_apart,
             invariants.the_clock_never_runs_backwards, invariants.lives_are_in_order,
             invariants.every_step_makes_progress, invariants.nobody_waits_at_an_idle_replica)
"""Of the replicas those that hold where batches overlap: the others count a request in another batch as idle."""


def of_a_replica(world: World) -> None:
    for invariant in invariants.REPLICA if world.policy.batches_in_flight == 1 else PIPELINED:
        invariant(world)


def everyone_ends_once(found: Heard) -> None:
    """submitted = finished + refused + gone + there, after every event; in the end nobody is there.

    And the outcomes say of each request what became of its last try, or why there was none.
    """
    outside, there, last = Counter[str](), set[int](), dict[int, str]()
    for at, what, row in found.events:
        outside[what] += 1
        if what == "sent":
            assert row not in there, f"request {row} is sent at {at} ns, and there already"
            there.add(row)
        else:
            assert row in there, f"request {row} is {what} at {at} ns, and not there"
            there.remove(row)
        last[row] = what
        assert outside["sent"] == outside["answered"] + outside["refused"] + outside["gone"] + len(there)
    assert not there
    assert not [a for a, b in pairwise(found.events) if a[0] > b[0]], "the clock ran backwards"
    words = {"answered": "finished", "refused": "failed", "gone": "aborted"}
    setup, status = found.result.setup, found.result.outcomes.status.tolist()
    for row, verdict in enumerate(setup.verdict.tolist()):
        never = "rejected" if verdict else "skipped"
        assert status[row] == words.get(last.get(row, ""), never), f"request {row}: {status[row]}, {last.get(row)}"
        assert verdict == 0 or row not in last, f"request {row} was rejected and sent"
        assert status[row] != "skipped" or setup.follows[row], f"request {row} was never sent"
    summary = found.result.summary()
    ends = [summary[name] or 0 for name in ("completed", "rejected", "failed", "aborted", "skipped")]
    assert summary["num_prompts"] == sum(ends), ends


def nobody_is_tried_too_often(found: Heard) -> None:
    """Who is not answered had all its tries, and nobody had more; a try is given up no sooner than patience says."""
    patience, tries, since = found.result.setup.patience, Counter[int](), dict[int, int]()
    answered = {row for _, what, row in found.events if what == "answered"}
    limits = [limit for limit in (patience.first_token, patience.answer) if limit is not None]
    for at, what, row in found.events:
        if what == "sent":
            if tries[row]:
                assert at == since[row] + patience.pause(tries[row] - 1), f"request {row} is tried again at {at} ns"
            tries[row] += 1
        elif what == "gone":
            assert at >= since[row] + min(limits), f"request {row} was given up at {at} ns"
        since[row] = at
    for row, number in tries.items():
        assert number <= patience.retries + 1
        assert row in answered or number == patience.retries + 1, f"request {row} had {number} tries"


def each_token_is_emitted_once(found: Heard) -> None:
    """By the replica that had the last try."""
    result, record = found.result, found.result.record
    counted = np.bincount(record.last_spans[:, 0], record.tokens_of(record.last_spans), len(result.setup.output))
    assert counted[result.timeline.request].tolist() == result.timeline.output.tolist()
    assert result.timeline.output.tolist() == result.setup.output[result.timeline.request].tolist()


def stamps_are_in_order(found: Heard) -> None:
    """Arrival <= sent <= admitted <= first token <= last token <= left, and what is delivered is delivered later."""
    line, arrival = found.result.timeline, found.result.setup.trace.arrival
    stamps = [line.sent, line.admitted, line.served, line.first_token, line.last_token, line.left]
    if not found.result.setup.turns_wait:
        stamps.insert(0, arrival[line.request])
    for earlier, later in pairwise(stamps):
        assert (earlier <= later).all()
    assert (line.served < line.first_token).all()
    for made, delivered in ((line.first_token, line.first_delivered), (line.last_token, line.last_delivered)):
        assert (made + found.result.setup.request_overhead <= delivered).all()
    for part in line.ttft_parts.values():
        assert (part >= 0).all()
    assert (sum(line.ttft_parts.values()) == line.ttft).all()


def requests_come_when_they_are_due(found: Heard) -> None:
    """At their own times, or, for later turns, when the answer before was received and thought over.

    Where the client may have only so many outstanding, no sooner.
    """
    result = found.result
    scenario, trace, turns = result.scenario, result.setup.trace, result.setup.turns_wait
    first = {row: at for at, what, row in reversed(found.events) if what == "sent"}
    line = result.timeline
    received = dict(zip(line.request.tolist(), line.last_delivered.tolist(), strict=True))
    parents = trace.parent.tolist() if turns and trace.parent is not None else [-1] * len(trace)
    bounded = scenario.max_concurrency or (scenario.load == "saturated" and result.setup.most_outstanding < UNLIMITED)
    for row, at in first.items():
        due = int(trace.arrival[row])
        if parents[row] >= 0:
            answer = received[parents[row]]
            if scenario.load == "saturated" or trace.think is None:
                due = max(due, answer)
            else:
                due = answer + int(trace.think[row])
        assert at >= due if bounded else at == due, f"request {row}: sent at {at} ns, due at {due} ns"


def the_client_keeps_its_limit(found: Heard) -> None:
    """Never more than max_concurrency outstanding: from the first try until the answer is received or given up."""
    result = found.result
    limit = result.scenario.max_concurrency
    if limit is None:
        return
    first, last = {}, {}
    for at, what, row in found.events:
        first.setdefault(row, at)
        last[row] = at + (result.setup.request_overhead if what == "answered" else 0)
    changes = sorted([(at, 1) for at in first.values()] + [(at, -1) for at in last.values()])
    assert max(np.cumsum([by for _, by in changes]), default=0) <= limit


def a_replica_keeps_its_limit(found: Heard) -> None:
    """Never more requests at a replica than its front end and the queue limit allow."""
    limit = found.result.setup.most_outstanding
    for served in found.result.served:
        gone = np.concatenate((served.left, served.record.cancelled[:, 1])).tolist()
        changes = sorted([(at, 1) for at in served.record.sent[:, 1].tolist()] + [(at, -1) for at in gone])
        most = max(np.cumsum([by for _, by in changes]), default=0)
        assert most <= limit, f"{most} outstanding, more than {limit} at a replica"


def who_waits_at_the_router_does_so_while_its_door_is_shut(found: Heard) -> None:
    """All of a wait lies in intervals in which no replica takes a request, and nobody is handed on inside of one."""
    result = found.result
    if result.cluster is None or result.setup.most_outstanding >= UNLIMITED:
        return
    door = shut(zip(result.served, result.cluster.served, strict=True), result.setup.most_outstanding)
    came = dict(result.record.sent.tolist())    # of several tries the last one
    for row, at in np.concatenate([record.sent for record in result.cluster.records]).tolist():
        if result.outcomes.tries[row] == 1:
            assert door.within(np.array([came[row]]), np.array([at])) == at - came[row]
        assert not ((door.start < at) & (at < door.end)).any()


def ledgers_add_up(found: Heard) -> None:
    """Slot-seconds, token positions and KV to the nanosecond, in all and bin by bin; no part is negative."""
    result = found.result
    assert result.slot_ledger.total == result.slots.count * sum(each.lasts for each in result.served)
    for name in LEDGERS:
        ledger = result.ledgers[name]
        amounts = [amount for amount in ledger.parts.values() if amount is not None]
        assert min(amounts) >= 0, f"{name}: {ledger.parts}"
        assert ledger.total in (None, sum(amounts))
        binned = result.ledger_over_time(name, 5)
        for part, amount in ledger.parts.items():
            if amount is not None and part in binned.parts:
                assert sum(binned.parts[part]) == pytest.approx(amount), f"{name}, {part}"
    if result.limits is not None:
        assert min(result.limits.values()) >= 0
        assert sum(result.limits.values()) == pytest.approx(1)


RUN = (everyone_ends_once, nobody_is_tried_too_often, each_token_is_emitted_once, stamps_are_in_order,
       requests_come_when_they_are_due, the_client_keeps_its_limit, a_replica_keeps_its_limit,
       who_waits_at_the_router_does_so_while_its_door_is_shut, ledgers_add_up)
"""What is true of every run."""


def check(found: Heard) -> None:
    """All of it."""
    for world in found.worlds:
        of_a_replica(world)
    for each in RUN:
        each(found)
