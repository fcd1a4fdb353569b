"""A fit finds the coefficients that made the rows, states its errors on rows it has not seen, and refuses too few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.errors import errors, held_out
from calibration.fit import Fit, FitError, fit_mixed, fit_regime
from calibration.least_squares import relative_nonnegative
from calibration.rows import StepRows, steps
from cost_models import StepShape

DECODE = (6.4, 0.012, 4.1e-5)
PREFILL = (6.1, 0.05, 1.5e-6)


def decode_shapes() -> list[StepShape]:
    return [StepShape(s, s * k) for s in (1, 3, 8, 20, 64, 200) for k in (16, 200, 1000, 5000)]


def prefill_shapes() -> list[StepShape]:
    return [StepShape(0, 0, ((n, p),)) for n in (16, 100, 512, 2048) for p in (0, 300, 4000)]


def mixed_shapes() -> list[StepShape]:
    beside = [((n, p),) for n in (64, 700) for p in (0, 3000)]
    return [StepShape(s, s * k, chunk) for s in (2, 16, 100) for k in (50, 900) for chunk in beside]


def made(noise: float = 0.0, seed: int = 0) -> StepRows:
    """Rows as regimes prices them, the decode base paid once in a mixed step, factors 1.5 and 0.8."""
    def price(shape: StepShape) -> float:
        tokens = sum(n for n, _ in shape.chunks)
        squares = sum(n * (n + 2 * p) for n, p in shape.chunks)
        if not shape.decodes:
            return PREFILL[0] + tokens * PREFILL[1] + squares * PREFILL[2]
        both = bool(shape.chunks)
        return (DECODE[0] + shape.decodes * DECODE[1] + shape.context * DECODE[2] * (1.5 if both else 1)
                + tokens * PREFILL[1] + squares * PREFILL[2] * 0.8)

    shapes = decode_shapes() + prefill_shapes() + mixed_shapes()
    factor = 1 + noise * np.random.default_rng(seed).standard_normal(len(shapes))
    return steps(shapes, [price(shape) * f for shape, f in zip(shapes, factor, strict=True)])


def fitted(rows: StepRows) -> tuple[Fit, Fit, Fit]:
    decode, prefill = fit_regime(rows, "decode"), fit_regime(rows, "prefill")
    return decode, prefill, fit_mixed(rows, decode, prefill)


def test_known_coefficients_come_back() -> None:
    decode, prefill, mixed = fitted(made())
    assert list(decode.coefficients.values()) == pytest.approx(DECODE, rel=1e-4)
    assert list(prefill.coefficients.values()) == pytest.approx(PREFILL, rel=1e-4)
    assert mixed.coefficients == {"base": "decode", "decode_attention": pytest.approx(1.5, rel=1e-3),
                                  "prefill_attention": pytest.approx(0.8, rel=1e-3)}
    for found in (decode, prefill, mixed):
        assert found.errors.mape_percent < 0.01


def test_with_noise_they_come_back_to_a_percent_or_so() -> None:
    many = [made(0.003, seed) for seed in range(8)]
    rows = StepRows(**{name: np.concatenate([getattr(one, name) for one in many]) for name in vars(many[0])})
    decode, prefill, mixed = fitted(rows)
    assert list(decode.coefficients.values()) == pytest.approx(DECODE, rel=0.01)
    assert list(prefill.coefficients.values()) == pytest.approx(PREFILL, rel=0.01)
    assert mixed.coefficients["decode_attention"] == pytest.approx(1.5, rel=0.01)
    assert mixed.coefficients["prefill_attention"] == pytest.approx(0.8, rel=0.01)
    assert 0.15 < decode.errors.mape_percent < 0.4    # 0.3% of noise is a mean absolute error of 0.24%


def test_the_errors_are_those_of_the_rows_kept_back() -> None:
    rows = made()
    decode = rows.regime("decode")
    kept_back = held_out(len(decode), seed=0)
    spoilt = decode.ms * np.where(kept_back, 1.1, 1.0)
    found = fit_regime(StepRows(**{**vars(decode), "ms": spoilt}), "decode")
    assert list(found.coefficients.values()) == pytest.approx(DECODE, rel=1e-4)
    assert found.errors.bias_percent == pytest.approx(100 * (1 / 1.1 - 1), abs=0.01)
    assert found.errors.mape_percent == pytest.approx(-found.errors.bias_percent, abs=0.01)
    assert found.rows == (18, 6)


def test_the_range_is_where_the_rows_lie() -> None:
    assert fit_regime(made(), "decode").bounds == {"decodes": [1, 200], "context": [16, 1_000_000]}
    assert fit_regime(made(), "prefill").bounds == {"chunk_tokens": [16, 2048], "prior_tokens": [0, 4000]}


@pytest.mark.parametrize(("shapes", "ms", "words"), [
    (decode_shapes()[:3], [1.0] * 3, "3 decode rows do not determine 3 coefficients: measure at least 4"),
    ([], [], "0 decode rows"),
    (decode_shapes(), [0.0] + [1.0] * 23, "a decode row has no positive duration"),
    (decode_shapes(), [float("nan")] + [1.0] * 23, "a decode row has no positive duration"),
])
def test_what_determines_nothing_is_refused(shapes: list[StepShape], ms: list[float], words: str) -> None:
    with pytest.raises(FitError, match=words):
        fit_regime(steps(shapes, ms), "decode")


def test_no_coefficient_is_negative() -> None:
    falling = steps(decode_shapes(), [10 - 1e-3 * shape.decodes for shape in decode_shapes()])
    assert min(fit_regime(falling, "decode").coefficients.values()) == 0


@given(st.lists(st.lists(st.floats(0, 10), min_size=3, max_size=3), min_size=4, max_size=12),
       st.lists(st.floats(0.5, 50), min_size=12, max_size=12))
def test_least_squares_is_optimal(columns: list[list[float]], measured: list[float]) -> None:
    """At the optimum no free coefficient has a slope, and none at 0 would gain by growing."""
    matrix, ms = np.array(columns), np.array(measured[:len(columns)])
    found = relative_nonnegative(matrix, ms)
    relative = matrix / ms[:, None]
    slope = relative.T @ (1 - relative @ found)
    assert (found >= 0).all()
    scale = np.sqrt((relative**2).sum(axis=0)) + 1e-30
    assert (slope / scale <= 1e-6).all()
    assert np.abs(slope / scale * (found > 0)).max() <= 1e-6


def test_held_out_is_seeded_and_never_all() -> None:
    assert (held_out(100, 3) == held_out(100, 3)).all()
    assert (held_out(100, 3) != held_out(100, 4)).any()
    assert [int(held_out(rows, 0).sum()) for rows in (2, 4, 100)] == [1, 1, 25]


def test_errors_by_hand() -> None:
    found = errors(np.array([11.0, 18.0, 30.0]), np.array([10.0, 20.0, 30.0]))
    assert (found.mape_percent, found.bias_percent) == (pytest.approx(20 / 3), pytest.approx(0))
    assert found.p95_percent == pytest.approx(10)
