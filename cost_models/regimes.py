"""Step time from a calibrated profile: one straight formula for each kind of step.

    decode   base + per_seq * S + per_context_token * C
    prefill  base + per_token * n + per_token_sq * ((p + n)^2 - p^2), summed over the chunks
    mixed    one base (the profile says whose; in bundled profiles the decode base) and both increments, with
             the decode attention (context term) and the prefill attention (square term) each times a factor
    host     h0 + h1 * sequences, on top of each step

S sequences decode over C tokens of context; a chunk computes n tokens after p that are there. A padded batch
is charged for the rows and contexts it computes, like any other.

It does not know how one regime passes into the next: with a prefill factor below 1, a long chunk with one
decode beside it can cost less than the chunk alone.
"""

from dataclasses import dataclass
from functools import cached_property

from cost_models.base import StepShape, empty_step
from cost_models.linear import LinearDecode, femtoseconds
from cost_models.profile import Profile


@dataclass(frozen=True)
class Regimes(LinearDecode):
    """Decode, prefill and mixed steps of one profile."""

    profile: Profile

    @property
    def name(self) -> str:
        """Name of the profile."""
        return self.profile.name

    @property
    def origin(self) -> str:
        """Source and date of the fit, and what in it is not measured."""
        profile = self.profile
        return (
            f"{profile.origin.source} ({profile.origin.date}); mixed steps {profile.mixed.origin}; "
            f"host {profile.host.h0_ms:g} ms a step {profile.host.origin}"
        )

    def decode_fs(self, decodes: int) -> int:
        """A decode-only step in fs, context aside."""
        return self._decode_base_fs + decodes * self._per_seq_fs

    def chunked_fs(self, decodes: int, context: int, chunks: tuple[tuple[int, int], ...]) -> int:
        """A prefill or a mixed step in fs."""
        tokens = squares = 0
        for new, prior in chunks:
            if new < 1:
                raise empty_step()
            tokens += new
            squares += new * (new + 2 * prior)
        increment = tokens * self._per_token_fs + len(chunks) * self._host_seq_fs
        if not decodes:
            return self._prefill_base_fs + increment + squares * self._square_fs
        decoding = decodes * self._per_seq_fs + context * self._mixed_context_fs
        return self._mixed_base_fs + increment + squares * self._mixed_square_fs + decoding

    def in_range(self, shape: StepShape) -> bool | None:
        """Whether each stated bound of the profile holds; None where the profile states none."""
        bounds = self.profile.range
        if bounds is None:
            return None
        asked = []
        if shape.decodes:
            asked += [(bounds.decodes, shape.decodes), (bounds.context, shape.context)]
        if shape.chunks:
            asked += [(bounds.chunk_tokens, sum(new for new, _ in shape.chunks))]
            asked += [(bounds.prior_tokens, sum(prior for _, prior in shape.chunks))]
        return all(bound is None or bound[0] <= value <= bound[1] for bound, value in asked)

    # The coefficients in whole femtoseconds, the host's share included.

    @cached_property
    def context_fs(self) -> int:
        """One token of context in a decode-only step."""
        return _fs(self.profile.decode.per_context_token_ms)

    @cached_property
    def _decode_base_fs(self) -> int:
        return _fs(self.profile.decode.base_ms) + _fs(self.profile.host.h0_ms)

    @cached_property
    def _prefill_base_fs(self) -> int:
        return _fs(self.profile.prefill.base_ms) + _fs(self.profile.host.h0_ms)

    @cached_property
    def _mixed_base_fs(self) -> int:
        return self._decode_base_fs if self.profile.mixed.base == "decode" else self._prefill_base_fs

    @cached_property
    def _host_seq_fs(self) -> int:
        return _fs(self.profile.host.h1_ms)

    @cached_property
    def _per_seq_fs(self) -> int:
        return _fs(self.profile.decode.per_seq_ms) + self._host_seq_fs

    @cached_property
    def _per_token_fs(self) -> int:
        return _fs(self.profile.prefill.per_token_ms)

    @cached_property
    def _square_fs(self) -> int:
        return _fs(self.profile.prefill.per_token_sq_ms)

    @cached_property
    def _mixed_context_fs(self) -> int:
        return _fs(self.profile.decode.per_context_token_ms * self.profile.mixed.decode_attention)

    @cached_property
    def _mixed_square_fs(self) -> int:
        return _fs(self.profile.prefill.per_token_sq_ms * self.profile.mixed.prefill_attention)


def _fs(ms: float) -> int:
    return femtoseconds(ms * 1e-3)
