"""Sections: a comparison as tables, in the order in which a reader asks. It measures nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cost_models import StepShape
from simulator.counting import counted
from simulator.facts import load_of
from simulator.ledger import SLOT_PARTS
from simulator.memory.base import UNLIMITED
from simulator.metrics import METRICS, json_keys
from simulator.remarks import band_remark
from simulator.result import Result
from simulator.studies.attribution import Attribution
from simulator.studies.certainty_tables import certainty_tables
from simulator.studies.ideas import side_by_side
from simulator.studies.ratio_notes import ratio_note
from simulator.studies.ratios import RATIOS
from simulator.studies.why import idle, times
from simulator.studies.why_tables import ladder_table
from simulator.tables import Table

if TYPE_CHECKING:
    from simulator.studies.compare import Comparison

SERVED = ("completed", "rejected", "failed", "skipped", "duration", "request_throughput", "output_throughput",
          "steady_output_throughput", "steps", "slot_utilization", "mean_batch_size", "kv_usage_mean", "kv_usage_max",
          "prefix_cache_hit_rate", "preemptions", "recomputed_tokens", "ttft", "tpot", "itl", "e2el", "queue_time")
FELT = ("completed", "rejected", "failed", "skipped", "aborted", "timed_out", "retried", "duration",
        "offered_request_rate", "request_throughput", "output_throughput", "ttft", "tpot", "itl", "e2el", "queue_time",
        "request_goodput", "slot_utilization", "mean_batch_size", "kv_usage_mean", "kv_usage_max",
        "prefix_cache_hit_rate", "preemptions")
TINY = 1e-9
"""A share of slot-seconds that is left over by rounding alone."""
BATCHES = (1, 8, 32, 128, 512)


def tables(found: Comparison) -> list[Table]:
    """All tables of a comparison."""
    saturated = {label: found.results[label, "saturated"] for label in found.labels}
    paced = {label: found.results[label, "trace"] for label in found.labels}
    return [measured(f"How much it serves (saturated: {_queued(found)})", saturated, SERVED),
            measured(f"How it feels ({load_of(found.results[found.labels[0], 'trace'].scenario)})", paced, FELT),
            ratio_table(found), *_certainty(found), *map(short_ladder, found.ladders.values()), slot_table(found),
            waste_table(found), step_table(found), side_by_side(saturated)]


def _certainty(found: Comparison) -> list[Table]:
    return certainty_tables(found.certainty, found.labels[0]) if found.certainty else []


def _queued(found: Comparison) -> str:
    waits = found.results[found.labels[0], "saturated"].setup.turns_wait
    return "every request queued at 0" + (", later turns with the answer to the one before" if waits else "")


def measured(title: str, results: Mapping[str, Result], names: tuple[str, ...]) -> Table:
    """Metrics (rows) of several runs (columns); latencies as median and 99th percentile."""
    summaries = [result.summary() for result in results.values()]
    rows = [(_label(name), *(_cell(name, summary) for summary in summaries)) for name in names
            if any(_values(name, summary) != [None] for summary in summaries)]
    rows.append(("slots", *(f"{summary['slots']:,}" for summary in summaries)))
    notes = ["Slots of " + "; ".join(f"{label}: {result.slots.meaning}" for label, result in results.items()) + "."]
    notes += [f"{label} refuses more than {result.policy.max_outstanding:,} requests at once, so its clients hold "
              "theirs back, and its latencies begin later." for label, result in results.items() if _holds_back(result)]
    notes += [f"{label}, {band}." for label, result in results.items() if (band := band_remark(result))]
    return Table(title, ("", *results), tuple(rows), " ".join(notes))


def _holds_back(result: Result) -> bool:
    """Whether a saturated client keeps requests to itself because the engine's front end would refuse them."""
    return result.scenario.load == "saturated" and result.policy.max_outstanding < UNLIMITED


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
    """The ratios and the runs behind them; without a padded form of the baseline, the last one says nothing new."""
    rows = [(RATIOS[ratio.key], _throughput(ratio.baseline), f"{ratio.policy}: {_throughput(ratio.continuous)}",
             "-" if ratio.value is None else f"{ratio.value:.2f}x") for ratio in found.ratios
            if found.padded or ratio.key != "deployed"]
    return Table(f"What the switch is worth: {'three' if found.padded else 'two'} ratios, never one (saturated)",
                 ("", f"{found.labels[0]}, output tokens/s", "output tokens/s", "ratio"), tuple(rows),
                 ratio_note(found))


