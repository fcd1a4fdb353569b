"""Facts: the inputs of a study, in lines that stand above its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.remarks import remarks
from simulator.setup import Setup

if TYPE_CHECKING:
    from simulator.studies.compare import Comparison


def facts(found: Comparison) -> list[str]:
    """What a reader must know of the inputs: trace, declared lengths, pool, cost model, and who was left out."""
    return [
        *facts_of(found.results[found.labels[0], "trace"].setup),
        *(f"policy: {label} is {found.results[label, 'trace'].policy.version}" for label in found.labels),
        *_remarks(found),
    ]


def facts_of(setup: Setup) -> list[str]:
    """What any run in this setup has as its inputs, whatever the policy."""
    scenario, trace = setup.scenario, setup.trace
    gpus = f"{scenario.tensor_parallel_size} x " if scenario.tensor_parallel_size > 1 else ""
    return [
        f"trace: {trace.name}, {len(trace):,} requests ({trace.source})",
        f"declared max_tokens: {_declared(setup.declared)}",
        f"model: {setup.model.name} in {scenario.dtype} on {gpus}{scenario.gpu}, longest request "
        f"{setup.deployment.max_model_len:,} tokens",
        "KV pool: " + (setup.pool.explain() if setup.pool else f"{scenario.kv_capacity_tokens:,} tokens, as given"),
        f"cost model: {setup.cost.name} ({setup.cost.origin})",
    ]


def _remarks(found: Comparison) -> list[str]:
    """What is to be said of the runs, once where it is the same of all."""
    said = {label: remarks(found.results[label, "trace"]) for label in found.labels}
    common = [line for line in said[found.labels[0]] if all(line in lines for lines in said.values())]
    return common + [f"{label}: {line}" for label, lines in said.items() for line in lines if line not in common]


def _declared(declared: Any) -> str:
    told = f"rule {declared.rule}"
    if declared.default is not None:
        told += f": {declared.default:,} tokens, the p99 output rounded up to a power of two"
    if declared.longer:
        told += f"; {declared.longer:,} longer outputs declare their own length"
    if declared.cut:
        told += f"; {declared.cut:,} outputs cut"
    return told
