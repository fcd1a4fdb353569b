"""Replications: the same question asked several times, each time with other traffic of the same kind.

Where chance makes the traffic - a stand-in, a rate - each replication has a seed of its own. A recorded trace at its
own times has no chance in it, so it is cut into windows; if it was repeated, each window is repeated by itself, so that
no two have a request in common. Nor do samples of one trace make traffic by chance, as they share most of their
requests: windows are cut of a sample. Whoever compares gives each variant the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator import checks
from simulator.errors import InputError
from simulator.scenario import Scenario
from simulator.traffic import as_read, composed, read_trace, under_load, with_trace
from traces import Trace, repeated

LEAST = 2
"""Fewer replications than that say nothing of chance."""


@dataclass(frozen=True)
class Replications:
    """A scenario several times.

    Attributes:
        scenarios: With their traces read.
        words: In what they differ, such as "seeds 0 to 4".
    """

    scenarios: tuple[Scenario, ...]
    words: str


def replications(scenario: Scenario, count: int) -> Replications:
    """The scenario `count` times: with seeds that follow its own, or on windows of its trace that follow one another.

    Raises InputError for fewer than two, or for a trace with fewer requests than windows.
    """
    count = checks.whole("replications", count, LEAST)
    if is_drawn(scenario):
        found = tuple(as_read(each) for each in seeds(scenario, count))
        return Replications(found, seed_words(found))
    parts = windows(scenario, count)
    return Replications(parts, f"{count} windows of the trace, {len(read_trace(parts[0])):,} requests each")


def seed_words(scenarios: Sequence[Scenario]) -> str:
    """In what runs with other seeds differ: chance in the lengths of requests shows only where they are drawn, too."""
    told = f"seeds {scenarios[0].seed} to {scenarios[-1].seed}"
    if draws_requests(scenarios[:2]):
        return told
    return f"{told}, which {'replay' if scenarios[0].sample is None else 'sample'} the same requests"


def draws_requests(scenarios: Sequence[Scenario]) -> bool:
    """Whether chance makes the requests and not only a sample of them, their arrivals or the times of steps.

    Where all requests are alike, arrivals are all that there is.
    """
    if scenarios[0].mix:    # what is recorded comes again, however much is drawn beside it
        parts = [[scenario.but(trace=name, mix={}, reading={}) for name in scenario.mix] for scenario in scenarios]
        return all(draws_requests(pair) for pair in zip(*parts, strict=True)) and draws_requests(
            [scenario.but(mix={}) for scenario in scenarios])
    one, other = (read_trace(each) if each.sample is None else composed(each.but(sample=None)) for each in scenarios)
    if not (np.array_equal(one.prompt, other.prompt) and np.array_equal(one.output, other.output)):
        return True
    return not (np.ptp(one.prompt) or np.ptp(one.output)) and is_drawn(scenarios[0])


def is_drawn(scenario: Scenario) -> bool:
    """Whether chance makes the traffic: with another seed, others come, or at other times. A sample alone does not."""
    whole = scenario if scenario.sample is None else scenario.but(sample=None)
    first, second = (under_load(read_trace(each), each).digest for each in seeds(whole, 2))
    return first != second


def seeds(scenario: Scenario, count: int) -> list[Scenario]:
    """With its own seed, and those that follow."""
    return [scenario, *(scenario.but(seed=scenario.seed + more) for more in range(1, count))]


def windows(scenario: Scenario, count: int) -> tuple[Scenario, ...]:
    """As many requests in each; what does not fill a window is left out at the end. Noise has a seed for each."""
    scenario = _shaped(scenario)
    trace, rounds = _once(read_trace(scenario))
    size = len(trace) // count
    if not size:
        which = " that are no copies" if rounds > 1 else ""
        raise InputError(f"{count} replications need as many requests, and trace {trace.name} has {len(trace)}{which}: "
                         "ask for fewer")
    whole = with_trace(scenario, trace).but(num_prompts=None)
    parts = (trace.slice(at * size, (at + 1) * size) for at in range(count))
    return tuple(whole.but(trace=repeated(part, rounds), seed=scenario.seed + at) for at, part in enumerate(parts))


def _shaped(scenario: Scenario) -> Scenario:
    """The scenario with its trace in its shape, which is that of the whole and not of each window."""
    if scenario.shape is None:
        return scenario
    trace = under_load(read_trace(scenario), scenario.but(load="trace"))
    return with_trace(scenario.but(shape=None, rate_scale=1.0, cap_gaps=None, num_prompts=None), trace)


def _once(trace: Trace) -> tuple[Trace, int]:
    """The trace without copies of its requests, and how many rounds there were of it, to the nearest."""
    if trace.original is None:
        return trace, 1
    first = np.sort(np.unique(trace.original, return_index=True)[1])
    once = replace(trace.take(first), original=None)
    return once, max(1, round(len(trace) / max(1, len(once))))
