"""The new-token ratio: what share of the tokens that running requests may still generate the engine sets aside.

It starts careful, becomes bolder with every decode step, and jumps when the boldness did not pay.
Mirrors: SGLang 0.5.23.
"""

from __future__ import annotations

from collections.abc import Collection

from simulator.request import Request

START, FLOOR_FACTOR, STEPS_TO_FLOOR, RETRACT_STEPS = 0.7, 0.14, 600, 20
"""The engine's environment values: where it starts, its floor as a factor of that, decode steps from the one to the
other, and how many steps those who stay after a retraction must be able to take."""


class NewTokenRatio:
    """The ratio as it stands.

    Args:
        conservativeness: Factor of the usual start; the start never exceeds 1.
        start: Another start. Floor and decay stay those of the usual one.
    """

    def __init__(self, conservativeness: float = 1.0, start: float | None = None) -> None:
        usual = min(START * conservativeness, 1.0)
        self._start = usual if start is None else start
        self._floor = usual * FLOOR_FACTOR
        self._step = (usual - self._floor) / STEPS_TO_FLOOR
        self.value = self._start

    def reset(self) -> None:
        """Nobody is there: be careful again."""
        self.value = self._start

    def decay(self, steps: int) -> None:
        """So many decode steps went well."""
        self.value = self.after(steps)

    def after(self, steps: int) -> float:
        """What it comes to after so many decode steps, one by one: floating-point sums depend on that."""
        value = self.value
        for _ in range(steps):
            if value == self._floor:
                break
            value = max(value - self._step, self._floor)
        return value


def after_a_retraction(kept: Collection[Request]) -> float:
    """What it jumps to: the share of their tokens that those who stay will have generated in 20 steps."""
    generated = sum(request.generated + RETRACT_STEPS for request in kept)
    return min(1.0, generated / (sum(request.max_tokens for request in kept) + 1))