def _throughput(run: Mapping[str, Any]) -> str:
    if not run["completed"]:
        return "nothing: all rejected"
    return f"{run['output_throughput']:,.0f} ({counted(run['slots'], 'slot')})"


def short_ladder(found: Attribution) -> Table:
    """Where the ratio as deployed comes from, one switch after the other."""
    told, name = ladder_table(found, numbered=False), found.names[1]
    title = (f"Where the {times(found.total)} of {name} as deployed comes from" if found.total else
             f"From {found.names[0]} to {name} as deployed: no ratio, for {idle(found)}")
    return replace(told, title=f"{title} (saturated)", note=(
        "In this order; the product above takes out padding first, so that its first factor is against a ragged "
        "baseline: against a padded one, refilled slots save padding too. `batchsim why` shows more orders, shares "
        "that no order decides, and the flags to run each row."))


def slot_table(found: Comparison) -> Table:
    """Where every slot-second went with equal slots; parts that are 0 everywhere are left out."""
    ledgers = {label: result.slot_ledger for label, result in found.equal_slots.items()}
    rows = [(words, *(_part(ledger.parts[part], ledger.total) for ledger in ledgers.values()))
            for part, words in SLOT_PARTS.items() if any(ledger.parts[part] for ledger in ledgers.values())]
    total = ("all slot-seconds", *(_amount((ledger.total or 0) / 1e9) for ledger in ledgers.values()))
    return Table(f"Where every slot-second went ({found.equal})", ("", *ledgers), (*rows, total))


def _part(amount: int | None, total: int | None) -> str:
    return f"{_amount(amount / 1e9)}  {amount / total:6.1%}" if amount and total else "0"


def _amount(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"


def waste_table(found: Comparison) -> Table:
    """Idle slots beside padding, first as a padded baseline pays for them."""
    runs = {f"{found.labels[0]}, padded": ratio.baseline for ratio in found.ratios
            if found.padded and ratio.key == "deployed"}
    note = f"{', '.join(runs)}: as deployed, in its own memory. " if runs else ""
    runs |= {label: result.summary() for label, result in found.equal_slots.items()}
    rows = [(label, _amount(run["slot_seconds"]), *(_of(part, run) for part in _parts(run)))
            for label, run in runs.items()]
    return Table(f"Idle slots or padding? ({found.equal})",
                 ("slot-seconds", "all", "useful", "lost to idle slots", "lost to padding", "the rest"), tuple(rows),
                 f"{note}The rest: nobody waits at the replica, or a slot sits out a step or repeats lost work.")


def _parts(run: Mapping[str, Any]) -> tuple[float, ...]:
    """Slot-seconds that compute new tokens, without what padding adds to their steps; both losses; what is left."""
    idle, padding = run["idle_slot_seconds"], run["padding_seconds"]
    useful = (run["slot_utilization"] or 0) * run["slot_seconds"] - padding
    rest = run["slot_seconds"] - useful - idle - padding
    return useful, idle, padding, rest if rest > TINY * run["slot_seconds"] else 0.0


def _of(amount: float, run: Mapping[str, Any]) -> str:
    return f"{_amount(amount)}  {amount / run['slot_seconds']:6.1%}" if amount and run["slot_seconds"] else "0"


def step_table(found: Comparison) -> Table:
    """Why a larger batch pays: the time of one decode step against the sequences that share it."""
    setup = found.results[found.labels[0], "saturated"].setup
    context = int((setup.prompt + setup.output // 2).mean())
    batches = [batch for batch in BATCHES if batch * context <= max(setup.deployment.kv_capacity_tokens, context)]
    times = [setup.cost.time(StepShape(batch, batch * context)) for batch in batches]
    rows = (("time of the step", *(span(time / 1e6) for time in times)),
            ("output tokens/s", *(f"{batch * 1e9 / time:,.0f}" for batch, time in zip(batches, times, strict=True))))
    return Table(f"Why a larger batch pays: one decode step, {counted(context, 'token')} of context each",
                 ("sequences", *(f"{batch:,}" for batch in batches)), rows)
