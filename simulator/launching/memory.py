"""How engines say what memory they take, as the share of the GPU that a scenario says. See `cost_models.pool`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cost_models import kv_pool, model_spec
from simulator.scenario import Scenario

DIGITS = 4


def _terms(fields: Mapping[str, Any]) -> tuple[float, float, float]:
    """Bytes of the GPUs, of the weights, and of what is set aside for activations."""
    size = fields.get("tensor_parallel_size", 1)
    pool = kv_pool(_of(fields, "model"), _of(fields, "gpu"), utilization=1, dtype=_of(fields, "dtype"),
                   kv_dtype=_of(fields, "kv_dtype"), tensor_parallel_size=size)
    return pool.device_bytes, pool.weight_bytes, pool.reserve_bytes


def utilization_of_static(fields: Mapping[str, Any], share: float) -> float:
    """The share that leaves as much for KV cache as `share` of the GPU for weights and KV cache together does."""
    device, _, reserve = _terms(fields)
    return min(1.0, round(share + reserve / device, DIGITS))


def utilization_of_free(fields: Mapping[str, Any], share: float) -> float:
    """The share that leaves as much for KV cache as `share` of what weights and activations leave free."""
    device, weights, reserve = _terms(fields)
    return round(share + (1 - share) * (weights + reserve) / device, DIGITS)


def kv_tokens(fields: Mapping[str, Any], each_gpu: int) -> int:
    """Tokens of KV cache that fit so many bytes on each GPU."""
    size = fields.get("tensor_parallel_size", 1)
    token = model_spec(_of(fields, "model")).laid_out(size).kv_bytes_per_token(_of(fields, "kv_dtype"))
    return each_gpu * size // token


def _of(fields: Mapping[str, Any], name: str) -> Any:
    return fields.get(name, getattr(Scenario, name))
