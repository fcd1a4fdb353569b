"""Whole steps of the engine that Splitwise measured: Llama-2-70B on four or eight A100-80GB or H100-80GB.

One CSV file, in milliseconds: a prompt phase and a mean token time for each batch of equal prompts, five times each.
Host time is in them. Batches with other answers than 128 tokens are left out: they ended at lengths that the file does
not tell. There are no mixed steps.
"""

import csv
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from calibration.fit import fit_regime
from calibration.published.making import WITH_HOST, bounded, profile, without_mixed
from calibration.rows import StepRows
from cost_models import Profile, StepShape

SOURCE = "Mutinifni/splitwise-sim @ 8f99e7d (MIT): perf_model.csv, whole steps of the engine that Splitwise measured"
MODEL, ANSWER = "llama2-70b", 128
GPUS = {"a100-80": "a100-80gb", "h100-80": "h100-80gb"}
RANKS = (4, 8)


def llama_2_70b(gpu: str, ranks: int, directory: Path) -> Profile:
    """The profile of one GPU type and layout, from the folder that holds splitwise/."""
    rows = steps(directory, gpu, ranks)
    decode, prefill = fit_regime(rows, "decode"), fit_regime(rows, "prefill")
    fit = without_mixed(decode.regime, prefill.regime, (decode.error, prefill.error))
    return profile("llama-2-70b", gpu, SOURCE, bounded(fit, **rows.bounds()), WITH_HOST, tensor_parallel_size=ranks)


PROFILES: dict[str, Callable[[Path], Profile]] = {
    f"llama-2-70b-{gpu}-tp{ranks}-bf16": partial(llama_2_70b, gpu, ranks) for gpu in GPUS for ranks in RANKS}
"""How each profile is made, by name."""


def steps(directory: Path, gpu: str, ranks: int) -> StepRows:
    """Medians of the repetitions: each batch's prompt phase as one step, and its mean token as another."""
    times: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    with (directory / "splitwise" / "perf_model.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if (row["model"], row["hardware"], int(row["tensor_parallel"]), int(row["token_size"])) == (
                    MODEL, GPUS[gpu], ranks, ANSWER):
                phases = float(row["prompt_time"]), float(row["token_time"])
                times[int(row["prompt_size"]), int(row["batch_size"])].append(phases)
    shapes: list[StepShape] = []
    ms: list[float] = []
    for (prompt, batch), measured in sorted(times.items()):
        shapes.append(StepShape(0, 0, ((prompt, 0),) * batch))
        shapes.append(StepShape(batch, batch * (prompt + ANSWER // 2)))
        ms.extend(median(phase) for phase in zip(*measured, strict=True))
    return StepRows(shapes, np.array(ms))
