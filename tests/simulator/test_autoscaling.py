"""A fleet that follows its load: every instant of its replicas, worked out by hand."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cluster import scenario, trace_of

from cost_models import Constant
from simulator.autoscaler import EVERY, Autoscaler
from simulator.balance import shares
from simulator.cluster import Cluster
from simulator.result import Result
from simulator.run_tables import NEVER_READY, tables
from simulator.simulation import run

S = 10 ** 9


def scaled(*rows: tuple[int, int, int], **fields) -> Result:
    """Requests of (second, prompt, output), one second a step, one request at a time at each replica."""
    made = trace_of(*((at * S, prompt, output) for at, prompt, output in rows))
    options = {"cost_model": Constant(S), "knobs": {"max_num_seqs": 1}, "autoscale": "queue:1", "max_replicas": 3,
               "startup_delay": 4.0, "cooldown": 3.0, "queue_limit": 1, "overflow": "fcfs"}
    return run(scenario(made, **(options | fields)))


def lives(result: Result) -> list[tuple[int | None, ...]]:
    """Ordered, ready, drained, stopped of every replica, in seconds."""
    assert isinstance(result.cluster, Cluster)
    return [tuple(at if at is None else at // S for at in (life.ordered, life.ready, life.drained, life.stopped))
            for life in result.cluster.lives]


def test_a_burst_orders_replicas_which_take_their_time_to_start() -> None:
    # Four requests at 0; the first look, at 1 s, orders two more, up to max_replicas, which are ready at 5 s.
    result = scaled((0, 4, 6), (0, 4, 6), (0, 4, 6), (0, 4, 6))
    assert lives(result)[1:] == [(1, 5, None, None), (1, 5, None, None)]
    assert (result.timeline.admitted // S).tolist() == [0, 5, 5, 6]
    assert (result.timeline.left // S).tolist() == [6, 11, 11, 12]
    # One from 0 to 12, two from 1 to 12: the start of a replica is paid for, its slots are not there yet.
    assert result.summary()["gpu_seconds"] == 12 + 2 * 11
    assert result.slot_ledger.total == (12 + 2 * 7) * S
    assert result.summary()["peak_replicas"] == 3


def test_fewer_are_kept_only_when_they_were_enough_for_the_whole_cooldown() -> None:
    # Two at 0 order a second replica at 1 s, ready at 5 s. Both are busy until 13 s, when a look still finds both: it
    # comes before what ends at its instant. 3 s later one is drained, the youngest; that of 30 s finds the other.
    result = scaled((0, 4, 13), (0, 4, 8), (30, 4, 2))
    assert lives(result) == [(0, 0, None, None), (1, 5, 16, 16)]
    assert (result.timeline.admitted // S).tolist() == [0, 5, 30]
    assert result.summary()["gpu_seconds"] == 32 + 15


def test_whoever_has_requests_answers_them_before_it_stops() -> None:
    # At 3 s the first is free; at 4 s a look finds one replica to be enough: the youngest is drained, in mid-answer.
    result = scaled((0, 4, 3), (0, 4, 30), (20, 4, 5), cooldown=0.0, replicas=2, max_replicas=2)
    assert lives(result)[:2] == [(0, 0, None, None), (0, 0, 4, 30)]
    assert (result.timeline.left // S).tolist() == [3, 30, 25]


def test_one_that_is_still_starting_is_called_off_first() -> None:
    result = scaled((0, 4, 2), (0, 4, 2), (40, 4, 1), startup_delay=20.0, cooldown=2.0)
    assert lives(result) == [(0, 0, None, None), (1, None, None, 4)]
    assert result.summary()["gpu_seconds"] == 41 + 3
    there, never = shares(result)
    assert (there.replica, there.requests, there.ordered_s, there.ready_s, there.stopped_s) == (1, 3, 0, 0, 41)
    assert (never.replica, never.requests, never.busy, never.ordered_s, never.ready_s, never.stopped_s) == (
        None, 0, None, 1, None, 4)
    table = next(each for each in tables({"": json.loads(result.to_json())}) if each.title == "Replicas")
    assert table.rows[1] == ("-", "0", "0", "-", "-", "0", "1.0", "-", "4.0")
    assert table.note == NEVER_READY


def test_a_replica_is_paid_from_its_order_on() -> None:
    result = scaled((0, 4, 6), (0, 4, 6), (0, 4, 6), (0, 4, 6))
    assert [(each.ordered_s, each.ready_s, each.stopped_s) for each in shares(result)] == [
        (0, 0, 12), (1, 5, 12), (1, 5, 12)]
    assert sum(each.stopped_s - each.ordered_s for each in shares(result)) == result.summary()["gpu_seconds"]


def test_a_share_of_the_slots_may_be_the_target() -> None:
    # Half of four slots: with two running one replica is enough, with three it is not. Somebody is still to come: once
    # all requests are handed on, nothing is ordered.
    options = {"autoscale": "utilization:0.5", "knobs": {"max_num_seqs": 4}, "queue_limit": None, "overflow": "shed"}
    assert len(lives(scaled((0, 4, 9), (0, 4, 9), (9, 4, 1), **options))) == 1
    assert lives(scaled((0, 4, 9), (0, 4, 9), (0, 4, 9), (9, 4, 1), **options))[1:] == [(1, 5, None, None)]
    assert len(lives(scaled((0, 4, 9), (0, 4, 9), (0, 4, 9), **options))) == 1


@pytest.mark.parametrize("rule", ["queue:2", "utilization:0.4"])
def test_fast_equals_exact(rule: str) -> None:
    rows = [(at // 3, 4 + at % 7, 5 + at * 5 % 17) for at in range(40)]
    options = {"autoscale": rule, "knobs": {"max_num_seqs": 3}, "queue_limit": 3}
    fast, exact = (scaled(*rows, exact=mode, **options) for mode in (False, True))
    assert lives(fast) == lives(exact)
    assert len(lives(fast)) > 1
    assert fast.timeline.left.tolist() == exact.timeline.left.tolist()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the looks at the load."""
    counts: Counter[str] = Counter()
    look = Autoscaler._look

    def counted(scaler: Autoscaler) -> None:
        counts["looks"] += 1
        look(scaler)

    monkeypatch.setattr(Autoscaler, "_look", counted)
    return counts


