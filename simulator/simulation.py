"""simulation: one scenario in, one Result out.

It wires the parts together, runs the clock and checks that nobody got lost.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NoReturn

from simpy import Environment

from cost_models import Biased
from simulator.band import BANDED, Band
from simulator.clients import Client
from simulator.counting import counted
from simulator.errors import InputError, PolicyError, StalledError
from simulator.events import Watcher
from simulator.gate import ABSENT
from simulator.memory.base import UNLIMITED
from simulator.mistaken import no_scenario
from simulator.policies import Policy
from simulator.policies.own import is_own
from simulator.replica import Replica
from simulator.request import Request
from simulator.result import Result
from simulator.scenario import Scenario, scenario_of
from simulator.sending import sending
from simulator.serving import Serving
from simulator.setup import Setup, prepare
from simulator.standing import standing
from simulator.tenancy import tenant_codes
from traces import Trace

Ear = Callable[[Request], None]
"""Hears of a request."""
Progress = Callable[[int, int], None]
"""Called now and then with (requests answered, requests accepted)."""
PROGRESS_EVERY = 256
MOST_TENANTS = 100
"""That are simulated one by one."""


def simulate(trace: Trace | str = "azure-conv-2023", policy: Policy | str = "vllm", **options: Any) -> Result:
    """Replay a trace through a policy. `options` are the fields of Scenario.

    Example:
        >>> simulate("azure-conv-2023", "static", num_prompts=100, load="saturated").summary()["completed"]
        100
    """
    return run(scenario_of(trace=trace, policy=policy, **options))


def run(scenario: Scenario, *, progress: Progress | None = None, watch: Watcher | None = None,
        env: Environment | None = None) -> Result:
    """Answer a scenario. Raises InputError for what cannot be run, StalledError if requests are left over.

    `env` is a fresh SimPy environment of the caller, who wants to look at it afterwards.

    Example:
        >>> asked = Scenario(policy="static", num_prompts=100, load="saturated")
        >>> [round(run(each).summary()["output_throughput"]) for each in (asked, asked.but(policy="vllm"))]
        [997, 1942]
    """
    if not isinstance(scenario, Scenario):
        raise no_scenario(scenario)
    setup = prepare(scenario)
    bias, others = _bias(setup), _alone(setup)
    told = iter(_sharing(progress, 1 + (0 if bias is None else 2) + len(others)))
    result = _simulated(setup, next(told), watch, env)
    if bias is not None:
        result = replace(result, band=_band(setup, bias, told))
    alone = {tenant: _simulated(other, next(told)).timeline for tenant, other in others.items()}
    return replace(result, alone=alone) if alone else result


def _alone(setup: Setup) -> dict[str, Setup]:
    """By tenant the same setup, in which nobody else sends anything; none unless that is asked for."""
    if not setup.scenario.isolation:
        return {}
    names, codes = tenant_codes(setup.trace)
    if len(names) > MOST_TENANTS:
        raise InputError(f"isolation simulates each tenant by itself, and {setup.trace.name} names {len(names):,}: "
                         f"choose up to {MOST_TENANTS} of them with tenants")
    return {name: replace(setup, rows=setup.rows.reject(ABSENT, codes != place)) for place, name in enumerate(names)}


def _bias(setup: Setup) -> float | None:
    """By which share of a step the band is to bias the costs; None without a band."""
    asked = setup.scenario.error_band
    return setup.cost.stated_bias() if asked == "stated" else None if asked is None else float(asked) / 100


def _band(setup: Setup, bias: float, told: Iterator[Progress | None]) -> Band:
    """The figures of two more runs: every step so much shorter, and so much longer."""
    shorter, longer = (_simulated(replace(setup, cost=Biased(setup.cost, factor)), next(told)).summary()
                       for factor in (1 - bias, 1 + bias))
    return Band(bias, *({name: summary[name] for name in BANDED} for summary in (shorter, longer)))


def _sharing(progress: Progress | None, runs: int) -> list[Progress | None]:
    """For each of several runs a listener, which tells of all of them as one."""
    if progress is None:
        return [None] * runs

    def told(before: int, answered: int, accepted: int) -> None:
        progress(before * accepted + answered, runs * accepted)

    return [partial(told, before) for before in range(runs)]


def _simulated(setup: Setup, progress: Progress | None = None, watch: Watcher | None = None,
               env: Environment | None = None) -> Result:
    env = env or Environment(initial_time=0)
    accepted = int((setup.verdict == 0).sum())
    requests, conversations = sending(setup)
    client = Client(env, requests, _most_outstanding(setup), setup.patience, _counter(accepted, progress),
                    conversations)
    serving = Serving(env, setup, _delayed(env, setup, client.finished), client.refused,
                      client.cancelled if setup.patience.ends else None, watch)
    client.send_to(serving.door)
    with _without_collector():
        env.run()
    _check(serving, client, accepted, conversations.skipped if conversations else 0)
    return serving.result()


@contextmanager
def _without_collector() -> Iterator[None]:
    """Let Python's cyclic collector rest: the run makes no cycles, and the collector walks all requests in vain."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _most_outstanding(setup: Setup) -> int:
    """Most requests that the client has outstanding. One that saturates keeps to what the engine's door lets in."""
    limit = setup.scenario.max_concurrency or UNLIMITED
    takes = setup.most_outstanding * setup.scenario.replicas
    return min(limit, takes) if setup.scenario.load == "saturated" else limit


