"""Words that the shell may complete. Each is called while a line is typed, so nothing is imported before it must."""

from __future__ import annotations

from collections.abc import Iterable


def _starting(names: Iterable[str], typed: str) -> list[str]:
    return [name for name in names if name.startswith(typed)]


def traces(incomplete: str) -> list[str]:
    """Bundled and fetched traces; the shell itself adds files."""
    from traces.fetching import catalogue
    from traces.standins import names
    return _starting([*names(), *(name for name, each in catalogue().items() if each.here)], incomplete)


def public_traces(incomplete: str) -> list[str]:
    """Public traces that can be fetched."""
    from traces.fetching import catalogue
    return _starting(catalogue(), incomplete)


def models(incomplete: str) -> list[str]:
    """Bundled models."""
    from cost_models import MODELS
    return _starting(MODELS, incomplete)


def gpus(incomplete: str) -> list[str]:
    """Bundled GPUs."""
    from cost_models import GPUS
    return _starting(GPUS, incomplete)


def cost_models(incomplete: str) -> list[str]:
    """Forms and bundled profiles."""
    from cost_models import available_cost_models
    return _starting((row.name for row in available_cost_models()), incomplete)


def policies(incomplete: str) -> list[str]:
    """Bundled policies, after the last comma of a list of them."""
    from simulator.policies import POLICIES
    before, comma, typed = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _starting(POLICIES, typed)]


def kinds(incomplete: str) -> list[str]:
    """What `batchsim list` can list."""
    from simulator.cli.listing import KINDS
    return _starting(KINDS, incomplete)


def workloads(incomplete: str) -> list[str]:
    """What `batchsim bench` can measure."""
    from simulator.bench import WORKLOADS
    return _starting(WORKLOADS, incomplete)


def reproductions(incomplete: str) -> list[str]:
    """What `batchsim reproduce` can run again."""
    from simulator.studies.reproduce import NAMES
    return _starting(("all", *NAMES), incomplete)


def loads(incomplete: str) -> list[str]:
    """How the requests may come."""
    return _starting(("trace", "saturated"), incomplete)


def routers(incomplete: str) -> list[str]:
    """Rules by which a router chooses a replica."""
    from simulator.routing import ROUTERS
    return _starting(ROUTERS, incomplete)


def backends(incomplete: str) -> list[str]:
    """Where runs can take place."""
    return _starting(("local", "dask", "ray"), incomplete)


def overflows(incomplete: str) -> list[str]:
    """What may become of a request that no replica takes."""
    from simulator.overflow import OVERFLOWS
    return _starting(OVERFLOWS, incomplete)


def engines(incomplete: str) -> list[str]:
    """Engines whose recordings can be read."""
    from simulator.conformance import ENGINES
    return _starting(ENGINES, incomplete)


def modes(incomplete: str) -> list[str]:
    """How recordings may be replayed."""
    return _starting(("exact", "fast", "both"), incomplete)


def devices(incomplete: str) -> list[str]:
    """What can be calibrated."""
    return _starting(("cuda", "cpu"), incomplete)