def test_a_long_cooldown_is_slept_through(looks: Counter[str]) -> None:
    """The second replica is last wanted at 6 s, just before the first answer ends: a day later it goes."""
    rows = ((0, 4, 6), (0, 4, 6), (90_000, 4, 2))
    result = scaled(*rows, startup_delay=0.0, cooldown=86_400.0)
    assert lives(result) == [(0, 0, None, None), (1, 1, 86_406, 86_406)]
    assert looks["looks"] < 20


def test_the_longest_cooldown_and_pause_end() -> None:
    result = scaled((0, 4, 6), (0, 4, 6), (10 ** 9, 4, 2), cooldown=1e8)
    assert len(result.timeline) == 3
    assert lives(result)[1][2] is not None


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 5), st.integers(1, 30)), min_size=1, max_size=12),
       rule=st.sampled_from(["queue:1", "queue:2", "utilization:0.5"]), cooldown=st.sampled_from([0.0, 0.5, 3.0, 7.25]),
       startup=st.sampled_from([0.0, 1.0, 2.5]), step=st.sampled_from([S // 7, S, 3 * S]), limit=st.booleans())
def test_looks_that_are_left_out_would_have_changed_nothing(rows: list[tuple[int, int, int]], rule: str,
                                                            cooldown: float, startup: float, step: int,
                                                            limit: bool) -> None:
    """As in a world with a look every second."""
    options = {"autoscale": rule, "cooldown": cooldown, "startup_delay": startup, "cost_model": Constant(step),
               "knobs": {"max_num_seqs": 2}} | ({} if limit else {"queue_limit": None, "overflow": "shed"})
    found = scaled(*sorted(rows), **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Autoscaler, "_pause", lambda _: EVERY)
        every = scaled(*sorted(rows), **options)
    assert [vars(life) for life in found.cluster.lives] == [vars(life) for life in every.cluster.lives]
    assert found.timeline.left.tolist() == every.timeline.left.tolist()
