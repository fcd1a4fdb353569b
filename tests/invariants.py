"""What is true of every simulation, one function each. `check(world)` asks all of them; worlds come from `worlds.play`.

A message names the step or the request that broke the rule.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import inf

import numpy as np
from worlds import Tick, World

from simulator.memory import Contiguous, Paged, PagedAhead
from simulator.memory.prefix import PrefixCached


def nobody_is_lost(world: World) -> None:
    """submitted = finished + cancelled + running + waiting (+ swapped out) at every plan; nobody is left."""
    for tick in world.ticks:
        present = len(tick.running) + len(tick.waiting) + len(tick.swapped)
        known = f"at {tick.now} ns: {tick.submitted} sent, {tick.gone} gone, {present} here"
        assert tick.submitted == tick.gone + present, known
        known = f"at {tick.now} ns: somebody is in two places"
        assert len({*tick.running, *tick.waiting, *tick.swapped}) == present, known
    assert len(set(world.left)) == len(world.left) == world.replica.finished, "somebody left twice"
    assert len(world.replica.queue) == 0


def nobody_is_given_up_too_soon(world: World) -> None:
    """Whoever is not answered was cancelled as often as the client's patience allows, and nobody more often."""
    tries = Counter(world.dropped)
    for index in range(len(world.rows)):
        given_up = tries[index] == world.patience.retries + 1
        assert given_up == (index in world.aborted), f"request {index} was cancelled {tries[index]} times"
    assert (world.client.answered, world.client.aborted) == (len(world.left), len(world.aborted))


def each_token_is_emitted_once(world: World) -> None:
    """Spans of a request's last try never overlap, and cover exactly its output; of who was given up there are none."""
    spans, wanted = world.record.last_spans, [0 if i in world.aborted else n for i, n in enumerate(world.output)]
    for index, output in enumerate(wanted):
        own = sorted(spans[spans[:, 0] == index, 1:].tolist())
        assert all(first <= last for first, last in own), f"request {index}: an empty span"
        assert all(a[1] < b[0] for a, b in pairwise(own)), f"request {index}: spans overlap: {own}"
        assert len(world.tokens(index)) == output, f"request {index}: emitted {own}, not {output}"
    counted = np.bincount(spans[:, 0], world.record.tokens_of(spans), len(world.output))
    assert counted.tolist() == wanted, "the record counts its tokens differently"


def tokens_are_where_the_log_has_them(world: World) -> None:
    """A request has a token in exactly those steps in which it computes the last token that it lacks."""
    emitted: list[list[int]] = [[] for _ in world.rows]
    for tick in world.ticks:
        for who in tick.sampled:
            emitted[who] += range(tick.first, tick.first + tick.steps)
    begins = {index: step for index, _, step in world.record.cancelled.tolist()}
    for index, steps in enumerate(emitted if world.ticks else []):
        assert world.tokens(index) == [step for step in steps if step >= begins.get(index, 0)], f"request {index}"


def tokens_add_up(world: World) -> None:
    """What was computed is every prompt and output token but the last of each, plus what was computed again.

    Less what was found: the KV of others' prompts that a request did not compute itself. Who was cancelled has computed
    more or less than that.
    """
    steps = world.record.steps
    assert (steps["redone"] <= steps["prompt"]).all()
    if world.dropped:
        return
    useful = sum(world.rows[index][1] + world.output[index] - 1 for index in world.left)
    computed = int((steps["decodes"] + steps["prompt"] - steps["redone"]).sum())
    if world.ticks or not any(world.prefixes):
        assert computed == useful - _found(world)
    assert computed <= useful


def _found(world: World) -> int:
    """Tokens with KV at an admission that the request had never had KV for before."""
    furthest, found = [0] * len(world.rows), 0
    for tick in world.ticks:
        for who in tick.admitted:
            found += max(0, tick.computed[who] - furthest[who])
        for who, tokens, computed in tick.computing:
            furthest[who] = max(furthest[who], computed + tokens + tick.steps - 1)
    return found


def memory_stays_within_bounds(world: World) -> None:
    """Never negative, never above the pool, all of it back at the end."""
    used, capacity = world.record.used, world.memory.capacity
    assert not used.size or (used.min() >= 0 and used.max() <= capacity)
    assert all(0 <= tick.used_after <= capacity for tick in world.ticks)
    assert world.memory.used == 0, f"{world.memory.used} blocks are held by nobody"
    assert world.memory.free == capacity
    assert 0 <= world.memory.evictable <= capacity
    assert world.memory.shared_tokens == 0, "nobody is there, and something is shared"
    for tick in world.ticks:
        assert tick.used + tick.free == capacity
        assert 0 <= tick.evictable <= tick.free, f"at {tick.now} ns: {tick.evictable} of {tick.free} free blocks"


