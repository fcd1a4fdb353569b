"""Noise: steps that last longer or shorter than predicted, by factors with a mean of exactly 1.

A factor is drawn from quantiles, evenly spaced and joined by straight lines. The draw is a function of seed,
replica and index of the step and of nothing else, so that whoever asks for step 7 gets the same factor, after one
step or after a stretch that was cut short. Steps are independent of each other: over many of them the noise
averages out, and a bias of the costs is not its business.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, sqrt

import numpy as np

from cost_models.base import CostModel, CostModelError, StepShape, regime_of
from cost_models.linear import ARRAY_FROM
from cost_models.residuals import normal_knots

WIDEST = 2
"""Largest standard deviation over the mean; with a larger one the outermost knots alone would have to make it."""
FINE = 10**9
"""Parts of 1 to which the width of a log-normal is found."""
MASK = (1 << 64) - 1
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class Noise:
    """Draws how long steps last.

    Args:
        quantiles: Of measured over predicted time by regime, evenly spaced, ascending.
        seed: Of everything drawn.
        replica: Which replica it is for; each draws its own.

    >>> noise = Noise(dict.fromkeys(("decode", "prefill", "mixed"), (0.9, 1.0, 1.2)), seed=1)
    >>> steps = noise.draw([1000, 1000, 1000], 7, StepShape(1, 10))
    >>> steps == [noise.draw([1000], step, StepShape(1, 10))[0] for step in (7, 8, 9)]
    True
    """

    def __init__(self, quantiles: Mapping[str, Sequence[float]], seed: int, replica: int = 0) -> None:
        self._factors = {regime: centred(knots) for regime, knots in quantiles.items()}
        self._arrays = {regime: np.array(knots) for regime, knots in self._factors.items()}
        self._key = _mixed(_mixed(seed & MASK) + replica & MASK)

    def draw(self, durations: Sequence[int], step: int, shape: StepShape) -> list[int]:
        """How long steps of these predicted durations in ns last; the first has the index ``step``."""
        regime = regime_of(shape)
        if len(durations) < ARRAY_FROM:
            knots = self._factors[regime]
            return [round(lasts * self._factor(knots, at)) or 1 for at, lasts in enumerate(durations, step)]
        factors = self._many(self._arrays[regime], step, len(durations))
        drawn: list[int] = np.maximum(np.rint(np.array(durations) * factors), 1).astype(np.int64).tolist()
        return drawn

    def _factor(self, knots: list[float], step: int) -> float:
        place = (_mixed(self._key + step * GOLDEN & MASK) >> 11) * 2.0**-53 * (len(knots) - 1)
        low = int(place)
        return knots[low] + (knots[low + 1] - knots[low]) * (place - low)

    def _many(self, knots: np.ndarray, step: int, k: int) -> np.ndarray:
        """The factors of ``k`` steps, by the same arithmetic."""
        bits = np.arange(step, step + k, dtype=np.uint64) * np.uint64(GOLDEN) + np.uint64(self._key)
        bits = (bits ^ bits >> np.uint64(30)) * np.uint64(FIRST)
        bits = (bits ^ bits >> np.uint64(27)) * np.uint64(SECOND)
        place = ((bits ^ bits >> np.uint64(31)) >> np.uint64(11)).astype(np.float64) * 2.0**-53 * (len(knots) - 1)
        low = place.astype(np.int64)
        factors: np.ndarray = knots[low] + (knots[low + 1] - knots[low]) * (place - low)
        return factors


def noise_for(cost: CostModel, noise: str | float, seed: int, replica: int = 0) -> Noise:
    """``profile``: the residuals that the cost model's calibration found. A number: that standard deviation, over
    the mean, of factors that are log-normal but for their cut tails. Raises CostModelError where the model states no
    error.
    """
    if noise == "profile":
        found = cost.residuals()
        if found is None:
            raise CostModelError(f"'{cost.name}' states no error to draw noise from: give a number, as in 0.1")
        return Noise(found, seed, replica)
    spread = float(noise)
    if not 0 <= spread <= WIDEST:
        raise CostModelError(f"noise must be 'profile' or a share of the mean from 0 to {WIDEST}, got {noise!r}")
    return Noise(dict.fromkeys(("decode", "prefill", "mixed"), _log_normal(spread)), seed, replica)


def _log_normal(spread: float) -> list[float]:
    """Quantiles of a log-normal, so much wider that what is drawn between them has this spread without the tails."""
    normal = normal_knots()

    def quantiles(parts: int) -> list[float]:
        return [exp(parts / FINE * z) for z in normal]

    return quantiles(bisect_left(range(WIDEST * FINE), spread, key=lambda parts: spread_of(quantiles(parts))))


def spread_of(quantiles: Sequence[float]) -> float:
    """Standard deviation over the mean of what is drawn between these quantiles."""
    knots = centred(quantiles)
    squares = sum(low * low + low * high + high * high for low, high in pairwise(knots)) / 3
    return sqrt(max(0.0, squares / (len(knots) - 1) - 1))


def centred(quantiles: Sequence[float]) -> list[float]:
    """The same quantiles over their mean, straight lines between them included."""
    mean = (sum(quantiles) - (quantiles[0] + quantiles[-1]) / 2) / (len(quantiles) - 1)
    if not mean > 0 or quantiles[0] < 0:
        raise CostModelError("quantiles of noise must be at least 0, with a mean above 0")
    return [quantile / mean for quantile in quantiles]


def _mixed(bits: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    bits = (bits ^ bits >> 30) * FIRST & MASK
    bits = (bits ^ bits >> 27) * SECOND & MASK
    return bits ^ bits >> 31
