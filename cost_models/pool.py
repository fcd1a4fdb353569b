"""How many tokens of KV cache fit: utilization x device bytes - weights - a reserve.

The reserve stands for activations, captured graphs and the allocator; 2 GiB a GPU is an assumption, not a
measurement. It knows no blocks and no requests: how the pool is divided is the memory's business.
"""

from dataclasses import dataclass, replace

from cost_models.base import CostModelError
from cost_models.shapes import GpuSpec, ModelSpec
from cost_models.specs import gpu_spec, model_spec


@dataclass(frozen=True)
class KvPool:
    """The four terms of the pool, each summed over the GPUs of one replica, and what is left in tokens."""

    device_bytes: int
    utilization: float
    weight_bytes: int
    reserve_bytes: int
    kv_bytes_per_token: int

    @property
    def free_bytes(self) -> int:
        """Bytes left for KV cache; negative if the weights do not fit."""
        return round(self.utilization * self.device_bytes) - self.weight_bytes - self.reserve_bytes

    @property
    def tokens(self) -> int:
        """Tokens whose keys and values fit."""
        return self.free_bytes // self.kv_bytes_per_token

    def terms(self) -> dict[str, float]:
        """The four terms by name: bytes, and the utilization as a fraction."""
        return {
            "device_bytes": self.device_bytes,
            "utilization": self.utilization,
            "weight_bytes": self.weight_bytes,
            "reserve_bytes": self.reserve_bytes,
        }

    def explain(self) -> str:
        """The pool as one line of arithmetic, in decimal GB."""
        gb = 1e9
        return (
            f"{self.utilization:g} x {self.device_bytes / gb:.2f} GB device"
            f" - {self.weight_bytes / gb:.2f} GB weights"
            f" - {self.reserve_bytes / gb:.2f} GB reserve = {self.free_bytes / gb:.2f} GB"
            f" / {self.kv_bytes_per_token:,} bytes per token = {self.tokens:,} tokens of KV cache"
        )


def kv_pool(
    model: str | ModelSpec,
    gpu: str | GpuSpec,
    *,
    utilization: float = 0.92,
    reserve_bytes: int = 2 * 1024**3,
    tensor_parallel_size: int = 1,
    dtype: str = "bf16",
    kv_dtype: str = "bf16",
) -> KvPool:
    """The KV pool of one replica on ``tensor_parallel_size`` GPUs; ``reserve_bytes`` is for each of them.

    The default utilization is vLLM's. Raises CostModelError if not one token fits, or on a wrong argument.

    >>> kv_pool("llama-3.1-8b", "h100-80").tokens
    457702
    """
    model, gpu = model_spec(model), gpu_spec(gpu)
    model = model.laid_out(tensor_parallel_size)
    if not 0 < utilization <= 1:
        raise CostModelError(f"utilization must be above 0 and at most 1, got {utilization!r}")
    if not reserve_bytes >= 0:
        raise CostModelError(f"reserve_bytes must be at least 0, got {reserve_bytes!r}")
    pool = KvPool(
        device_bytes=tensor_parallel_size * gpu.device_bytes,
        utilization=utilization,
        weight_bytes=model.weight_bytes(dtype),
        reserve_bytes=tensor_parallel_size * reserve_bytes,
        kv_bytes_per_token=model.kv_bytes_per_token(kv_dtype),
    )
    if pool.tokens < 1:
        layout = f"{model.name} in {dtype} on {tensor_parallel_size} x {gpu.name}"
        raise CostModelError(_does_not_fit(layout, pool, dtype))
    return pool


def _does_not_fit(layout: str, pool: KvPool, dtype: str) -> str:
    missing = pool.kv_bytes_per_token - pool.free_bytes
    lighter = "" if dtype == "fp8" else "dtype fp8, "
    share, more = "", ""
    if replace(pool, utilization=1.0).tokens >= 1:    # nothing else is to blame
        share, more = f" into {pool.utilization:g} of the memory (gpu_memory_utilization)", "more of the memory, "
    return (
        f"{layout} does not fit{share}: {missing:,} bytes ({missing / 1e9:.1f} GB) are missing for one token"
        f" of KV cache; use {more}{lighter}a larger tensor_parallel_size or a bigger GPU"
    )