def _delayed(env: Environment, setup: Setup, ear: Ear) -> Ear:
    """A client that waits for answers hears of one as late as it receives it, and only then sends another request."""
    if not setup.request_overhead or not (setup.scenario.max_concurrency or setup.turns_wait):
        return ear

    def heard(request: Request) -> None:
        env.timeout(setup.request_overhead).callbacks.append(lambda _: ear(request))

    return heard


def _counter(accepted: int, progress: Progress | None) -> Callable[[], None] | None:
    """Hears of every request that has ended, and tells progress now and then."""
    if progress is None:
        return None
    ended = 0

    def heard() -> None:
        nonlocal ended
        ended += 1
        if ended % PROGRESS_EVERY == 0 or ended == accepted:
            progress(ended, accepted)

    return heard


def _check(serving: Serving, client: Client, accepted: int, skipped: int) -> None:
    """Every accepted request was answered, refused, given up or skipped, memory is back, and no knob has changed."""
    replicas = serving.replicas
    finished = sum(replica.finished for replica in replicas)
    stuck = next((replica for replica in replicas if len(replica.queue)), None)
    if finished + client.refused_for_good + client.aborted + skipped != accepted or stuck:
        _stalled(serving, stuck or replicas[0], finished, accepted)
    for replica in replicas:
        _check_memory(replica)
        _check_knobs(replica, serving.settings)


def _stalled(serving: Serving, replica: Replica, finished: int, accepted: int) -> NoReturn:
    outside = f", {serving.waiting_outside} wait at the router" if serving.waiting_outside else ""
    raise StalledError(f"{replica.policy.name}: stalled at {replica.env.now / 1e9:.6f} s, after "
                       f"{counted(len(replica.record.ends), 'step')}, with {finished} of {accepted} answered{outside} "
                       f"({standing(replica.queue, replica.memory)}); {_next_move(replica.policy)}")


def _check_memory(replica: Replica) -> None:
    used, name = replica.memory.used, replica.policy.name
    if used > 0:
        raise StalledError(f"{name}: {counted(used, 'block')} of memory held by nobody at the end")
    if used < 0:
        raise StalledError(f"{name}: gave back {counted(-used, 'block')} of memory more than it took: every token that "
                           "runs needs room (memory.take, memory.grow)")


def _check_knobs(replica: Replica, settings: dict[str, str]) -> None:
    """A policy that turns its own knobs would answer the next run differently."""
    for knob, value in replica.policy.settings().items():
        if repr(value) != settings[knob]:
            raise PolicyError(f"{replica.policy.name}: turned its own knob {knob} from {settings[knob]} to {value!r} "
                              "while it ran: keep what changes in a field with init=False")


def _next_move(policy: Policy) -> str:
    """What would get a stalled replica going."""
    if policy.settings().get("max_wait") == inf:
        return ("with max_wait=inf it waits for a fuller batch than client or router let come: raise max_concurrency "
                "or queue_limit, or lower max_wait or the size of the batch")
    if is_own(policy):
        return "its plan returned None, and so it sleeps: return a Step that lets somebody in, or runs those who are in"
    return "the engine's rule lets nobody on here: give it more memory, or another policy"
