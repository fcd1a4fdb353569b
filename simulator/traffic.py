"""Traffic: the trace of a scenario as it is used, its arrivals under the load, and the patience of its client.

First comes what leaves requests out, then what makes more of them, last the cap. It knows no policy but whether its
answers stream, and no cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import traces
from cost_models import model_spec
from simulator.errors import InputError
from simulator.kinds import load_trace
from simulator.patience import Patience
from simulator.scenario import Scenario
from simulator.scenarios.held import held, unchanged
from traces import Trace

NS = 10 ** 9
ARRIVALS, SAMPLE = 1, 2
"""Streams of chance, each for one use."""


def read_trace(scenario: Scenario) -> Trace:
    """The scenario's trace, as far as it is used, at its own times."""
    trace = composed(scenario) if scenario.read is None else scenario.read
    if scenario.require_prefixes:
        trace.require_prefixes()
    return trace if scenario.num_prompts is None else traces.capped(trace, scenario.num_prompts, _held(trace, scenario))


def as_read(scenario: Scenario) -> Scenario:
    """The same scenario with its trace at hand, so that more runs on it need not read it again.

    It holds the digests of its files. Raises FileChanged where one changes while it is read.
    """
    if scenario.read is not None:
        return scenario
    scenario = held(scenario)
    with unchanged(scenario):
        return held(scenario.but(read=read_trace(scenario)), large=True)


def with_trace(scenario: Scenario, trace: Trace) -> Scenario:
    """The scenario with this trace as it is: nothing is mixed in, left out or repeated, for that has been done."""
    return scenario.but(trace=trace, read=None, reading={}, mix={}, tenants={}, sample=None, prompt_scale=1.0,
                        output_scale=1.0, repeat=1)


def composed(scenario: Scenario) -> Trace:
    """The trace with all that is mixed in, of those tenants, as that sample, at that length, so many times."""
    trace = _loaded(scenario.trace, scenario, scenario.reading)
    if scenario.mix:
        others = [(_mixed_in(name, scenario), weight) for name, weight in scenario.mix.items()]
        trace = traces.mixed([(trace, 1.0), *others])
    if scenario.tenants:
        trace = traces.of_tenants(trace, scenario.tenants)
    if scenario.sample is not None:
        trace = traces.sampled(trace, scenario.sample, _chance(scenario, SAMPLE))
    trace = traces.stretched(trace, scenario.prompt_scale, scenario.output_scale)
    return traces.repeated(trace, scenario.repeat)


def under_load(trace: Trace, scenario: Scenario) -> Trace:
    """The trace with the arrivals of the scenario's load."""
    trace, saturated = _all_there_are(trace, scenario), scenario.load == "saturated"
    if scenario.shape or not saturated:
        trace = _told(_timed(trace, scenario), scenario)
    return trace.saturated() if saturated else trace


def classed(trace: Trace, classes: Mapping[str, Mapping[str, float]]) -> Trace:
    """The trace with the priorities of the tenants' classes; others keep theirs, which is 0 if they have none."""
    if not any("priority" in each for each in classes.values()):
        return trace
    own = [0] * len(trace) if trace.priority is None else trace.priority.tolist()
    urgent = [int(classes.get(name, {}).get("priority", before))
              for name, before in zip(trace.tenant or (), own, strict=True)]
    return replace(trace, priority=np.array(urgent, np.int64))


def sessions_of(trace: Trace) -> list[int]:
    """The conversation of each row, as a number; -1 where it belongs to none, and nothing where no row does."""
    if trace.session is not None:
        numbers = {name: number for number, name in enumerate(dict.fromkeys(trace.session))}
        return [numbers[name] if name else -1 for name in trace.session]
    first: list[int] = []
    for row, parent in enumerate([] if trace.parent is None else trace.parent.tolist()):
        first.append(row if parent < 0 else first[parent])
    return first


def longest_request(scenario: Scenario) -> int:
    """Tokens of the longest request that the model holds."""
    return scenario.max_model_len or model_spec(scenario.model).max_model_len


