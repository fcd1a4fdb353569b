"""Layout: so many GPUs of a type a replica, and the replicas - or the traffic - that a search finds for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cost_models import CostModelError
from simulator.errors import FileChanged, InputError
from simulator.scenario import Scenario
from simulator.studies.capacity.bound import Bound
from simulator.studies.capacity.lab import MOST_NOTCHES, Lab, Measure, notch_below, scale_of
from simulator.studies.capacity.question import Question
from simulator.studies.capacity.sample import Sample
from simulator.studies.capacity.traffic import Probe, Traffic
from simulator.studies.capacity.verdict import Verdict

ALONE, FLAT_OUT = Probe(0), Probe(1, saturated=True)


@dataclass(eq=False)
class Layout:
    """One way to deploy the model.

    Attributes:
        gpu: GPU id.
        size: GPUs a replica: the tensor-parallel size.
        lab: Its runs; None where the model cannot be deployed so.
        bound: What throughput alone asks for.
        replicas: Of the answer; None where there is none.
        notch: Of the answer: how much faster than the trace the traffic may be; 0 where replicas are sought.
        why_not: Why there is no answer, in a sentence.
        in_doubt: Whether that is because too few requests come to be sure, and more of them might show an answer.
        nearest: What comes nearest to it and would do, in sentences.
    """

    gpu: str
    size: int
    lab: Lab | None = None
    bound: Bound | None = None
    replicas: int | None = None
    notch: int = 0
    why_not: str = ""
    in_doubt: bool = False
    nearest: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The GPUs of a replica."""
        return self.gpu if self.size == 1 else f"{self.size} x {self.gpu} (tp{self.size})"

    @property
    def gpus(self) -> int | None:
        """All GPUs of the answer."""
        return None if self.replicas is None else self.replicas * self.size

    @property
    def scale(self) -> float:
        """How many times the trace's own traffic the answer carries."""
        return scale_of(self.notch)

    @property
    def runs(self) -> Lab:
        """Its runs, where there are some."""
        assert self.lab is not None
        return self.lab

    def sample(self) -> Sample:
        """The run of the answer, with the first seed."""
        return self.runs.sample(Probe(self.replicas or 1, self.scale))

    def verdict(self) -> Verdict:
        """The verdict on the answer."""
        return self.runs.verdict(self.replicas or 1, self.scale)

    @property
    def flat_out(self) -> Sample:
        """One replica with every request queued at 0."""
        return self.runs.sample(FLAT_OUT)

    @property
    def alone(self) -> Sample:
        """Requests that have a replica to themselves."""
        return self.runs.sample(ALONE)

    def highest_possible(self, replicas: int) -> int:
        """Notches above which throughput alone lets no backlog of so many replicas stay."""
        assert self.bound is not None
        scale = replicas * self.bound.rate / self.offered
        return MOST_NOTCHES if scale >= scale_of(MOST_NOTCHES) else max(notch_below(scale), -MOST_NOTCHES)

    @property
    def offered(self) -> float:
        """Requests a second of the trace's own traffic."""
        return self.runs.traffic.offered or 0.0


def price_of(gpu: str, scenario: Scenario) -> float | None:
    """Dollars for an hour of a GPU of this type; None where none is given."""
    return scenario.prices.get(gpu)


def spent(layout: Layout, scenario: Scenario) -> float | None:
    """Dollars an hour, or GPUs where no price is given, for the trace's own traffic; None without an answer."""
    if layout.gpus is None:
        return None
    return layout.gpus * (price_of(layout.gpu, scenario) or 1.0) / layout.scale


def layouts_of(question: Question, scenarios: Sequence[Scenario], measure: Measure) -> list[Layout]:
    """All layouts asked for, of these scenarios; one that cannot be says why, unless it is the only one."""
    pairs = [(gpu, size) for gpu in question.gpus for size in question.sizes]
    return [_layout(question, scenarios, measure, gpu, size, only=len(pairs) == 1) for gpu, size in pairs]


def _layout(question: Question, scenarios: Sequence[Scenario], measure: Measure, gpu: str, size: int,
            only: bool) -> Layout:
    try:
        traffic = Traffic([scenario.but(gpu=gpu, tensor_parallel_size=size) for scenario in scenarios],
                          question.scenario)
    except (CostModelError, InputError) as error:
        if only or isinstance(error, FileChanged):
            raise
        return Layout(gpu, size, why_not=str(error))
    return Layout(gpu, size, Lab(traffic, question.objectives, question.level, measure))
