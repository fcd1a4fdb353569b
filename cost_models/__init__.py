"""How long a step of an LLM server lasts: constant, from specifications, or from calibrated profiles.

Read ``base`` (what a model is asked), ``linear`` (how it is rounded), then ``regimes``, ``table`` or ``roofline``.
``profile`` is the file of a calibration, ``catalogue`` finds a model by name, ``pool`` says how many tokens of KV
cache fit.
"""

from cost_models.base import CostModel, CostModelError, StepShape, choose
from cost_models.biased import Biased
from cost_models.catalogue import CostModelRow, available_cost_models, cost_model, profile_named
from cost_models.checked import checked
from cost_models.constant import Constant
from cost_models.graphs import CapturedGraphs, graph_sizes
from cost_models.noise import Noise, noise_for
from cost_models.pool import KvPool, kv_pool
from cost_models.profile import Profile, bundled_profiles, read_profile
from cost_models.regimes import Regimes
from cost_models.roofline import Roofline
from cost_models.shapes import GpuSpec, ModelSpec
from cost_models.specs import GPUS, MODELS, gpu_spec, model_spec
from cost_models.table import Table

__all__ = [
    "GPUS",
    "MODELS",
    "Biased",
    "CapturedGraphs",
    "Constant",
    "CostModel",
    "CostModelError",
    "CostModelRow",
    "GpuSpec",
    "KvPool",
    "ModelSpec",
    "Noise",
    "Profile",
    "Regimes",
    "Roofline",
    "StepShape",
    "Table",
    "available_cost_models",
    "bundled_profiles",
    "checked",
    "choose",
    "cost_model",
    "gpu_spec",
    "graph_sizes",
    "kv_pool",
    "model_spec",
    "noise_for",
    "profile_named",
    "read_profile",
]
