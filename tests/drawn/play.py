"""Play drawn worlds, ask everything of each, and count what they came to. `tests/tables/worlds.py` prints that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf

from drawn import plain
from drawn.checks import check
from drawn.hearing import Heard, heard
from drawn.same import differing
from drawn.scenarios import scenarios
from hypothesis import HealthCheck, Phase, given, seed, settings

from simulator.errors import InputError, StalledError
from simulator.scenario import Scenario
from simulator.setup import prepare
from simulator.simulation import run


def holds(scenario: Scenario) -> Heard:
    """All that is true of any world: invariants in both modes, equal bytes, and metrics that the event log confirms."""
    exact, fast = heard(scenario.but(exact=True)), heard(scenario)
    for found in (exact, fast):
        check(found)
    for what, wrong in (("exact and fast differ", differing(exact.result, fast.result)),
                        ("two runs differ", differing(run(scenario), fast.result)),
                        ("the event log says otherwise", plain.differences(exact))):
        assert not wrong, f"{what}: {wrong}"
    return exact


def play(name: str, kind: str, worlds: int, start: int, phases: tuple[Phase, ...] = (Phase.generate,)) -> Counter[str]:
    """Draw so many worlds of a policy and a kind, the same ones for the same start, and ask everything of each."""
    counts: Counter[str] = Counter()

    @seed(start)
    @settings(max_examples=worlds, database=None, derandomize=False, deadline=None, phases=phases,
              suppress_health_check=list(HealthCheck))
    @given(scenarios(name, kind))
    def asked(scenario: Scenario) -> None:
        counts.update(_played(scenario))

    ask: Callable[[], None] = asked
    ask()
    return counts


def _played(scenario: Scenario) -> Counter[str]:
    """What a world came to. Some are refused, and some engines' rules let nobody on."""
    try:
        return counted(holds(scenario))
    except InputError as error:
        if "autoscale utilization:X needs to know" not in str(error):
            raise
        return Counter(refused=1)
    except StalledError:
        if not may_stall(scenario):
            raise
        return Counter(stalled=1)


def may_stall(scenario: Scenario) -> bool:
    """Whether the rule is one by which a server may wait for ever beside a request that fits.

    Static batching may wait for a batch that never fills. TGI locks a cached prompt whole, of which it needs a part,
    and so may find too little left for the rest.
    """
    policy = prepare(scenario).policy
    return getattr(policy, "max_wait", 0) == inf or bool(getattr(policy, "prefix_caching", False))


def counted(found: Heard) -> Counter[str]:
    """What a world came to."""
    result, happened = found.result, Counter(what for _, what, _ in found.events)
    ticks = [tick for world in found.worlds for tick in world.ticks]
    return Counter({
        "worlds": 1, "clusters": result.cluster is not None, "requests": len(result.setup.trace),
        "steps": len(result.record.ends), "preemptions": sum(len(tick.preempted) for tick in ticks),
        "prompts found": sum(tick.computed[who] > 0 for tick in ticks for who in tick.admitted),
        "cancelled": happened["gone"], "turned away": happened["refused"], "answered": happened["answered"]})
