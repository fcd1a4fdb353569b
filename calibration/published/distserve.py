"""Coefficients that DistServe published for OPT-13B on one A100-80GB, as vLLM of 2023 ran it; host time included.

They were fitted by DistServe's authors to steps that they did not publish, so no error is known. Those of small batches
are taken; DistServe has others from 95 sequences on, which is where the range ends. There are no mixed steps.
"""

import json
from pathlib import Path

from calibration.fit import rounded
from calibration.published.making import WITH_HOST, bounded, profile, without_mixed
from cost_models import Profile
from cost_models.fits import Regime

SOURCE = ("LLMServe/DistServe @ 82831f1 (Apache-2.0): its fit to steps of vLLM (2023) at up to 95 sequences; the "
          "steps, and so the error, are not published")
NAME = "opt-13b-a100-80-bf16"


def opt_13b_a100(directory: Path) -> Profile:
    """The profile, from the folder that holds distserve/."""
    path = directory / "distserve" / "profiler-a100-80g.vllm.json"
    found = json.loads(path.read_text(encoding="utf-8"))["facebook/opt-13b"]["1"]
    base, token, square = map(rounded, found["prefill"])
    prefill = Regime(base_ms=base, per_token_ms=token, per_token_sq_ms=square)
    base, context, sequence = map(rounded, found["decoding_smallbs"])
    decode = Regime(base_ms=base, per_seq_ms=sequence, per_context_token_ms=context)
    fit = bounded(without_mixed(decode, prefill), decodes=(1, found["decoding_large_small_bs_threshold"]))
    return profile("opt-13b", "a100-80", SOURCE, fit, WITH_HOST)
