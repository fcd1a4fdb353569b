"""Loads: what a simulation is asked that is far beyond the usual, by name. Each returns in words what came of it.

A case takes a scale: 1 is what the README's table shows, the tests run a hundredth or less. Lengths are drawn from a
seed; steps cost 10 ms where their price is not the matter.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

import simulator as sim
from cost_models import Table, read_profile
from simulator.result import Result
from simulator.scenario import Scenario
from traces import Trace

YEAR = 365 * 86_400 * 10 ** 9
"""Nanoseconds."""
PLAIN: dict[str, Any] = {"cost_model": "constant:10", "max_tokens": "exact"}


def lengths(n: int, prompt: int = 100, output: int = 50) -> dict[str, Any]:
    """Geometric lengths of so many requests, with these means."""
    rng = np.random.default_rng(0)
    return {"prompt": 1 + rng.geometric(1 / prompt, n), "output": 1 + rng.geometric(1 / output, n)}


def trace(n: int, gap: int = 0, prompt: int = 100, output: int = 50, **columns: Any) -> Trace:
    """So many requests, each so many ns after the one before it."""
    return Trace(f"{n:,} requests", np.arange(n, dtype=np.int64) * gap, **lengths(n, prompt, output), **columns)


def told(result: Result, *more: str) -> str:
    """How many were answered in how many steps, and more figures of the summary."""
    found = result.summary()
    assert found["completed"] + found["failed"] + (found["aborted"] or 0) == len(result.setup.output)
    words = [f"{found['completed']:,} answered in {found['steps']:,} steps"]
    return ", ".join(words + [f"{sim_name(name)} {found[name]:,.6g}" for name in more])


def sim_name(name: str) -> str:
    """A figure as the glossary calls it."""
    from simulator.metrics import METRICS
    return METRICS[name].label


def million(scale: float) -> str:
    """The bundled chat trace again and again, four times as fast."""
    import traces
    base, n = traces.load("azure-conv-2023"), int(1_000_000 * scale)
    rounds, span = -(-n // len(base)), int(base.arrival[-1]) + 200_000_000
    whole = Trace("again and again", np.concatenate([base.arrival + at * span for at in range(rounds)])[:n],
                  np.tile(base.prompt, rounds)[:n], np.tile(base.output, rounds)[:n])
    return told(sim.run(Scenario(whole, rate_scale=4.0)), "preemptions")


KNOBS: dict[str, Callable[[int], dict[str, Any]]] = {
    "vllm": lambda slots: {"max_num_seqs": slots, "max_num_batched_tokens": max(slots, 8192)},
    "static": lambda slots: {"max_batch_size": slots},
    "dynamic": lambda slots: {"max_batch_size": slots},
    "orca": lambda slots: {"max_bs": slots},
    "tgi": lambda slots: {"max_concurrent_requests": slots, "max_batch_prefill_tokens": 2 * max(slots, 2048)},
    "sglang": lambda slots: {"max_running_requests": slots},
    "tensorrt_llm": lambda slots: {"max_batch_size": slots, "max_num_tokens": max(slots, 8192)},
}
"""The cap on sequences of each policy."""


def running(policy: str, scale: float, pool: float = inf, **knobs: Any) -> Result:
    """Twice as many requests as slots, 20,000 of them, all there at 0; answers long enough to fill the slots."""
    slots = int(20_000 * scale)
    many = trace(2 * slots, prompt=10, output=500, priority=np.random.default_rng(1).integers(0, 100, 2 * slots))
    return sim.run(Scenario(many, policy, KNOBS[policy](slots) | knobs, load="saturated", kv_capacity_tokens=pool,
                            **PLAIN))


def every_policy(scale: float) -> str:
    """All of these policies, one after the other."""
    slots = int(20_000 * scale)
    most = {policy: int(running(policy, scale).record.plan("running").max()) for policy in KNOBS}
    assert min(most.values()) > 0.8 * slots, most
    return f"{slots:,} slots: the most at once was {min(most.values()):,} to {max(most.values()):,}"


def shortage(scale: float, **knobs: Any) -> str:
    return told(running("vllm", scale, 50 * int(20_000 * scale), **knobs), "preemptions")


def long_prompt(scale: float) -> str:
    """Between two short ones; every policy, chunked or not, and every kind of cost model."""
    tokens, ways = int(1_000_000 * scale), 0
    one = Trace("long", np.zeros(3, np.int64), np.array([10, tokens, 10]), np.full(3, 10))
    whole = {"max_num_batched_tokens": 2 * tokens, "enable_chunked_prefill": False}
    asked: list[tuple[str, dict[str, Any], str]] = [
        *((policy, {}, "constant:10") for policy in KNOBS if policy != "tensorrt_llm"),
        ("tensorrt_llm", {"enable_chunked_prefill": True}, "constant:10"), ("vllm", whole, "constant:10"),
        *(("vllm", {}, cost) for cost in ("auto", "roofline", "regimes", "table"))]
    for policy, knobs, cost in asked:
        result = sim.run(Scenario(one, policy, knobs, cost_model=cost_of(cost), kv_capacity_tokens=4.0 * tokens,
                                  max_model_len=2 * tokens, max_tokens="exact"))
        assert len(result.timeline) == 3, (policy, knobs, cost)
        ways += 1
    return f"{tokens:,} tokens, answered in each of {ways} ways"


def cost_of(name: str) -> Any:
    """A cost model; a table is the one of the tests, measured for far less."""
    if name != "table":
        return name
    return Table(read_profile(Path(__file__).parent / "cost_models" / "table.yaml"))


def long_answer(scale: float) -> str:
    tokens = int(1_000_000 * scale)
    one = Trace("long", np.zeros(3, np.int64), np.full(3, 10), np.array([10, tokens, 10]))
    return told(sim.run(Scenario(one, kv_capacity_tokens=4.0 * tokens, max_model_len=2 * tokens, max_tokens="exact")))


def ten_years(scale: float) -> str:
    """A thousand requests over ten years, and all that is drawn over time."""
    n = int(1000 * max(scale, 0.02))
    result = sim.run(Scenario(trace(n, 10 * YEAR // (n - 1)), goodput={"ttft": 50}, **PLAIN))
    assert int(result.timeline.sent[-1]) == (n - 1) * (10 * YEAR // (n - 1))
    drawn = sum(len(each) for each in pictures(result).values())
    events = sum(1 for _ in result.trace_events())
    return f"{told(result, 'max_concurrent_requests')}; pictures {drawn / 1e6:.1f} MB, {events:,} trace events"


def pictures(result: Result) -> dict[str, str]:
    """All figures over time, as SVG."""
    from simulator import plots
    from simulator.ledger import LEDGERS
    from simulator.plots.style import svg_of
    runs = {"run": result}
    figures = {name: plots.ledger_figure(runs, name) for name in LEDGERS}
    figures |= {"batch": plots.batch_figure(runs), "timeline": plots.timeline_figure(runs)}
    return {name: svg_of(figure) for name, figure in figures.items()}


def at_once(scale: float) -> str:
    return told(sim.run(Scenario(trace(int(100_000 * scale)), **PLAIN)), "max_concurrent_requests")


def classes(scale: float) -> str:
    """As many priorities as requests, in any order, all at once; those that wait longest hang up."""
    n = int(100_000 * scale)
    many = trace(n, priority=np.random.default_rng(5).permutation(n))
    result = sim.run(Scenario(many, "vllm", {"scheduling_policy": "priority"}, request_timeout=5.0, **PLAIN))
    return told(result, "aborted")


def tenants(scale: float) -> str:
    n = int(100_000 * scale)
    many = trace(n, 20_000_000, tenant=tuple(f"tenant {at}" for at in range(n)))
    result = sim.run(Scenario(many, goodput={"ttft": 500}, replicas=2, queue_limit=64, overflow="fair", **PLAIN))
    return told(result, "jain_index")


def sessions(scale: float) -> str:
    """Each of two turns, the second one a second after the first answer."""
    n, at = int(1_000_000 * scale), np.arange(2 * int(1_000_000 * scale))
    many = trace(2 * n, 5_000_000, 20, 5, session=tuple(f"session {each // 2}" for each in at),
                 parent=np.where(at % 2, at - 1, -1), think=np.where(at % 2, 10 ** 9, 0))
    return told(sim.run(Scenario(many, replicas=4, router="session-affinity", **PLAIN)))


def replicas(scale: float) -> str:
    """Every router in turn, with 50,000 requests; a prefix tells those that begin alike."""
    from simulator.routing import ROUTERS
    count, n = max(2, int(500 * scale)), int(50_000 * scale)
    at = np.arange(n)
    many = trace(n, int(2e5 / scale), session=tuple(f"session {each // 2}" for each in at),
                 parent=np.where(at % 2, at - 1, -1), shared=np.zeros(n, np.int64))
    spread = []
    for router in ROUTERS:
        result = sim.run(Scenario(many, replicas=count, router=router, turns="recorded", **PLAIN))
        spread.append(f"{router} {result.summary()['busiest_replica']:.2f}")
    return f"{n:,} requests each, busiest over mean: {', '.join(spread)}"


def scaled(scale: float) -> str:
    """A burst that asks for all of them, then a trickle that asks for one."""
    most, n = max(2, int(500 * scale)), int(50_000 * scale)
    at = np.concatenate([np.arange(n // 2) * int(2e5 / scale), int(3e10) + np.arange(n - n // 2) * int(1e8)])
    many = Trace("burst", at, **lengths(n))
    result = sim.run(Scenario(many, autoscale="queue:8", max_replicas=most, startup_delay=1.0, cooldown=5.0, **PLAIN))
    assert result.cluster is not None
    stopped = sum(life.drained is not None for life in result.cluster.lives)
    return f"{told(result, 'peak_replicas')}, {stopped:,} drained"


def by_kv(scale: float) -> str:
    """All at once at two replicas whose router looks at the KV cache that those who wait will need."""
    return told(sim.run(Scenario(trace(int(100_000 * scale)), replicas=2, router="least-kv", **PLAIN)))


def side_of(scale: float) -> int:
    """Values of each of the two settings of the grid."""
    return int(100 * scale ** 0.5)


def grid(scale: float) -> str:
    """The grid is run, half of its points are lost, and it is resumed; then drawn, and made a page."""
    numbers = ",".join(map(str, range(1, side_of(scale) + 1)))
    asked = ["sweep", "--cost-model", "constant:10", "--num-prompts", "2", "--vary", f"max_num_seqs={numbers}",
             "--vary", f"rate-scale={numbers}", "-o", "grid", "--quiet"]
    command(*asked)
    before = Path("grid/summary.json").read_bytes()
    points = sorted(Path("grid/points").glob("*.json"))
    for path in points[::2]:
        path.unlink()
    command(*asked, "--resume")
    assert Path("grid/summary.json").read_bytes() == before
    command("plot", "grid", "--metric", "mean_e2el_ms")
    command("report", "grid", "-o", "page.html")
    sizes = [Path(name).stat().st_size / 1e6 for name in ("grid/summary.json", "grid/heatmap.svg", "page.html")]
    return (f"{len(points):,} points, half of them lost and resumed to the same bytes; summary {sizes[0]:.1f} MB, "
            f"heat map {sizes[1]:.2f} MB, page {sizes[2]:.1f} MB")


def command(*words: str) -> None:
    """The command line, which must succeed."""
    done = subprocess.run([sys.executable, "-m", "simulator.cli", *words], capture_output=True, text=True, check=False)
    assert done.returncode != -signal.SIGXCPU, f"{words[0]} was stopped: not done in the CPU time that it may take"
    assert done.returncode == 0, done.stderr


def written(scale: float) -> str:
    """A page and pictures of a long run; its trace events only of a tenth of it."""
    n = int(1_000_000 * scale)
    command("run", "--trace", "azure-conv-2023", "--repeat", str(max(1, round(n / 19_366))), "--num-prompts", str(n),
            "--rate-scale", "4", "-o", "out", "--quiet")
    command("report", "out", "-o", "page.html")
    result = sim.run(Scenario(trace(n // 10, 10_000_000), **PLAIN))
    events = result.save_trace_events("events.json").stat().st_size
    return (f"{n:,} requests: page {Path('page.html').stat().st_size / 1e6:.2f} MB; {n // 10:,} requests: trace events "
            f"{events / 1e6:,.0f} MB")


GRID = "a sweep of 10,000 points"
CASES: dict[str, Callable[[float], str]] = {
    "1,000,000 requests": million,
    "20,000 running at once, 7 policies": every_policy,
    "... with too little memory": shortage,
    "... and by priority": lambda scale: shortage(scale, scheduling_policy="priority"),
    "a prompt of 1,000,000 tokens": long_prompt,
    "an answer of 1,000,000 tokens": long_answer,
    "1,000 requests in 10 years": ten_years,
    "100,000 at one instant": at_once,
    "... of 100,000 priorities, that hang up": classes,
    "100,000 tenants, in turn": tenants,
    "1,000,000 conversations": sessions,
    "500 replicas, 7 routers": replicas,
    "1 replica to 500 and back": scaled,
    "100,000 at one instant, 2 replicas by KV": by_kv,
    GRID: grid,
    "page, pictures, trace events": written,
}
"""Each in a process of its own where it is measured, in a folder of its own."""
FEWEST = 500
"""Numbers from here on in the name of a case are sizes, which its scale makes smaller."""


def sized(name: str, scale: float) -> str:
    """What a case is called at a scale."""
    def less(found: re.Match[str]) -> str:
        size = int(found[0].replace(",", ""))
        return found[0] if size < FEWEST else f"{side_of(scale) ** 2 if name == GRID else int(size * scale):,}"

    return re.sub(r"\d[\d,]*\d", less, name)
