"""The flags that say how many replicas there are, and how requests are spread over them: see `options`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from typer import Option

from simulator.cli import complete, values
from simulator.cli.flags import Flags
from simulator.scenario import Scenario

CLUSTER = "Replicas and router"


@dataclass(frozen=True)
class Clustered(Flags):
    """Replicas behind a router."""

    replicas: Annotated[str, Option(metavar="N", rich_help_panel=CLUSTER, help=(
        "Engines, each with --tensor-parallel-size GPUs; more than one stand behind a router."))] = (
        str(Scenario.replicas))
    router: Annotated[str, Option(metavar="RULE", autocompletion=complete.routers, rich_help_panel=CLUSTER, help=(
        "Which replica gets a request: round-robin, random, least-outstanding, least-kv, power-of-two, "
        "session-affinity or prefix-affinity."))] = Scenario.router
    queue_limit: Annotated[str | None, Option(metavar="N|inf", rich_help_panel=CLUSTER, help=(
        "Most requests outstanding at one replica; as many as the engine takes if not given."))] = None
    overflow: Annotated[str, Option(metavar="shed|fcfs|priority|fair", autocompletion=complete.overflows,
                                    rich_help_panel=CLUSTER, help=(
        "What becomes of a request when all replicas are at that limit: refused, or it waits at the router in the "
        "order of arrival, by priority, or each tenant in turn."))] = Scenario.overflow
    classes: Annotated[list[str] | None, Option(metavar="TENANT=KEY:X,...", rich_help_panel=CLUSTER, help=(
        "What is due to a tenant: its priority and its objectives in ms, such as chat=priority:0,ttft:500,tpot:50; "
        "repeatable."))] = None
    autoscale: Annotated[str | None, Option(metavar="queue:N|utilization:X", rich_help_panel=CLUSTER, help=(
        "Start and drain replicas so that each has N requests outstanding, or runs X of its slots."))] = None
    min_replicas: Annotated[str, Option(metavar="N", rich_help_panel=CLUSTER, help=(
        "Fewest replicas with --autoscale."))] = str(Scenario.min_replicas)
    max_replicas: Annotated[str | None, Option(metavar="N", rich_help_panel=CLUSTER, help=(
        "Most replicas with --autoscale."))] = None
    startup_delay: Annotated[str, Option(metavar="S", rich_help_panel=CLUSTER, help=(
        "Seconds from the order of a replica until it takes requests."))] = f"{Scenario.startup_delay:g}"
    cooldown: Annotated[str, Option(metavar="S", rich_help_panel=CLUSTER, help=(
        "Seconds for which fewer replicas must have been enough before one is drained."))] = f"{Scenario.cooldown:g}"
    isolation: Annotated[bool, Option("--isolation", metavar="", rich_help_panel=CLUSTER, help=(
        "Also simulate each tenant alone, and tell by how much the others slow it down."))] = False

    @property
    def cluster(self) -> dict[str, Any]:
        """The fields of Scenario that these flags set."""
        return {
            "replicas": values.count("--replicas", self.replicas),
            "router": self.router,
            "queue_limit": values.limit("--queue-limit", self.queue_limit),
            "overflow": self.overflow,
            "classes": values.classes(self.classes),
            "autoscale": self.autoscale,
            "min_replicas": values.count("--min-replicas", self.min_replicas),
            "max_replicas": values.count("--max-replicas", self.max_replicas),
            "startup_delay": values.number("--startup-delay", self.startup_delay),
            "cooldown": values.number("--cooldown", self.cooldown),
            "isolation": self.isolation,
        }
