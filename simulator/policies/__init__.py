"""One engine, one readable module. Read `base` for the contract, `static` and `vllm` for the two ideas."""

from __future__ import annotations

from simulator.policies.base import Policy
from simulator.policies.dynamic import DynamicBatching
from simulator.policies.ft import FasterTransformer
from simulator.policies.hybrid import Hybrid
from simulator.policies.loading import load_policy
from simulator.policies.orca import Orca
from simulator.policies.sglang import Sglang
from simulator.policies.static import StaticBatching
from simulator.policies.tensorrt_llm import TensorRtLlm
from simulator.policies.tgi import Tgi
from simulator.policies.vllm import Vllm
from simulator.policies.vllm_0 import Vllm0

POLICIES: dict[str, type[Policy]] = {
    "static": StaticBatching,
    "ft": FasterTransformer,
    "dynamic": DynamicBatching,
    "orca": Orca,
    "tgi": Tgi,
    "tensorrt_llm": TensorRtLlm,
    "sglang": Sglang,
    "vllm": Vllm,
    "vllm-0": Vllm0,
    "hybrid": Hybrid,
}
"""All bundled policies by name."""

__all__ = ["POLICIES", "DynamicBatching", "FasterTransformer", "Hybrid", "Orca", "Policy", "Sglang", "StaticBatching",
           "TensorRtLlm", "Tgi", "Vllm", "Vllm0", "load_policy"]
