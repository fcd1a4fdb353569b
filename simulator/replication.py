"""Replication: what a scenario may say of replicas, router, classes and autoscaler. It starts none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from simulator import checks
from simulator.errors import InputError, choose
from simulator.memory.base import UNLIMITED
from simulator.overflow import OVERFLOWS
from simulator.routing import ROUTERS
from traces import Trace

if TYPE_CHECKING:
    from simulator.scenario import Scenario

OBJECTIVES = ("ttft", "tpot", "e2el")
"""Latencies that a service objective may bound, in milliseconds."""
TARGETS = ("queue", "utilization")
"""What an autoscaler may keep at a target."""
MOST_REPLICAS = 10_000


def check_replication(scenario: Scenario) -> None:
    """Refuse values that no trace could make right, in one line."""
    for name in ("replicas", "min_replicas", "max_replicas", "queue_limit"):
        checks.count(name, getattr(scenario, name))
    for name in ("replicas", "max_replicas"):
        if (getattr(scenario, name) or 0) > MOST_REPLICAS:
            raise InputError(f"{name} must be at most {MOST_REPLICAS:,}, not {getattr(scenario, name):,}")
    choose("router", scenario.router, ROUTERS)
    choose("overflow", scenario.overflow, OVERFLOWS)
    if scenario.overflow != "shed" and scenario.queue_limit is None:
        raise InputError(f"overflow {scenario.overflow} needs queue_limit: without it no request has to wait at the "
                         "router")
    for tenant, promised in scenario.classes.items():
        _check_class(tenant, promised)
    for name in ("startup_delay", "cooldown"):
        checks.not_negative(name, getattr(scenario, name))
        checks.near(name, getattr(scenario, name))
    if not isinstance(scenario.isolation, bool):
        raise InputError(f"isolation must be true or false, not {scenario.isolation!r}")
    if scenario.autoscale is not None:
        _check_autoscale(scenario, scenario.autoscale)


def _check_class(tenant: str, promised: Mapping[str, float]) -> None:
    if not isinstance(promised, Mapping) or not promised:
        raise InputError(f"classes of {tenant} must map priority, ttft, tpot or e2el to numbers, not {promised!r}")
    for name, value in promised.items():
        choose(f"entry in classes of {tenant}", name, ("priority", *OBJECTIVES))
        if name == "priority":
            if not checks.is_number(value) or value % 1 or abs(value) > UNLIMITED:
                raise InputError(f"classes of {tenant}: priority must be a whole number, not {value!r}")
        else:
            checks.positive(f"classes of {tenant}: {name}", value)


def _check_autoscale(scenario: Scenario, rule: str) -> None:
    """The rule can be read, and the bounds hold what there is at the start."""
    if "=" in rule:
        raise InputError(f"autoscale must be written {rule.replace('=', ':')}, not {rule!r}")
    measure, _, target = rule.partition(":")
    choose("measure to autoscale by", measure, TARGETS)
    try:
        value = float(target)
    except ValueError:
        value = float("nan")
    if not 0 < value < (float("inf") if measure == "queue" else 1.0000001):
        raise InputError(f"autoscale takes queue:N, N requests outstanding a replica, or utilization:X, a share of the "
                         f"slots up to 1, not {rule!r}")
    if scenario.max_replicas is None:
        raise InputError("autoscale needs max_replicas, the most replicas that may run")
    if not scenario.min_replicas <= scenario.replicas <= scenario.max_replicas:
        raise InputError(f"replicas, with which a run begins, must lie between min_replicas and max_replicas, "
                         f"{scenario.min_replicas} and {scenario.max_replicas}, not at {scenario.replicas}")
    if scenario.load == "saturated":
        raise InputError("autoscale follows a load over time: give load trace, which may have a shape or a rate")


def only_one_replica(what: str, scenario: Scenario) -> None:
    """Refuse replicas behind a router where a study looks into a single engine."""
    if scenario.behind_router:
        raise InputError(f"{what} looks into one replica: leave out replicas, queue_limit and autoscale, which run "
                         "takes")


def check_trace(scenario: Scenario, trace: Trace) -> None:
    """Refuse what needs to know more of the requests than this trace tells."""
    asked = {"overflow fair": scenario.overflow == "fair", "isolation": scenario.isolation,
             "classes": bool(scenario.classes)}
    if trace.tenant is None and any(asked.values()):
        what = next(name for name, wanted in asked.items() if wanted)
        raise InputError(f"{what}: tenants are needed, and {trace.name} names none; --columns tenant=NAME says which "
                         "column does")
    for name in scenario.classes:
        choose("tenant of classes", name, dict.fromkeys(trace.tenant or ()))
    if not scenario.behind_router:
        return
    if scenario.router == "session-affinity" and trace.session is None and trace.parent is None:
        raise InputError(f"router session-affinity needs conversations, and {trace.name} has none")
    if scenario.router == "prefix-affinity":
        trace.require_prefixes()
