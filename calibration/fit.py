"""Fits: coefficients of the form ``regimes`` from measured steps, each with the errors on rows it has not seen.

Decode, prefill and mixed steps are fitted apart, by relative least squares, and no coefficient is negative. It
reads no file; ``published`` and the calibration run bring the rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.errors import Errors, errors, held_out
from calibration.least_squares import relative_nonnegative
from calibration.rows import Floats, Mask, Regime, StepRows

DIGITS = 6
"""Significant digits of a coefficient: more than any measurement has, and few enough to read."""


class FitError(ValueError):
    """The measured rows do not determine what was asked for. The message is one line."""


@dataclass(frozen=True)
class Fit:
    """What one regime came to.

    Attributes:
        coefficients: By the names that a profile has for them.
        errors: On the rows that were kept back.
        rows: How many rows were fitted and how many kept back.
        bounds: Where the rows lie, as a profile's range.
    """

    coefficients: dict[str, Any]
    errors: Errors
    rows: tuple[int, int]
    bounds: dict[str, list[int]]

    def section(self) -> dict[str, Any]:
        """The regime as a section of a profile."""
        return {**self.coefficients, **self.errors.rounded()}


def decode_terms(rows: StepRows) -> Floats:
    """One, sequences, their context: a column each."""
    return np.stack([np.ones(len(rows)), rows.decodes, rows.context], axis=1)


def prefill_terms(rows: StepRows) -> Floats:
    """One, new tokens, squares: a column each."""
    return np.stack([np.ones(len(rows)), rows.tokens, rows.squares], axis=1)


TERMS = {
    "decode": (decode_terms, ("base_ms", "per_seq_ms", "per_context_token_ms")),
    "prefill": (prefill_terms, ("base_ms", "per_token_ms", "per_token_sq_ms")),
}
"""What each of these regimes is made of, and how a profile calls its coefficients."""


def fit_regime(rows: StepRows, regime: Regime, seed: int = 0) -> Fit:
    """Coefficients of pure decode or pure prefill steps. Raises FitError for fewer rows than that takes."""
    own = rows.regime(regime)
    columns, names = TERMS[regime]
    terms, kept_back = _split(own, regime, columns(own), seed)
    found = _rounded(relative_nonnegative(terms[~kept_back], own.ms[~kept_back]))
    return Fit(dict(zip(names, found.tolist(), strict=True)), errors(terms[kept_back] @ found, own.ms[kept_back]),
               _counts(kept_back), own.bounds())


def fit_mixed(rows: StepRows, decode: Fit, prefill: Fit, seed: int = 0) -> Fit:
    """How steps of both kinds differ from the sum: whose base is paid, and a factor on each attention.

    The rest is priced as in the pure regimes; the base with the smaller error on the fitted rows is taken.
    """
    own = rows.regime("mixed")
    plain, attention = mixed_terms(own, decode, prefill)
    terms, kept_back = _split(own, "mixed", attention, seed)
    seen, trials = ~kept_back, []
    for base, pure in (("decode", decode), ("prefill", prefill)):
        fixed = plain + pure.coefficients["base_ms"]
        found = _rounded(relative_nonnegative(terms[seen], own.ms[seen], fixed[seen]))
        predicted = fixed + terms @ found
        trials.append((errors(predicted[seen], own.ms[seen]).mape_percent, base, found, predicted))
    _, base, found, predicted = min(trials, key=lambda trial: trial[0])
    return Fit({"base": base, "decode_attention": float(found[0]), "prefill_attention": float(found[1])},
               errors(predicted[kept_back], own.ms[kept_back]), _counts(kept_back), own.bounds())


def mixed_terms(rows: StepRows, decode: Fit, prefill: Fit) -> tuple[Floats, Floats]:
    """Of mixed steps: ms that the two pure fits ask for rows and tokens, and the ms of either attention."""
    by_row, by_token = decode.coefficients["per_seq_ms"], prefill.coefficients["per_token_ms"]
    attention = [rows.context * decode.coefficients["per_context_token_ms"],
                 rows.squares * prefill.coefficients["per_token_sq_ms"]]
    return rows.decodes * by_row + rows.tokens * by_token, np.stack(attention, axis=1)


def _split(rows: StepRows, regime: Regime, terms: Floats, seed: int) -> tuple[Floats, Mask]:
    """The terms, and which rows are kept back."""
    needed = terms.shape[1] + 1
    if len(rows) < needed:
        raise FitError(f"{len(rows)} {regime} rows do not determine {terms.shape[1]} coefficients: measure at least "
                       f"{needed}")
    if not (np.isfinite(rows.ms).all() and (rows.ms > 0).all()):
        raise FitError(f"a {regime} row has no positive duration: measure it again or leave it out")
    return terms, held_out(len(rows), seed)


def _counts(kept_back: Mask) -> tuple[int, int]:
    return int((~kept_back).sum()), int(kept_back.sum())


def _rounded(values: Floats) -> Floats:
    return np.array([float(f"{value:.{DIGITS}g}") for value in values])
