"""Which attention path a device gets: the first of `PATHS` that runs there and is right. It times nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from calibration.attention.base import AttentionPath
from calibration.attention.check import TOLERANCES, Heads, error_of
from calibration.attention.flex import FlexPaged
from calibration.attention.gather import GatherAndAttend
from calibration.attention.split import Split
from calibration.attention.triton_decode import TritonDecode
from calibration.attention.varlen import Varlen
from simulator.errors import InputError

PATHS: tuple[type[AttentionPath], ...] = (Varlen, FlexPaged, TritonDecode, GatherAndAttend)
"""The most wanted first."""
CPU_PATHS: tuple[type[AttentionPath], ...] = (GatherAndAttend,)
"""What is worth timing on a CPU: flex_attention and Triton run there only to be checked."""


@dataclass(frozen=True)
class Chosen:
    """The path that a device gets.

    Attributes:
        path: It serves decodes, chunks and both together.
        page_size: Tokens a page with which it was checked.
        error: Its largest error, as `check.error_of` counts it.
        refused: Why each path before it was passed over, by name.
    """

    path: AttentionPath
    page_size: int
    error: float
    refused: dict[str, str]


def working_path(heads: Heads, dtype: torch.dtype, device: torch.device, rng: np.random.Generator) -> Chosen:
    """The first path that runs on this device and agrees with the reference. Raises InputError if none does."""
    refused: dict[str, str] = {}
    for kind in PATHS if device.type == "cuda" else CPU_PATHS:
        path = kind()
        if reason := path.obstacle(device):
            refused[path.name] = reason
            continue
        for page_size in path.page_sizes:
            try:
                error = error_of(path, heads, page_size, dtype, device, rng)
            except Exception as problem:    # whatever a kernel of somebody else's raises: the next path is tried
                refused[path.name] = f"pages of {page_size}: {type(problem).__name__}: {str(problem)[:200]}"
                continue
            if error <= TOLERANCES[dtype]:
                whole = path if path.mixes else Split(path, GatherAndAttend())
                return Chosen(whole, page_size, error, refused)
            refused[path.name] = f"pages of {page_size}: an error of {error:.2g} against float64"
    told = "; ".join(f"{name}: {why}" for name, why in refused.items())
    raise InputError(f"nothing attends to a paged cache rightly on {device} ({told}): try another torch")
