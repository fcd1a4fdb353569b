"""A launch command becomes a scenario: each flag is mapped, told to be left aside, or refused with the nearest."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models import MODELS, kv_pool
from simulator.errors import InputError
from simulator.launching import ENGINES, translate
from simulator.launching.engine import Engine, Flag
from simulator.launching.translation import EAGER
from simulator.policies import POLICIES
from simulator.policies.making import make_policy
from simulator.scenario import FIELDS, Scenario, scenario_of
from simulator.setup import prepare

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
LINES: list[tuple[str, dict[str, Any]]] = [
    (f"vllm serve {LLAMA} --max-num-seqs 256 --tensor-parallel-size 2",
     {"policy": "vllm", "model": "llama-3.1-8b", "knobs": {"max_num_seqs": 256}, "tensor_parallel_size": 2}),
    (f"vllm serve {LLAMA} -tp=4 --max-model-len 32k --max_num_batched_tokens 8K --enable-chunked-prefill=True",
     {"policy": "vllm", "model": "llama-3.1-8b", "tensor_parallel_size": 4, "max_model_len": 32_000,
      "knobs": {"max_num_batched_tokens": 8192, "enable_chunked_prefill": True}}),
    (f"vllm serve --enforce-eager {LLAMA} --no-enable-prefix-caching --kv-cache-dtype fp8_e4m3 -dp 2 -q fp8 | tee log",
     {"policy": "vllm", "model": "llama-3.1-8b", "cuda_graph_sizes": "none", "knobs": {"enable_prefix_caching": False},
      "kv_dtype": "fp8", "replicas": 2, "dtype": "fp8"}),
    (f"vllm serve {LLAMA} --cudagraph-capture-sizes 1 2 4 8 --block-size 32 --num-gpu-blocks-override 1000",
     {"policy": "vllm", "model": "llama-3.1-8b", "cuda_graph_sizes": "1,2,4,8", "knobs": {"block_size": 32},
      "kv_capacity_tokens": 32_000}),
    (f"vllm serve {LLAMA} --enable-prefix-caching True -pp 1 --kv-cache-dtype auto",
     {"policy": "vllm", "model": "llama-3.1-8b", "knobs": {"enable_prefix_caching": True}, "kv_dtype": "bf16"}),
    (f"vllm serve {LLAMA} --no-enable-prefix-caching false --no-enable-chunked-prefill=true",
     {"policy": "vllm", "model": "llama-3.1-8b",
      "knobs": {"enable_prefix_caching": True, "enable_chunked_prefill": False}}),
    (f"vllm serve {LLAMA} -tp 2 --kv-cache-memory-bytes 1G",
     {"policy": "vllm", "model": "llama-3.1-8b", "tensor_parallel_size": 2, "kv_capacity_tokens": (2 << 30) // 131072}),
    (f"cd /srv && exec vllm serve {LLAMA} \\\r\n --max-num-seqs 8 -O 3 && echo done",
     {"policy": "vllm", "model": "llama-3.1-8b", "knobs": {"max_num_seqs": 8}}),
    (f"vllm serve {LLAMA} --max-num-seqs 8 # as before >> log", {
        "policy": "vllm", "model": "llama-3.1-8b", "knobs": {"max_num_seqs": 8}}),
    ("docker run --gpus all -p 80:80 vllm/vllm-openai:v0.33.0 --model mistralai/Mistral-7B-Instruct-v0.3 \\\n"
     "  --gpu-memory-utilization 0.95",
     {"policy": "vllm", "model": "mistral-7b", "gpu_memory_utilization": 0.95}),
    (f"python3 -m vllm.entrypoints.openai.api_server --model {LLAMA}", {"policy": "vllm", "model": "llama-3.1-8b"}),
    ("vllm serve RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic",
     {"policy": "vllm", "model": "llama-3.1-70b", "dtype": "fp8"}),
    ("vllm serve meta-llama/Meta-Llama-3-8B", {"policy": "vllm", "model": "llama-3.1-8b", "max_model_len": 8192}),
    ("python -m sglang.launch_server --model-path Qwen/Qwen2.5-7B-Instruct --tp 2 --chunked-prefill-size -1 "
     "--schedule-conservativeness 0.3 --disable-radix-cache --max-total-tokens 5000",
     {"policy": "sglang", "model": "qwen2.5-7b", "tensor_parallel_size": 2, "kv_capacity_tokens": 5000,
      "knobs": {"chunked_prefill_size": inf, "schedule_conservativeness": 0.3, "disable_radix_cache": True}}),
    ("text-generation-launcher --model-id meta-llama/Llama-2-7b-chat-hf --num-shard 2 --max-batch-prefill-tokens 4096 "
     "--max-total-tokens 4000 --waiting-served-ratio 1.2 --quantize fp8 --cuda-graphs 0",
     {"policy": "tgi", "model": "llama-2-7b", "tensor_parallel_size": 2, "max_model_len": 4000, "dtype": "fp8",
      "knobs": {"max_batch_prefill_tokens": 4096, "waiting_served_ratio": 1.2}, "cuda_graph_sizes": "none"}),
    ("/opt/bin/trtllm-serve meta-llama/Llama-3.3-70B-Instruct --tp_size 4 --max_batch_size 64 --enable_chunked_prefill",
     {"policy": "tensorrt_llm", "model": "llama-3.1-70b", "tensor_parallel_size": 4,
      "knobs": {"max_batch_size": 64, "enable_chunked_prefill": True}}),
]


@pytest.mark.parametrize(("line", "fields"), LINES)
def test_a_command_line_is_a_scenario(line: str, fields: dict[str, Any]) -> None:
    found = translate(line)
    assert found.fields == fields
    prepare(scenario_of(num_prompts=2, **fields))


@pytest.mark.parametrize(("line", "told"), [
    ("vllm serve x --max-num-seq 3", "--from: vLLM has no flag --max-num-seq that is known here: did you mean "
                                     "--max-num-seqs? If not, leave it out"),
    ("vllm serve x --zzz", "--from: vLLM has no flag --zzz that is known here: leave it out"),
    (f"vllm serve {LLAMA} --max-num-seqs many", "--from: --max-num-seqs cannot be 'many'"),
    (f"vllm serve {LLAMA} --enable-prefix-caching=2", "--from: --enable-prefix-caching cannot be '2'"),
    (f"vllm serve {LLAMA} --max-num-seqs", "--from: --max-num-seqs needs a value"),
    (f"vllm serve {LLAMA} --max-num-seqs --port 3", "--from: --max-num-seqs needs a value"),
    (f"python -m sglang.launch_server --model {LLAMA} --mem-fraction-static 5",
     "--from: --mem-fraction-static cannot be '5'"),
    (f"vllm serve {LLAMA} --gpu-memory-utilization nan", "--from: --gpu-memory-utilization cannot be 'nan'"),
    ("vllm serve a b", "--from: names two models, a and b: which one is it?"),
    ("vllm serve", "--from: names no model: add --model, or give batchsim --model"),
    ("vllm serve Qwen/Qwen3-8B", "--from: no shape of 'Qwen/Qwen3-8B' is bundled (llama-3.1-8b, "),
    (f"vllm serve {'x' * 5000}", f"--from: no shape of '{'x' * 1000}"),
    ("vllm serve 'a", "--from: cannot be read as a command line (No closing quotation): put quotes around it"),
    ("ollama run llama3", "--from: starts no engine that is known here (vllm serve, sglang.launch_server, "
                          "text-generation-launcher, trtllm-serve"),
    ("", "--from: starts no engine that is known here (vllm serve, "),
    (f"vllm serve {LLAMA} --config none.yaml", "--from: none.yaml: No such file or directory"),
])
def test_what_cannot_be_translated_is_refused(line: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        translate(line)
    assert str(error.value).startswith(told)


def test_every_flag_is_accounted_for() -> None:
    found = translate(f"CUDA_VISIBLE_DEVICES=0 vllm serve {LLAMA} --served-model-name a b --port 80 --max-num-seqs 9 "
                      "--speculative-config.method ngram --compilation-config '{\"a\": 1}' -O3 --quantization awq "
                      "--dtype float32 --pipeline-parallel-size 2 --max-model-len auto --enable-lora")
    assert found.mapped == {LLAMA: "model: llama-3.1-8b", "--max-num-seqs 9": "knobs.max_num_seqs: 9"}
    assert found.not_modelled == {
        "--speculative-config.method": "speculative decoding", "--compilation-config": "the speed of other kernels",
        "-O3": "the speed of other kernels", "--enable-lora": "LoRA adapters",
        "--quantization awq": "awq weights: bf16 is taken, which is larger and slower",
        "--dtype float32": "weights in float32: bf16 is taken",
        "--pipeline-parallel-size 2": "pipeline stages: one is taken",
        "--max-model-len auto": "a length that the engine fits to its memory: the model's is taken"}
    assert (found.aside, found.before) == (["--served-model-name", "--port"], ["CUDA_VISIBLE_DEVICES=0"])
    assert found.told()[0] == f"{LLAMA} sets model: llama-3.1-8b"


@pytest.mark.parametrize(("line", "told"), [
    (f"vllm serve {LLAMA} --kv-cache-dtype int8", {"--kv-cache-dtype int8": "KV cache in int8: bf16 is taken"}),
    (f"text-generation-launcher --model-id {LLAMA} --quantize eetq",
     {"--quantize eetq": "eetq weights of 8 bits: bf16 is taken, which is larger"}),
    (f"trtllm-serve {LLAMA} --max_beam_width 4", {"--max_beam_width 4": "beam search: one beam is taken"}),
])
def test_what_has_a_value_that_is_not_modelled_is_told(line: str, told: dict[str, str]) -> None:
    found = translate(line)
    assert found.not_modelled == told
    assert found.fields.keys() == {"policy", "model"}


def test_a_file_with_a_shape_is_the_model(tmp_path: Path) -> None:
    shape = MODELS["opt-13b"]
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in vars(replace(shape, name="mine")).items())
    (tmp_path / "mine.yaml").write_text(text)
    found = translate(f"vllm serve {tmp_path / 'mine.yaml'}")
    assert found.fields == {"policy": "vllm", "model": str(tmp_path / "mine.yaml")}
    assert prepare(scenario_of(num_prompts=2, **found.fields)).model == replace(shape, name="mine")


@pytest.mark.parametrize("line", [
    f"vllm serve {LLAMA} --enforce-eager", f"sglang serve {LLAMA} --disable-cuda-graph",
    f"text-generation-launcher --model-id {LLAMA} --cuda-graphs 0"])
def test_without_cuda_graphs_padding_goes_and_host_time_is_told(line: str) -> None:
    found, flag = translate(line), line.split()[-2 if line.endswith("0") else -1]
    assert found.fields["cuda_graph_sizes"] == "none"
    assert found.not_modelled == {flag: EAGER}
    assert f"{flag} is not modelled: {EAGER}" in found.told()
    assert EAGER not in translate(f"vllm serve {LLAMA} --cuda-graph-sizes 1 2").not_modelled.values()


def test_what_is_said_otherwise_wins() -> None:
    found = translate("vllm serve Qwen/Qwen3-8B -tp 2", {"model": "opt-13b", "tensor_parallel_size": 4})
    assert found.fields == {"policy": "vllm", "tensor_parallel_size": 2}    # the caller lays his own over it
    assert found.aside == ["Qwen/Qwen3-8B"]


def test_a_file_of_flags_stands_behind_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(f"model: {LLAMA}\nmax_num_seqs: 8\nblock-size: 32\nenable-prefix-caching: false\n"
                              "served-model-name: [a, b]\nmax-model-len:\n")    # what has no value is not given
    found = translate("vllm serve --config c.yaml --max-num-seqs 16")
    assert found.fields == {"policy": "vllm", "model": "llama-3.1-8b", "knobs": {
        "max_num_seqs": 16, "block_size": 32, "enable_prefix_caching": False}}
    Path("c.yaml").write_text("max_num_sequences: 8\n")
    with pytest.raises(InputError, match="has no flag --max_num_sequences that is known here: did you mean"):
        translate(f"vllm serve {LLAMA} --config c.yaml")


CONFIG = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32, "hidden_size": 4096, "vocab_size": 128256,
          "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
          "max_position_embeddings": 131072}


def test_a_model_in_a_folder_has_the_shape_of_its_config(tmp_path: Path) -> None:
    folder = tmp_path / "Mine"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    fields = translate(f"vllm serve {folder}").fields
    assert replace(fields["model"], source="") == replace(MODELS["llama-3.1-8b"], name="mine", source="")
    (folder / "config.json").write_text(json.dumps(CONFIG | {
        "architectures": ["Qwen2ForCausalLM"], "tie_word_embeddings": True, "quantization_config": {
            "quant_method": "fp8"}}))
    found = translate(f"vllm serve {folder}").fields
    assert (found["dtype"], found["model"].qkv_bias, found["model"].tied_embeddings) == ("fp8", True, True)


@pytest.mark.parametrize(("change", "told"), [
    ({"architectures": ["MixtralForCausalLM"]}, "is of architecture MixtralForCausalLM, whose shape is not known here"),
    ({"hidden_size": None}, "lacks hidden_size"),
    ({"num_key_value_heads": 5}, "heads (32) must be a multiple of kv_heads (5)"),
    ({"quantization_config": {"quant_method": "awq"}}, "has awq weights, which are not modelled"),
    ({"quantization_config": {"bits": 4}}, "has unnamed weights, which are not modelled"),
    ({"quantization_config": "gptq"}, "has gptq weights, which are not modelled"),
    ({"architectures": 5}, "is of architecture none, whose shape is not known here"),
    ({"architectures": [["LlamaForCausalLM"]]}, "whose shape is not known here"),
])
def test_a_config_that_says_another_shape(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | change))
    with pytest.raises(InputError) as error:
        translate(f"vllm serve {tmp_path}")
    assert told in str(error.value)


def test_the_settings_file_of_tensorrt_llm(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "kv_cache_config:\n  free_gpu_memory_fraction: 0.9\n  enable_block_reuse: false\n  tokens_per_block: 64\n"
        "scheduler_config:\n  capacity_scheduler_policy: MAX_UTILIZATION\ncuda_graph_config:\n  batch_sizes: [1, 2]\n")
    found = translate(f"trtllm-serve {LLAMA} --extra_llm_api_options {tmp_path / 'x.yaml'}")
    assert found.fields == {
        "policy": "tensorrt_llm", "model": "llama-3.1-8b", "cuda_graph_sizes": "1,2", "gpu_memory_utilization": 0.9214,
        "knobs": {"tokens_per_block": 64, "capacity_scheduler_policy": "MAX_UTILIZATION"}}


@pytest.mark.parametrize("gpu", ["h100-80", "l40s"])
def test_shares_of_memory_leave_the_same_pool(gpu: str) -> None:
    """SGLang's is of weights and KV cache, TensorRT-LLM's of what weights and activations leave free."""
    whole = kv_pool("llama-3.1-8b", gpu, utilization=1)
    static = translate(f"sglang serve --model {LLAMA} --mem-fraction-static 0.8", {"gpu": gpu}).fields
    free = translate(f"trtllm-serve {LLAMA} --free_gpu_memory_fraction 0.8", {"gpu": gpu}).fields
    for fields, wanted in ((static, 0.8 * whole.device_bytes - whole.weight_bytes), (free, 0.8 * whole.free_bytes)):
        pool = kv_pool("llama-3.1-8b", gpu, utilization=fields["gpu_memory_utilization"])
        assert pool.free_bytes == pytest.approx(wanted, abs=1e-4 * whole.device_bytes)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_a_table_names_what_there_is(engine: Any) -> None:
    knobs = POLICIES[engine.policy].knobs()
    for flag in engine.flags.values():
        name, inner = flag.path
        assert name in {*FIELDS, "extra"}
        assert name != "knobs" or inner in knobs
    for name in engine.aliases.values():
        assert name in engine.files or name == engine.model_flag or engine.lookup(name)
    listed = [word.rstrip("!+") for words in (engine.aside, *engine.unmodelled.values()) for word in words.split()]
    assert not [word for word in set(listed) if word in engine.flags]


@given(st.lists(st.sampled_from([
    "--max-num-seqs", "7", "-tp", "2", "--port", "--enforce-eager", LLAMA, "--config", "=", "--x=1", "-O3", "\\\n", "|",
    "true", "-1", "--served-model-name", "--dtype", "'", "--kv-cache-dtype", "fp8"])))
def test_any_line_is_translated_or_refused(words: list[str]) -> None:
    try:
        fields = translate(" ".join(["vllm serve", *words])).fields
    except InputError as error:
        assert str(error).startswith("--from: ")    # noqa: PT017
    else:
        make_policy(fields["policy"], fields.get("knobs"))
        assert Scenario(**fields)


@pytest.mark.parametrize(("line", "told"), [
    # from the engines' own documentation: what people copy
    ("python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B --tp 4 --dist-init-addr sgl-dev-0:50000 "
     "--nnodes 2 --node-rank 0 --enable-metrics --log-requests --log-requests-level 2 --enable-torch-compile",
     {"--enable-torch-compile": "the speed of other kernels"}),
    ("python -m sglang.launch_server --model meta-llama/Llama-3.1-8B --speculative-algorithm EAGLE "
     "--speculative-num-steps 3 --enable-hierarchical-cache --hicache-ratio 2 --max-queued-requests 100",
     {"--speculative-algorithm": "speculative decoding", "--speculative-num-steps": "speculative decoding",
      "--enable-hierarchical-cache": "KV cache outside of the GPU", "--hicache-ratio": "KV cache outside of the GPU",
      "--max-queued-requests": "priorities and queue limits"}),
    ("vllm serve meta-llama/Llama-3.1-8B --trust-remote-code --chat-template ./t.jinja --api-key a b "
     "--enable-auto-tool-choice --tool-call-parser llama3_json --disable-log-requests --swap-space 4 "
     "--uvicorn-log-level warning --limit-mm-per-prompt '{\"image\": 2}' --max-num-partial-prefills 2 --seed 3",
     {"--swap-space": "KV cache outside of the GPU", "--limit-mm-per-prompt": "images, audio and video",
      "--max-num-partial-prefills": "limits on partial prefills"}),
    ("docker run --gpus all --shm-size 1g -p 8080:80 -v $PWD/data:/data "
     "ghcr.io/huggingface/text-generation-inference:3.3 "
     "--model-id meta-llama/Llama-3.1-8B --speculate 2 --trust-remote-code --max-best-of 1",
     {"--speculate": "speculative decoding"}),
    ("trtllm-serve meta-llama/Llama-3.1-8B --host localhost --backend pytorch --ep_size 2 --num_postprocess_workers 4",
     {"--ep_size": "experts on several GPUs"}),
])
def test_lines_that_people_have(line: str, told: dict[str, str]) -> None:
    found = translate(line)
    assert found.fields["model"] == "llama-3.1-8b"
    assert found.not_modelled == told


def test_a_name_goes_before_its_family() -> None:
    engine = Engine("E", "vllm", (), (), "model", {}, aside="log-* log-all! x+", unmodelled={"why": "enable-*"})
    arity = {name: known.arity for name in ("--log-level", "--log_all", "--x", "--enable-y", "--x.y")
             if (known := engine.lookup(name))}
    assert arity == {"--log-level": "one", "--log_all": "switch", "--x": "many", "--enable-y": "switch",
                     "--x.y": "many"}
    assert engine.lookup("--lo") is None
    assert engine.names() == ["log-all", "x"]


def test_a_flag_goes_to_a_field_or_into_one() -> None:
    assert Flag("max_model_len").path == ("max_model_len", None)
    assert Flag("knobs.max_bs").path == ("knobs", "max_bs")
