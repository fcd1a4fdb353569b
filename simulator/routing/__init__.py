"""Routing: the rules by which a router chooses a replica, by name."""

from __future__ import annotations

from simulator.routing.affinity import PrefixAffinity, SessionAffinity
from simulator.routing.base import Rule, Sight
from simulator.routing.candidates import Candidates
from simulator.routing.loads import LeastKv, LeastOutstanding, PowerOfTwo
from simulator.routing.turns import Random, RoundRobin

ROUTERS: dict[str, type[Rule]] = {
    "round-robin": RoundRobin,
    "random": Random,
    "least-outstanding": LeastOutstanding,
    "least-kv": LeastKv,
    "power-of-two": PowerOfTwo,
    "session-affinity": SessionAffinity,
    "prefix-affinity": PrefixAffinity,
}
"""Every rule by its name."""

__all__ = ["ROUTERS", "Candidates", "Rule", "Sight"]
