"""What a cost model says: step times over batch and context, beside the floors that no kernel beats.

A floor is all bytes of the step at peak bandwidth, or all its arithmetic at peak, whichever is slower: no host, no
launch, no link. It knows no policy and no trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cost_models import (
    CostModel,
    KvPool,
    Profile,
    Roofline,
    StepShape,
    cost_model,
    gpu_spec,
    kv_pool,
    model_spec,
    profile_named,
)
from simulator.kinds import PROFILE, meant_as
from simulator.tables import Table

if TYPE_CHECKING:
    import pandas as pd

MS = 1e6
SEQUENCES = (1, 8, 32, 128, 256)
CONTEXTS = (128, 1024, 4096, 16384)
CHUNKS = (128, 512, 2048, 8192)
PRIORS = (0, 4096, 16384)


class Price(NamedTuple):
    """One step: ``sequences`` that decode at ``context`` tokens each, or a chunk of ``tokens`` after ``prior``."""

    kind: str
    sequences: int
    context: int
    tokens: int
    prior: int
    ms: float
    floor_ms: float
    in_range: bool | None
    fits: bool
    """Whether the model is made for such a length, and the KV pool holds all of it."""


@dataclass(frozen=True)
class CostSheet:
    """A cost model on a deployment, and the floor and the KV pool beside it."""

    cost: CostModel
    floor: Roofline
    pool: KvPool

    def prices(self) -> Iterator[Price]:
        """All steps of the sheet."""
        for sequences in SEQUENCES:
            for context in CONTEXTS:
                yield self._price("decode", StepShape(sequences, sequences * context))
        for tokens in CHUNKS:
            for prior in PRIORS:
                yield self._price("prefill", StepShape(0, 0, ((tokens, prior),)))

    def _price(self, kind: str, shape: StepShape) -> Price:
        tokens, prior = shape.chunks[0] if shape.chunks else (0, 0)
        context = shape.context // shape.decodes if shape.decodes else 0
        longest, held = max(context, tokens + prior), shape.context + tokens + prior
        return Price(kind, shape.decodes, context, tokens, prior, self.cost.time(shape) / MS,
                     self.floor.floor(shape) / MS, self.cost.in_range(shape),
                     longest <= self.floor.model.max_model_len and held <= self.pool.tokens)

    def frame(self) -> pd.DataFrame:
        """The prices, a row each."""
        import pandas as pd
        return pd.DataFrame(self.prices(), columns=list(Price._fields))

    def facts(self) -> dict[str, str]:
        """What the numbers are of, in words."""
        floor = self.floor
        on = f"{floor.tensor_parallel_size} x {floor.gpu.name} (tp{floor.tensor_parallel_size})"
        known = {"cost model": f"{self.cost.name} ({self.cost.origin})",
                 "model": f"{floor.model.name} in {floor.dtype}, KV in {floor.kv_dtype}, on {on}",
                 "KV pool": self.pool.explain()}
        profile = getattr(self.cost, "profile", None)
        return known | {"error": _errors(profile)} if isinstance(profile, Profile) else known

    def tables(self) -> list[Table]:
        """Decode and prefill steps: milliseconds, and the floor in brackets."""
        prices = list(self.prices())
        decode = [price for price in prices if price.kind == "decode"]
        prefill = [price for price in prices if price.kind == "prefill"]
        note = "In brackets the floor. -: longer than the model or the KV pool. *: outside the measured range."
        return [_table("A decode step, ms: context of each sequence, by sequences", "context", SEQUENCES,
                       [(f"{context:,}", [price for price in decode if price.context == context])
                        for context in CONTEXTS], note),
                _table("A prompt chunk, ms: tokens already there, by new tokens", "prior", CHUNKS,
                       [(f"{prior:,}", [price for price in prefill if price.prior == prior])
                        for prior in PRIORS], note)]

    def records(self) -> dict[str, Any]:
        """Facts and prices as one flat document."""
        return {**self.facts(), "steps": [price._asdict() for price in self.prices()]}


def cost_sheet(name: str = "auto", **deployment: Any) -> CostSheet:
    """The sheet of a cost model by name.

    Args:
        name: As `cost_models.cost_model` takes it.
        deployment: model, gpu, dtype, kv_dtype, tensor_parallel_size; a profile's own where it is not given.
    """
    with meant_as(PROFILE, name):
        profile = profile_named(name)
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "h100-80"}
    if profile is not None:
        asked = {field: getattr(profile, field) for field in
                 ("model", "gpu", "dtype", "kv_dtype", "tensor_parallel_size")}
    asked |= {field: value for field, value in deployment.items() if value is not None}
    cost = cost_model(name, **asked)
    model, gpu = model_spec(asked.pop("model")), gpu_spec(asked.pop("gpu"))
    return CostSheet(cost, Roofline(model, gpu, **asked), kv_pool(model, gpu, **asked))


def _table(title: str, first: str, sizes: tuple[int, ...], rows: list[tuple[str, list[Price]]], note: str) -> Table:
    return Table(title, (first, *(f"{size:,}" for size in sizes)),
                 tuple((name, *map(_cell, prices)) for name, prices in rows), note)


def _cell(price: Price) -> str:
    if not price.fits:
        return "-"
    return f"{price.ms:,.1f}{'*' if price.in_range is False else ''} ({price.floor_ms:,.1f})"


def _errors(profile: Profile) -> str:
    """What the profile states of each regime, in percent."""
    told = []
    for regime, error in vars(profile.fit.errors).items():
        if error is None:
            told.append(f"{regime} unknown")
            continue
        bias = "" if error.bias_percent is None else f", bias {error.bias_percent:+.1f}"
        kept = "held out" if error.held_out else "of the fit"
        told.append(f"{regime} MAPE {error.mape_percent:.1f}, p95 {error.p95_percent:.1f}{bias} ({kept})")
    of = "kernel times, not an engine's" if profile.fit.held_against == "kernels" else "an engine's steps"
    return "; ".join(told) + f"; in percent, held against {of}"
