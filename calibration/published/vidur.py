"""Kernel times of Vidur's profiler: Llama-2-70B on two A100-80GB with NVLink, one layer and one rank.

Three CSV files, in milliseconds: all of a layer but attention by tokens, attention (pure calls only) by sizes, and
all-reduces by bytes. A cell that was timed more than once counts with its median; all-reduces, which scatter
threefold, with that of all around a power of two of tokens. It timed no output head; that is taken from its bytes. The
attention file is of May 2024: the one that Vidur's current tree refers to could not be had.
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from math import log2
from pathlib import Path
from statistics import median
from typing import TypeVar

from calibration.kernel_times import KernelTimes
from calibration.published.making import profile
from calibration.table_fit import fit_table
from cost_models import Profile
from cost_models.shapes import BYTES
from cost_models.specs import GPUS, MODELS

SOURCE = ("microsoft/vidur @ 7d47513 and e2d00e9 (MIT): kernels of one layer, timed by its profiler; the output head "
          "was not, and is taken at 0.8 of the peak bandwidth")
NAME = "llama-2-70b-a100-80-tp2-bf16"
MODEL, GPU, RANKS = "llama-2-70b", "a100-80", 2
LAYER = ("input_layernorm", "attn_pre_proj", "attn_rope", "attn_post_proj", "post_attention_layernorm", "mlp_up_proj",
         "mlp_act", "mlp_down_proj", "add")
MOST_SEQUENCES = 128
HEAD_EFFICIENCY = 0.8

Row = dict[str, str]
Size = TypeVar("Size", bound=Hashable)


def llama_2_70b_a100(directory: Path) -> Profile:
    """The profile, from the folder that holds vidur/."""
    return profile(MODEL, GPU, SOURCE, fit_table(kernel_times(directory)), tensor_parallel_size=RANKS)


def kernel_times(directory: Path) -> KernelTimes:
    """Times of one layer on one of two ranks."""
    folder, spec = directory / "vidur", MODELS[MODEL]
    dense = [row for row in _rows(folder / "a100_Llama-2-70b-hf_mlp.csv")
             if int(row["num_tensor_parallel_workers"]) == RANKS]
    calls = list(_rows(folder / "a100_attention_2024-05_e2d00e9.csv.gz"))
    reduces = [row for row in _rows(folder / "a100_dgx_all_reduce.csv.gz")
               if int(row["num_workers"]) == int(row["devices_per_node"]) == RANKS]
    row_bytes = spec.hidden * BYTES["bf16"]
    head = 1e6 * spec.head_parameters * BYTES["bf16"] / RANKS / (HEAD_EFFICIENCY * GPUS[GPU].bandwidth)
    return KernelTimes(
        spec.layers,
        linear=_medians(dense, lambda row: int(row["num_tokens"]),
                        lambda row: _layer(row) + _us(row, "emb") / spec.layers),
        head={1: head, MOST_SEQUENCES: head},
        decode=_medians([row for row in calls if row["is_prefill"] == "False"],
                        lambda row: (int(row["batch_size"]), int(row["kv_cache_size"])), _attention("attn_decode")),
        prefill=_medians([row for row in calls if row["is_prefill"] == "True" and row["batch_size"] == "1"],
                         lambda row: (int(row["prefill_chunk_size"]), int(row["kv_cache_size"])),
                         _attention("attn_prefill")),
        all_reduce=_medians([row for row in reduces if int(row["size"]) >= row_bytes],
                            lambda row: 1 << round(log2(int(row["size"]) / row_bytes)),
                            lambda row: _us(row, "all_reduce")),
    )


def _layer(row: Row) -> float:
    return sum(_us(row, kernel) for kernel in LAYER)


def _attention(kernel: str) -> Callable[[Row], float]:
    """The kernel with the reshapes around it."""
    return lambda row: sum(_us(row, part) for part in ("attn_input_reshape", kernel, "attn_output_reshape"))


def _us(row: Row, kernel: str) -> float:
    return 1e3 * float(row[f"time_stats.{kernel}.median"])


def _medians(rows: list[Row], size: Callable[[Row], Size], us: Callable[[Row], float]) -> dict[Size, float]:
    found: dict[Size, list[float]] = defaultdict(list)
    for row in rows:
        found[size(row)].append(us(row))
    return {key: median(times) for key, times in found.items()}


def _rows(path: Path) -> Iterator[Row]:
    with (gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")) as file:
        yield from csv.DictReader(file)
