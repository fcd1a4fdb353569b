"""One engine, one readable module. Read `base` for the contract, `static` and `vllm` for the two ideas."""

from __future__ import annotations

from simulator.policies.base import Policy
from simulator.policies.loading import load_policy
from simulator.policies.static import StaticBatching
from simulator.policies.tgi import Tgi
from simulator.policies.vllm import Vllm
from simulator.policies.vllm_0 import Vllm0

POLICIES: dict[str, type[Policy]] = {"static": StaticBatching, "tgi": Tgi, "vllm": Vllm, "vllm-0": Vllm0}
"""All bundled policies by name."""

__all__ = ["POLICIES", "Policy", "StaticBatching", "Tgi", "Vllm", "Vllm0", "load_policy"]