def patience_of(scenario: Scenario, *, streams: bool, overhead: int) -> Patience:
    """How long the client waits, seen from the engine: what a request spends outside of it counts, too.

    An answer that comes as a whole has its first token with its last one. A client that saturates waits for ever.
    """
    if scenario.load == "saturated":
        return Patience()
    first, whole = (None if seconds is None else max(0, round(seconds * NS) - overhead)
                    for seconds in (scenario.ttft_timeout, scenario.request_timeout))
    if not streams:
        first, whole = None, min((limit for limit in (first, whole) if limit is not None), default=None)
    return Patience(first, whole, scenario.max_retries, round(scenario.retry_backoff * NS))


def _loaded(trace: Trace | str, scenario: Scenario, reading: Mapping[str, Any] = MappingProxyType({})) -> Trace:
    return trace if isinstance(trace, Trace) else load_trace(trace, seed=scenario.seed, **reading)


def _mixed_in(name: str, scenario: Scenario) -> Trace:
    """Another trace as its format has it: how a file is read can be said of the first one only."""
    try:
        return _loaded(name, scenario)
    except traces.TraceError as error:
        if "say --columns" not in str(error) and "give the unit" not in str(error):
            raise
        raise InputError(f"mix: {name} names its columns or times in its own way, and columns and unit are of --trace: "
                         f"write it anew with batchsim trace convert {name} OUT.csv --columns ... --unit ..., and mix "
                         "OUT.csv") from error


def _chance(scenario: Scenario, stream: int) -> np.random.Generator:
    return np.random.default_rng([scenario.seed, stream])


def _held(trace: Trace, scenario: Scenario) -> NDArray[np.bool_]:
    """Which requests the model holds, and may be sent: a turn that waits for one that is not held never is."""
    held = _short_enough(trace, scenario)
    if scenario.turns == "wait" and trace.parent is not None:
        for row in np.flatnonzero(trace.parent >= 0).tolist():
            held[row] &= held[trace.parent[row]]
    return held


def _short_enough(trace: Trace, scenario: Scenario) -> NDArray[np.bool_]:
    if scenario.too_long == "truncate":
        return np.ones(len(trace), bool)
    rule, output = str(scenario.max_tokens), trace.output
    if rule.isdecimal():    # the one rule that shortens outputs
        output = traces.declare(trace, rule, None).output
    return trace.prompt + output <= longest_request(scenario)


def _all_there_are(trace: Trace, scenario: Scenario) -> Trace:
    """The trace with a note where it has fewer requests than were asked for: they are not made up."""
    asked = scenario.num_prompts
    if asked is None or asked <= (held := int(_held(trace, scenario).sum())):
        return trace
    more = f"; --repeat {scenario.repeat * ceil(asked / held)} gives as many" if held else ""
    return trace.noted(f"--num-prompts {asked:,}: the model holds {held:,} of the requests, and all are used{more}")


def _timed(trace: Trace, scenario: Scenario) -> Trace:
    """The trace at its own times, at those of a process, or as its shape says."""
    chance = _chance(scenario, ARRIVALS)
    shape = traces.shape_of(scenario.shape) if scenario.shape else None
    trace = trace.scale_rate(scenario.rate_scale)    # 1 where other times take the place of its own
    if scenario.cap_gaps is not None:
        trace = trace.cap_gaps(scenario.cap_gaps)
    if scenario.request_rate is not None:
        trace = trace.at_rate(scenario.request_rate, scenario.burstiness, chance)
    if shape is None:
        return trace
    return traces.shaped(trace, shape, scenario.burstiness, chance, cut=scenario.num_prompts is not None)


def _told(trace: Trace, scenario: Scenario) -> Trace:
    """The trace with a note of what became of the rates that mix and tenants state."""
    if not scenario.mix and not scenario.tenants:
        return trace
    if scenario.request_rate is not None:
        return trace.noted("request_rate takes the place of these rates, and leaves their proportions")
    if scenario.rate_scale != 1:
        return trace.noted(f"rate_scale makes each of these rates {scenario.rate_scale:g} times as high")
    return trace
