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
    rows.append(("slots", *(str(summary["slots_counted"]) for summary in summaries)))
    return Table(title, ("", *results), tuple(rows))


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
    return f"{values[0]:,}" if isinstance(values[0], int) else f"{values[0]:,.4g}" if values[0] < 1000 else f"{values[0]:,.0f}"


def span(ms: float) -> str:
    """A time given in milliseconds, in the unit in which it is short."""
    return f"{ms:,.1f} ms" if ms < 1000 else f"{ms / 1000:,.1f} s"


def ratio_table(found: Comparison) -> Table:
    """The three ratios and the runs behind them."""
    rows = [(RATIOS[ratio.key], _throughput(ratio.baseline), f"{ratio.policy}: {_throughput(ratio.continuous)}",
             "-" if ratio.value is None else f"{ratio.value:.2f}x") for ratio in found.ratios]
    return Table("What the switch is worth: three ratios, never one (saturated)",
                 ("", f"{found.labels[0]}, output tokens/s", "output tokens/s", "ratio"), tuple(rows))


def _throughput(result: Result) -> str:
    served, slots = result.summary(metrics=())["output_throughput"], result.policy.slots
    told = "nothing" if served is None else f"{served:,.0f}"
    return told if slots >= UNLIMITED else f"{told} with {slots:,} slots"


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
    """Idle slots beside padding: seconds of the padded baseline that each costs."""
    rows = []
    for loss in found.losses():
        rows.append((loss.label, f"{loss.duration:,.0f} s", f"{loss.idle:,.0f} s  {loss.idle / loss.duration:.1%}",
                     f"{loss.padding:,.0f} s  {loss.padding / loss.duration:.1%}"))
    return Table("Idle slots or padding? (saturated; seconds of the run)",
                 ("", "duration", "lost to idle slots", "lost to padding"), tuple(rows),
                 "Idle: slot-seconds held by finished requests, or empty while somebody waits, over the slots. "
                 "Padding: the same batches run padded and ragged, the difference in time.")


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
        "KV pool: " + (setup.pool.explain() if setup.pool else f"{result.summary()['kv_capacity_tokens']} tokens, as given"),
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
