"""Policy: one engine's rule for what to run next.

It knows no clock beyond `now`, no cost, no record and no true output length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from operator import index
from typing import Any, ClassVar, Self

import numpy as np

from simulator import checks
from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED, Lengths, Memory
from simulator.request import Request
from simulator.step import Queue, Step, Wait

CAPS = ("max_num_seqs", "max_batch_size", "max_running_requests", "max_bs")
"""What engines call the most requests that may run at once."""


@dataclass
class Policy:
    """Base of all policies: a dataclass of knobs, each named as the engine names it; None means the engine's default.

    A subclass writes `plan`, and `memory` says how it holds KV cache. Run state goes into fields with
    ``init=False``: each replica runs a fresh copy, so one object may be used many times.

    Class attributes:
        name: Its id on the command line.
        version: The engine and version that it mirrors.
        evidence: "recorded" (checked against the engine's own decisions), "transcribed", "published" or "textbook".
        left_out: What the engine does and this policy does not.
        steady: While everybody only decodes, nothing but an arrival, a finish or a full memory changes its mind.
        unit: What it decides about at once.
        streams: Tokens reach the client as they are made; False: when the request leaves.
    """

    name: ClassVar[str] = "custom"
    version: ClassVar[str] = "of your own"
    evidence: ClassVar[str] = "none"
    left_out: ClassVar[tuple[str, ...]] = ()
    steady: ClassVar[bool] = False
    streams: ClassVar[bool] = True
    unit: ClassVar[str] = "one step"

    def __post_init__(self) -> None:
        """Keep numbers of numpy as Python's; a subclass with checks of its own calls this first."""
        for name in self.__dataclass_fields__:    # vars(self) would make every knob slower to read, for good
            if isinstance(value := getattr(self, name, None), np.generic):
                setattr(self, name, value.item())

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        """What to run at `now` (nanoseconds): a Step, a Wait, or None to sleep until a request arrives."""
        raise TypeError(f"{type(self).__name__} does not say what to run: write its plan(queue, memory, now)")

    def idle(self, queue: Queue, memory: Memory, now: int) -> Wait | None:
        """What to do at `now` with nobody there: None sleeps until a request arrives."""
        return None

    def urgency(self) -> Callable[[Request], Any] | None:
        """A key by which the queue is kept, the smallest first; None keeps it in the order of arrival."""
        return None

    def leaving(self, finished: list[Request], queue: Queue) -> list[Request]:
        """Who gives up slot and memory after a step in which `finished` emitted their last token.

        Asked after each step at whose end anybody has finished and not yet left.
        """
        return finished

    def dropped(self, request: Request) -> None:
        """Take note that a request that held a slot is gone, because its client has hung up."""

    def resolve(self, deployment: Deployment) -> Self:
        """A copy with every knob that was None set to the engine's default for this deployment."""
        return replace(self)

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        """The KV cache that this engine keeps. `outputs` are true lengths by request index, for oracles only."""
        from simulator.memory.paged import Paged
        return Paged(deployment.kv_capacity_tokens // 16, 16)

    def room(self, prompt: Lengths, deployment: Deployment) -> Lengths | None:
        """Most output tokens that the engine lets requests of these prompts have; below 1 it refuses them.

        None: as many as the model allows.
        """
        limit = getattr(self, "max_model_len", None)
        return None if limit is None else limit - prompt

    @property
    def slots(self) -> int:
        """Most requests that may run at once: the knob that says so by an engine's name; UNLIMITED without a cap."""
        for knob in self._caps():
            return getattr(self, knob) or UNLIMITED
        return UNLIMITED

    @property
    def longest_prompt(self) -> int:
        """Tokens of the longest prompt that it ever computes."""
        return UNLIMITED

    @property
    def batches_in_flight(self) -> int:
        """Batches that may be under way at once, each in a pipeline stage of its own."""
        return 1

    @property
    def max_outstanding(self) -> int:
        """Most requests that its front end takes, waiting and running; it refuses more at once. UNLIMITED: all."""
        return UNLIMITED

    @classmethod
    def is_steady(cls) -> bool:
        """Whether the class that writes the rule says that it is steady: a new rule inherits no promise."""
        writer = next(kind for kind in cls.__mro__ if vars(kind).keys() & {"steady", "plan", "leaving"})
        return cls.steady and "steady" in vars(writer)

    def bounded_by(self, slots: int) -> Self:
        """A copy that runs up to `slots` requests and has no other bound of its own, where it has a knob for that."""
        return replace(self, **dict.fromkeys(self._caps(), slots))

    @classmethod
    @cache
    def _caps(cls) -> tuple[str, ...]:
        """Those of its knobs that cap the sequences."""
        return tuple(knob for knob in CAPS if knob in cls.knobs())

    @classmethod
    def knobs(cls) -> dict[str, Any]:
        """Knob names and their defaults."""
        return {field.name: field.default for field in fields(cls) if field.init}

    def unheeded(self) -> tuple[str, ...]:
        """Knobs that are set and decide nothing, as the others are."""
        return ()

    def settings(self) -> dict[str, Any]:
        """Knob names and their present values."""
        return {name: getattr(self, name) for name in self.knobs()}


def positive(policy: Policy, *names: str) -> None:
    """Refuse knobs that are set, but not to a whole number of at least 1 that stays within 64 bits."""
    for name in names:
        value = getattr(policy, name)
        if value is None and "None" in str(type(policy).__dataclass_fields__[name].type):
            continue
        checks.whole(f"{policy.name}: {name}", value)


def not_negative(policy: Policy, *names: str) -> None:
    """Refuse knobs that are no whole number of at least 0 within 64 bits."""
    for name in names:
        checks.whole(f"{policy.name}: {name}", getattr(policy, name), 0)


def at_most(policy: Policy, name: str, bound: int) -> None:
    """Refuse a knob above a bound."""
    if (value := getattr(policy, name)) is not None and value > bound:
        raise InputError(f"{policy.name}: {name} must be at most {bound}, not {value!r}")


def one_of(policy: Policy, name: str, known: tuple[str, ...]) -> None:
    """Refuse a knob that is none of the known words."""
    value = getattr(policy, name)
    if value not in known:
        raise InputError(f"{policy.name}: {name} must be one of {', '.join(known)}, not {value!r}")


def flag(policy: Policy, *names: str) -> None:
    """Refuse knobs that are neither true nor false."""
    for name in names:
        if not isinstance(getattr(policy, name), bool):
            raise InputError(f"{policy.name}: {name} must be true or false, not {getattr(policy, name)!r}")


def whole_numbers(policy: Policy, name: str) -> None:
    """Make a knob that lists whole numbers of at least 1 a tuple: `8`, `4,8` and [4, 8] are such lists."""
    value = getattr(policy, name)
    listed = value.split(",") if isinstance(value, str) else [value] if isinstance(value, int) else value
    if value is None:
        return
    try:
        numbers = tuple(int(each) if isinstance(each, str) else index(each) for each in listed
                        if not isinstance(each, bool))
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or len(numbers) < len(listed) or not 1 <= min(numbers) <= max(numbers) <= UNLIMITED:
        raise InputError(f"{policy.name}: {name} must list whole numbers of at least 1, such as 4,8, not {value!r}")
    setattr(policy, name, numbers)
