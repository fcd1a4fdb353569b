"""SGLang's `launch_server` as a scenario: its flags by the names of SGLang 0.5."""

from __future__ import annotations

from simulator.launching import readers
from simulator.launching.engine import KERNELS, Engine, Fields, Flag
from simulator.launching.memory import utilization_of_static


def _finish(fields: Fields, extra: Fields) -> Fields:
    """The share of the GPU for weights and KV cache, as one that includes activations."""
    if "static" in extra:
        return fields | {"gpu_memory_utilization": utilization_of_static(fields, extra["static"])}
    return fields


SGLANG = Engine(
    name="SGLang",
    policy="sglang",
    starts=("-m sglang.launch_server", "sglang serve", "sglang.launch_server"),
    images=(),
    model_flag="model-path",
    flags={
        "max-running-requests": Flag("knobs.max_running_requests", readers.whole),
        "max-prefill-tokens": Flag("knobs.max_prefill_tokens", readers.whole),
        "chunked-prefill-size": Flag("knobs.chunked_prefill_size", readers.or_unbounded),
        "schedule-policy": Flag("knobs.schedule_policy"),
        "schedule-conservativeness": Flag("knobs.schedule_conservativeness", readers.number),
        "enable-mixed-chunk": Flag("knobs.enable_mixed_chunk", readers.truth, "switch"),
        "disable-radix-cache": Flag("knobs.disable_radix_cache", readers.truth, "switch"),
        "page-size": Flag("knobs.page_size", readers.whole),
        "prefill-max-requests": Flag("knobs.prefill_max_requests", readers.whole),
        "random-seed": Flag("knobs.random_seed", readers.whole),
        "context-length": Flag("max_model_len", readers.length),
        "max-total-tokens": Flag("kv_capacity_tokens", readers.whole),
        "mem-fraction-static": Flag("extra.static", readers.number),
        "tp-size": Flag("tensor_parallel_size", readers.whole),
        "dp-size": Flag("replicas", readers.whole),
        "dtype": Flag("dtype", readers.weights),
        "quantization": Flag("dtype", readers.quantized),
        "kv-cache-dtype": Flag("kv_dtype", readers.cache),
        "disable-cuda-graph": Flag("cuda_graph_sizes", lambda text: "none", "switch", "none"),
        "cuda-graph-bs": Flag("cuda_graph_sizes", readers.sizes, "many"),
        "pp-size": Flag("extra.one", lambda text: readers.one(text, "pipeline stages: one is taken")),
    },
    aliases={"model": "model-path", "tp": "tp-size", "tensor-parallel-size": "tp-size", "dp": "dp-size",
             "data-parallel-size": "dp-size", "pp": "pp-size", "pipeline-parallel-size": "pp-size",
             "max-queued-req": "max-queued-requests"},
    aside="host port grpc-mode! fastapi-root-path skip-server-warmup! warmups nccl-port api-key served-model-name "
          "tokenizer-path tokenizer-mode tokenizer-worker-num tokenizer-backend detokenizer-worker-num "
          "skip-tokenizer-init! load-format model-loader-extra-config trust-remote-code! revision is-embedding! "
          "json-model-override-args download-dir base-gpu-id gpu-id-step sleep-on-idle! watchdog-timeout "
          "dist-timeout dist-init-addr nnodes node-rank stream-output! stream-interval log-* show-time-cost! "
          "enable-metrics! enable-metrics-for-all-schedulers! bucket-* collect-tokens-histogram! decode-log-interval "
          "enable-request-time-stats-logging! kv-events-config enable-trace! otlp-traces-endpoint crash-dump-folder "
          "chat-template completion-template tool-call-parser reasoning-parser tool-server hf-chat-template-name "
          "enable-cache-report! file-storage-path sampling-defaults sampling-backend grammar-backend "
          "constrained-json-* delete-ckpt-after-loading! enable-memory-saver! allow-auto-truncate! device "
          "random-seed-per-request! weight-version custom-weight-loader+ ssl-* checkpoint-engine-* "
          "enable-custom-logit-processor! load-balance-method load-watch-interval preferred-sampling-params",
    unmodelled={
        "speculative decoding": "speculative-*",
        "LoRA adapters": "enable-lora! lora-* max-lora-rank max-loras-per-batch max-loaded-loras",
        "images, audio and video": "enable-multimodal! mm-* limit-mm-data-per-request image-* "
                                   "keep-mm-feature-on-device! disable-fast-image-processor!",
        "the scheduler's overlap with the GPU": "disable-overlap-schedule! enable-two-batch-overlap! "
                                                "enable-single-batch-overlap! num-continuous-decode-steps tbo-*",
        "priorities and queue limits": "enable-priority-scheduling! schedule-low-priority-values-first! "
                                       "priority-scheduling-preemption-threshold max-queued-requests "
                                       "abort-on-priority-when-disabled!",
        "other ways to size chunks": "enable-dynamic-chunking! enable-dynamic-batch-tokenizer! "
                                     "dynamic-batch-tokenizer-* prefill-delayer-* enable-prefill-delayer!",
        "KV cache outside of the GPU": "enable-hierarchical-cache! hicache-* enable-lmcache! cpu-offload-gb offload-* "
                                       "radix-eviction-policy swa-full-tokens-ratio disable-hybrid-swa-memory! "
                                       "hybrid-kvcache-ratio",
        "prefill and decode on different GPUs": "disaggregation-* encoder-* language-only! num-reserved-decode-tokens",
        "experts on several GPUs": "ep-size ep moe-* deepep-* enable-dp-attention! enable-dp-lm-head! "
                                   "enable-expert-parallel! enable-eplb! eplb-* ep-* init-expert-location "
                                   "expert-distribution-* enable-deepep-moe! enable-ep-moe! moe-dense-tp-size",
        KERNELS: "attention-backend prefill-attention-backend decode-attention-backend "
                                      "mm-attention-backend fp8-* fp4-* enable-torch-compile! torch-compile-max-bs "
                                      "torchao-config cuda-graph-max-bs disable-cuda-graph-padding! "
                                      "enable-piecewise-cuda-graph! piecewise-* enable-profile-cuda-graph! "
                                      "enable-nccl-nvls! enable-symm-mem! enable-p2p-check! flashinfer-* nsa-* "
                                      "disable-custom-all-reduce! enable-mscclpp! enable-torch-symm-mem! "
                                      "triton-attention-* enable-flashinfer-allreduce-fusion! disable-flashinfer-* "
                                      "enable-deterministic-inference! mamba-* linear-* rl-on-policy-target "
                                      "quantization-param-path modelopt-*",
        "several tokens beside the model": "dllm-* diffusion-*",
    },
    files=("config",),
    finish=_finish,
)
