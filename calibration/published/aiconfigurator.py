"""Affine coefficients of Llama-3.1-8B and 70B on data-centre GPUs, fitted to steps that aiconfigurator-core composes.

One JSON file, in milliseconds, kernels only, without mixed steps. Where the package itself is at hand (extra `aic`),
the coefficients are held against its kernel tables at random steps that the fit has not seen; else the errors are those
on the fitted steps, from the file.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from calibration.errors import error
from calibration.published.making import profile, without_mixed
from cost_models import CostModelError, Profile, Regimes, StepShape, Table, cost_model
from cost_models.fits import Error, Errors, Range, Regime
from cost_models.profile import Host

SOURCE = ("fitted to steps composed by aiconfigurator-core 0.12.0 (Apache-2.0, NVIDIA; {system}, vllm kernels), "
          "kernels only")
GPUS = {"a100-80": "a100_sxm", "h100-80": "h100_sxm", "h200": "h200_sxm", "b200": "b200_sxm"}
MODELS = {"llama-3.1-8b": ("meta-llama/Meta-Llama-3.1-8B", 1), "llama-3.1-70b": ("meta-llama/Meta-Llama-3.1-70B", 4)}
"""Name in the file and GPUs of one replica."""
UNSEEN = 400
"""Random steps of each kind on which the coefficients are tried."""
RANGE = Range(decodes=(1, 512), context=(16, 512 * 8192), chunk_tokens=(1, 8192), prior_tokens=(0, 8192))
"""Where those lie."""


def llama_3_1(model: str, gpu: str, directory: Path) -> Profile:
    """The profile of one model and GPU type, from the folder that holds aic_derived/."""
    text = (directory / "aic_derived" / "affine_coefficients_bf16.json").read_text(encoding="utf-8")
    wanted = (MODELS[model][0], GPUS[gpu], MODELS[model][1])
    row = next(row for row in json.loads(text)["rows"] if (row["model"], row["system"], row["tp"]) == wanted)
    decode, prefill = row["decode_ms"], row["prefill_ms"]
    fit = without_mixed(
        Regime(base_ms=decode["base"], per_seq_ms=decode["per_seq"], per_context_token_ms=decode["per_ctx_token"]),
        Regime(base_ms=prefill["base"], per_token_ms=prefill["per_token"], per_token_sq_ms=prefill["per_token_sq"]),
        (_stated(decode), _stated(prefill)))
    found = profile(model, gpu, SOURCE.format(system=GPUS[gpu]), fit, tensor_parallel_size=MODELS[model][1])
    return replace(found, fit=replace(fit, errors=_unseen(found) or fit.errors, range=RANGE,
                                        held_against="kernels"))


PROFILES: dict[str, Callable[[Path], Profile]] = {
    f"{model}-{gpu}{f'-tp{ranks}' if ranks > 1 else ''}-bf16": partial(llama_3_1, model, gpu)
    for model, (_, ranks) in MODELS.items() for gpu in GPUS}
"""How each profile is made, by name."""


def _stated(regime: dict[str, Any]) -> Error:
    return Error(regime["mape"], regime["p95"])


def _unseen(found: Profile) -> Errors | None:
    """Errors against the package's kernel tables, host time left out; None without the package."""
    try:
        tables = cost_model("aiconfigurator", model=found.model, gpu=found.gpu,
                            tensor_parallel_size=found.tensor_parallel_size)
    except CostModelError:
        return None
    assert isinstance(tables, Table)
    kernels = Host("measured", 0.0)
    fitted, tables = Regimes(replace(found, host=kernels)), Table(replace(tables.profile, host=kernels))
    return Errors(*(error(np.array([fitted.time(shape) for shape in shapes]),
                          np.array([tables.time(shape) for shape in shapes])) for shapes in random_steps()))


def random_steps(seed: int = 0) -> tuple[list[StepShape], list[StepShape]]:
    """Decode steps of up to 512 sequences with up to 8,192 tokens each; chunks of up to 8,192 after as many or none.

    Sizes are uniform in their logarithms.
    """
    rng = np.random.default_rng(seed)
    sequences, context, new, prior = (np.exp2(rng.uniform(low, high, UNSEEN)).astype(int).tolist()
                                      for low, high in ((0, 9), (4, 13), (0, 13), (4, 13)))
    first = (rng.random(UNSEEN) < 0.5).tolist()
    decode = [StepShape(s, s * each) for s, each in zip(sequences, context, strict=True)]
    prefill = [StepShape(0, 0, ((n, 0 if alone else p),)) for n, p, alone in zip(new, prior, first, strict=True)]
    return decode, prefill
