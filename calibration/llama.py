"""A Llama-shaped transformer with random weights over a paged KV cache: what the engine runs and calibration times.

RMSNorm, rotary positions, grouped-query attention, SwiGLU, greedy sampling. It knows no request and no policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from calibration.attention import AttentionPath
from calibration.paged import Batch, Pages
from calibration.shard import Shard

EPSILON = 1e-5
ROPE_BASE = 500_000.0


@dataclass(frozen=True)
class Layer:
    """Weights of one layer, each matrix as (outputs, inputs)."""

    qkv: Tensor
    o: Tensor
    gate_up: Tensor
    down: Tensor
    attention_norm: Tensor
    mlp_norm: Tensor


@dataclass(frozen=True)
class Pointwise:
    """What a layer does between its matrix products and attention, and whether each is one kernel."""

    norm: Callable[[Tensor, Tensor], Tensor]
    rotate: Callable[[Tensor, Tensor, Tensor], Tensor]
    gate: Callable[[Tensor], Tensor]
    fused: bool


def norm(x: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm over the last dimension."""
    return F.rms_norm(x, (x.shape[-1],), weight, EPSILON)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: x is (tokens, heads, head dimension); the angles are (tokens, 1, head dimension / 2)."""
    left, right = x.chunk(2, -1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), -1)


def gate(x: Tensor) -> Tensor:
    """SwiGLU of the two halves of the last dimension."""
    open_, up = x.chunk(2, -1)
    return F.silu(open_) * up


PLAIN = Pointwise(norm, rotate, gate, fused=False)


@cache
def pointwise(device: str) -> Pointwise:
    """These functions; on CUDA compiled, since engines fuse them as well, or plain where nothing compiles."""
    if device != "cuda":
        return PLAIN
    made = [torch.compile(function, dynamic=True) for function in (norm, rotate, gate)]
    fused = Pointwise(made[0], made[1], made[2], fused=True)
    try:
        with torch.inference_mode():
            x = torch.ones(4, 3, 8, dtype=torch.bfloat16, device=device)
            fused.gate(fused.rotate(fused.norm(x, x[0, 0]), x[..., :4], x[..., :4]))
    except Exception:    # whatever is missing, such as a C compiler: the plain functions do the same, slower
        return PLAIN
    return fused


class Llama:
    """One rank's share of a model.

    Args:
        shard: Its sizes.
        path: The attention it uses.
        dtype, device: Of its weights and of everything it computes.
        seed: Of the weights.
    """

    def __init__(self, shard: Shard, path: AttentionPath, dtype: torch.dtype, device: torch.device,
                 seed: int = 0) -> None:
        self.shard, self.path, self.dtype, self.device = shard, path, dtype, device
        made = torch.Generator(device).manual_seed(seed)

        def matrix(size: tuple[int, int]) -> Tensor:
            return random_matrix(size, dtype, device, made)

        ones = torch.ones(shard.hidden, dtype=dtype, device=device)
        self.embedding = matrix((shard.vocab, shard.hidden)) * shard.hidden**0.5
        self.layers = [Layer(**{name: matrix(size) for name, size in shard.layer_matrices.items()},
                             attention_norm=ones, mlp_norm=ones) for _ in range(shard.layers)]
        self.head, self.norm = matrix(shard.head), ones
        self._pointwise = pointwise(device.type)

    def cache(self, pages: int, page_size: int) -> list[Pages]:
        """Empty pages for every layer."""
        return [Pages.empty(pages, page_size, self.shard.kv_heads, self.shard.head_dim, self.head)
                for _ in self.layers]

    @torch.inference_mode()
    def forward(self, tokens: Tensor, cache: list[Pages], batch: Batch) -> Tensor:
        """Compute the new tokens of a batch and keep their KV; what the last layer says of each: (tokens, hidden)."""
        cos, sin = angles(batch.positions, self.shard.head_dim, self.dtype)
        x = F.embedding(tokens, self.embedding)
        for layer, pages in zip(self.layers, cache, strict=True):
            x = self.one_layer(layer, x, pages, batch, cos, sin)
        return self._pointwise.norm(x, self.norm)

    def one_layer(self, layer: Layer, x: Tensor, pages: Pages, batch: Batch, cos: Tensor, sin: Tensor) -> Tensor:
        """Attention and MLP, each added to what came in."""
        shard, do = self.shard, self._pointwise
        mixed = F.linear(do.norm(x, layer.attention_norm), layer.qkv).unflatten(-1, (-1, shard.head_dim))
        query, keys, values = mixed.split((shard.heads, shard.kv_heads, shard.kv_heads), 1)
        query = do.rotate(query, cos, sin)
        pages.write(batch.slots, do.rotate(keys, cos, sin), values)
        seen = torch.empty_like(query)
        self.path.attend(query, pages, batch, seen)
        x = x + F.linear(seen.flatten(1), layer.o)
        return x + F.linear(do.gate(F.linear(do.norm(x, layer.mlp_norm), layer.gate_up)), layer.down)

    @torch.inference_mode()
    def sample(self, hidden: Tensor) -> Tensor:
        """The likeliest next token of each row (rows, hidden)."""
        return F.linear(hidden, self.head).argmax(-1)


def angles(positions: Tensor, head_dim: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the rotary positions: (tokens, 1, head dimension / 2) each."""
    half = torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float64) / head_dim
    turned = positions[:, None].double() * ROPE_BASE**-half
    return turned.cos().to(dtype)[:, None], turned.sin().to(dtype)[:, None]


def random_matrix(size: tuple[int, int], dtype: torch.dtype, device: torch.device, made: torch.Generator) -> Tensor:
    """Normal values that keep the scale of what they are multiplied with: (outputs, inputs)."""
    return torch.randn(size, dtype=dtype, device=device, generator=made).mul_(size[1]**-0.5)
