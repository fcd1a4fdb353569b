"""Play drawn worlds, ask everything of each, and count what they came to. `tests/tables/worlds.py` prints that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from math import inf

from drawn import plain
from drawn.checks import check
from drawn.hearing import Heard, heard
from drawn.same import differing
from drawn.scenarios import scenarios
from hypothesis import HealthCheck, Phase, given, seed, settings
from worlds import World

from simulator.errors import InputError, PolicyError, StalledError
from simulator.memory.prompts import PromptCached
from simulator.memory.reserved import reservation
from simulator.scenario import Scenario
from simulator.setup import prepare
from simulator.simulation import run

REFUSED = ("autoscale utilization:X needs to know",
           "lower the one or raise the other", "raise the one or lower the other")
"""What is said of worlds whose parts do not go together."""


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
        if not any(words in str(error) for words in REFUSED):
            raise
        return Counter(refused=1)
    except StalledError:
        if not may_wait_for_ever(scenario):
            raise
        return Counter(stalled=1)
    except PolicyError as error:
        if not may_push_out_for_ever(scenario) or "nobody got any further" not in str(error):
            raise
        return Counter(stalled=1)


def may_wait_for_ever(scenario: Scenario) -> bool:
    """Whether a server waits for ever, by its rule, beside a request that fits.

    Static batching may wait for a batch that never fills. TGI locks a cached prompt whole, of which it needs a part,
    and so may find too little left for the rest, though it serves nobody else.
    """
    if getattr(prepare(scenario).policy, "max_wait", 0) == inf:
        return True
    found = Heard()
    with suppress(StalledError):
        heard(scenario, found)
    return any(locks_itself_out(world) for world in found.worlds)


def locks_itself_out(world: World) -> bool:
    """Whether the pool holds the first in line, and nobody else, but not what that one would lock beside it."""
    queue, memory = world.replica.queue, world.memory
    if not isinstance(memory, PromptCached) or not queue.waiting or queue.running:
        return False
    head = queue.waiting[0]
    return memory.blocks_for(reservation(head)) <= memory.capacity < memory.demand(head, head.known)


def may_push_out_for_ever(scenario: Scenario) -> bool:
    """Whether requests may push each other out for ever by vLLM's rule, as it is written.

    Of two with the same priority and arrival it sends back the one that came in first. Each is let in by its next
    chunk alone, pushes the other out, and so loses its own place.
    """
    policy = prepare(scenario).policy
    return (getattr(policy, "scheduling_policy", "") == "priority"
            and not getattr(policy, "scheduler_reserve_full_isl", True))


def counted(found: Heard) -> Counter[str]:
    """What a world came to."""
    result, happened = found.result, Counter(what for _, what, _ in found.events)
    ticks = [tick for world in found.worlds for tick in world.ticks]
    return Counter({
        "worlds": 1, "clusters": result.cluster is not None, "requests": len(result.setup.trace),
        "steps": len(result.record.ends), "preemptions": sum(len(tick.preempted) for tick in ticks),
        "prompts found": sum(tick.computed[who] > 0 for tick in ticks for who in tick.admitted),
        "cancelled": happened["gone"], "turned away": happened["refused"], "answered": happened["answered"]})
