"""From raw rows to a profile's fit: kernels make a table, whole steps make regimes and the host's share.

Both forms are held against whole steps that they have not seen, since a simulation asks for whole steps; the better one
becomes the profile's. It needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from calibration.errors import error, folds
from calibration.fit import fit_all, predict, rounded
from calibration.kernel_times import KernelTimes
from calibration.least_squares import relative_nonnegative
from calibration.rows import Floats, Kind, StepRows
from calibration.table_fit import fit_table, model_of, predicted
from cost_models import StepShape
from cost_models.fits import Errors, Fit, RegimeTable
from cost_models.profile import Host, RawRow


@dataclass(frozen=True)
class Fitted:
    """What raw rows come to.

    Attributes:
        fit: The better form, with its errors on whole steps.
        host: The host's share of a step, for that form.
        errors: Of both forms on whole steps that the fit has not seen.
        steps: All whole steps.
        predicted: What the better form says of each, in milliseconds.
    """

    fit: Fit
    host: Host
    errors: dict[str, Errors]
    steps: StepRows
    predicted: Floats


def kernel_times(rows: Iterable[RawRow], layers: int) -> KernelTimes:
    """The kernels of a layer, put together."""
    by: dict[str, dict[tuple[int, ...], float]] = {}
    for row in rows:
        by.setdefault(row.kernel, {})[row.dims] = row.median_us

    def summed(*kernels: str) -> dict[int, float]:
        return {size: sum(by[kernel][size,] for kernel in kernels) for (size,) in by[kernels[0]]}

    return KernelTimes(layers, summed("qkv", "o", "gate_up", "down", "rest"), summed("lm_head", "head_rest"),
                       by["decode"], by["prefill"], by["mixed"])    # type: ignore[arg-type]


def whole_steps(rows: Iterable[RawRow]) -> StepRows:
    """The timed steps of the engine."""
    timed = [row for row in rows if row.kernel == "step"]
    return StepRows([shape_of(*row.dims) for row in timed], np.array([row.median_us / 1e3 for row in timed]))


def shape_of(chunk: int, prior: int, sequences: int, context: int) -> StepShape:
    """The shape of a step with these sizes."""
    return StepShape(sequences, sequences * context, ((chunk, prior),) if chunk else ())


def fit_rows(rows: Iterable[RawRow], layers: int, seed: int) -> Fitted:
    """Everything that the rows tell."""
    rows = tuple(rows)
    steps = whole_steps(rows)
    by_table = _by_table(rows, steps, layers, seed)
    by_regimes = _by_regimes(steps, by_table.host.h0_ms, seed)
    errors = {"table": by_table.fit.errors, "regimes": by_regimes.fit.errors}
    better = min((by_table, by_regimes), key=lambda each: mean_error(each.fit.errors))
    return replace(better, errors=errors)


def mean_error(errors: Errors) -> float:
    """Mean absolute error over the kinds of step, in percent."""
    return float(np.mean([each.mape_percent for each in vars(errors).values() if each]))


def _by_regimes(steps: StepRows, host_ms: float, seed: int) -> Fitted:
    """Six coefficients a kind of step. The host's constant is taken out of the bases, as far as all have it."""
    fit = fit_all(steps, seed)
    assert fit.regimes is not None
    said = np.zeros(len(steps))
    for kind in get_args(Kind):
        own = steps.kind(kind)
        said[own] = predict(getattr(fit.regimes, kind), steps[own])
    h0 = min(host_ms, *(regime.base_ms for regime in vars(fit.regimes).values()))
    kernels = RegimeTable(**{kind: replace(regime, base_ms=rounded(regime.base_ms - h0))
                             for kind, regime in vars(fit.regimes).items()})
    return Fitted(replace(fit, regimes=kernels), Host("measured", h0), {}, steps, said)


def _by_table(rows: tuple[RawRow, ...], steps: StepRows, layers: int, seed: int) -> Fitted:
    """The kernels back to back, and what the host adds to them."""
    fit = fit_table(kernel_times(rows, layers), seed)
    assert fit.table is not None
    kernels = predicted(model_of(fit.table, layers), steps)
    fold, unseen = folds(len(steps), seed), np.zeros(len(steps))
    for kept_back in (fold == number for number in np.unique(fold)):
        host = _host(kernels[~kept_back], steps[~kept_back])
        unseen[kept_back] = (kernels + _spent(host, steps))[kept_back]
    host = _host(kernels, steps)
    fit = replace(fit, errors=_errors(unseen, steps), held_against="engine")
    return Fitted(fit, host, {}, steps, kernels + _spent(host, steps))


def _host(kernels: Floats, steps: StepRows) -> Host:
    """What whole steps take beyond their kernels: h0 + h1 x sequences."""
    columns = np.stack([np.ones(len(steps)), _sequences(steps)], axis=1)
    h0, h1 = map(rounded, relative_nonnegative(columns, steps.ms, kernels).tolist())
    return Host("measured", h0, h1)


def _spent(host: Host, steps: StepRows) -> Floats:
    return host.h0_ms + host.h1_ms * _sequences(steps)


def _sequences(steps: StepRows) -> Floats:
    return np.array([shape.decodes + len(shape.chunks) for shape in steps.shapes], float)


def _errors(said: Floats, steps: StepRows) -> Errors:
    """The errors of predictions by kind of step."""
    own = {kind: steps.kind(kind) for kind in get_args(Kind)}
    return Errors(**{kind: error(said[rows], steps.ms[rows]) for kind, rows in own.items() if rows.any()})
