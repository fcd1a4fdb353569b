import dataclasses
from pathlib import Path

import pytest
import yaml

from cost_models import GPUS, MODELS, CostModelError, ModelSpec, choose, gpu_spec, kv_pool, model_spec

GIB = 1024**3


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llama-3.1-8b", 8.03),
        ("llama-3.1-70b", 70.6),
        ("llama-2-7b", 6.74),
        ("opt-13b", 12.85),
        ("mistral-7b", 7.25),
        ("qwen2.5-7b", 7.62),
    ],
)
def test_parameters_are_those_published(name: str, billions: float) -> None:
    assert MODELS[name].parameters / 1e9 == pytest.approx(billions, abs=0.05 if billions > 70 else 0.005)


def test_parameters_to_the_last_one() -> None:
    assert MODELS["llama-3.1-8b"].parameters == 8_030_261_248
    assert MODELS["llama-2-7b"].parameters == 6_738_415_616
    assert MODELS["mistral-7b"].parameters == 7_248_023_552
    assert MODELS["qwen2.5-7b"].parameters == 7_615_616_512
    assert MODELS["opt-13b"].parameters == 12_853_473_280
    assert MODELS["llama-3.1-70b"].parameters == 70_553_706_496


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        ("llama-3.1-8b", 131072),
        ("llama-3.1-70b", 327680),
        ("llama-2-7b", 524288),
        ("opt-13b", 819200),
        ("mistral-7b", 131072),
        ("qwen2.5-7b", 57344),
    ],
)
def test_kv_bytes_per_token(name: str, kv_bytes: int) -> None:
    assert MODELS[name].kv_bytes_per_token() == kv_bytes
    assert MODELS[name].kv_bytes_per_token("fp8") == kv_bytes // 2


def test_weight_bytes() -> None:
    model = MODELS["llama-3.1-8b"]
    assert model.weight_bytes() == 2 * model.parameters
    # An fp8 checkpoint of it is 9.08 GB: head and embedding (0.525e9 each) stay bf16.
    assert model.weight_bytes("fp8") / 1e9 == pytest.approx(9.08, abs=0.01)
    assert model.weight_bytes() - model.read_bytes() == 2 * 128256 * 4096
    assert MODELS["opt-13b"].read_bytes() == MODELS["opt-13b"].weight_bytes()


def test_fp8_rate_falls_back_where_there_is_none() -> None:
    assert GPUS["a100-80"].flops("fp8") == GPUS["a100-80"].flops("bf16") == 312e12
    assert GPUS["h100-80"].flops("fp8") == 1979e12


def test_the_bundled_names() -> None:
    gpus = "a100-40 a100-80 h100-80 h200 b200 l40s rtx-4090 rtx-pro-6000"
    models = "llama-3.1-8b llama-3.1-70b llama-2-7b llama-2-70b opt-13b mistral-7b qwen2.5-7b"
    assert (list(GPUS), list(MODELS)) == (gpus.split(), models.split())
    assert all(spec.source for spec in (*GPUS.values(), *MODELS.values()))
    peaks = [(GPUS[name].bandwidth / 1e12, GPUS[name].bf16_flops / 1e12) for name in list(GPUS)[:5]]
    assert peaks == [(1.555, 312), (2.039, 312), (3.35, 989), (4.8, 989), (8.0, 2250)]


# Model, GPU, number of GPUs, pool in tokens: 0.9 of the capacity as sold, no reserve.
POOLS = [
    ("llama-3.1-8b", "a100-40", 1, 152e3, 0.5e3),
    ("llama-3.1-8b", "a100-80", 1, 427e3, 0.5e3),
    ("llama-3.1-8b", "h100-80", 1, 427e3, 0.5e3),
    ("llama-3.1-8b", "h200", 1, 846e3, 0.5e3),
    ("llama-3.1-8b", "b200", 1, 1.11e6, 5e3),
    ("llama-3.1-70b", "h100-80", 4, 448e3, 0.5e3),
    ("llama-3.1-70b", "h200", 2, 344e3, 0.5e3),
    ("llama-3.1-70b", "b200", 2, 558e3, 0.5e3),
    ("opt-13b", "a100-80", 1, 56.5e3, 50),
    ("opt-13b", "h200", 1, 124e3, 0.5e3),
]


@pytest.mark.parametrize(("model", "gpu", "gpus", "tokens", "digit"), POOLS)
def test_pools_of_the_capacity_as_sold(model: str, gpu: str, gpus: int, tokens: float, digit: float) -> None:
    sold = dataclasses.replace(GPUS[gpu], name="as sold", device_bytes=round(GPUS[gpu].nominal_bytes))
    pool = kv_pool(model, sold, utilization=0.9, reserve_bytes=0, tensor_parallel_size=gpus)
    assert pool.tokens == pytest.approx(tokens, abs=digit)


