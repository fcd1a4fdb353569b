"""What there is to know of a model and of a GPU, and what follows from it: parameters, bytes, peaks.

It knows no particular model or GPU.
"""

from dataclasses import dataclass, replace

from cost_models.base import CostModelError, choose

BYTES = {"bf16": 2, "fp8": 1}
"""Bytes of one value by dtype."""
LARGEST_SIZE = 1 << 60
"""A size, and what is added to it, stays within 64 bits."""
MOST_GPUS = 1024
"""Up to so many, a refused layout is told what would do."""


@dataclass(frozen=True)
class ModelSpec:
    """The shape of a dense decoder-only transformer, named as in its published configuration."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    max_model_len: int
    gated_mlp: bool = True
    """Three MLP matrices (gate, up, down) and not two."""
    tied_embeddings: bool = False
    """The output head is the input embedding."""
    qkv_bias: bool = False
    all_biases: bool = False
    """Each linear layer and each norm has a bias (OPT)."""
    position_rows: int = 0
    """Rows of a learned position embedding; 0 for rotary positions."""
    source: str = "custom shape"

    def __post_init__(self) -> None:
        sizes = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "max_model_len")
        for size in sizes:
            if getattr(self, size) < 1:
                raise CostModelError(f"{size} must be at least 1, got {getattr(self, size)}")
        if self.position_rows < 0:
            raise CostModelError(f"position_rows must be at least 0, got {self.position_rows}")
        for size in (*sizes, "position_rows"):
            if getattr(self, size) > LARGEST_SIZE:
                raise CostModelError(f"{size} must be at most {LARGEST_SIZE}, got {getattr(self, size)}")
        if self.heads % self.kv_heads:
            raise CostModelError(f"heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})")

    @property
    def qkv_width(self) -> int:
        """Outputs of the query, key and value projections together."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @property
    def body_parameters(self) -> int:
        """Parameters of the matrices that every computed token passes: attention and MLP of all layers."""
        attention = self.hidden * self.qkv_width + self.heads * self.head_dim * self.hidden
        mlp = (3 if self.gated_mlp else 2) * self.hidden * self.ffn
        return self.layers * (attention + mlp)

    @property
    def head_parameters(self) -> int:
        """Parameters of the output head, whether it is tied to the input embedding or not."""
        return self.vocab * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters, a tied embedding counted once."""
        embeddings = self.head_parameters * (1 if self.tied_embeddings else 2)
        embeddings += self.position_rows * self.hidden
        norms = (2 * self.layers + 1) * self.hidden * (2 if self.all_biases else 1)
        return self.body_parameters + embeddings + norms + self.layers * self._biases_per_layer

    @property
    def _biases_per_layer(self) -> int:
        qkv = self.qkv_width if self.qkv_bias or self.all_biases else 0
        others = 2 * self.hidden + self.ffn * (2 if self.gated_mlp else 1) if self.all_biases else 0
        return qkv + others

    def weight_bytes(self, dtype: str = "bf16") -> int:
        """Bytes of all weights. Under fp8 head, embeddings and norms stay bf16."""
        rest = self.parameters - self.body_parameters
        return self.body_parameters * BYTES[choose("dtype", dtype, BYTES)] + rest * BYTES["bf16"]

    def read_bytes(self, dtype: str = "bf16") -> int:
        """Bytes of weights that a step reads: all but an untied input embedding (it needs few rows)."""
        skipped = 0 if self.tied_embeddings else self.head_parameters
        return self.weight_bytes(dtype) - skipped * BYTES["bf16"]

    def kv_bytes_per_token(self, kv_dtype: str = "bf16") -> int:
        """Bytes of keys and values that one token holds, over all layers."""
        values = 2 * self.layers * self.kv_heads * self.head_dim
        return values * BYTES[choose("kv_dtype", kv_dtype, BYTES)]

    def check_layout(self, tensor_parallel_size: int) -> None:
        """Raise CostModelError unless that many GPUs get equal shares: of the heads, and of the KV heads or copies."""
        if type(tensor_parallel_size) is not int or tensor_parallel_size < 1:
            raise CostModelError(
                f"tensor_parallel_size must be a whole number of at least 1, got {tensor_parallel_size!r}"
            )
        if not self._deals_evenly(tensor_parallel_size):
            fits = [size for size in range(1, min(self.heads, MOST_GPUS) + 1) if self._deals_evenly(size)]
            raise CostModelError(
                f"tensor_parallel_size {tensor_parallel_size} does not deal the {self.heads} heads and "
                f"{self.kv_heads} KV heads of {self.name} evenly (possible: {', '.join(map(str, fits))})"
            )

    def _deals_evenly(self, gpus: int) -> bool:
        return self.heads % gpus == 0 and (self.kv_heads % gpus == 0 or gpus % self.kv_heads == 0)

    def laid_out(self, tensor_parallel_size: int) -> "ModelSpec":
        """The model as all of that many GPUs together hold it: with more GPUs than KV heads, each of them holds one.

        >>> ModelSpec("m", 1, 64, 8, 2, 8, 64, 100, 100).laid_out(4).kv_heads
        4
        """
        self.check_layout(tensor_parallel_size)
        return replace(self, kv_heads=max(self.kv_heads, tensor_parallel_size))


@dataclass(frozen=True)
class GpuSpec:
    """One GPU. Peaks are dense (no sparsity), with accumulation in fp32."""

    name: str
    nominal_bytes: float
    """Capacity as sold, in decimal bytes."""
    device_bytes: int
    """Memory as the driver reports it to a process."""
    bandwidth: float
    """Peak memory bandwidth, bytes/s."""
    bf16_flops: float
    fp8_flops: float | None
    """None where the GPU has no fp8 arithmetic: fp8 weights then compute at the bf16 rate."""
    link_bandwidth: float
    """Peak bandwidth to the other GPUs of a server, bytes/s in one direction (NVLink, else PCIe)."""
    source: str

    def __post_init__(self) -> None:
        for term in ("nominal_bytes", "device_bytes", "bandwidth", "bf16_flops", "link_bandwidth"):
            if not getattr(self, term) > 0:
                raise CostModelError(f"{term} of {self.name} must be above 0, got {getattr(self, term)}")

    def flops(self, dtype: str = "bf16") -> float:
        """Peak dense FLOP/s for weights of this dtype."""
        choose("dtype", dtype, BYTES)
        return self.fp8_flops if dtype == "fp8" and self.fp8_flops else self.bf16_flops
