"""Kernel times of LLMServingSim's profiler: one layer of Llama-3.1-8B in vLLM 0.19, on one RTX card.

Three CSV files a card, in microseconds: attention (a pure or a mixed call by its four sizes), the dense kernels of a
layer by tokens, and those that run once a sequence. Attention calls are homogeneous: all decodes have one context.
"""

import csv
from collections import defaultdict
from pathlib import Path

from calibration.kernel_times import KernelTimes

SOURCE = "casys-kaist/LLMServingSim @ 5daddb2 (MIT): vLLM 0.19 kernels of one layer, timed by its profiler"
LAYERS = 32
ONCE = ("embedding", "final_layernorm")
"""Dense kernels that run once a step and not once a layer."""


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
