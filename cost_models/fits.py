"""What a calibration found: the coefficients, and how far they are from what was measured.

It checks single values; it knows no formula.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf

from cost_models.base import CostModelError, choose
from cost_models.kernels import KernelTable
from cost_models.strict import Signed


@dataclass(frozen=True)
class Regime:
    """Six coefficients of one kind of step; see ``regimes`` for the formula. An absent one is 0."""

    base_ms: float
    weights_ms: float = 0.0
    per_token_ms: float = 0.0
    per_seq_ms: float = 0.0
    per_context_token_ms: float = 0.0
    per_token_sq_ms: float = 0.0
    origin: str = "measured"
    """``measured``, or ``transferred`` from other hardware."""

    def __post_init__(self) -> None:
        choose("origin", self.origin, ("measured", "transferred"))


@dataclass(frozen=True)
class RegimeTable:
    """The three kinds of step."""

    decode: Regime
    prefill: Regime
    mixed: Regime


@dataclass(frozen=True)
class Error:
    """How far the fit is from measurements: absolute error, its 95th percentile, and the signed mean."""

    mape_percent: float
    p95_percent: float
    bias_percent: Signed | None = None
    """Predicted over measured - 1, mean; below 0 where the fit is too fast."""
    points: int | None = None
    held_out: bool = False
    """Whether the points were kept from the fit."""
    residuals: tuple[float, ...] = ()
    """Quantiles of measured over predicted, evenly spaced from the smallest to the largest."""

    def __post_init__(self) -> None:
        if self.residuals and (len(self.residuals) < 2 or list(self.residuals) != sorted(self.residuals)):
            raise CostModelError("residuals must be at least two quantiles in ascending order")


@dataclass(frozen=True)
class Errors:
    """Error by kind of step; None where it was not measured."""

    decode: Error | None = None
    prefill: Error | None = None
    mixed: Error | None = None

    @property
    def bias(self) -> float | None:
        """The largest bias of a regime, as a share; None where no error is stated.

        Where only the size of the errors is known, that is taken: no bias exceeds it.
        """
        stated = [error for error in vars(self).values() if error]
        sizes = [abs(error.mape_percent if error.bias_percent is None else error.bias_percent) for error in stated]
        return max(sizes) / 100 if sizes else None


@dataclass(frozen=True)
class Range:
    """Where the fit was measured, each bound as (lowest, highest), inclusive."""

    decodes: tuple[int, int] | None = None
    context: tuple[int, int] | None = None
    """Context tokens summed over the decodes."""
    chunk_tokens: tuple[int, int] | None = None
    """New prompt tokens of a step."""
    prior_tokens: tuple[int, int] | None = None
    """Tokens already there, summed over the chunks."""

    @cached_property
    def closed(self) -> tuple[float, ...]:
        """All eight numbers, in this order; no bound is 0 to infinity."""
        bounds = (self.decodes, self.context, self.chunk_tokens, self.prior_tokens)
        return tuple(end for bound in bounds for end in bound or (0, inf))


@dataclass(frozen=True)
class Fit:
    """What was fitted, in one form or in both, and how well."""

    form: str
    """``regimes`` or ``table``: the one to use."""
    regimes: RegimeTable | None = None
    table: KernelTable | None = None
    errors: Errors = Errors()
    range: Range | None = None
    held_against: str = "engine"
    """What the errors are errors of: whole steps as an ``engine`` took them, or steps put together from the times of
    single ``kernels``, which say nothing of how far a running engine is from those."""

    def __post_init__(self) -> None:
        choose("held_against", self.held_against, ("engine", "kernels"))
        if getattr(self, choose("form", self.form, ("regimes", "table"))) is None:
            raise CostModelError(f"form is '{self.form}', but '{self.form}' is missing")

    @property
    def mixed_origin(self) -> str:
        """Whether mixed steps were ``measured`` or ``transferred``."""
        fitted = self.regimes if self.form == "regimes" else self.table
        assert fitted is not None
        return fitted.mixed.origin
