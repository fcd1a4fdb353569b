"""SGLang's defaults that depend on the machine. Mirrors: SGLang 0.5.23."""

from __future__ import annotations

GIB = 1 << 30
CHUNKS = ((20, 2048), (60, 4096), (160, 8192))
"""GPU memory in GiB below which a chunk has so many tokens."""
LARGEST_CHUNK = 16384


def chunked_prefill_size(gpu_bytes: float) -> int:
    """Tokens a prefill chunk, by the GPU's memory."""
    return next((tokens for gib, tokens in CHUNKS if gpu_bytes < gib * GIB), LARGEST_CHUNK)


def max_running_requests(capacity: int, context_length: int) -> int:
    """Most running requests, by the tokens of the KV pool and of the model."""
    return max(1, min(max(2048, min(4096, capacity * 512 // context_length)), capacity // 2))
