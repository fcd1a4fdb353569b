"""Sections: a comparison as tables and prose, in the order in which a reader asks. It measures nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simulator.ledger import SLOT_PARTS
from simulator.memory.base import UNLIMITED
from simulator.metrics import METRICS, json_keys
from simulator.result import Result
from simulator.studies.ideas import side_by_side
from simulator.studies.ratios import RATIOS
from simulator.tables import Table

if TYPE_CHECKING:
    from simulator.studies.compare import Comparison

SERVED = ("completed", "rejected", "duration", "request_throughput", "output_throughput", "steady_output_throughput",
          "steps", "slot_utilization", "mean_batch_size", "kv_usage_mean", "kv_usage_max", "preemptions",
          "recomputed_tokens", "ttft", "tpot", "itl", "e2el", "queue_time")
FELT = ("completed", "rejected", "duration", "request_throughput", "output_throughput", "ttft", "tpot", "itl", "e2el",
        "queue_time", "request_goodput", "slot_utilization", "mean_batch_size", "kv_usage_mean", "kv_usage_max",
        "preemptions")


def tables(found: Comparison) -> list[Table]:
    """All tables of a comparison."""
    saturated = {label: found.results[label, "saturated"] for label in found.labels}
    paced = {label: found.results[label, "trace"] for label in found.labels}
    return [measured("How much it serves (saturated: every request queued at 0)", saturated, SERVED),
            measured(f"How it feels ({_pace(found)})", paced, FELT),
            ratio_table(found), slot_table(saturated), waste_table(found), side_by_side(saturated)]


def _pace(found: Comparison) -> str:
    scenario = found.results[found.labels[0], "trace"].scenario
    if scenario.request_rate is not None:
        return f"new arrivals, {scenario.request_rate:g} requests/s"
    return "at the trace's own times" + (f", {scenario.rate_scale:g} x as fast" if scenario.rate_scale != 1 else "")


def measured(title: str, results: Mapping[str, Result], names: tuple[str, ...]) -> Table:
    """Metrics (rows) of several runs (columns); latencies as median and 99th percentile."""
    summaries = [result.summary() for result in results.values()]
    rows = [(_label(name), *(_cell(name, summary) for summary in summaries)) for name in names
            if any(_values(name, summary) != [None] for summary in summaries)]
    rows.append(("slots", *(f"{summary['slots']:,}" for summary in summaries)))
    slots = "; ".join(f"{label}: {result.slots.meaning}" for label, result in results.items())
    return Table(title, ("", *results), tuple(rows), f"Slots of {slots}.")


def _label(name: str) -> str:
    metric = METRICS[name]
    return f"{metric.label}, median and p99" if metric.spread else metric.label


def _values(name: str, summary: Mapping[str, Any]) -> list[Any]:
    keys = [key for key in json_keys(name) if key.startswith(("median", "p99"))] if METRICS[name].spread else [name]
    return [summary[key] for key in keys]


def _cell(name: str, summary: Mapping[str, Any]) -> str:
    """The value of a metric with its unit, as short as it can be read."""
    values, unit = _values(name, summary), METRICS[name].unit
    if values[0] is None:
        return "-"
    if METRICS[name].spread:
        return " and ".join(span(value) for value in values)
    if unit == "share":
        return f"{values[0]:.1%}"
    if unit == "s":
        return f"{values[0]:,.1f} s"
    return f"{values[0]:,.4g}" if isinstance(values[0], float) and values[0] < 1000 else f"{values[0]:,.0f}"


def span(ms: float) -> str:
    """A time given in milliseconds, in the unit in which it is short."""
    return f"{ms:,.1f} ms" if ms < 1000 else f"{ms / 1000:,.1f} s"


def ratio_table(found: Comparison) -> Table:
    """The three ratios and the runs behind them."""
    rows = [(RATIOS[ratio.key], _throughput(ratio.baseline), f"{ratio.policy}: {_throughput(ratio.continuous)}",
             "-" if ratio.value is None else f"{ratio.value:.2f}x") for ratio in found.ratios]
    return Table("What the switch is worth: three ratios, never one (saturated)",
                 ("", f"{found.labels[0]}, output tokens/s", "output tokens/s", "ratio"), tuple(rows))


def _throughput(run: Mapping[str, Any]) -> str:
    told = "nothing" if run["output_throughput"] is None else f"{run['output_throughput']:,.0f}"
    return told if run["cap"] >= UNLIMITED else f"{told} (cap {run['cap']:,})"


def slot_table(results: Mapping[str, Result]) -> Table:
    """Where every slot-second went, saturated; parts that are 0 everywhere are left out."""
    ledgers = {label: result.slot_ledger for label, result in results.items()}
    rows = [(words, *(_part(ledger.parts[part], ledger.total) for ledger in ledgers.values()))
            for part, words in SLOT_PARTS.items() if any(ledger.parts[part] for ledger in ledgers.values())]
    total = ("all slot-seconds", *(f"{(ledger.total or 0) / 1e9:,.0f}" for ledger in ledgers.values()))
    return Table("Where every slot-second went (saturated)", ("", *results), (*rows, total))


def _part(amount: int | None, total: int | None) -> str:
    if not amount or not total:
        return "0"
    return f"{amount / 1e9:,.0f}  {amount / total:6.1%}"


def waste_table(found: Comparison) -> Table:
    """Idle slots beside padding, first as the padded baseline pays for them."""
    baseline = found.labels[0]
    runs = {f"{baseline}, as deployed": ratio.baseline for ratio in found.ratios if ratio.key == "deployed"}
    runs |= {label: found.results[label, "saturated"].summary() for label in found.labels}
    rows = [(label, f"{run['slot_seconds']:,.0f}", _of(run["idle_slot_seconds"], run), _of(run["padding_seconds"], run))
            for label, run in runs.items()]
    return Table("Idle slots or padding? (saturated)",
                 ("slot-seconds", "all", "lost to idle slots", "lost to padding"), tuple(rows))


def _of(amount: float, run: Mapping[str, Any]) -> str:
    return f"{amount:,.0f}  {amount / run['slot_seconds']:6.1%}" if amount and run["slot_seconds"] else "0"


def facts(found: Comparison) -> list[str]:
    """What a reader must know of the inputs: trace, declared lengths, pool, cost model, and who was left out."""
    result = found.results[found.labels[0], "trace"]
    setup = result.setup
    scenario, trace = setup.scenario, setup.trace
    gpus = f"{scenario.tensor_parallel_size} x " if scenario.tensor_parallel_size > 1 else ""
    return [
        f"trace: {trace.name}, {len(trace):,} requests ({trace.source})",
        f"declared max_tokens: {_declared(setup.declared)}",
        f"model: {setup.model.name} in {scenario.dtype} on {gpus}{scenario.gpu}, longest request "
        f"{setup.deployment.max_model_len:,} tokens",
        "KV pool: " + (setup.pool.explain() if setup.pool else f"{scenario.kv_capacity_tokens:,} tokens, as given"),
        f"cost model: {setup.cost.name} ({setup.cost.origin})",
        *(f"policy: {label} is {found.results[label, 'trace'].policy.version}" for label in found.labels),
    ]


def _declared(declared: Any) -> str:
    told = f"rule {declared.rule}"
    if declared.default is not None:
        told += f": {declared.default:,} tokens, the p99 output rounded up to a power of two"
    if declared.longer:
        told += f"; {declared.longer:,} longer outputs declare their own length"
    if declared.cut:
        told += f"; {declared.cut:,} outputs cut"
    return told
