"""The loads of the README's table, made small; and that work grows with the requests and no faster, in counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loads import CASES, PLAIN, lengths, running, trace
from test_counts_of_policies import Counted, lines

import simulator as sim
from simulator.scenario import Scenario
from simulator.timeline import Timeline
from traces import Trace, TraceError

SMALL = {"500 replicas, 7 routers": 0.01, "1 replica to 500 and back": 0.01, "a sweep of 10,000 points": 0.0004,
         "1,000,000 requests": 0.001, "1,000,000 conversations": 0.0005, "page, pictures, trace events": 0.0005,
         "a prompt of 1,000,000 tokens": 0.02, "an answer of 1,000,000 tokens": 0.02}
"""The scale of a case where a hundredth is not right."""


COMMANDS = ("a sweep of 10,000 points", "page, pictures, trace events")
"""Those that start the command line several times."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in COMMANDS else ())
                                  for name in CASES])
def test_every_load_is_served_when_it_is_small(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(sim.__file__).parents[1]))
    assert CASES[name](SMALL.get(name, 0.01))


def shuffled(n: int) -> list[int]:
    """So many priorities in an order that looks random."""
    return [(at * 7919) % n for at in range(n)]


def together(n: int, **fields: Any) -> Scenario:
    return Scenario(Trace("together", [0] * n, priority=shuffled(n), **lengths(n, 20, 8)), **PLAIN | fields)


BY_PRIORITY = {"knobs": {"scheduling_policy": "priority", "max_num_seqs": 8}}
GROWING: dict[str, Callable[[int], Scenario]] = {
    "first come": lambda n: together(n, knobs={"max_num_seqs": 8}),
    "by priority": lambda n: together(n, **BY_PRIORITY),
    "by priority, and hang up": lambda n: together(n, request_timeout=0.5, **BY_PRIORITY),
    "router by KV": lambda n: together(n, replicas=2, router="least-kv", knobs={"max_num_seqs": 8}),
    "router by requests": lambda n: together(n, replicas=2, router="least-outstanding"),
    "line by priority": lambda n: together(n, queue_limit=8, overflow="priority"),
    "sglang": lambda n: together(n, policy="sglang", knobs={"max_running_requests": 8}),
    "tensorrt_llm": lambda n: together(n, policy="tensorrt_llm", knobs={"max_batch_size": 8}),
    "ft": lambda n: together(n, policy="ft", knobs={"max_batch_size": 8}),
    "orca": lambda n: together(n, policy="orca", knobs={"max_bs": 8}),
}


@pytest.mark.parametrize("name", GROWING)
def test_four_times_the_requests_take_four_times_the_work(name: str) -> None:
    """Lines of Python, plans and events for each request; a walk over all who wait would make four times as many."""
    found = {}
    sim.run(GROWING[name](50))    # whatever is read once is read now
    for n in (250, 1000):
        env = Counted(initial_time=0)
        sim.run(GROWING[name](n), env=env)
        count, result = lines(GROWING[name](n))
        found[n] = Counter(lines=count / n, plans=len(result.record.plans) / n, events=env.events / n)
    assert all(found[1000][what] <= 1.35 * found[250][what] for what in found[250]), found


def test_more_slots_in_a_shortage_by_priority_take_no_more_work_for_each_preemption() -> None:
    """The walk asks those who need a block, and victims are put in order once a shortage."""
    cost = []
    for scale in (0.002, 0.008):
        slots = int(20_000 * scale)
        scenario = running("vllm", scale, 50 * slots, scheduling_policy="priority").scenario
        count, result = lines(scenario)
        cost.append(count / (result.summary()["preemptions"] + len(result.record.plans)))
    assert cost[1] <= 2.5 * cost[0]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts how often the time to the first token of all requests is worked out."""
    counts: Counter[str] = Counter()

    def told(line: Timeline) -> Any:
        counts["ttft"] += 1
        return line.first_delivered - line.sent

    monkeypatch.setattr(Timeline, "ttft", property(told))
    return counts


def test_trace_events_work_out_no_latency_of_everybody_for_each(asked: Counter[str]) -> None:
    result = sim.run(Scenario(trace(50), **PLAIN))
    assert sum(1 for _ in result.trace_events()) > 100
    assert asked["ttft"] == 0


def test_tenants_work_out_no_latency_of_everybody_for_each(asked: Counter[str]) -> None:
    result = sim.run(Scenario(trace(50, tenant=tuple(f"tenant {at % 25}" for at in range(50))), **PLAIN))
    assert len(result.tenants) == 25
    assert asked["ttft"] == 1


def test_a_trace_longer_than_the_clock_is_one_line() -> None:
    """Nanoseconds in 64 bits last 292 years; half of that is left to add to."""
    with pytest.raises(TraceError, match=r"^column arrival, row 1: \d+ is outside 0 to 2\^62$"):
        Trace("long", [0, (1 << 62) + 1], [1, 1], [1, 1])
    late = Trace("late", [0, (1 << 62) - 10], [1, 1], [1, 1])
    with pytest.raises(sim.InputError, match=r"^the simulated time passes 146 years: check the cost model"):
        sim.run(Scenario(late, rate_scale=1.0, **PLAIN))
