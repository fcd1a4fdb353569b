"""What a step looks like to a cost model, and what every cost model answers.

A cost model is given the totals of one forward pass and returns how long it lasts, in whole nanoseconds.
It knows no request, no policy and no clock: it can be called by hand.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple


class CostModelError(ValueError):
    """A wrong name, profile, shape or layout. The message is one line and says what to do next."""

    def __init__(self, message: str = "") -> None:
        super().__init__(on_one_line(message))


LONGEST = 2000
"""Characters of a message."""


def on_one_line(text: str) -> str:
    """A message that no content of a file breaks: what does not print is spelled, and what is too long is cut."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


class StepShape(NamedTuple):
    """One forward pass, in tokens as computed: a padded batch passes its rows and contexts at padded size."""

    decodes: int
    """Sequences that compute one new token each."""
    context: int
    """Tokens of context these sequences read, summed over them."""
    chunks: tuple[tuple[int, int], ...] = ()
    """Prompt chunks as (new tokens, tokens already there)."""
    padded: int = 0
    """How many of the computed tokens are padding. Informs; it is not charged a second time."""
    layout: str = "varlen"
    """``varlen`` or ``padded``. Informs; the counts above already carry the difference."""


class CostModel(ABC):
    """The duration of a step. Two calls with the same shape give the same answer."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the model is called in a listing and in a result."""

    @property
    @abstractmethod
    def origin(self) -> str:
        """Where its numbers come from, in one line."""

    @abstractmethod
    def time(self, shape: StepShape) -> int:
        """Duration of one step in ns, at least 1. Raises CostModelError for a step that computes nothing."""

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        """Durations in ns of ``k`` decode steps in a row: step ``i`` has ``i * growth`` tokens more context.

        A token for each sequence if ``growth`` is not given.
        Equals ``k`` calls of ``time``, and this definition is those calls; a faster one must agree with it.
        """
        refuse_chunks(shape)
        decodes, context = shape.decodes, shape.context
        growth = decodes if growth is None else growth
        return [self.time(StepShape(decodes, context + i * growth)) for i in range(k)]

    def in_range(self, shape: StepShape) -> bool | None:
        """Whether the shape lies where the model was measured; None where no measured range is stated.

        A range has no gaps: with decodes and chunks alike, a context between two that lie inside lies inside.
        """
        return None

    @property
    def bounds(self) -> tuple[float, ...] | None:
        """The lowest and highest decodes, context, new and prior tokens of chunks, in this order, of steps in range.

        They say the same as `in_range`, for the sums of a step; None where no such bounds do.
        """
        return None

    def residuals(self) -> Mapping[str, Sequence[float]] | None:
        """Quantiles of measured over predicted time by regime, evenly spaced; None where no error is stated."""
        return None

    def stated_bias(self) -> float | None:
        """By which share of a step its times may be off on average, either way; None where no error is stated."""
        return None

    def held_against(self) -> str | None:
        """What these errors are errors of, ``engine`` or ``kernels`` (see `fits.Fit`); None where none is stated."""
        return None

    @property
    def request_overhead(self) -> int:
        """What a request spends outside the steps (API, tokenising), in ns; 0 where none is stated."""
        return 0


def regime_of(shape: StepShape) -> str:
    """``decode``, ``prefill`` or ``mixed``."""
    return "decode" if not shape.chunks else "mixed" if shape.decodes else "prefill"


def refuse_chunks(shape: StepShape) -> None:
    """Raise CostModelError unless the step is decoding only."""
    if shape.chunks:
        raise CostModelError("decode_times takes decodes only: ask time() for a step with prompt chunks")


def empty_step() -> CostModelError:
    """The error for a step, or a prompt chunk, that computes no token."""
    return CostModelError("an empty step or chunk has no duration: give it at least one token to compute")


MOST_NAMES, NEAREST = 24, 5
"""Names that a refusal lists; of more, so many that are the most alike."""
SHOWN = 100
"""Characters of a wrong value that a refusal shows."""
_BETWEEN_WORDS = re.compile(r"[-_.]")


def shown(value: object) -> str:
    """A value on one line, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"    # which Python does not spell
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def choose(kind: str, name: str, known: Iterable[str], listed: str = "") -> str:
    """Return ``name`` if it is known; else raise one line with the nearest name and all known ones.

    Of very many names it has the most alike, and ``listed``: where all of them are.

    >>> choose("GPU", "h200", ["h100-80", "h200"])
    'h200'
    """
    names = list(known)
    if name in names:
        return name
    asked = str(name)[:SHOWN].lower()
    near = [known for known in names if asked and known.startswith(asked)]
    near = near or _same_words(asked, names) or get_close_matches(asked, names, n=1, cutoff=0.5)
    hint = f": did you mean '{near[0]}'?" if near else ""
    written = str(name) if len(str(name)) <= SHOWN else f"{str(name)[:SHOWN]}..."
    raise CostModelError(f"unknown {kind} '{written}'{hint} ({_told(asked, names, near, listed)})")


def _same_words(asked: str, names: Sequence[str]) -> list[str]:
    """The names that have all of several words, in whatever order they were asked, the shortest first."""
    words = set(_BETWEEN_WORDS.split(asked))
    found = [name for name in names if words <= set(_BETWEEN_WORDS.split(name.lower()))]
    return sorted(found, key=len) if len(words) > 1 else []


def _told(asked: str, names: Sequence[str], near: Sequence[str], listed: str) -> str:
    if len(names) <= MOST_NAMES:
        return f"known: {', '.join(names)}"
    alike = list(dict.fromkeys([*near, *get_close_matches(asked, names, n=NEAREST, cutoff=0)]))[:NEAREST]
    return f"nearest of {len(names)}: {', '.join(alike)}{listed and f'; all: {listed}'}"
