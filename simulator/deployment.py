"""Deployment: the facts a policy needs to fill in its engine's defaults. It knows no request and no clock."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.memory.base import UNLIMITED


@dataclass(frozen=True)
class Deployment:
    """One replica's hardware, memory and the longest lengths of its trace.

    Attributes:
        kv_capacity_tokens: Tokens of KV cache; UNLIMITED means no bound.
        max_model_len: Longest prompt plus output that the model serves, in tokens.
        gpu: Id of the GPU, such as "h100-80".
        gpu_bytes: Its memory as the driver reports it.
        longest_declared: Longest prompt plus declared output of the trace, in tokens.
        longest_exact: Longest prompt plus true output.
        longest_output: Longest true output.
        kv_bytes_per_token: Bytes of KV cache a token takes.
        max_concurrency: Most requests that the clients have outstanding; UNLIMITED means no bound.
    """

    kv_capacity_tokens: int = UNLIMITED
    max_model_len: int = 131072
    gpu: str = "h100-80"
    gpu_bytes: float = 85.0e9
    longest_declared: int = 1
    longest_exact: int = 1
    longest_output: int = 1
    max_concurrency: int = UNLIMITED
    kv_bytes_per_token: int = 131_072