def test_opt_13b_on_the_bytes_a_40_gb_card_reports() -> None:
    pool = kv_pool("opt-13b", "a100-40", utilization=0.9, reserve_bytes=0)
    assert pool.tokens == pytest.approx(15.3e3, abs=50)


def test_the_four_terms_of_the_default_pool() -> None:
    pool = kv_pool("llama-3.1-8b", "h100-80")
    weights = 2 * 8_030_261_248
    assert pool.terms() == {
        "device_bytes": 85_000_000_000,
        "utilization": 0.92,
        "weight_bytes": weights,
        "reserve_bytes": 2 * GIB,
    }
    assert pool.free_bytes == 78_200_000_000 - weights - 2 * GIB
    assert pool.tokens == pool.free_bytes // 131072 == 457_702
    assert pool.explain() == (
        "0.92 x 85.00 GB device - 16.06 GB weights - 2.15 GB reserve = 59.99 GB"
        " / 131,072 bytes per token = 457,702 tokens of KV cache"
    )


def test_four_gpus_have_four_reserves_and_one_copy_of_the_weights() -> None:
    pool = kv_pool("llama-3.1-70b", "h100-80", tensor_parallel_size=4)
    assert pool.device_bytes == 340_000_000_000
    assert pool.reserve_bytes == 8 * GIB
    assert pool.weight_bytes == MODELS["llama-3.1-70b"].weight_bytes()


def test_fp8_weights_and_kv_make_room() -> None:
    pool = kv_pool("llama-3.1-8b", "rtx-4090", dtype="fp8", kv_dtype="fp8")
    assert pool.weight_bytes == MODELS["llama-3.1-8b"].weight_bytes("fp8")
    assert pool.kv_bytes_per_token == 65536


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"model": "opt-13b", "gpu": "rtx-4090"},
            "opt-13b in bf16 on 1 x rtx-4090 does not fit: 4,579,249,408 bytes (4.6 GB) are missing for one token"
            " of KV cache; use dtype fp8, a larger tensor_parallel_size or a bigger GPU",
        ),
        (
            {"model": "llama-3.1-70b", "gpu": "h200", "dtype": "fp8", "utilization": 0.4},
            "llama-3.1-70b in fp8 on 1 x h200 does not fit into 0.4 of the memory (gpu_memory_utilization): "
            "14,764,183,040 bytes (14.8 GB) are missing for one token of KV cache; use more of the memory, a larger "
            "tensor_parallel_size or a bigger GPU",
        ),
        (
            {"model": "qwen2.5-7b", "gpu": "h100-80", "tensor_parallel_size": 8},
            "tensor_parallel_size 8 does not deal the 28 heads and 4 KV heads of qwen2.5-7b evenly "
            "(possible: 1, 2, 4, 28)",
        ),
        (
            {"model": "opt-13b", "gpu": "h200", "utilization": 1.2},
            "utilization must be above 0 and at most 1, got 1.2",
        ),
        ({"model": "opt-13b", "gpu": "h200", "reserve_bytes": -1}, "reserve_bytes must be at least 0, got -1"),
        (
            {"model": "opt-13b", "gpu": "h200", "kv_dtype": "fp16"},
            "unknown kv_dtype 'fp16': did you mean 'bf16'? (known: bf16, fp8)",
        ),
    ],
)
def test_a_pool_that_cannot_be(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(CostModelError) as caught:
        kv_pool(**arguments)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_the_missing_bytes_are_just_what_is_missing() -> None:
    need = round(4_579_249_408 / 0.92) + 1
    bigger = dataclasses.replace(GPUS["rtx-4090"], name="bigger", device_bytes=25_300_000_000 + need)
    assert kv_pool("opt-13b", bigger).tokens == 1


OWN = {
    "name": "own",
    "layers": 2,
    "hidden": 8,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 2,
    "ffn": 16,
    "vocab": 100,
    "max_model_len": 64,
}


def test_a_shape_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({**OWN, "tied_embeddings": True}))
    from_file, from_mapping = model_spec(tmp_path / "own.yaml"), model_spec({**OWN, "tied_embeddings": True})
    assert from_file == from_mapping == model_spec(str(tmp_path / "own.yaml")) == model_spec(from_file)
    assert from_file.parameters == 1152 + 800 + 40
    assert from_file.source == "custom shape"


