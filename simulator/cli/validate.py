"""`batchsim validate`: a recorded run of an engine, simulated again. In a notebook:
`simulator.validation.validate(profile, run).table()`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Annotated, Any

from rich.text import Text
from typer import Argument, Option

from simulator.cli import complete, values
from simulator.cli.console import answers, print_json
from simulator.cli.flags import with_flags
from simulator.cli.options import ENGINE, Common
from simulator.cli.progress import Bar
from simulator.cli.tables import print_table
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED
from simulator.policies.making import make_policies, policy_class
from simulator.scenario import FIELDS, READ_FROM, Scenario
from simulator.scenarios import read_scenario
from simulator.validation import validate as study

RECORDED = (READ_FROM - {"seed"}) | {"load", "model", "gpu", "tensor_parallel_size", "dtype", "kv_dtype", "cost_model",
                                     "num_prompts", "shape", "rate_scale", "cap_gaps", "request_rate", "burstiness"}
"""Fields of a scenario that the profile or the recorded run says."""
FLAGS = ("policy", "gpu_memory_utilization", "kv_capacity_tokens", "max_model_len", "seed")
"""Those that have a flag here."""


@with_flags
def validate(common: Common,
             profile: Annotated[str, Argument(metavar="PROFILE", autocompletion=complete.cost_models, help=(
                 "A bundled profile (see `batchsim list cost-models`) or a YAML file."))],
             recorded: Annotated[str, Argument(metavar="RUN", help=(
                 "The recorded run: what `vllm bench serve --save-detailed` or batchsim wrote, or JSON lines of "
                 "LLMServingSim's recorder."))],
             scenario_file: Annotated[str | None, Option("--scenario", metavar="FILE", help=(
                 "A scenario, for what neither profile nor run says: policy, knobs, memory. Flags win."))] = None,
             policy: Annotated[str | None, Option(metavar="NAME|FILE.py:CLASS", autocompletion=complete.policies,
                                                  rich_help_panel=ENGINE, help=(
                                                      "What scheduled it; vllm if not given."))] = None,
             settings: Annotated[list[str] | None, Option("--set", metavar="KNOB=VALUE", rich_help_panel=ENGINE, help=(
                 "A knob of the recorded engine, such as max_num_seqs=128; repeatable."))] = None,
             gpu_memory_utilization: Annotated[str | None, Option(metavar="X", rich_help_panel=ENGINE, help=(
                 f"Share of the GPU memory that it took; {Scenario.gpu_memory_utilization} if not given."))] = None,
             kv_capacity_tokens: Annotated[str | None, Option(metavar="N|inf", rich_help_panel=ENGINE, help=(
                 "Size of its KV cache in tokens; what the GPU leaves if not given."))] = None,
             max_model_len: Annotated[str | None, Option(metavar="N|inf", rich_help_panel=ENGINE, help=(
                 "Longest prompt plus output in tokens; the model's if not given."))] = None,
             rows: Annotated[str, Option(metavar="all|even|odd", help=(
                 "Tell the latencies of all requests, or of every second one, where a profile was tuned on the "
                 "others."))] = "all") -> None:
    """Simulate a recorded run with a profile, and print how far off that is.

    The simulation gets the recorded arrivals and lengths. Say with --set how the engine was set.
    """
    said = {"policy": policy,
            "gpu_memory_utilization": values.number("--gpu-memory-utilization", gpu_memory_utilization),
            "kv_capacity_tokens": values.limit("--kv-capacity-tokens", kv_capacity_tokens, inf),
            "max_model_len": values.limit("--max-model-len", max_model_len, UNLIMITED)}
    changes: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if scenario_file is None or "seed" in common.given:
        changes["seed"] = common.seed_number
    fields = changes if scenario_file is None else read_scenario(scenario_file).with_changes(changes, RECORDED)
    typed, name = values.settings(settings), fields.pop("policy", Scenario.policy)
    _refuse_fields(name, typed)
    chosen = make_policies([name], {**fields.pop("knobs", {}), **typed})[0]
    with Bar("validate", quiet=common.quiet) as bar:
        found = study(profile, recorded, chosen, rows=rows, progress=bar.one, **fields)    # type: ignore[arg-type]
    if common.json:
        print_json(found.to_dict())
        return
    for line in found.remarks():
        answers().print(Text(line, style="dim"))
    print_table(answers(), found.table())


def _refuse_fields(policy: str, knobs: Iterable[str]) -> None:
    """Refuse fields of a scenario that are given as knobs, and that have no flag here."""
    for name in (key.rpartition(".")[2] for key in knobs):
        if name in FIELDS and name not in FLAGS and name not in policy_class(policy).knobs():
            said = "the profile or the recorded run says it" if name in RECORDED else "a file for --scenario may say it"
            raise InputError(f"{name} is no knob of {policy}: {said}")
