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
        "mem-fraction-static": Flag("extra.static", readers.share),
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
    aside="host port grpc-mode! fastapi-root-path skip-server-warmup! warmups nccl-port nccl-init-addr api-key "
          "admin-api-key served-model-name tokenizer-* skip-tokenizer-init! detokenizer-worker-num load-format "
          "model-loader-extra-config model-impl model-checksum trust-remote-code! revision is-embedding! "
          "json-model-override-args download-dir base-gpu-id gpu-id-step sleep-on-idle! watchdog-timeout "
          "soft-watchdog-timeout dist-timeout dist-init-addr nnodes node-rank numa-node+ log-requests! "
          "log-requests-target+ log-* uvicorn-*+ show-time-cost! enable-metrics! enable-metrics-for-all-schedulers! "
          "enable-mfu-metrics! tokenizer-metrics-allowed-custom-labels+ bucket-time-to-first-token+ "
          "bucket-inter-token-latency+ bucket-e2e-request-latency+ collect-tokens-histogram! prompt-tokens-buckets+ "
          "generation-tokens-buckets+ gc-warning-threshold-secs decode-log-interval export-metrics-to-file! "
          "export-metrics-to-file-dir enable-request-time-stats-logging! kv-events-config enable-trace! "
          "otlp-traces-endpoint crash-dump-folder debug-tensor-dump-* chat-template completion-template "
          "tool-call-parser reasoning-parser tool-server hf-chat-template-name enable-cache-report! "
          "file-storage-path sampling-defaults sampling-backend grammar-backend constrained-json-* "
          "constrained-json-disable-any-whitespace! delete-ckpt-after-loading! enable-memory-saver! "
          "enable-weights-cpu-backup! enable-draft-weights-cpu-backup! allow-auto-truncate! device weight-version "
          "custom-weight-loader+ ssl-* checkpoint-engine-wait-weights-before-ready! enable-custom-logit-processor! "
          "load-balance-method preferred-sampling-params enable-tokenizer-batch-encode! "
          "disable-tokenizer-batch-decode! disable-outlines-disk-cache! enable-nan-detection! "
          "enable-layerwise-nvtx-marker! enable-cudagraph-gc! enable-return-*",
    unmodelled={
        "speculative decoding": "speculative-* enable-multi-layer-eagle!",
        "LoRA adapters": "enable-lora! enable-lora-overlap-loading! lora-paths+ lora-target-modules+ lora-* "
                         "max-lora-rank max-lora-chunk-size max-loras-per-batch max-loaded-loras",
        "images, audio and video": "enable-multimodal! mm-* limit-mm-data-per-request image-* "
                                   "keep-mm-feature-on-device! disable-fast-image-processor!",
        "the scheduler's overlap with the GPU": "disable-overlap-schedule! enable-two-batch-overlap! "
                                                "enable-single-batch-overlap! num-continuous-decode-steps tbo-* "
                                                "scheduler-recv-interval enable-pdmux! pdmux-*",
        "tokens that are sent in groups": "stream-interval stream-output! incremental-streaming-output!",
        "priorities and queue limits": "enable-priority-scheduling! schedule-low-priority-values-first! "
                                       "priority-scheduling-preemption-threshold max-queued-requests "
                                       "abort-on-priority-when-disabled!",
        "other ways to size chunks": "enable-dynamic-chunking! enable-dynamic-batch-tokenizer! "
                                     "dynamic-batch-tokenizer-* prefill-delayer-* enable-prefill-delayer!",
        "KV cache outside of the GPU": "enable-hierarchical-cache! hicache-* enable-lmcache! cpu-offload-gb "
                                       "offload-* kt-*",
        "other rules of the cache": "radix-eviction-policy swa-full-tokens-ratio disable-hybrid-swa-memory! "
                                    "hybrid-kvcache-ratio disable-chunked-prefix-cache! "
                                    "hierarchical-sparse-attention-*",
        "prefill and decode on different GPUs": "disaggregation-* encoder-* language-only! num-reserved-decode-tokens",
        "pipeline stages": "pp-max-micro-batch-size pp-async-batch-depth",
        "experts on several GPUs": "ep-size ep expert-* moe-* deepep-* ep-* eplb-* elastic-ep-* elastic-ep-rejoin! "
                                   "mooncake-* init-expert-location enable-dp-attention! enable-dp-lm-head! "
                                   "enable-expert-* enable-eplb! enable-deepep-* enable-ep-moe! enable-elastic-* "
                                   "enable-fused-grouped-gemm-combine! disable-shared-experts-fusion!",
        KERNELS: "attention-* prefill-attention-backend decode-attention-backend attn-cp-size dsa-* nsa-* fp8-* fp4-* "
                 "bf16-* flashinfer-* triton-attention-* triton-attention-reduce-in-fp32! torch-compile-max-bs "
                 "torchao-config cuda-graph-max-bs piecewise-* modelopt-* quantize-and-serve! rl-* linear-* "
                 "quantization-param-path enable-torch-* enable-piecewise-* enable-profile-* enable-nccl-nvls! "
                 "enable-symm-mem! enable-p2p-check! enable-mscclpp! enable-flashinfer-* enable-aiter-* "
                 "enable-deterministic-inference! enable-quant-* enable-fused-* enable-fp32-lm-head! enable-attn-* "
                 "disable-cuda-graph-padding! disable-flashinfer-* disable-custom-all-reduce! "
                 "disable-piecewise-*",
        "models of another kind": "dllm-* diffusion-* mamba-* max-mamba-cache-size",
    },
    files=("config",),
    finish=_finish,
)
