"""Raw rows of a machine whose laws are known give these laws back, and the form that says whole steps better wins."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from calibration.fitting import fit_rows, kernel_times, mean_error, shape_of, whole_steps
from cost_models.profile import RawRow

LAYERS = 4
TOKENS, HEADS, SEQUENCES, CONTEXT, CHUNK, PRIOR = (
    (1, 2, 4, 8, 16, 32, 64, 128), (1, 2, 4, 8), (1, 2, 4, 8), (8, 64, 128, 256), (8, 32, 64, 128), (0, 64, 128))
H0, H1 = 0.5, 0.02
"""Milliseconds that the host adds to a step, and to each of its sequences."""


def linear(tokens: float) -> float:
    return 10 + 2 * tokens


def decode(sequences: float, context: float) -> float:
    return 3 + 1.5 * sequences + 0.01 * sequences * context


def prefill(chunk: float, prior: float) -> float:
    return 4 + 0.5 * chunk + 0.001 * chunk * (chunk + 2 * prior)


def row(kernel: str, us: float, *dims: int) -> RawRow:
    return RawRow(kernel, dims, us, us / 20, us * 0.98, 30)


def step_ms(chunk: int, prior: int, sequences: int, context: int) -> float:
    """A step whose kernels follow one another, decodes and chunks apart."""
    attention = (decode(sequences, context) if sequences else 0) + (prefill(chunk, prior) if chunk else 0)
    rows = sequences + bool(chunk)
    kernels = LAYERS * (linear(sequences + chunk) + attention) + 5 + 3 * rows
    return kernels / 1e3 + H0 + H1 * rows


def rows_of_a_machine(noise: float = 0.0) -> list[RawRow]:
    rng = np.random.default_rng(3)
    cells = [*((0, 0, *cell) for cell in product((1, 2, 4, 6, 8), (16, 100, 200))),
             *((*cell, 0, 0) for cell in product((8, 16, 32, 64, 120), (0, 64))),
             *product((8, 16, 48), (0, 64), (2, 4, 7), (24, 100))]
    parts = {"qkv": 0.3, "o": 0.1, "gate_up": 0.4, "down": 0.15, "rest": 0.05}
    return [*(row(kernel, share * linear(tokens), tokens) for kernel, share in parts.items() for tokens in TOKENS),
            *(row("lm_head", 4 + 2 * each, each) for each in HEADS),
            *(row("head_rest", 1.0 + each, each) for each in HEADS),
            *(row("decode", decode(*cell), *cell) for cell in product(SEQUENCES, CONTEXT)),
            *(row("prefill", prefill(*cell), *cell) for cell in product(CHUNK, PRIOR)),
            *(row("mixed", prefill(*cell[:2]) + decode(*cell[2:]), *cell)
              for cell in product((8, 32, 64), (0, 64), (1, 4, 8), (8, 128))),
            *(row("step", 1e3 * step_ms(*cell) * (1 + noise * rng.standard_normal()), *cell) for cell in cells)]


def test_kernels_of_a_layer_are_put_together() -> None:
    times = kernel_times(rows_of_a_machine(), LAYERS)
    assert times.linear == pytest.approx({tokens: linear(tokens) for tokens in TOKENS})
    assert times.head == pytest.approx({each: 5 + 3 * each for each in HEADS})
    assert times.decode[4, 128] == decode(4, 128)
    assert times.prefill[32, 64] == prefill(32, 64)
    assert times.mixed[32, 64, 4, 128] == prefill(32, 64) + decode(4, 128)


def test_a_step_is_what_its_sizes_say() -> None:
    assert shape_of(0, 0, 3, 50)[:3] == (3, 150, ())
    assert shape_of(16, 8, 0, 0)[:3] == (0, 0, ((16, 8),))
    assert shape_of(16, 8, 3, 50)[:3] == (3, 150, ((16, 8),))
    assert len(whole_steps(rows_of_a_machine())) == 15 + 10 + 36


def test_the_coefficients_come_back() -> None:
    """All layers, the head and the host together; the host's constant is found from the kernels and told apart."""
    found = fit_rows(rows_of_a_machine(), LAYERS, seed=0)
    assert found.fit.form == "regimes"
    assert found.fit.regimes is not None
    assert found.host.h0_ms == pytest.approx(H0, rel=0.01)
    decodes, chunks, mixed = found.fit.regimes.decode, found.fit.regimes.prefill, found.fit.regimes.mixed
    per_row = (LAYERS * (2 + 1.5) + 3) / 1e3 + H1
    assert found.host.h0_ms + decodes.base_ms == pytest.approx(H0 + (LAYERS * (10 + 3) + 5) / 1e3, rel=0.01)
    assert decodes.per_token_ms + decodes.per_seq_ms == pytest.approx(per_row, rel=0.01)
    assert mixed.per_seq_ms == pytest.approx(per_row, rel=0.01)
    for regime in (decodes, mixed):
        assert regime.per_context_token_ms == pytest.approx(LAYERS * 0.01 / 1e3, rel=0.01)
    for regime in (chunks, mixed):
        assert regime.per_token_ms == pytest.approx(LAYERS * 2.5 / 1e3, rel=0.01)
        assert regime.per_token_sq_ms == pytest.approx(LAYERS * 0.001 / 1e3, rel=0.01)


def test_a_table_of_the_kernels_and_the_host_says_the_steps_again() -> None:
    assert mean_error(fit_rows(rows_of_a_machine(), LAYERS, seed=0).errors["table"]) < 0.5


def test_the_better_form_is_taken_and_both_errors_are_told() -> None:
    found = fit_rows(rows_of_a_machine(noise=0.02), LAYERS, seed=0)
    assert set(found.errors) == {"table", "regimes"}
    assert found.fit.errors == found.errors[found.fit.form]
    assert mean_error(found.fit.errors) == min(map(mean_error, found.errors.values()))
    assert found.predicted == pytest.approx(found.steps.ms, rel=0.1)


def test_a_host_that_takes_less_than_nothing_takes_nothing() -> None:
    quick = [each if each.kernel != "step" else row("step", each.median_us - 1e3 * H0 - 50, *each.dims)
             for each in rows_of_a_machine()]
    assert fit_rows(quick, LAYERS, seed=0).host.h0_ms >= 0