def test_a_bundled_shape_spelled_out_is_that_model() -> None:
    spelled = dataclasses.asdict(MODELS["opt-13b"])
    assert model_spec(spelled) == MODELS["opt-13b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"layer": 3},
            "model: unknown key 'layer': did you mean 'layers'? (known: name, layers, hidden, heads, kv_heads, "
            "head_dim, ffn, vocab, max_model_len, gated_mlp, tied_embeddings, qkv_bias, all_biases, "
            "position_rows, source)",
        ),
        ({"layers": 0}, "model: layers must be at least 1, got 0"),
        ({"layers": "2"}, "model: layers must be a whole number of at least 0, got '2'"),
        ({"gated_mlp": 1}, "model: gated_mlp must be true or false, got 1"),
        ({"heads": 5}, "model: heads (5) must be a multiple of kv_heads (2)"),
        ({"name": "o\nn"}, "name of the model must be one printable line, got 'o\\nn'"),
        (
            {"layers": [10**5000]},
            "model: layers must be a whole number of at least 0, got a number of thousands of digits",
        ),
        ({"name": "opt-13b"}, "'opt-13b' is a bundled model of another shape: give yours another name"),
    ],
)
def test_a_wrong_shape(change: dict[str, object], message: str) -> None:
    with pytest.raises(CostModelError) as caught:
        model_spec({**OWN, **change})
    assert str(caught.value) == message


def test_a_shape_with_something_missing() -> None:
    with pytest.raises(CostModelError) as caught:
        model_spec({"name": "own", "layers": 2})
    assert str(caught.value) == (
        "model: missing 'hidden' (needed: hidden, heads, kv_heads, head_dim, ffn, vocab, max_model_len)"
    )


def test_unknown_names() -> None:
    with pytest.raises(CostModelError) as caught:
        gpu_spec("h10")
    assert str(caught.value) == (
        "unknown GPU 'h10': did you mean 'h100-80'? "
        "(known: a100-40, a100-80, h100-80, h200, b200, l40s, rtx-4090, rtx-pro-6000)"
    )
    with pytest.raises(CostModelError, match=r"^unknown model 'LLaMA-3.1-8B': did you mean 'llama-3.1-8b'\? "):
        model_spec("LLaMA-3.1-8B")
    with pytest.raises(CostModelError, match=r"^unknown model 'zzz' \(known: llama-3.1-8b, "):
        model_spec("zzz")


def test_a_gpu_of_ones_own_needs_its_own_name() -> None:
    faster = dataclasses.replace(GPUS["h200"], bandwidth=9e12)
    with pytest.raises(CostModelError) as caught:
        gpu_spec(faster)
    assert str(caught.value) == "'h200' is a bundled GPU with other specs: give yours another name"
    assert gpu_spec(dataclasses.replace(faster, name="faster")).bandwidth == 9e12
    with pytest.raises(CostModelError) as caught:
        dataclasses.replace(faster, bandwidth=0)
    assert str(caught.value) == "bandwidth of h200 must be above 0, got 0"


def test_of_very_many_names_the_most_alike_are_told_and_where_all_are() -> None:
    names = [f"p{percent}_ttft_ms" for percent in range(24)]
    with pytest.raises(CostModelError, match=r"\(known: p0_ttft_ms, .*, p23_ttft_ms\)$"):
        choose("metric", "x", names)
    with pytest.raises(CostModelError) as caught:
        choose("metric", "goodputt", [*names, "goodput"], "the glossary")
    alike = "goodput, p9_ttft_ms, p8_ttft_ms, p7_ttft_ms, p6_ttft_ms"
    assert str(caught.value) == (
        f"unknown metric 'goodputt': did you mean 'goodput'? (nearest of 25: {alike}; all: the glossary)")


def test_a_layout_of_a_model_of_very_many_heads_is_known_at_once() -> None:
    model = ModelSpec("wide", 1, 64, 10**15, 10**15, 1, 64, 100, 100)
    assert model.laid_out(5).kv_heads == 10**15
    with pytest.raises(CostModelError, match=r"tensor_parallel_size 3 does not deal .* \(possible: 1, 2, .*, 1024\)$"):
        model.laid_out(3)


@pytest.mark.parametrize(("size", "value", "told"), [
    ("max_model_len", 10**19, f"max_model_len must be at most {1 << 60}, got {10**19}"),
    ("position_rows", -1, "position_rows must be at least 0, got -1")])
def test_a_size_beyond_its_range_is_refused(size: str, value: int, told: str) -> None:
    with pytest.raises(CostModelError) as caught:
        dataclasses.replace(MODELS["llama-3.1-8b"], **{size: value})
    assert str(caught.value) == told


def test_the_same_words_in_another_order_are_nearer_than_other_words() -> None:
    names = ["p99_itl_ms", "p99_ttft_prefill_ms", "p99_ttft_ms", "median_ttft_ms"]
    with pytest.raises(CostModelError, match=r"^unknown metric 'ttft_p99': did you mean 'p99_ttft_ms'\? "):
        choose("metric", "ttft_p99", names)
    with pytest.raises(CostModelError) as caught:
        choose("metric", "ttft_p99", [*names, *(f"p{percent}_e2el_ms" for percent in range(24))])
    assert "(nearest of 28: p99_ttft_ms, p99_ttft_prefill_ms, " in str(caught.value)
