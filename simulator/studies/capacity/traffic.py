"""Traffic: the runs that a plan asks for, as scenarios - so many replicas, the traffic so many times as fast, a change.

Faster traffic is the same requests in the same order with all gaps shorter, so that two runs differ in nothing else.
What is drawn (arrivals at a rate, a bundled stand-in, a sample, noise) is drawn anew for each seed; a recorded trace
is what it is, and its windows stand for repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cost_models import CostModelError
from simulator.errors import FileChanged, InputError
from simulator.replication import MOST_REPLICAS
from simulator.scenario import Scenario
from simulator.setup import Setup, prepare
from simulator.studies.capacity.changes import changed
from simulator.studies.capacity.objectives import Objective
from simulator.studies.replications import draws_requests, is_drawn
from simulator.throughput import SECOND, offered_rate
from simulator.traffic import as_read, composed, read_trace, under_load, with_trace

ALONE = 500
"""Requests that are looked at by themselves."""
APART = 24 * 3600 * SECOND
"""Between two of them, ns: no answer takes as long."""
RANDOM_ROUTERS = ("random", "power-of-two")
"""Those that may send two requests to one replica, however many there are."""


@dataclass(frozen=True, order=True)
class Probe:
    """One run: so many replicas, so many times the traffic, with a change (see `changes`), by the place of its seed.

    No replicas at all stand for each request by itself; `saturated` has every request queued at 0.
    """

    replicas: int
    scale: float = 1.0
    change: str = ""
    seed: int = 0
    saturated: bool = False


class Traffic:
    """What one layout - a GPU type and a tensor-parallel size - is asked to serve.

    Args:
        scenarios: What is to be planned for, with each seed.
        given: What the question says, if that is another layout.

    Raises:
        InputError: There is no traffic to plan for.
    """

    def __init__(self, scenarios: Sequence[Scenario], given: Scenario | None = None) -> None:
        self.scenario, self._given = scenarios[0], given or scenarios[0]
        self._given_seeds = scenarios
        self._bases = [_settled(scenario) for scenario in scenarios]
        if not self.requests:
            raise InputError("no replica of this kind can serve a single request of the trace: they are longer than "
                             "the model or its KV cache allows; see `batchsim run`")
        if self.offered is None:
            raise InputError("a plan needs requests that come over time, and all of these come at once: give "
                             "--request-rate")

    @cached_property
    def fresh(self) -> bool:
        """Whether each seed has requests of its own, and not only other arrivals or step times for the same ones."""
        return self.seeds < 2 or draws_requests(self._given_seeds[:2])

    @property
    def seeds(self) -> int:
        """Runs of each kind."""
        return len(self._bases)

    @cached_property
    def setup(self) -> Setup:
        """That of the first seed, at the traffic as it is."""
        return prepare(self._bases[0])

    @property
    def requests(self) -> int:
        """Requests that a replica takes, over all seeds."""
        return self.seeds * int((self.setup.verdict == 0).sum())

    @property
    def helpful(self) -> int:
        """The most replicas that are of any help: one for each request, unless chance or who tries again shares one.

        Other routers then send each request to a replica that nobody has used, or, for what it has in its cache, to
        the same one however many there are.
        """
        if self.scenario.router in RANDOM_ROUTERS or self.scenario.max_retries:
            return MOST_REPLICAS
        return len(self.setup.trace)

    def concerned(self, objective: Objective) -> int:
        """Those that an objective is about, over all seeds; whoever is asked again counts once."""
        rows = np.flatnonzero(objective.concerns(self.setup.trace) & (self.setup.verdict == 0))
        return (self.seeds if self.fresh else 1) * self.setup.trace.take(rows).distinct

    @property
    def offered(self) -> float | None:
        """Requests that come, a second, at the traffic as it is."""
        return offered_rate(self.setup.trace.arrival[self.setup.verdict == 0])

    @cached_property
    def uncut(self) -> float | None:
        """Requests a second of the whole trace at the same speed; None where none were left out of it, or where a rate
        or a shape says how fast they come."""
        given = self._given_seeds[0]
        if given.num_prompts is None or given.request_rate is not None or given.shape is not None:
            return None
        whole = composed(given)
        if len(whole) == len(self.setup.trace):
            return None
        return offered_rate(under_load(whole, given.but(num_prompts=None)).arrival)

    def scenario_of(self, probe: Probe) -> Scenario:
        """The scenario that a probe runs."""
        scenario = scaled(self._bases[probe.seed], probe.scale)
        if probe.saturated:
            return scenario.but(load="saturated", replicas=1)
        if not probe.replicas:
            return _one_by_one(scenario.but(replicas=1))
        return changed(scenario.but(replicas=probe.replicas), probe.change)

    def can(self, change: str) -> bool:
        """Whether the engine can be set up with this change."""
        try:
            prepare(changed(self._bases[0], change))
        except FileChanged:
            raise
        except (InputError, CostModelError):
            return False
        return True

    def flags(self, probe: Probe) -> str | None:
        """The flags of `batchsim run` that run it again, beside those given or a file; None where it has none."""
        if probe.change or probe.saturated or not probe.replicas or self.scenario.shape:
            return None
        told = [f"--{name.replace('_', '-')} {value}" for name in ("gpu", "tensor_parallel_size")
                if (value := getattr(self.scenario, name)) != getattr(self._given, name)]
        told.append(f"--replicas {probe.replicas}")
        if probe.scale != 1:
            rate = self.scenario.request_rate
            told.append(f"--rate-scale {self.scenario.rate_scale * probe.scale:.10g}" if rate is None else
                        f"--request-rate {rate * probe.scale:.10g}")
        return " ".join([*told, *([f"--seed {self.scenario.seed + probe.seed}"] if probe.seed else [])])


def with_seeds(scenario: Scenario, seeds: int) -> list[Scenario]:
    """The scenario with each of so many seeds, from its own one on, and its trace read."""
    plain = scenario.but(error_band=None)    # a plan has a band of its own
    return [as_read(plain.but(seed=scenario.seed + at)) for at in range(seeds)]


def refuse(scenario: Scenario) -> None:
    """Say what cannot be planned for."""
    if scenario.load != "trace":
        raise InputError("a plan needs requests that come over time: --load saturated has none")
    if scenario.max_concurrency is not None:
        raise InputError("a plan needs clients that do not wait for each other: a closed loop slows down when the "
                         "fleet does, and hides that it is too small; leave out --max-concurrency")
    if scenario.autoscale is not None:
        raise InputError("a plan looks for a number of replicas that stays: leave out --autoscale")


def is_random(scenario: Scenario) -> bool:
    """Whether another seed gives another run: other requests or arrivals, other step times, another way to route."""
    chance = scenario.noise not in (None, 0) or scenario.router in RANDOM_ROUTERS or scenario.sample is not None
    return chance or is_drawn(scenario)


def scaled(scenario: Scenario, scale: float) -> Scenario:
    """The scenario with its traffic so many times as fast."""
    if scale == 1:
        return scenario
    if scenario.request_rate is not None:
        return scenario.but(request_rate=scenario.request_rate * scale)
    return scenario.but(rate_scale=scenario.rate_scale * scale)


def _settled(scenario: Scenario) -> Scenario:
    """The same with its trace read, and with rates over time turned into arrivals, which can be made faster."""
    trace = read_trace(scenario)
    settled = with_trace(scenario, trace)
    if scenario.shape is None:
        return settled
    return settled.but(trace=under_load(trace, settled), shape=None, request_rate=None, rate_scale=1.0,
                       cap_gaps=None, num_prompts=None)


def _one_by_one(scenario: Scenario) -> Scenario:
    """Some of the requests, so far apart that each has a replica to itself."""
    setup = prepare(scenario)
    rows = np.flatnonzero(setup.verdict == 0)
    rows = rows[:: -(-len(rows) // ALONE) or 1]
    picked = replace(setup.trace.take(rows), arrival=np.arange(len(rows)) * APART)
    return scenario.but(trace=picked, request_rate=None, rate_scale=1.0, cap_gaps=None, num_prompts=None,
                        turns="recorded")
