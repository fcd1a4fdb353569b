"""Kernel times of LLMServingSim's profiler: one layer of Llama-3.1-8B in vLLM 0.19, on one RTX card.

Three CSV files a card, in microseconds: attention (a pure or a mixed call by its four sizes), the dense kernels of a
layer by tokens, and those that run once a sequence. Attention calls are homogeneous: all decodes have one context.
"""

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from calibration.kernel_times import KernelTimes
from calibration.published.making import profile
from calibration.table_fit import fit_table
from calibration.tuning import tuned_host
from cost_models import Profile
from simulator.engine_runs import EngineRun, read_run

SOURCE = "casys-kaist/LLMServingSim @ 5daddb2 (MIT): vLLM 0.19 kernels of one layer, timed by its profiler"
TUNED = ("host h0, to the mean TPOT of the even requests of the recorded vLLM 0.19 run of the same source; KV pool and "
         "utilisation of that run are not recorded")
ENGINE = {"max_num_seqs": 128, "max_num_batched_tokens": 2048}
"""Of the recorded run."""
RTX_4090: str = "llama-3.1-8b-rtx-4090-bf16"
RTX_PRO_6000: str = "llama-3.1-8b-rtx-pro-6000-bf16"
MODEL, LAYERS = "llama-3.1-8b", 32
ONCE = ("embedding", "final_layernorm")
"""Dense kernels that run once a step and not once a layer."""


def rtx_4090(directory: Path) -> Profile:
    """The profile of an RTX 4090, from the folder that holds llmservingsim/."""
    return profile(MODEL, "rtx-4090", SOURCE, fit_table(kernel_times(directory, "RTX4090")))


def rtx_pro_6000(directory: Path) -> Profile:
    """The profile of an RTX PRO 6000, its host time tuned on half of the recorded run."""
    found = profile(MODEL, "rtx-pro-6000", SOURCE, fit_table(kernel_times(directory, "RTXPRO6000")))
    host = tuned_host(found, recorded_run(directory), knobs=ENGINE)
    return replace(found, host=host, origin=replace(found.origin, tuned=TUNED))


def recorded_run(directory: Path) -> EngineRun:
    """300 requests that vLLM 0.19 served on the RTX PRO 6000."""
    return read_run(directory / "llmservingsim" / "RTXPRO6000_Llama-3.1-8B__requests.jsonl")


def kernel_times(directory: Path, card: str) -> KernelTimes:
    """Times of one card, such as "RTX4090"."""
    stem = directory / "llmservingsim" / f"{card}_llama31-8b_bf16_tp1"
    calls: dict[str, dict[tuple[int, ...], float]] = {"decode": {}, "prefill": {}, "mixed": {}}
    for row in _rows(Path(f"{stem}_attention.csv")):
        new, prior, sequences, each = (int(row[name]) for name in
                                       ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode"))
        kind = "mixed" if new and sequences else "prefill" if new else "decode"
        sizes = {"mixed": (new, prior, sequences, each), "prefill": (new, prior), "decode": (sequences, each)}[kind]
        calls[kind][sizes] = float(row["time_us"])
    return KernelTimes(LAYERS, _by_tokens(Path(f"{stem}_dense.csv")),
                       _summed(Path(f"{stem}_per_sequence.csv"), "sequences"), **calls)    # type: ignore[arg-type]


def _by_tokens(path: Path) -> dict[int, float]:
    """All kernels of a layer but attention; those of the whole step are spread over the layers."""
    found: dict[int, float] = defaultdict(float)
    for row in _rows(path):
        found[int(row["tokens"])] += float(row["time_us"]) / (LAYERS if row["layer"] in ONCE else 1)
    return dict(found)


def _summed(path: Path, size: str) -> dict[int, float]:
    found: dict[int, float] = defaultdict(float)
    for row in _rows(path):
        found[int(row[size])] += float(row["time_us"])
    return dict(found)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
