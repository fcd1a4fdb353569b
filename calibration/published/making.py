"""From a fit to a bundled profile: name, shape, origin, and what is assumed where nothing was measured."""

from dataclasses import replace

from cost_models import Profile
from cost_models.fits import Error, Errors, Fit, Range, Regime, RegimeTable
from cost_models.kernels import TRANSFERRED
from cost_models.profile import ASSUMED_HOST, SCHEMA_VERSION, Host, Origin, Shape
from cost_models.specs import MODELS

DATE = "2026-11-29"
"""When the published figures were taken from their repositories."""
WITH_HOST = Host("measured", 0.0)
"""Of an engine whose whole steps were timed: its host time is in the coefficients."""


def profile(model: str, gpu: str, source: str, fit: Fit, host: Host = ASSUMED_HOST, *, tensor_parallel_size: int = 1,
            method: str | None = None) -> Profile:
    """A derived profile in bf16, named after its layout."""
    ranks = f"-tp{tensor_parallel_size}" if tensor_parallel_size > 1 else ""
    return Profile(SCHEMA_VERSION, f"{model}-{gpu}{ranks}-bf16", model, gpu, tensor_parallel_size, "bf16", "bf16",
                   Shape.of(MODELS[model]), Origin("derived", source, DATE, method=method), fit, host)


def transferred(decode: Regime, prefill: Regime) -> Regime:
    """A mixed step where none was timed: the decode's base once, both increments, the factors on the attentions.

    The weights are read for the chunk, so that the rows of the decodes pay their arithmetic in any case.
    """
    return Regime(base_ms=_short(max(0.0, decode.base_ms + decode.weights_ms - prefill.weights_ms)),
                  weights_ms=prefill.weights_ms, per_token_ms=prefill.per_token_ms,
                  per_seq_ms=_short(decode.per_seq_ms + decode.per_token_ms),
                  per_context_token_ms=_short(decode.per_context_token_ms * TRANSFERRED.decode_attention),
                  per_token_sq_ms=_short(prefill.per_token_sq_ms * TRANSFERRED.prefill_attention),
                  origin=TRANSFERRED.origin)


def without_mixed(decode: Regime, prefill: Regime, errors: tuple[Error | None, Error | None] = (None, None)) -> Fit:
    """The fit of a source that has no mixed steps."""
    regimes = RegimeTable(decode, prefill, transferred(decode, prefill))
    return Fit("regimes", regimes=regimes, errors=Errors(*errors))


def bounded(fit: Fit, **bounds: tuple[int, int]) -> Fit:
    """The fit with its range."""
    return replace(fit, range=Range(**bounds))


def _short(value: float) -> float:
    return float(f"{value:.7g}")
