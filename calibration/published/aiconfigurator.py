"""Affine coefficients of Llama-3.1-8B and 70B on data-centre GPUs, fitted to steps that aiconfigurator-core composes.

One JSON file, in milliseconds, kernels only. Its errors are those on the fitted steps themselves. There are no mixed
steps in it.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from calibration.published.making import profile, without_mixed
from cost_models import Profile
from cost_models.fits import Error, Regime

SOURCE = ("fitted to steps composed by aiconfigurator-core 0.12.0 (Apache-2.0, NVIDIA; {system}, vllm kernels), "
          "kernels only; errors on the fitted steps")
GPUS = {"a100-80": "a100_sxm", "h100-80": "h100_sxm", "h200": "h200_sxm", "b200": "b200_sxm"}
MODELS = {"llama-3.1-8b": ("meta-llama/Meta-Llama-3.1-8B", 1), "llama-3.1-70b": ("meta-llama/Meta-Llama-3.1-70B", 4)}
"""Name in the file and GPUs of one replica."""


def llama_3_1(model: str, gpu: str, directory: Path) -> Profile:
    """The profile of one model and GPU type, from the folder that holds aic_derived/."""
    text = (directory / "aic_derived" / "affine_coefficients_bf16.json").read_text(encoding="utf-8")
    wanted = (MODELS[model][0], GPUS[gpu], MODELS[model][1])
    row = next(row for row in json.loads(text)["rows"] if (row["model"], row["system"], row["tp"]) == wanted)
    decode, prefill = row["decode_ms"], row["prefill_ms"]
    fit = without_mixed(
        Regime(base_ms=decode["base"], per_seq_ms=decode["per_seq"], per_context_token_ms=decode["per_ctx_token"]),
        Regime(base_ms=prefill["base"], per_token_ms=prefill["per_token"], per_token_sq_ms=prefill["per_token_sq"]),
        (_error(decode), _error(prefill)))
    return profile(model, gpu, SOURCE.format(system=GPUS[gpu]), fit, tensor_parallel_size=MODELS[model][1])


PROFILES: dict[str, Callable[[Path], Profile]] = {
    f"{model}-{gpu}{f'-tp{ranks}' if ranks > 1 else ''}-bf16": partial(llama_3_1, model, gpu)
    for model, (_, ranks) in MODELS.items() for gpu in GPUS}
"""How each profile is made, by name."""


def _error(regime: dict[str, Any]) -> Error:
    return Error(regime["mape"], regime["p95"])
