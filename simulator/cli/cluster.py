"""The flags that say how many replicas there are, and how requests are spread over them: see `options`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from typer import Option

from simulator.cli import complete, values
from simulator.scenario import Scenario

CLUSTER = "Replicas and router"


@dataclass(frozen=True)
class Clustered:
    """Replicas behind a router."""

    replicas: Annotated[str, Option(metavar="N", rich_help_panel=CLUSTER, help=(
        "Engines behind a router, each with --tensor-parallel-size GPUs."))] = str(Scenario.replicas)
    router: Annotated[str, Option(metavar="RULE", autocompletion=complete.routers, rich_help_panel=CLUSTER, help=(
        "Which replica gets a request: round-robin, random, least-outstanding, power-of-two."))] = Scenario.router

    @property
    def cluster(self) -> dict[str, Any]:
        """The fields of Scenario that these flags set."""
        return {"replicas": values.count("--replicas", self.replicas), "router": self.router}
