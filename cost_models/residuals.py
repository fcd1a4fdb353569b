"""How measured step times scatter around a profile's predictions, as quantiles of measured over predicted.

Where a profile states no quantiles but a mean absolute error, the scatter is taken as normal; a regime without any
takes that of the regime with the largest error.
"""

from collections.abc import Mapping, Sequence
from math import pi, sqrt
from statistics import NormalDist

from cost_models.fits import Error, Errors

KNOTS = 65
"""Quantiles of a distribution that is not given by its own."""


def residuals(errors: Errors) -> Mapping[str, Sequence[float]] | None:
    """Quantiles by regime; None where no regime states an error."""
    stated = {regime: error for regime, error in vars(errors).items() if error}
    if not stated:
        return None
    widest = max(stated.values(), key=lambda error: error.mape_percent)
    return {regime: _quantiles(stated.get(regime, widest)) for regime in vars(errors)}


def _quantiles(error: Error) -> Sequence[float]:
    return error.residuals or normal_residuals(error.mape_percent)


def normal_residuals(mape_percent: float) -> list[float]:
    """Quantiles of a normal error with that mean absolute value; a step lasts at least a tenth of its time."""
    width = mape_percent / 100 * sqrt(pi / 2)
    return [max(0.1, 1 + width * z) for z in normal_knots()]


def normal_knots() -> list[float]:
    """The standard normal in the middle of each of KNOTS equal shares."""
    return [NormalDist().inv_cdf((i + 0.5) / KNOTS) for i in range(KNOTS)]
