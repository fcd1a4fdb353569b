"""A fit finds the coefficients that made the rows, states its errors on rows it has not seen, and refuses too few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.errors import error, folds
from calibration.fit import FitError, fit_all, fit_regime, predict
from calibration.least_squares import _lawson_hanson, relative_nonnegative
from calibration.rows import StepRows
from cost_models import StepShape
from cost_models.fits import Regime

# The arithmetic overtakes the weights at 80 rows of a decode, and at 122 tokens of a chunk.
DECODE = Regime(base_ms=0.8, weights_ms=5.6, per_token_ms=0.07, per_context_token_ms=4.1e-5)
PREFILL = Regime(base_ms=0.5, weights_ms=6.1, per_token_ms=0.05, per_token_sq_ms=1.5e-6)
MIXED = Regime(base_ms=6.5, per_token_ms=0.05, per_seq_ms=0.012, per_context_token_ms=6e-5, per_token_sq_ms=1.2e-6)


def shapes() -> list[StepShape]:
    decodes = [StepShape(s, s * k) for s in (1, 3, 8, 20, 64, 80, 130, 200) for k in (16, 200, 1000, 5000)]
    chunks = [((n, p),) for n in (16, 64, 122, 512, 2048) for p in (0, 300, 4000)]
    beside = [StepShape(s, s * k, chunk) for s in (2, 16, 100) for k in (50, 900) for chunk in chunks]
    return decodes + [StepShape(0, 0, chunk) for chunk in chunks] + beside


def made(noise: float = 0.0, seed: int = 0) -> StepRows:
    """Rows that the three regimes above would take, each off by a random factor."""
    rows = StepRows(shapes(), np.ones(len(shapes())))
    ms = np.zeros(len(rows))
    for kind, regime in (("decode", DECODE), ("prefill", PREFILL), ("mixed", MIXED)):
        ours = (rows.decodes > 0) == (kind != "prefill")
        ours &= (rows.tokens > 0) == (kind != "decode")
        ms[ours] = predict(regime, rows[ours])
    return replace(rows, ms=ms * (1 + noise * np.random.default_rng(seed).standard_normal(len(rows))))


def close(found: Regime, wanted: Regime, rel: float) -> None:
    for name, value in vars(wanted).items():
        if name != "origin":
            assert getattr(found, name) == pytest.approx(value, rel=rel, abs=1e-9), name


def test_known_coefficients_come_back() -> None:
    fit = fit_all(made())
    assert fit.regimes is not None
    for found, wanted in zip(vars(fit.regimes).values(), (DECODE, PREFILL, MIXED), strict=True):
        close(found, wanted, 2e-4)
    for found in vars(fit.errors).values():
        assert found.mape_percent < 0.05
        assert found.held_out
    assert fit.range is not None
    assert fit.range.decodes == (1, 200)
    assert fit.range.prior_tokens == (0, 4000)


def test_with_noise_they_come_back_to_a_percent() -> None:
    many = [made(0.002, seed) for seed in range(16)]
    rows = StepRows(shapes() * 16, np.concatenate([one.ms for one in many]))
    found = fit_regime(rows, "mixed")
    close(found.regime, MIXED, 0.01)
    assert found.error.mape_percent == pytest.approx(0.16, abs=0.02)    # 0.2% of noise, its mean size


def test_a_row_is_predicted_by_a_fit_that_has_not_seen_it() -> None:
    """Where a whole fold is spoilt, the fit that has not seen it is exact: the spoiling is its error."""
    rows = made().of("mixed")
    spoilt = rows.ms * np.where(folds(len(rows), 0) == 1, 1.1, 1.0)
    found = fit_regime(replace(rows, ms=spoilt), "mixed").error
    assert found.residuals[-1] == pytest.approx(1.1, rel=0.002)


@pytest.mark.parametrize(("kept", "first", "words"), [
    (3, 1.0, "3 decode steps do not determine a fit: measure at least 4"),
    (0, 1.0, "0 decode steps"),
    (24, 0.0, "a decode step has no positive duration"),
    (24, float("nan"), "a decode step has no positive duration"),
])
def test_what_determines_nothing_is_refused(kept: int, first: float, words: str) -> None:
    rows = StepRows(shapes()[:kept], np.array([first, *[1.0] * kept][:kept]))
    with pytest.raises(FitError, match=words):
        fit_regime(rows, "decode")


def test_no_coefficient_is_negative() -> None:
    rows = made().of("decode")
    found = fit_regime(replace(rows, ms=10 - 1e-3 * rows.decodes), "decode").regime
    assert min(value for value in vars(found).values() if isinstance(value, float)) == 0


@given(st.lists(st.lists(st.floats(0, 10), min_size=3, max_size=3), min_size=4, max_size=12),
       st.lists(st.floats(0.5, 50), min_size=12, max_size=12))
def test_least_squares_is_optimal(columns: list[list[float]], measured: list[float]) -> None:
    """At the optimum no free coefficient has a slope, and none at 0 would gain by growing."""
    matrix, ms = np.array(columns), np.array(measured[:len(columns)])
    found = relative_nonnegative(matrix, ms)
    relative = matrix / ms[:, None]
    slope = relative.T @ (1 - relative @ found) / (np.sqrt((relative**2).sum(axis=0)) + 1e-30)
    assert (found >= 0).all()
    assert (slope <= 1e-6).all()
    assert np.abs(slope * (found > 0)).max() <= 1e-6


def test_a_system_without_an_optimum_ends_all_the_same() -> None:
    """No measurements come to one, but rounding may come close."""
    assert _lawson_hanson(np.zeros((1, 1)), np.ones(1)).tolist() == [0.0]


def test_folds_are_seeded_and_even() -> None:
    assert (folds(100, 3) == folds(100, 3)).all()
    assert (folds(100, 3) != folds(100, 4)).any()
    assert np.bincount(folds(100, 0)).tolist() == [25] * 4
    assert sorted(folds(7, 0)) == list(range(7))


def test_errors_by_hand() -> None:
    found = error(np.array([11.0, 18.0, 30.0]), np.array([10.0, 20.0, 30.0]))
    assert (found.mape_percent, found.p95_percent, found.bias_percent, found.points) == (6.67, 10.0, 0.0, 3)
    # A hundredth and 99 hundredths of the way along 0.9091, 1, 1.1111.
    assert (found.residuals[0], found.residuals[-1]) == (0.9109, 1.1089)
