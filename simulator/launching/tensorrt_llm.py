"""`trtllm-serve` as a scenario: its flags, and the settings of its YAML file, by the names of TensorRT-LLM 1."""

from __future__ import annotations

from simulator.launching import readers
from simulator.launching.engine import KERNELS, Engine, Fields, Flag
from simulator.launching.memory import utilization_of_free


def _finish(fields: Fields, extra: Fields) -> Fields:
    """The share of what the weights leave free, as one of the whole GPU."""
    if "free" in extra:
        return fields | {"gpu_memory_utilization": utilization_of_free(fields, extra["free"])}
    return fields


FREE = Flag("extra.free", readers.share)
TENSORRT_LLM = Engine(
    name="TensorRT-LLM",
    policy="tensorrt_llm",
    starts=("trtllm-serve serve", "trtllm-serve"),
    images=(),
    model_flag="model",
    flags={
        "max-batch-size": Flag("knobs.max_batch_size", readers.whole),
        "max-num-tokens": Flag("knobs.max_num_tokens", readers.whole),
        "enable-chunked-prefill": Flag("knobs.enable_chunked_prefill", readers.truth, "switch"),
        "max-seq-len": Flag("max_model_len", readers.whole),
        "tensor-parallel-size": Flag("tensor_parallel_size", readers.whole),
        "free-gpu-memory-fraction": FREE,
        "kv-cache-config.free-gpu-memory-fraction": FREE,
        "kv-cache-config.max-tokens": Flag("kv_capacity_tokens", readers.whole),
        "kv-cache-config.tokens-per-block": Flag("knobs.tokens_per_block", readers.whole),
        "kv-cache-config.dtype": Flag("kv_dtype", readers.cache),
        "kv-cache-dtype": Flag("kv_dtype", readers.cache),
        "scheduler-config.capacity-scheduler-policy": Flag("knobs.capacity_scheduler_policy"),
        "scheduler-config.context-chunking-policy": Flag("knobs.context_chunking_policy"),
        "cuda-graph-config.batch-sizes": Flag("cuda_graph_sizes", readers.sizes, "many"),
        "max-beam-width": Flag("extra.one", lambda text: readers.one(text, "beam search: one beam is taken")),
        "pipeline-parallel-size": Flag("extra.one", lambda text: readers.one(text, "pipeline stages: one is taken")),
        "context-parallel-size": Flag("extra.one", lambda text: readers.one(text, "context parallelism: 1 is taken")),
    },
    aliases={"tp-size": "tensor-parallel-size", "pp-size": "pipeline-parallel-size",
             "cp-size": "context-parallel-size", "kv-cache-free-gpu-memory-fraction": "free-gpu-memory-fraction",
             "ep-size": "moe-expert-parallel-size", "extra-llm-api-options": "config"},
    aside="tokenizer custom-tokenizer host port backend custom-module-dirs log-level gpus-per-node "
          "num-postprocess-workers trust-remote-code! revision reasoning-parser tool-parser "
          "metadata-server-config-file otlp-traces-endpoint chat-template grpc! served-model-name "
          "fail-fast-on-attention-window-too-large! print-iter-log enable-iter-perf-stats stream-interval",
    unmodelled={
        "KV blocks that are used again": "kv-cache-config.enable-block-reuse kv-cache-config.enable-partial-reuse "
                                         "kv-cache-config.copy-on-partial-reuse",
        "KV cache outside of the GPU": "kv-cache-config.host-cache-size kv-connector-config.*",
        "speculative decoding": "speculative-config* speculative-*",
        "experts on several GPUs": "moe-* cluster-size enable-attention-dp* attention-dp-config*",
        "prefill and decode on different GPUs": "server-role disagg-* cache-transceiver-config*",
        "LoRA adapters": "lora-config* enable-lora",
        "images, audio and video": "media-io-kwargs multimodal-*",
        KERNELS: "cuda-graph-config* torch-compile-config* attn-backend moe-config* "
                                      "allreduce-strategy quant-config* disable-overlap-scheduler use-cuda-graph",
        "waiting for a fuller batch": "batch-wait-*",
    },
    files=("config",),
    finish=_finish,
)
