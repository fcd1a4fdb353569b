"""Facts: the inputs of a run, in lines that stand above its answer, and how far its cost model is to be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from cost_models import CapturedGraphs, CostModel
from simulator.counting import counted
from simulator.memory import UNLIMITED, Memory
from simulator.scenario import Scenario
from simulator.setup import Setup
from traces import shape_of

RANGES = ("sequences that decode", "tokens of context", "new prompt tokens", "tokens before them")
"""What the bounds of a cost model are of, in their order."""


def facts_of(setup: Setup) -> list[str]:
    """What any run in this setup has as its inputs, whatever the policy."""
    scenario, trace = setup.scenario, setup.trace
    gpus = f"{scenario.tensor_parallel_size} x " if scenario.tensor_parallel_size > 1 else ""
    return [
        f"trace: {trace.name}, {counted(len(trace), 'request')} ({trace.source})",
        f"declared max_tokens: {_declared(setup.declared)}",
        f"model: {setup.model.name} in {scenario.dtype}{kv_stored(scenario.kv_dtype)} on {gpus}{scenario.gpu}, "
        f"longest request {setup.deployment.max_model_len:,} tokens",
        f"KV pool: {pool_of(setup)}",
        source_of(setup.cost),
    ]


def pool_of(setup: Setup) -> str:
    """How large the KV cache of a replica is, and why."""
    if setup.pool:
        return setup.pool.explain()
    tokens = setup.deployment.kv_capacity_tokens
    return f"{'without a bound' if tokens >= UNLIMITED else counted(tokens, 'token')}, as given"


def assumed(setup: Setup, memory: Memory) -> list[str]:
    """The same in short, for a single run whose memory is like this one: what a reader may not have asked for."""
    trace, bias = setup.trace, setup.cost.stated_bias()
    error = "no error is stated" if bias is None else f"on average, its steps may be {bias:.1%} shorter or longer"
    kernels = f", as held against kernel times: {UNTRIED}" if setup.cost.held_against() == "kernels" else ""
    return [*([] if trace.source == trace.name else [f"trace: {trace.name} ({trace.source.partition(';')[0]})"]),
            f"KV pool: {_room(setup, memory)}",
            f"cost model: {setup.cost.name}; {error}{kernels}"]


def _room(setup: Setup, memory: Memory) -> str:
    """How large the KV cache of a replica is."""
    if memory.unbounded:
        return "without a bound"
    blocks = counted(memory.capacity, "token") if memory.block_size == 1 else (
        f"{counted(memory.capacity, 'block')} of {memory.block_size:,} tokens")
    size = memory.capacity * memory.block_size * setup.deployment.kv_bytes_per_token / 2 ** 30
    each = " in each replica" if setup.scenario.most_replicas > 1 else ""
    return f"{blocks}, {size:,.1f} GiB{each}{'' if setup.pool else ', as given'}"


def kv_stored(dtype: str) -> str:
    """How the KV cache is stored, to follow on the model; nothing where that is a matter of course."""
    return "" if dtype == Scenario.kv_dtype else f" with KV in {dtype}"


def load_of(scenario: Scenario) -> str:
    """When the requests of a run come, in words."""
    most = scenario.max_concurrency
    return (scenario.load if scenario.load == "saturated" else _pace(scenario)) + (
        "" if most is None else f", at most {most:,} at once")


def _pace(scenario: Scenario) -> str:
    shape = f", {scenario.shape}" if scenario.shape else ""
    bursty = "" if scenario.burstiness == Scenario.burstiness else f", burstiness {scenario.burstiness:g}"
    if scenario.request_rate is not None:
        return f"new arrivals, {scenario.request_rate:g} requests/s{bursty}{shape}"
    if scenario.shape and shape_of(scenario.shape).replaces:
        return f"new arrivals{bursty}{shape}"
    faster = f", {scenario.rate_scale:g} x as fast" if scenario.rate_scale != 1 else ""
    return f"at the trace's own times{faster}{shape}"


def source_of(cost: CostModel) -> str:
    """Where the times of steps come from."""
    return f"cost model: {cost.name} ({cost.origin})"


UNTRIED = "how far a running engine is from these is not known"
"""Of steps that were put together from the times of single kernels."""


def trust_in(cost: CostModel) -> list[str]:
    """The error of a cost model, and where it was measured, as far as it states them."""
    return [f"its error: {'; '.join(_error(cost)) or 'none is stated'}",
            f"its range: {'; '.join(_range(cost)) or 'none is stated'}"]


def of_two_kinds(costs: Iterable[CostModel], compared: str) -> str | None:
    """That what is compared may differ by its cost models alone, for some state an error and others none; else None."""
    sure, rough = dict[str, None](), dict[str, None]()
    for cost in costs:
        (rough if cost.stated_bias() is None else sure)[cost.name] = None
    if not sure or not rough:
        return None
    return (f"{compared} across cost models of different kinds: {', '.join(sure)} with a stated error, "
            f"{', '.join(rough)} without. What sets them apart may be the models; --cost-model roofline ranks all by "
            "the same one.")


def _error(cost: CostModel) -> Iterator[str]:
    bias = cost.stated_bias()
    if bias is not None:
        yield f"on average, steps may be {bias:.1%} shorter or longer"
    for regime, ratios in (cost.residuals() or {}).items():
        low, high = (ratios[round(share * (len(ratios) - 1))] for share in (0.05, 0.95))
        yield f"nine {regime} steps in ten take {low:.2f} to {high:.2f} of the time predicted"
    if cost.held_against() == "kernels":
        yield f"all this of steps put together from the times of single kernels: {UNTRIED}"


def _range(cost: CostModel) -> Iterator[str]:
    bounds = (cost.cost if isinstance(cost, CapturedGraphs) else cost).bounds or ()    # padded rows lie within the same
    for what, low, high in zip(RANGES, bounds[::2], bounds[1::2], strict=bool(bounds)):
        if high < float("inf"):
            yield f"{low:,.0f} to {high:,.0f} {what}"


def _declared(declared: Any) -> str:
    told = f"rule {declared.rule}"
    if declared.default is not None:
        told += f": {declared.default:,} tokens, the p99 output rounded up to a power of two"
    if declared.longer:
        told += f"; {declared.longer:,} longer outputs declare their own length"
    if declared.cut:
        told += f"; {counted(declared.cut, 'output')} cut"
    return told
