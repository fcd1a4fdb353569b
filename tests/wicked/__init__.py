"""Policies and cost models that break their contracts, each with the line that it gets. Tests and a table share them.

The files are also files of policies of one's own, as the command line takes them.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import simulator as sim
from cost_models import Constant, CostModel, CostModelError
from simulator.errors import InputError, PolicyError, StalledError
from traces import Trace
from wicked import answers, costs, queues, steps
from wicked.honest import Honest

HERE = Path(__file__).parent
ROWS = [(0, 20, 6), (0, 30, 6), (5, 10, 4)]
"""(arrival, prompt, output) of those whom all of them serve."""


def kinds_of(module: ModuleType, base: type) -> dict[str, type]:
    """The classes of a module that are told something, by name."""
    return {name: kind for name, kind in vars(module).items()
            if isinstance(kind, type) and issubclass(kind, base) and kind.__dict__.get("told")}


POLICIES: dict[str, type[Honest]] = {f"{module.__name__.rpartition('.')[2]}.{name}": kind for module in
                                     (answers, steps, queues) for name, kind in kinds_of(module, Honest).items()}
"""By file and name."""
COSTS: dict[str, type[costs.Fair]] = kinds_of(costs, costs.Fair)


def told(trace: Trace, policy: Honest | str = "vllm", cost: CostModel | None = None, *, exact: bool = False) -> str:
    """The line that they get in a small world; empty if they get none."""
    try:
        sim.simulate(trace, policy, kv_capacity_tokens=160, max_model_len=100, cost_model=cost or Constant(10),
                     exact=exact)
    except (InputError, PolicyError, StalledError, CostModelError) as error:
        return str(error)
    return ""
