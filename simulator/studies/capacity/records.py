"""A plan as plain values: one document, a row a simulation, and the curve. It measures nothing."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from simulator.scenario import Scenario
from simulator.scenarios import record
from simulator.studies.capacity.changes import words
from simulator.studies.capacity.lab import scale_of
from simulator.studies.capacity.layout import Layout, price_of, spent
from simulator.studies.capacity.sample import Sample
from simulator.studies.capacity.traffic import Probe, scaled
from simulator.studies.capacity.verdict import Verdict
from simulator.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

    from simulator.studies.capacity.planning import Plan

CURVE = ("offered", "per_replica", "goodput", "attainment", "served", "p99_ttft_ms", "p99_tpot_ms", "follows", "mark")
"""Columns of `curve`; rates are requests a second. What a run is too short to tell is None."""


def records(found: Plan) -> dict[str, Any]:
    """Everything as plain values."""
    best = found.best
    return {
        "feasible": found.feasible, "replicas": found.replicas, "gpus": best.gpus, "gpu": best.gpu,
        "tensor_parallel_size": best.size, "request_rate": found.rate, "story": found.told(),
        "question": found.question.plain(), "scenario": record(_answered(found)),
        "layouts": [_layout(found, layout) for layout in found.layouts],
        "around": None if found.around is None else _around(found),
        "curve": curve_rows(found),
        "runs": found.runs, "simulator_version": __version__}


def _answered(found: Plan) -> Scenario:
    """The scenario of the answer; of the question where there is none."""
    scenario, best = found.question.scenario, found.best
    if best.replicas is None:
        return scenario
    answered = scaled(scenario, best.scale) if scenario.shape is None else scenario
    return answered.but(gpu=best.gpu, tensor_parallel_size=best.size, replicas=best.replicas)


def _layout(found: Plan, layout: Layout) -> dict[str, Any]:
    from simulator.studies.capacity.tables import costs
    price = price_of(layout.gpu, found.question.scenario)
    told: dict[str, Any] = {
        "gpu": layout.gpu, "tensor_parallel_size": layout.size, "replicas": layout.replicas, "gpus": layout.gpus,
        "why_not": layout.why_not or None, "nearest": layout.nearest,
        "bound": None if layout.bound is None else asdict(layout.bound), "price_per_gpu_hour": price,
        "an_hour": spent(layout, found.question.scenario)}
    if layout.replicas is None:
        return told
    return told | {"verdict": verdict(layout.verdict()), "sample": sample(layout.sample()),
                   "saturated_requests_per_s": layout.flat_out.served,
                   "cost_per_million_tokens": {name: cost.plain() for name, cost in costs(layout, price).items()}}


def _around(found: Plan) -> dict[str, Any]:
    about, lab = found.around, found.best.runs
    assert about
    return {
        "neighbours": [{"replicas": probe.replicas, "scale": probe.scale,
                        **verdict(lab.verdict(probe.replicas, probe.scale)), "flags": lab.traffic.flags(probe),
                        "sample": sample(lab.sample(probe))} for probe in about.neighbours],
        "most_traffic": scale_of(about.top),
        "traffic_for_one_fewer": None if about.spare is None else scale_of(about.spare),
        "relaxed": [{"constraint": one.key, "with": words(one.key), **verdict(one.verdict), "replicas": one.replicas,
                     "more_met": one.gain.plain(),
                     "most_traffic": None if one.notch is None else scale_of(one.notch)} for one in about.relaxed],
        "steps_shorter_for_one_fewer": None if about.faster is None else 1 - 1 / scale_of(about.faster),
        "saturated_traffic": None if about.saturation is None else scale_of(about.saturation),
        "error_band": None if about.band is None else asdict(about.band)}


def verdict(found: Verdict) -> dict[str, Any]:
    """A verdict as plain values."""
    return {"holds": found.holds, "fails": found.fails, "completions_follow": found.follows,
            "shares": [share.plain() for share in found.shares]}


def sample(found: Sample) -> dict[str, Any]:
    """A sample as plain values."""
    return asdict(found)


def frame(found: Plan) -> DataFrame:
    """A row a simulation of every layout, in the order in which they were made."""
    import pandas as pd
    rows = [_row(layout, probe, one) for layout in found.layouts if layout.lab is not None
            for probe, one in layout.lab.samples.items()]
    return pd.DataFrame(rows)


def _row(layout: Layout, probe: Probe, one: Sample) -> dict[str, Any]:
    load = "alone" if not probe.replicas else "saturated" if probe.saturated else "trace"
    shares = {f"share_{at}": met / asked if asked else None
              for at, (met, asked) in enumerate(zip(one.met, one.asked, strict=True), 1)}
    return {"gpu": layout.gpu, "tensor_parallel_size": layout.size, "replicas": probe.replicas, "scale": probe.scale,
            "change": probe.change or None, "seed": layout.runs.traffic.scenario.seed + probe.seed, "load": load,
            "requests": one.requests, **shares, "offered": one.offered, "goodput": one.good, "served": one.served,
            "lag": one.lag, "follows": one.follows, **{f"{name}_ms": value for name, value in one.latencies.items()},
            "busy_share": one.work.busy_share, "prompt_tokens": one.work.prompt_tokens,
            "output_tokens": one.work.output_tokens, "left_out": one.left_out, "rejected": one.rejected,
            "flags": layout.runs.traffic.flags(probe)}


def curve(found: Plan) -> DataFrame:
    """Goodput against rate, with the replicas of the answer; columns as in CURVE."""
    import pandas as pd
    return pd.DataFrame(curve_rows(found), columns=list(CURVE))


def curve_rows(found: Plan) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [] if found.around is None else [_curve_row(found, probe) for probe in found.around.curve]


def _curve_row(found: Plan, probe: Probe) -> dict[str, Any]:
    one = found.best.runs.sample(probe)
    values = (one.offered, one.offered / probe.replicas, one.good, one.good / one.offered if one.offered else 0.0,
              None if one.lag is None else one.served, one.latencies["p99_ttft"], one.latencies["p99_tpot"],
              _follows(found, probe), _mark(found, probe))
    return dict(zip(CURVE, values, strict=True))


def _follows(found: Plan, probe: Probe) -> bool | None:
    """Whether completions follow arrivals. Where a run is too short to tell, throughput alone may deny it."""
    one, bound = found.best.runs.sample(probe), found.best.bound
    too_much = bound is not None and one.offered > probe.replicas * bound.rate
    return False if one.follows is None and too_much else one.follows


def _mark(found: Plan, probe: Probe) -> str:
    """What is special of this rate."""
    about = found.around
    assert about
    scales = {"asked": 1.0, "knee": scale_of(about.top)}
    if about.saturation is not None:
        scales["saturation"] = scale_of(about.saturation)
    return ", ".join(name for name, scale in scales.items() if probe.scale == scale)


def backlogs(found: Plan) -> DataFrame:
    """Requests outstanding over time, of the answer and its neighbours: label, seconds, outstanding, follows."""
    import pandas as pd

    from simulator.studies.capacity.tables import names
    assert found.around
    parts = []
    for probe, name in zip(found.around.neighbours, names(found), strict=True):
        one = found.best.runs.sample(probe)
        at = [one.span * step / (len(one.backlog) - 1) for step in range(len(one.backlog))]
        parts.append(pd.DataFrame({"label": name, "seconds": at, "outstanding": one.backlog,
                                   "follows": pd.Series([one.follows] * len(at), dtype=object)}))
    return pd.concat(parts, ignore_index=True)
