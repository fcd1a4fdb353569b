"""Readers of published figures, on files of a few lines."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.published import llmservingsim, splitwise, vidur
from calibration.published.aiconfigurator import RANGE, random_steps
from cost_models import Regimes, StepShape, bundled_profiles

PROFILE = bundled_profiles()["llama-3.1-8b-h100-80-bf16"]


def test_llmservingsim(tmp_path: Path) -> None:
    folder = tmp_path / "llmservingsim"
    folder.mkdir()
    stem = "RTX4090_llama31-8b_bf16_tp1"
    (folder / f"{stem}_attention.csv").write_text("prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
                                                  "0,0,2,16,8.5\n64,0,0,0,9.5\n64,512,2,16,12.5\n")
    (folder / f"{stem}_dense.csv").write_text("layer,tokens,time_us\nqkv_proj,1,10\no_proj,1,5\nembedding,1,32\n"
                                              "final_layernorm,1,64\nqkv_proj,8,20\n")
    (folder / f"{stem}_per_sequence.csv").write_text("layer,sequences,time_us\nlm_head,1,700\nsampler,1,25\n")
    times = llmservingsim.kernel_times(tmp_path, "RTX4090")
    assert times.linear == {1: 10 + 5 + 1 + 2, 8: 20}    # once a step over 32 layers
    assert times.head == {1: 725}
    assert (times.decode, times.prefill, times.mixed) == ({(2, 16): 8.5}, {(64, 0): 9.5}, {(64, 512, 2, 16): 12.5})


def test_splitwise(tmp_path: Path) -> None:
    (tmp_path / "splitwise").mkdir()
    (tmp_path / "splitwise" / "perf_model.csv").write_text(
        "model,hardware,prompt_size,batch_size,token_size,prompt_time,token_time,tensor_parallel\n"
        "llama2-70b,a100-80gb,512,2,128,200,40,4\nllama2-70b,a100-80gb,512,2,128,220,44,4\n"
        "llama2-70b,a100-80gb,512,2,128,210,41,4\nllama2-70b,a100-80gb,512,2,256,999,99,4\n"
        "llama2-70b,a100-80gb,512,2,128,999,99,8\nbloom-176b,a100-80gb,512,2,128,999,99,4\n")
    rows = splitwise.steps(tmp_path, "a100-80", 4)
    assert rows.shapes == [StepShape(0, 0, ((512, 0), (512, 0))), StepShape(2, 2 * 576)]
    assert rows.ms.tolist() == [210, 41]


def compressed(path: Path, text: str) -> None:
    with gzip.open(path, "wt") as file:
        file.write(text)


def test_vidur(tmp_path: Path) -> None:
    folder = tmp_path / "vidur"
    folder.mkdir()
    kernels = [*vidur.LAYER, "emb"]
    header = ",".join([*(f"time_stats.{kernel}.median" for kernel in kernels), "num_tokens",
                       "num_tensor_parallel_workers"])
    rows = [",".join([*["0.001"] * len(vidur.LAYER), "0.08", "1", ranks]) for ranks in ("2", "1")]
    (folder / "a100_Llama-2-70b-hf_mlp.csv").write_text("\n".join([header, *rows]) + "\n")
    parts = "time_stats.attn_input_reshape.median,time_stats.attn_{}.median,time_stats.attn_output_reshape.median"
    compressed(folder / "a100_attention_2024-05_e2d00e9.csv.gz",
               f"{parts.format('decode')},time_stats.attn_prefill.median,batch_size,prefill_chunk_size,kv_cache_size,"
               "is_prefill\n0.0,0.015,0.001,,2,0,32,False\n0.0,0.017,0.001,,2,0,32,False\n0.0,,0.001,0.02,1,64,0,True\n")
    compressed(folder / "a100_dgx_all_reduce.csv.gz",
               "time_stats.all_reduce.median,num_workers,devices_per_node,size\n0.03,2,2,8192\n0.04,2,2,16384\n"
               "0.06,2,2,16384\n0.05,2,2,20480\n0.07,2,2,32768\n0.9,2,1,16384\n0.9,4,4,16384\n")
    times = vidur.kernel_times(tmp_path)
    assert times.layers == 80
    assert times.linear == {1: pytest.approx(9 + 1)}
    assert times.decode == {(2, 32): pytest.approx(17)}
    assert times.prefill == {(64, 0): pytest.approx(21)}
    # A token has 16 KiB; less than that is left out.
    assert times.all_reduce == {1: pytest.approx(50), 2: pytest.approx(70)}
    assert times.head[1] == pytest.approx(1e6 * 8192 * 32000 / (0.8 * 2.039e12))


def test_random_steps_are_the_same_each_time_and_lie_where_they_should() -> None:
    decode, prefill = random_steps()
    assert random_steps() == (decode, prefill)
    assert all(Regimes(replace(PROFILE, fit=replace(PROFILE.fit, range=RANGE))).in_range(shape)
               for shape in decode + prefill)
    assert {len(shape.chunks) for shape in prefill} == {1}
    alone = np.mean([shape.chunks[0][1] == 0 for shape in prefill])
    assert 0.4 < alone < 0.6
