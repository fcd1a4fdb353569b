"""Step time from a calibrated profile: one formula, with coefficients of its own for each kind of step.

    base + max(weights, per_token * n) + per_seq * S + per_context_token * C + per_token_sq * Q
    and on top of each step its host time, h0 + h1 * sequences

S sequences decode over C tokens of context; prompt chunks compute n tokens, and Q is the sum of (p + new)^2 - p^2
over the chunks, where p tokens are already there. A step without chunks has Q = 0, and n is S: the rows of its
matrices. ``weights`` is the time to read the weights, which hides the arithmetic of a few rows. A padded batch is
charged for the rows and contexts it computes, like any other.

It does not know how one regime passes into the next: a long chunk with one decode beside it can cost less than
the chunk alone.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from cost_models.base import CostModelError, empty_step
from cost_models.fits import Regime, RegimeTable
from cost_models.linear import LinearDecode, femtoseconds
from cost_models.profile import Profile
from cost_models.profiled import Profiled


class Coefficients(NamedTuple):
    """A regime in whole femtoseconds, h0 included in the base."""

    base: int
    weights: int
    token: int
    seq: int
    context: int
    square: int


@dataclass(frozen=True)
class Regimes(Profiled, LinearDecode):
    """Decode, prefill and mixed steps of one profile."""

    profile: Profile

    def __post_init__(self) -> None:
        if self.profile.fit.regimes is None:
            raise CostModelError(f"profile '{self.profile.name}' has no regimes: use its form 'table'")

    def decode_fs(self, decodes: int) -> int:
        """A decode-only step in fs, context aside."""
        base, weights, token, seq, _, _ = self._decode
        arithmetic = decodes * token
        return base + (arithmetic if arithmetic > weights else weights) + decodes * (seq + self._host_seq_fs)

    def chunked_fs(self, decodes: int, context: int, chunks: tuple[tuple[int, int], ...]) -> int:
        """A prefill or a mixed step in fs."""
        base, weights, token, seq, each, square = self._mixed if decodes else self._prefill
        tokens = squares = 0
        for new, prior in chunks:
            if new < 1:
                raise empty_step()
            tokens += new
            squares += new * (new + 2 * prior)
        host = (decodes + len(chunks)) * self._host_seq_fs
        arithmetic = tokens * token
        return (base + (arithmetic if arithmetic > weights else weights) + decodes * seq + context * each
                + squares * square + host)

    @cached_property
    def context_fs(self) -> int:
        """One token of context in a decode-only step, in fs."""
        return self._decode.context

    @cached_property
    def _decode(self) -> Coefficients:
        return self._in_fs(self._regimes.decode)

    @cached_property
    def _prefill(self) -> Coefficients:
        return self._in_fs(self._regimes.prefill)

    @cached_property
    def _mixed(self) -> Coefficients:
        return self._in_fs(self._regimes.mixed)

    @cached_property
    def _host_seq_fs(self) -> int:
        return _fs(self.profile.host.h1_ms)

    @property
    def _regimes(self) -> RegimeTable:
        assert self.profile.fit.regimes is not None
        return self.profile.fit.regimes

    def _in_fs(self, regime: Regime) -> Coefficients:
        return Coefficients(_fs(regime.base_ms) + _fs(self.profile.host.h0_ms), _fs(regime.weights_ms),
                            _fs(regime.per_token_ms), _fs(regime.per_seq_ms), _fs(regime.per_context_token_ms),
                            _fs(regime.per_token_sq_ms))


def _fs(ms: float) -> int:
    return femtoseconds(ms * 1e-3)
