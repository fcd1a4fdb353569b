"""A plan in tables: what lies around the answer, what binds it, goodput against rate, costs, layouts."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from simulator.counting import plainly
from simulator.memory import UNLIMITED
from simulator.studies.capacity.changes import RELAXED, TRIED, words
from simulator.studies.capacity.costs import Cost, cost_of
from simulator.studies.capacity.lab import scale_of
from simulator.studies.capacity.layout import Layout, price_of, spent
from simulator.studies.capacity.objectives import a_second, count
from simulator.studies.capacity.records import curve_rows
from simulator.studies.capacity.traffic import Probe
from simulator.studies.capacity.verdict import Verdict
from simulator.tables import Table

if TYPE_CHECKING:
    from simulator.studies.capacity.planning import Plan


FOLLOWS = {True: "yes", False: "no", None: "unknown"}


def tables(found: Plan) -> list[Table]:
    """All tables, in the order in which a reader asks."""
    if found.around is None:
        return []
    told = [layout_table(found)] if len(found.layouts) > 1 else []
    return [neighbour_table(found), binding_table(found), curve_table(found), cost_table(found), *told]


def neighbour_table(found: Plan) -> Table:
    """One fewer, the answer, one more."""
    assert found.around
    rows = tuple(_run(found, probe, name) for probe, name in zip(found.around.neighbours, names(found), strict=True))
    several = "Met by: of the objective kept by least. " if len(found.question.objectives) > 1 else ""
    return Table("The answer and its neighbours", ("", "met by", "interval", "kept", "p99 TTFT", "p99 TPOT",
                                                   "requests/s", "goodput", "busy"), rows,
                 f"{several}Latencies in ms; they and the rates are of the first seed. Goodput: a second of the time "
                 "in which requests come, where `batchsim run` counts until the last answer. Busy: the share of the "
                 "time in which a step runs.")


def names(found: Plan) -> list[str]:
    """What tells the answer and its neighbours apart."""
    assert found.around
    if found.question.find == "rate":
        return [a_second(found.best.offered * probe.scale) for probe in found.around.neighbours]
    return [count(probe.replicas) for probe in found.around.neighbours]


def _run(found: Plan, probe: Probe, name: str) -> tuple[str, ...]:
    lab = found.best.runs
    verdict, sample = lab.verdict(probe.replicas, probe.scale, probe.change), lab.sample(probe)
    share, _ = verdict.tightest
    return (name, f"{share.mean:.2%}", f"{share.low:.2%} to {share.high:.2%}", _kept(verdict),
            _number(sample.latencies["p99_ttft"]), _number(sample.latencies["p99_tpot"]), plainly(sample.offered, 4),
            plainly(sample.good, 4), f"{sample.work.busy_share:.1%}")


def _kept(verdict: Verdict) -> str:
    if verdict.follows is False:
        return "no, the backlog grows"
    seen = "yes" if verdict.holds_on_the_mean else "no"
    return seen if verdict.holds or verdict.fails else f"{seen}, not for sure"


def binding_table(found: Plan) -> Table:
    """Each constraint relaxed by itself, where the answer just fails."""
    assert found.around
    fewer = found.question.find == "replicas" and (found.best.replicas or 1) > 1
    rows: list[tuple[str, ...]] = []
    for one in found.around.relaxed:
        share, _ = one.verdict.tightest
        answer = (f"{one.replicas:,}" if one.replicas is not None else
                  f"{scale_of((one.notch or 0) - found.around.top) - 1:+.0%}")
        rows.append(((RELAXED | TRIED)[one.key][0], words(one.key), f"{share.mean:.2%}", _kept(one.verdict), answer,
                     f"{one.gain.low:+.2%} to {one.gain.high:+.2%}" if isfinite(one.gain.low) else "-"))
    where = (f"on {(found.best.replicas or 1) - 1:,}" if fewer else
             f"at {a_second(found.best.offered * scale_of(found.around.top + 1))}")
    there = "there" if fewer else "at that traffic"
    return Table("What binds: each constraint lifted by itself",
                 ("", "with", f"met by, {where}", "kept", "replicas then" if fewer else "traffic then", "more met"),
                 tuple(rows), f"More met: by the same requests with the change and without, {there} "
                 f"({found.question.level:.0%} interval of the pairs). Smaller steps lift nothing: that is a setting "
                 "that may be better or worse.", ("with",))


def curve_table(found: Plan) -> Table:
    """Goodput against rate with the replicas of the answer."""
    rows = [(plainly(row["offered"], 4), plainly(row["per_replica"], 4), plainly(row["goodput"], 4),
             f"{row['attainment']:.2%}", _number(row["p99_ttft_ms"]), _number(row["p99_tpot_ms"]),
             FOLLOWS[row["follows"]], row["mark"]) for row in curve_rows(found)]
    seeds = found.question.seeds
    first = f" All of the first seed, where the knee rests on all {seeds}." if seeds > 1 else ""
    short = " Unknown: the run is too short to tell." if any(row[6] == FOLLOWS[None] for row in rows) else ""
    return Table(f"Goodput against rate, with {count(found.best.replicas or 0)} on {found.best.name}",
                 ("requests/s", "a replica", "goodput", "met by", "p99 TTFT", "p99 TPOT", "completions follow", ""),
                 tuple(rows), f"The knee is the highest rate at which the objectives are kept, to 2%.{first}{short}",
                 ("",))


def costs(layout: Layout, price: float | None) -> dict[str, Cost]:
    """At the objectives and flat out."""
    return {"within the objectives": cost_of(layout.sample().work, layout.size, price),
            "flat out": cost_of(layout.flat_out.work, layout.size, price)}


def cost_table(found: Plan) -> Table:
    """What a million tokens cost."""
    price = price_of(found.best.gpu, found.question.scenario)
    unit = "GPU-hours" if price is None else "$"
    rows = tuple((name, *(_number(value) for value in (each.total, each.all_on_output, each.prompt, each.output,
                                                        each.idle)), f"{each.busy:.1%}")
                 for name, each in costs(found.best, price).items())
    return Table(f"A million tokens, in {unit}", ("", "all tokens", "all on output", "prompts", "output", "idle, apart",
                                                  "busy"), rows,
                 "Prompts are charged what steps would not take without them, output the rest of the steps, idle "
                 "replicas apart, over all tokens. Flat out: every request queued at 0, no objective kept."
                 + ("" if price is not None else " --prices makes it dollars."))


def _number(value: float | None) -> str:
    return "-" if value is None else plainly(value)


def _tokens(pool: int) -> str:
    return "no bound" if pool >= UNLIMITED else f"{pool:,}"


def layout_table(found: Plan) -> Table:
    """All layouts by what they cost."""
    rows: list[tuple[str, ...]] = []
    for layout in found.layouts:
        if layout.replicas is None:
            rows.append((layout.name, *"------"))
            continue
        setup, hourly = layout.runs.traffic.setup, spent(layout, found.question.scenario) or 0.0
        priced = price_of(layout.gpu, found.question.scenario) is not None
        rows.append((layout.name, f"{layout.replicas:,}", f"{layout.gpus:,}",
                     f"{'$' if priced else ''}{plainly(hourly, 4)}",
                     plainly(layout.sample().good / (layout.gpus or 1), 4),
                     _tokens(setup.deployment.kv_capacity_tokens), setup.cost.name))
    return Table("Layouts, the cheapest first", ("a replica", "replicas", "GPUs", "an hour", "goodput a GPU",
                                                 "KV tokens a replica", "cost model"), tuple(rows),
                 "An hour of the traffic given: in dollars, or in GPUs of whatever type where no price is given.",
                 ("cost model",))
