"""Any world: a scenario in which everything that a run may have is drawn, and which runs.

`scenarios(name, kind)` is for one policy of POLICIES and one of KINDS. Times are told in units of about one step.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from drawn import knobs, short
from drawn.knobs import MODEL_LEN, some
from drawn.traffic import traces
from hypothesis import strategies as st
from worlds import Affine

from cost_models import Constant, CostModel, StepShape, Table, cost_model, read_profile
from simulator.overflow import OVERFLOWS
from simulator.routing import ROUTERS
from simulator.scenario import Scenario
from traces import Trace

NS, MS = 1e-9, 1e-6
"""A nanosecond in seconds and in milliseconds."""
TINY = Path(__file__).parents[1] / "cost_models" / "table.yaml"
COSTS: tuple[CostModel, ...] = (
    Constant(10), Constant(1), Affine(), Affine(1, 0, 0, 1), Affine(3, 0, 2, 50), Table(read_profile(TINY)),
    cost_model("regimes", model="llama-3.1-8b", gpu="h100-80"),
    cost_model("table", model="llama-3.1-8b", gpu="rtx-pro-6000"),
    cost_model("roofline", model="llama-2-7b", gpu="a100-80"))
MEASURED = COSTS[6:8]
"""Those that state by how much steps vary."""
HUGE_LEN = 60_100


class Kind(NamedTuple):
    """Whether there is a router, whether clients are impatient, and whether memory is what binds."""

    routed: bool = False
    impatient: bool = False
    short: bool = False


KINDS = {"one replica": Kind(), "one replica, clients that hang up": Kind(impatient=True),
         "several replicas": Kind(routed=True), "several replicas, clients that hang up": Kind(True, True),
         "one replica, short of memory": Kind(short=True),
         "one replica, short of memory, clients that hang up": Kind(impatient=True, short=True),
         "several replicas, short of memory": Kind(routed=True, short=True),
         "several replicas, short of memory, clients that hang up": Kind(True, True, True)}
"""Kinds of worlds."""
Fields = dict[str, Any]


def unit_of(cost: CostModel) -> int:
    """Nanoseconds of a small step."""
    return max(2, cost.time(StepShape(4, 64)))


@st.composite
def scenarios(draw: st.DrawFn, name: str, kind: str) -> Scenario:
    """A world of this policy and kind."""
    routed, impatient, is_short = KINDS[kind]
    cost = draw(st.sampled_from(COSTS))
    unit = unit_of(cost)
    fields = {"cost_model": cost, "seed": draw(st.integers(0, 3)), **draw(costs(cost, unit)), **draw(objectives(unit)),
              **draw(short_of_memory(name, unit) if is_short else anything(name, unit))}
    if impatient:
        fields |= draw(patience(unit))
    if routed:
        fields |= draw(cluster(fields["trace"], unit, saturated=fields.get("load") == "saturated"))
    if is_short and routed:    # what waits at the router is not short of memory
        fields |= {"replicas": min(fields["replicas"], 2), "queue_limit": None}
        fields.pop("overflow", None)
    return Scenario(**fields)


@st.composite
def anything(draw: st.DrawFn, name: str, unit: int) -> Fields:
    """A trace and a policy from one extreme to the other."""
    sizes = draw(some("ones", "usual", "usual", "usual", "short answers", "first tokens", "long answers", "huge"))
    trace = draw(traces(unit, sizes))
    fields = {"trace": trace, **draw(lengths(trace, sizes)), **draw(memory(trace)), **draw(load(unit))}
    # A tiny budget would make a hundred thousand steps of a huge prompt.
    return fields | {"policy": name if sizes == "huge" else draw(knobs.of(name, fields))}


@st.composite
def short_of_memory(draw: st.DrawFn, name: str, unit: int) -> Fields:
    """A trace and a policy between which memory binds."""
    trace = draw(short.traces(unit))
    fields = {"trace": trace, "max_concurrency": None, **draw(short.fields(trace))}
    return fields | {"policy": draw(knobs.of(name, fields, short.KNOBS.get(name, {})))}


@st.composite
def lengths(draw: st.DrawFn, trace: Trace, sizes: str) -> Fields:
    """How long requests become, what they declare, and what becomes of who is too long."""
    longest = HUGE_LEN if sizes == "huge" else draw(some(MODEL_LEN, MODEL_LEN, 70))
    scales = {} if trace.has_turns else {"prompt_scale": draw(some(1.0, 1.0, 1.0, 2.0)),
                                         "output_scale": draw(some(1.0, 1.0, 1.0, 0.4, 1.5))}
    return scales | {"max_model_len": longest, "too_long": draw(some("reject", "reject", "truncate")),
            "max_tokens": draw(some(None, "exact", "x1.3", "model", 9)),
            "turns": draw(some("wait", "wait", "recorded")),
            "num_prompts": draw(some(None, None, None, 3)), "repeat": draw(some(1, 1, 1, 2))}


@st.composite
def memory(draw: st.DrawFn, trace: Trace) -> Fields:
    """A pool that just holds the longest request, somewhat more, all there is, or too little for anybody."""
    need = int((trace.prompt + trace.output).max())
    return {"kv_capacity_tokens": draw(some(*[need, need + 17, 2 * need] * 3, 3 * need + 1, 480, 5000, 1, inf, None))}


@st.composite
def costs(draw: st.DrawFn, cost: CostModel, unit: int) -> Fields:
    """What comes on top of a step, and by what it varies."""
    each = draw(some(0.0, 0.0, unit * MS / 7, 3 * unit * MS))
    fields = {"cuda_graph_sizes": draw(some("none", "none", "vllm", "1,2,4,8")),
              "scheduler_overhead": draw(some({}, {}, {"all": (each, each / 5)})), "request_overhead": each,
              "noise": draw(some(None, None, 0.01, 0.3, 2.0)), "error_band": draw(some(*[None] * 9, 7.5))}
    return fields | ({"noise": "profile"} if cost in MEASURED and draw(st.booleans()) else {})


@st.composite
def load(draw: st.DrawFn, unit: int) -> Fields:
    """At the trace's times, at a rate, or all that the engine takes; with a bound on what is outstanding, or none."""
    second = 1 / (unit * NS)
    times = draw(some({}, {}, {}, {"request_rate": second / 3, "burstiness": draw(some(0.2, 1.0, inf))},
                      {"request_rate": inf}, {"rate_scale": 7.0}, {"cap_gaps": 4 * unit * NS}, {"load": "saturated"},
                      {"load": "saturated"}))
    return {"max_concurrency": draw(some(None, None, 1, 3)), **times}


