"""Dialogue: what a spec says of how requests follow each other and what their prompts have in common. It draws nothing.

A later prompt is the prompt before it, the answer to that, and a new message; some turns keep only the beginning of the
prompt before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from traces.errors import TraceError, shown
from traces.strict import count, number

PROBS = np.arange(101) / 100
"""Where quantiles stand."""


@dataclass(frozen=True)
class Dialogue:
    """The conversations of a spec. Quantiles stand at the probabilities 0, 0.01, ... 1; values between are linear.

    Attributes:
        sizes: How many conversations have so many turns, by turns.
        alone_below: First prompts of fewer tokens stay without a second turn, as far as there are others.
        gap_s: Quantiles of the seconds from one turn to the next.
        tick_s: These are rounded to whole ticks of so many seconds; 0: not at all.
        message: Quantiles of the tokens of a later prompt beyond the prompt before it and the answer to that, below 0
            where not all of the answer comes again; in conversations of so many turns or more, by turns.
        cut: Share of later turns that repeat only the beginning of the prompt before, by the tokens that this has at
            least; others repeat all of its full blocks.
        kept: For these, quantiles of the percentage of that prompt that they repeat.
        length: For these, quantiles of the percentage of its length that they have.
        block: Tokens of a block.
        common: Blocks with which all prompts begin.
        longest: Tokens of the longest prompt; what would be longer is cut there.
        reused: Share of the source's prompt tokens in blocks that came before, as published, for tests.
    """

    sizes: Mapping[int, int]
    gap_s: Sequence[float]
    message: Mapping[int, Sequence[float]]
    longest: int
    cut: Mapping[int, float] = field(default_factory=dict)
    kept: Sequence[float] = ()
    length: Sequence[float] = ()
    alone_below: int = 0
    tick_s: int = 0
    block: int = 512
    common: int = 0
    reused: float = 0.0

    def __post_init__(self) -> None:
        for name, value, least in (("longest", self.longest, 1), ("block", self.block, 1), ("tick_s", self.tick_s, 0),
                                   ("common", self.common, 0), ("alone_below", self.alone_below, 0)):
            count(name, value, least)
        for name in ("sizes", "message", "cut"):
            given = getattr(self, name)
            if not isinstance(given, Mapping) or not (given or name == "cut"):
                raise TraceError(f"{name} must map whole numbers to values, not {shown(given)}")
            for key in given:
                count(f"a key of {name}", key, 0 if name == "cut" else 1)
        for turns, conversations in self.sizes.items():
            count(f"sizes of {turns} turns", conversations)
        for share in self.cut.values():
            number("cut", share, least=0, most=1)
        for turns, quantiles in self.message.items():
            _check_quantiles(f"message of {turns} turns", quantiles, -self.longest)
        for name in ("gap_s", *(("kept", "length") if self.cut else ())):
            _check_quantiles(name, getattr(self, name), 0)

    @property
    def conversations(self) -> int:
        """How many there are."""
        return sum(self.sizes.values())

    @property
    def rows(self) -> int:
        """Turns of all of them."""
        return sum(turns * conversations for turns, conversations in self.sizes.items())


def _check_quantiles(name: str, values: object, least: float) -> None:
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != len(PROBS):
        raise TraceError(f"{name} must list {len(PROBS)} numbers")
    for value in values:
        number(name, value, least=least)
    if np.any(np.diff(values) < 0):
        raise TraceError(f"{name} must not fall from one probability to the next")
