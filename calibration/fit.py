"""Fits: the coefficients of one kind of step from measured steps, and the error on rows that the fit has not seen.

The formula is that of ``cost_models.regimes``. Decode, prefill and mixed steps are fitted apart, by relative least
squares, and no coefficient is negative. The error is cross-validated: each row is predicted by a fit to the folds
without it; the coefficients handed back are fitted to all rows. It reads no file.

As a program (``python -m calibration.fit``) it makes the bundled profiles again: see ``bundled``.
"""

import sys
from dataclasses import dataclass
from typing import get_args

import numpy as np

from calibration.errors import error, folds
from calibration.least_squares import relative_nonnegative
from calibration.rows import Bounds, Floats, Kind, StepRows
from cost_models.fits import Error, Errors, Fit, Range, Regime, RegimeTable

DIGITS = 5
"""Significant digits of a coefficient: more than any measurement has, and few enough to read."""
KNEES = 24
"""How many places are tried for the knee where arithmetic overtakes the reading of the weights."""
NEEDED = {"decode": 4, "prefill": 4, "mixed": 6}
"""Rows without which a regime is not fitted."""


class FitError(ValueError):
    """The measured rows do not determine what was asked for. The message is one line."""


@dataclass(frozen=True)
class FittedRegime:
    """One kind of step: its coefficients, their error on unseen rows, and where the rows lie."""

    regime: Regime
    error: Error
    bounds: Bounds


def fit_regime(rows: StepRows, kind: Kind, seed: int = 0) -> FittedRegime:
    """The coefficients of one kind of step.

    Raises:
        FitError: Too few rows of that kind, or one without a positive duration.
    """
    own = rows.of(kind)
    if len(own) < NEEDED[kind]:
        raise FitError(f"{len(own)} {kind} steps do not determine a fit: measure at least {NEEDED[kind]}")
    if not (np.isfinite(own.ms).all() and (own.ms > 0).all()):
        raise FitError(f"a {kind} step has no positive duration: measure it again or leave it out")
    fold, predicted = folds(len(own), seed), np.zeros(len(own))
    for kept_back in (fold == number for number in np.unique(fold)):
        predicted[kept_back] = predict(_regime(own[~kept_back]), own[kept_back])
    return FittedRegime(_regime(own), error(predicted, own.ms), own.bounds())


def fit_all(rows: StepRows, seed: int = 0) -> Fit:
    """All three kinds of step, as the fit of a profile."""
    found = {kind: fit_regime(rows, kind, seed) for kind in get_args(Kind)}
    return Fit("regimes", regimes=RegimeTable(**{kind: each.regime for kind, each in found.items()}),
               errors=Errors(**{kind: each.error for kind, each in found.items()}), range=Range(**rows.bounds()))


def predict(regime: Regime, rows: StepRows) -> Floats:
    """Milliseconds of each row, host time left out."""
    matrices = np.maximum(regime.weights_ms, regime.per_token_ms * rows.matrix_rows)
    attention = regime.per_context_token_ms * rows.context + regime.per_token_sq_ms * rows.squares
    return regime.base_ms + matrices + regime.per_seq_ms * rows.decodes + attention


def _regime(rows: StepRows) -> Regime:
    """The best coefficients over all places of the knee; without one if that is as good."""
    knees = np.unique(np.quantile(rows.matrix_rows, np.linspace(0, 0.9, KNEES), method="lower"))
    tried = [_with_knee(rows, knee) for knee in (0.0, *knees)]
    return min(tried, key=lambda regime: float(((predict(regime, rows) / rows.ms - 1) ** 2).sum()))


def _with_knee(rows: StepRows, knee: float) -> Regime:
    """Least squares where matrices take the same time for up to so many rows as for that many."""
    terms = [np.ones(len(rows)), np.maximum(knee, rows.matrix_rows), rows.decodes, rows.context, rows.squares]
    base, token, seq, context, square = map(rounded, relative_nonnegative(np.stack(terms, axis=1), rows.ms).tolist())
    return Regime(base, rounded(knee * token), token, seq, context, square)


def rounded(value: float) -> float:
    """To as many digits as a profile has."""
    return float(f"{value:.{DIGITS}g}")


if __name__ == "__main__":
    from calibration.bundled import main
    sys.exit(main())
