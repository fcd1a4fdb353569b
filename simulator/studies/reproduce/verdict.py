"""Verdict: for which traces, batch caps, reservations and baselines "10-20x" holds, and what causes it.

Each ratio is output throughput of vLLM over that of a static baseline, saturated, as a product of three factors: slots
(equal slots, no other bound), memory (what its memory rule adds) and padding. It knows no cause beyond these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from cost_models import CostModelError
from cost_models.strict import build
from simulator.policies.static import StaticBatching
from simulator.policies.vllm import Vllm
from simulator.scenario import Scenario, scenario_of
from simulator.simulation import run
from simulator.studies.reproduce.running import Progress
from simulator.studies.reproduce.spec import read_file
from simulator.traffic import read_trace

FACTORS = ("slots", "memory", "padding")


@dataclass(frozen=True)
class Baseline:
    """A static batch: its cap, what a request reserves, and the model length if that is not the model's own."""

    batch: int
    reserve: str
    model_len: int | None = None

    @property
    def label(self) -> str:
        """Its cap, and what each request reserves."""
        length = "the model length" if self.model_len is None else f"{self.model_len:,}"
        return f"{self.batch} x {length if self.reserve == 'model' else self.reserve}"


@dataclass(frozen=True)
class VerdictSpec:
    """The file: the range that is asked about, and where.

    Attributes:
        name, title, source, assumptions: As in a `Spec`.
        range: Lowest and highest ratio of the claim.
        scenario: Fields of Scenario of all runs.
        traces: Requests of each bundled trace.
        baselines: What vLLM is set against.
    """

    name: str
    title: str
    source: str
    assumptions: tuple[str, ...]
    range: tuple[float, ...]
    traces: dict[str, int]
    baselines: tuple[Baseline, ...]
    scenario: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.range) != 2 or self.range[0] >= self.range[1]:
            raise CostModelError(f"range takes two numbers, the lowest and the highest, not {self.range}")


@dataclass(frozen=True)
class Row:
    """One trace against one baseline.

    Attributes:
        trace: Name of the bundled trace.
        baseline: What vLLM was set against.
        slots, memory, padding: The factors.
        rejected: Requests that the baseline's model length keeps out of both.
        claim: The range that is asked about.
    """

    trace: str
    baseline: Baseline
    slots: float
    memory: float
    padding: float
    rejected: int
    claim: tuple[float, float]

    @property
    def ragged(self) -> float:
        """The ratio to the baseline without padding."""
        return self.slots * self.memory

    @property
    def padded(self) -> float:
        """The ratio to the padded baseline."""
        return self.ragged * self.padding

    def cause(self, *, padded: bool) -> str:
        """The largest of the factors of the ratio to the padded baseline, or to the ragged one."""
        names = FACTORS if padded else FACTORS[:2]
        return max(names, key=lambda name: float(getattr(self, name)))

    def stands(self, ratio: float) -> str:
        """Where a ratio stands to the claim."""
        low, high = self.claim
        return "below" if ratio < low else "above" if ratio > high else "holds"

    def record(self) -> dict[str, Any]:
        """All of it, flat."""
        return {"trace": self.trace, "batch": self.baseline.batch, "reserve": self.baseline.reserve,
                "model_len": self.baseline.model_len, "slots": self.slots, "memory": self.memory,
                "padding": self.padding, "ragged": self.ragged, "padded": self.padded,
                "ragged_verdict": self.stands(self.ragged), "padded_verdict": self.stands(self.padded),
                "ragged_cause": self.cause(padded=False), "padded_cause": self.cause(padded=True),
                "rejected": self.rejected}


def verdict_spec() -> VerdictSpec:
    """The bundled file."""
    return build(VerdictSpec, read_file("verdict"), "verdict.yaml")


def verdict_rows(spec: VerdictSpec, seed: int = 0, progress: Progress | None = None) -> tuple[Row, ...]:
    """Every trace against every baseline. `seed` is that of the stand-ins."""
    rows: list[Row] = []
    for row in _rows(spec, seed):
        rows.append(row)
        if progress:
            progress(f"verdict: {row.trace}", len(rows), len(spec.traces) * len(spec.baselines))
    return tuple(rows)


def _rows(spec: VerdictSpec, seed: int) -> Iterator[Row]:
    for name, requests in spec.traces.items():
        base = scenario_of(**spec.scenario, trace=name, num_prompts=requests, load="saturated",
                           seed=seed)
        base = base.but(trace=read_trace(base))
        known: dict[int | None, float] = {}    # vLLM's own throughput, by model length
        for baseline in spec.baselines:
            scenario = base.but(max_model_len=baseline.model_len)
            if baseline.model_len not in known:
                known[baseline.model_len] = _served(scenario.but(policy=Vllm()))[0]
            yield _row(name, baseline, scenario, known[baseline.model_len], (spec.range[0], spec.range[1]))


def _row(name: str, baseline: Baseline, scenario: Scenario, vllm: float, claim: tuple[float, float]) -> Row:
    """The factors of one ratio: three runs of the baseline and one of vLLM with as many slots."""
    static = StaticBatching(max_batch_size=baseline.batch, reserve=baseline.reserve)    # type: ignore[arg-type]
    free = scenario.but(kv_capacity_tokens=inf)
    equal = _served(free.but(policy=Vllm().bounded_by(baseline.batch)))[0] / _served(free.but(policy=static))[0]
    ragged, rejected = _served(scenario.but(policy=static))
    padded, _ = _served(scenario.but(policy=replace(static, padded=True)))
    return Row(name, baseline, equal, vllm / ragged / equal, ragged / padded, rejected, claim)


def _served(scenario: Scenario) -> tuple[float, int]:
    """Output tokens a second, and how many requests are rejected."""
    result = run(scenario)
    line = result.timeline
    seconds = int(line.last_delivered.max() - line.sent.min()) / 1e9
    return int(line.output.sum()) / seconds, int((result.setup.verdict > 0).sum())


def conclusion(rows: tuple[Row, ...]) -> str:
    """What the table says, in a few sentences."""
    cells = [(row.stands(ratio), row.cause(padded=padded))
             for row in rows for padded, ratio in ((False, row.ragged), (True, row.padded))]
    inside = [cause for stands, cause in cells if stands == "holds"]
    above = sum(stands == "above" for stands, _ in cells)
    low, high = rows[0].claim
    causes = ", ".join(f"{name} in {inside.count(name)}" for name in
                       sorted(FACTORS, key=inside.count, reverse=True) if name in inside)
    slots = [row.slots for row in rows]
    return (f"{low:g}-{high:g}x holds in {len(inside)} of {len(cells)} ratios and is exceeded in {above}. "
            + (f"Where it holds, the largest factor is {causes}. " if inside else "")
            + f"Slots released and refilled at every step are worth {min(slots):.1f}x to {max(slots):.1f}x by "
            "themselves. The factors are taken in this order: slots, memory, padding." + _left_out(rows))


def _left_out(rows: tuple[Row, ...]) -> str:
    """Which rows are of fewer requests, because a model length keeps some out."""
    told = [f"{row.rejected} of {row.trace} at {row.baseline.label}" for row in rows if row.rejected]
    return f" Too long for the reservation, and left out on both sides: {'; '.join(told)}." if told else ""
