"""The words between a recording and a replay: the Case that is run and the Decisions that it takes.

It knows no engine and no file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from cost_models import CostModel, StepShape
from simulator.conformance.recording import Line, Recording
from simulator.errors import InputError
from simulator.memory.base import Memory
from simulator.policies.base import Policy
from simulator.pricing import SMALLEST
from simulator.request import Request


class Row(NamedTuple):
    """What one request gets in a step."""

    name: str
    kind: Literal["new", "resumed", "running"]
    tokens: int
    computed: int    # tokens with KV before the step


@dataclass(frozen=True)
class Decision:
    """What one call of the engine's scheduler decided, and what came of it. Requests are their names.

    Attributes:
        number: Steps before it, those in which nothing ran included.
        start: When it began, in ticks.
        arrived: Who was sent since the latest decision.
        rows: Who computes, in the order of the batch; empty where nothing can run.
        preempted: Who lost its memory, in that order.
        sampled: Who emitted a token, in the order of the batch.
        finished: Who left, in that order.
        used_planned: Blocks held right after the decision.
        shared: Tokens of KV that requests held together then, counted once for each holder beyond the first.
        used, free: Blocks held after the step, and the others.
        evictable: Blocks, held by nobody right after the decision, that still hold reusable KV.
        decoding: Who was in the decoding set, in running order, whether it took part or not.
        ahead: Steps since the policy was asked: in fast mode it decides on several alike at once.
        running, waiting: Who runs and who waits after the step, in order; not those who arrive during it.
    """

    number: int
    start: int
    arrived: list[str]
    rows: list[Row]
    preempted: list[str]
    sampled: list[str]
    finished: list[str]
    used_planned: int
    shared: int
    used: int
    free: int
    running: list[str]
    waiting: list[str]
    evictable: int
    decoding: list[str]
    ahead: int

    @property
    def tokens(self) -> int:
        """Tokens computed in the step."""
        return sum([row.tokens for row in self.rows])


@dataclass
class Totals:
    """What a replay comes to. `unfinished` are those who were sent and never left, in the order of sending."""

    steps: int = 0
    tokens: int = 0
    preemptions: int = 0
    finished: int = 0
    empty_steps: int = 0    # in which nothing ran and nobody was preempted
    peak_running: int = 0   # after a step
    unfinished: tuple[str, ...] = ()
    gave_up: bool = False   # it reached the recorder's own limit

    def add(self, decision: Decision) -> None:
        """Count one decision."""
        self.steps += 1
        self.tokens += decision.tokens
        self.preemptions += len(decision.preempted)
        self.finished += len(decision.finished)
        self.empty_steps += not decision.rows and not decision.preempted
        self.peak_running = max(self.peak_running, len(decision.running))


@dataclass(frozen=True)
class Case(ABC):
    """A recording, ready to be replayed once, and the words in which its engine tells what happened.

    Time is counted in ticks: whatever the recording counts.

    Attributes:
        policy, memory, cost: What the replica gets; nobody else uses them.
        requests: In the order in which they are sent.
        outputs: Output tokens by request index.
        idle: Ticks that the engine's loop takes to find that nothing can run; 0: it waits for an arrival.
        most_steps: Steps after which the recorder gave up, if it came so far.
        fields: The fields that a step may have, in the order in which they are shown; others are refused.

    Class attributes:
        never_sleeps: The recorder notes every turn of the engine's loop, those with nobody there included.
    """

    never_sleeps: ClassVar[bool] = False

    policy: Policy
    memory: Memory
    cost: CostModel
    requests: Sequence[Request]
    outputs: Sequence[int]
    idle: int
    most_steps: int
    fields: tuple[str, ...]

    @abstractmethod
    def tell(self, decision: Decision, line: Line) -> Line:
        """A decision as the recorder tells it. `line` is the recorded step: a list may be cut where that one is."""

    def tell_header(self, line: Line) -> Line:
        """What a header must say; its other fields are not compared."""
        return {}

    def tell_footer(self, totals: Totals, line: Line) -> Line:
        """What a footer must say; its other fields are not compared."""
        return {}


Engine = Callable[[Recording], Case]
"""Makes a fresh case of a recording. Raises InputError for options or requests that cannot be."""


class Clock(CostModel):
    """A recorder's clock: a step takes so many ticks, and so many more a token."""

    def __init__(self, base: int, per_token: int = 0) -> None:
        self._base, self._per_token = base, per_token

    @property
    def name(self) -> str:
        return "clock"

    @property
    def origin(self) -> str:
        return "the recording"

    def time(self, shape: StepShape) -> int:
        tokens = 0 if shape == SMALLEST else shape.decodes + sum([new for new, _ in shape.chunks])
        return self._base + self._per_token * tokens

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        return [self.time(shape)] * k


def as_far(told: list[str], line: Line, field: str, count: str) -> list[str]:
    """The head of a list, as long as the recorded one, where that says by its `count` that it was cut short."""
    recorded, length = line.get(field), line.get(count)
    cut = isinstance(recorded, list) and isinstance(length, int) and length > len(recorded)
    return told[:len(recorded)] if cut else told    # type: ignore[arg-type]


def in_order(recording: Recording, read: Callable[[Line, str], tuple[Request, int]]) -> tuple[list[Request], list[int]]:
    """All requests in the order in which they are sent, and their true output tokens; `read` makes one of a line."""
    names: dict[str, str] = {}
    found: list[tuple[Request, int]] = []
    for where, row in recording.requests():
        request, output = read(row, where)
        if request.name in names:
            raise InputError(f"{where}: id '{request.name}' is also in {names[request.name]}")
        names[request.name] = where.rpartition(", ")[2]
        found.append((request, output))
    found.sort(key=lambda pair: pair[0].arrival)
    for index, (request, _) in enumerate(found):
        request.index = index
    return [request for request, _ in found], [output for _, output in found]