LIMITS = some(1, 5, 20, 100)
"""Of a wait, in steps."""


@st.composite
def patience(draw: st.DrawFn, unit: int) -> Fields:
    """How long the client waits for a first token, an answer, or both, and how often it tries again."""
    fields: Fields = {"max_retries": draw(some(0, 1, 3)), "retry_backoff": draw(some(0, 1, 9)) * unit * NS}
    for name in draw(some(("ttft_timeout",), ("request_timeout",), ("ttft_timeout", "request_timeout"))):
        fields[name] = draw(LIMITS) * unit * NS
    return fields


@st.composite
def objectives(draw: st.DrawFn, unit: int) -> Fields:
    """What answers are due in."""
    return {"goodput": {name: draw(LIMITS) * unit * MS for name in draw(st.sets(some("ttft", "tpot", "e2el")))}}


@st.composite
def cluster(draw: st.DrawFn, trace: Trace, unit: int, saturated: bool) -> Fields:
    """Replicas behind a router, which may wait at its door; they may come and go with the load."""
    fields: Fields = {"router": draw(st.sampled_from(list(ROUTERS))), "replicas": draw(st.integers(1, 4)),
                      "queue_limit": draw(some(None, 1, 1, 2, 5))}
    if fields["router"] == "prefix-affinity" and not trace.knows_prefixes:
        fields["router"] = "least-kv"
    if fields["queue_limit"]:
        fields["overflow"] = draw(some("shed", "shed", *OVERFLOWS))
    if draw(st.booleans()):
        fields["classes"] = {(trace.tenant or ())[0]: {"priority": draw(some(-1, 5)), "ttft": 9 * unit * MS}}
        fields["isolation"] = draw(some(False, False, False, True))
    if not saturated and draw(st.integers(0, 2)) == 0:
        fields |= {"autoscale": draw(some("queue:1", "queue:2.5", "utilization:0.5")),
                   "max_replicas": fields["replicas"] + draw(some(0, 1, 3)),
                   "startup_delay": draw(some(0, 1, 30)) * unit * NS, "cooldown": draw(some(0, 3, 40)) * unit * NS}
    return fields