def blocks_held_are_the_tokens_rounded_up(world: World) -> None:
    """Paged memory holds ceil(tokens / block) blocks a request, shared ones once; unless it makes room ahead."""
    if not isinstance(world.memory, Paged) or isinstance(world.memory, PagedAhead):
        return
    size, used = world.memory.block_size, world.record.used
    for tick in world.ticks:
        computes = {who: tokens for who, tokens, _ in tick.computing}
        for ahead in range(tick.steps):
            held = sum(-(-(tick.computed[who] + computes.get(who, 0) + (ahead if who in computes else 0)) // size)
                       for who in tick.running)
            step = tick.first + ahead
            assert used[step] == held - tick.shared // size, f"step {step}: {used[step]} blocks, not {held}"


def what_is_shared_is_a_common_prefix(world: World) -> None:
    """Blocks are shared in whole, and in use are at least as many as there are different blocks to hold."""
    if not isinstance(world.memory, Paged):
        return
    size = world.memory.block_size
    for tick in world.ticks:
        assert tick.shared % size == 0
        computes = {who: tokens + tick.steps - 1 for who, tokens, _ in tick.computing}
        blocks = {block for who in tick.running
                  for block in _blocks(world, who, tick.computed[who] + computes.get(who, 0))}
        used = int(world.record.used[tick.first + tick.steps - 1])
        assert len(blocks) <= used, f"at {tick.now} ns: {used} blocks for {len(blocks)} different ones in the end"
        assert tick.shared == 0 or (isinstance(world.memory, PrefixCached) and any(world.prefixes))


def _blocks(world: World, who: int, tokens: int) -> list[tuple[object, int]]:
    """What is in the blocks of a request with KV of so many tokens: equal for two requests if they may share it."""
    size, prefix = world.memory.block_size, world.prefixes[who]
    names: list[tuple[object, int]] = []
    for at in range(-(-tokens // size)):
        shared = [node for node, end in prefix if (at + 1) * size <= min(end, tokens)]
        names.append((shared[0] if shared else f"of {who}", at))
    return names


def reservations_lie_apart(world: World) -> None:
    """Contiguous memory: no two requests share a token, nobody lies outside, and used is the sum of the intervals."""
    if not isinstance(world.memory, Contiguous):
        return
    space = world.memory._space
    for tick in world.ticks:
        overlap = f"at {tick.now} ns: overlap in {tick.intervals}"
        apart = all(at + length <= after for (at, length), (after, _) in pairwise(tick.intervals))
        assert apart or world.memory._placement == "counted", overlap
        assert all(at >= 0 and at + length <= world.memory.capacity for at, length in tick.intervals)
        assert sum(length for _, length in tick.intervals) == tick.used
        assert len(tick.intervals) == len(tick.running)
    assert world.memory.promised == 0
    assert space.largest() == type(space)(world.memory.capacity).largest(), "holes did not merge"


def the_clock_never_runs_backwards(world: World) -> None:
    """Each step starts no earlier than the one before it ends, and ends after it starts."""
    steps = world.record.steps
    assert (steps["end"] > steps["start"]).all()
    assert (steps["start"][1:] >= steps["end"][:-1]).all()
    assert sum(world.record.plan("steps").tolist()) == len(world.record.ends)


def lives_are_in_order(world: World) -> None:
    """arrival <= sent <= admitted <= first token <= last token <= left, in the last try of who is answered."""
    sent = world.sent()
    for index in world.left:
        row, times, stays = world.rows[index], world.token_times(index), world.stays(index, last_try=True)
        assert row[0] <= sent[index] <= stays[0][0] < times[0], f"request {index}: sent {sent[index]}, {stays}, {times}"
        assert times == sorted(times)
        assert times[-1] <= stays[-1][1] == world.left_at[index]


def every_step_makes_progress(world: World) -> None:
    """Somebody computes something in every step, and no chunk is empty or larger than what is lacking."""
    steps = world.record.steps
    assert (steps["decodes"] + steps["prompt"] + steps["spent"] > 0).all()
    assert ((steps["chunks"] > 0) == (steps["prompt"] > 0)).all()
    for tick in world.ticks:
        for who, tokens, computed in tick.computing:
            assert 1 <= tokens <= tick.known[who] - computed, f"at {tick.now} ns: request {who} computes {tokens}"


def nobody_waits_at_an_idle_replica(world: World) -> None:
    """When the replica stops, nobody is there, unless the policy says Wait; it starts again with an arrival.

    Or when somebody hangs up.
    """
    if getattr(world.policy, "max_wait", 0) == inf:    # it sleeps until a batch is full
        return
    steps, sent = world.record.steps, np.sort(world.record.sent[:, 1])
    hung_up = world.record.cancelled[:, 1]
    gone = np.sort(np.concatenate((np.array([world.left_at[index] for index in world.left], np.int64), hung_up)))
    idle_from = np.concatenate(([0], steps["end"][:-1])) if len(steps["end"]) else np.empty(0, np.int64)
    for since, until in zip(idle_from.tolist(), steps["start"].tolist(), strict=True):
        if since < until and until not in hung_up and not any(since <= at < until for at in world.waits):
            assert until in sent, f"idle from {since} to {until} ns, and nobody arrived then"
            here = int((sent < until).sum() - (gone < until).sum())
            assert here == 0, f"idle from {since} to {until} ns with {here} requests there"


def everyone_running_is_in_one_place(world: World) -> None:
    """Each running request is decoding, catching up or held: in exactly one of them."""
    for tick in world.ticks:
        places = (tick.decoding, tick.catching_up, tick.held)
        assert sum(map(len, places)) == len(tick.running), f"at {tick.now} ns: {places}"
        assert set().union(*places) == set(tick.running), f"at {tick.now} ns: {places}"


def stays_are_disjoint_and_fit_the_slots(world: World) -> None:
    """A request holds one slot at a time, and never are more than `slots` of them held."""
    changes: dict[int, int] = {}
    for index in range(len(world.rows)):
        stays = world.stays(index)
        assert all(since < until for since, until in stays), f"request {index}: {stays}"
        assert all(a[1] <= b[0] for a, b in pairwise(stays)), f"request {index}: {stays}"
        for since, until in stays:
            changes[since] = changes.get(since, 0) + 1
            changes[until] = changes.get(until, 0) - 1
    running = np.cumsum([changes[at] for at in sorted(changes)])
    assert not len(running) or running.max() <= world.policy.slots
    assert (world.record.plan("running") <= world.policy.slots).all()


def slot_seconds_add_up(world: World) -> None:
    """Stays in slots are the running requests times the steps' durations, to the nanosecond: Little's law, inside."""
    steps = world.record.steps
    duration = steps["end"] - steps["start"]
    assert int((steps["running"] * duration).sum()) == int((world.record.stays[:, 2] - world.record.stays[:, 1]).sum())
    assert (steps["decodes"] + steps["chunks"] + steps["held"] <= steps["running"]).all()
    assert (steps["spent"] <= steps["held"]).all()


def the_client_keeps_its_limit(world: World) -> None:
    """Never more than max_concurrency outstanding, from the first try to the end; nobody is held back below it."""
    sent, changes = dict(reversed(world.record.sent.tolist())), []    # the first try
    ended = dict(world.record.cancelled[:, :2].tolist()) | world.left_at
    assert sorted(sent) == list(range(len(world.rows)))
    for index, at in sent.items():
        changes += [(at, 1), (ended[index], -1)]
    outstanding = np.cumsum([change for _, change in sorted(changes)])    # who leaves at an instant goes first
    assert not len(outstanding) or outstanding.max() <= world.max_concurrency
    for index, at in sent.items():
        arrival = world.rows[index][0]
        if at > arrival:
            assert at in ended.values(), f"request {index} was sent at {at} ns, when nobody had left"
            there = sum(sent[i] < at <= ended[i] for i in sent)
            assert there >= world.max_concurrency, f"request {index} was held back with {there} outstanding"


def the_record_agrees_with_the_log(world: World) -> None:
    """Step columns say what the watcher saw: starts, rows, chunk tokens, who runs, waits and is held, and KV."""
    steps = world.record.steps
    for tick in world.ticks:
        at = tick.first
        rows = [(who, tokens, computed) for who, tokens, computed in tick.computing if who in tick.catching_up]
        chunks = [row for row in rows if not is_late(world, tick, *row)]
        late = [row for row in rows if row not in chunks]
        decodes = [] if tick.paused else tick.decoding
        seen = {"start": tick.now, "decodes": len(decodes) + len(late), "chunks": len(chunks),
                "prompt": sum(tokens for _, tokens, _ in chunks), "running": len(tick.running),
                "held": len(tick.held), "waiting": len(tick.waiting), "spent": tick.spent,
                "paused": tick.paused,
                "context": sum(tick.computed[who] for who in decodes) + sum(computed for _, _, computed in late),
                "resident": sum(tick.computed.values()) - tick.shared}
        assert {name: int(steps[name][at]) for name in seen} == seen, f"step {at}"


def is_late(world: World, tick: Tick, who: int, tokens: int, computed: int) -> bool:
    """Whether this row of the log is a decode outside the decoding set: the one token it lacks is one it emitted."""
    generated = tick.known[who] - world.rows[who][1]
    return tokens == 1 and generated > 0 and tick.known[who] - computed == 1


REPLICA = (nobody_is_lost, each_token_is_emitted_once, tokens_are_where_the_log_has_them, tokens_add_up,
           memory_stays_within_bounds, blocks_held_are_the_tokens_rounded_up, what_is_shared_is_a_common_prefix,
           reservations_lie_apart, the_clock_never_runs_backwards,
           lives_are_in_order, every_step_makes_progress, nobody_waits_at_an_idle_replica,
           everyone_running_is_in_one_place, stays_are_disjoint_and_fit_the_slots, slot_seconds_add_up,
           the_record_agrees_with_the_log)
"""What is true of every replica."""
CLIENT = (nobody_is_given_up_too_soon, the_client_keeps_its_limit)
"""What is true of a client of one replica."""
TICKED = REPLICA + CLIENT


def check(world: World) -> None:
    """All of them. A world without a log is checked by its record alone."""
    for invariant in TICKED:
        invariant(world)


__all__ = ["CLIENT", "REPLICA", "TICKED", "Tick", "check", *[invariant.__name__ for invariant in TICKED]]
