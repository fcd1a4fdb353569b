"""The shape of a model on one GPU: what is left of it when tensor parallelism has dealt out its heads and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from cost_models import CostModelError, ModelSpec

TINY = ModelSpec(name="tiny", layers=4, hidden=256, heads=8, kv_heads=2, head_dim=32, ffn=704, vocab=2048,
                 max_model_len=2048, source="made up, so that a CPU calibrates it within a minute")
"""A Llama in miniature."""
LARGEST_ON_CPU = 50_000_000
"""Parameters beyond which a CPU does not get through."""


@dataclass(frozen=True)
class Shard:
    """One rank's share of a Llama-shaped model: sizes of its matrices, and how many layers there are.

    Attributes:
        qkv, o, gate_up, down, head: (outputs, inputs) of each matrix product.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    qkv: tuple[int, int]
    o: tuple[int, int]
    gate_up: tuple[int, int]
    down: tuple[int, int]
    head: tuple[int, int]

    @classmethod
    def of(cls, model: ModelSpec, tensor_parallel_size: int = 1) -> Self:
        """The share of one of so many GPUs. Raises CostModelError for a model that has another structure."""
        model.check_layout(tensor_parallel_size)
        if not model.gated_mlp or model.all_biases or model.position_rows:
            raise CostModelError(f"{model.name} is not shaped like Llama (gated MLP, rotary positions, no biases): "
                                 "only such models can be calibrated")
        if model.head_dim % 2:
            raise CostModelError(f"head_dim of {model.name} must be even for rotary positions, got {model.head_dim}")
        ranks, hidden, ffn = tensor_parallel_size, model.hidden, -(-model.ffn // tensor_parallel_size)
        heads, kv_heads, vocab = model.heads // ranks, model.kv_heads // ranks, -(-model.vocab // ranks)
        width = heads * model.head_dim
        return cls(model.layers, hidden, heads, kv_heads, model.head_dim, vocab, (width + 2 * kv_heads * model.head_dim,
                   hidden), (hidden, width), (2 * ffn, hidden), (hidden, ffn), (vocab, hidden))

    @property
    def layer_matrices(self) -> dict[str, tuple[int, int]]:
        """The matrix products of one layer, by name."""
        return {"qkv": self.qkv, "o": self.o, "gate_up": self.gate_up, "down": self.down}

    @property
    def parameters(self) -> int:
        """Parameters of all matrices, with an input embedding and an output head."""
        layer = sum(outputs * inputs for outputs, inputs in self.layer_matrices.values())
        return self.layers * layer + 2 * self.vocab * self.hidden

    def kv_values(self) -> int:
        """Keys and values that one token keeps in one layer."""
        return 2 * self.kv_heads * self.head_dim
