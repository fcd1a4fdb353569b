"""`vllm serve` as a scenario: its flags by the names of vLLM 0.33, and of earlier versions where they went away."""

from __future__ import annotations

from simulator.launching import readers
from simulator.launching.engine import KERNELS, Engine, Fields, Flag
from simulator.launching.memory import kv_tokens

BLOCK = 16


def _finish(fields: Fields, extra: Fields) -> Fields:
    """A pool that is given in blocks or in bytes, in tokens."""
    if "blocks" in extra:
        return fields | {"kv_capacity_tokens": extra["blocks"] * fields.get("knobs", {}).get("block_size", BLOCK)}
    if "kv_bytes" in extra:
        return fields | {"kv_capacity_tokens": kv_tokens(fields, extra["kv_bytes"])}
    return fields


VLLM = Engine(
    name="vLLM",
    policy="vllm",
    starts=("vllm serve", "-m vllm.entrypoints.openai.api_server", "-m vllm.entrypoints.api_server"),
    images=("vllm-openai",),
    model_flag="model",
    flags={
        "max-num-seqs": Flag("knobs.max_num_seqs", readers.human),
        "max-num-batched-tokens": Flag("knobs.max_num_batched_tokens", readers.human),
        "block-size": Flag("knobs.block_size", readers.whole),
        "enable-chunked-prefill": Flag("knobs.enable_chunked_prefill", readers.truth, "switch"),
        "no-enable-chunked-prefill": Flag("knobs.enable_chunked_prefill", readers.untruth, "switch", False),
        "enable-prefix-caching": Flag("knobs.enable_prefix_caching", readers.truth, "switch"),
        "no-enable-prefix-caching": Flag("knobs.enable_prefix_caching", readers.untruth, "switch", False),
        "long-prefill-token-threshold": Flag("knobs.long_prefill_token_threshold", readers.human),
        "scheduler-reserve-full-isl": Flag("knobs.scheduler_reserve_full_isl", readers.truth, "switch"),
        "no-scheduler-reserve-full-isl": Flag("knobs.scheduler_reserve_full_isl", readers.untruth, "switch", False),
        "watermark": Flag("knobs.watermark", readers.number),
        "scheduling-policy": Flag("knobs.scheduling_policy"),
        "max-model-len": Flag("max_model_len", readers.length),
        "gpu-memory-utilization": Flag("gpu_memory_utilization", readers.share),
        "tensor-parallel-size": Flag("tensor_parallel_size", readers.whole),
        "data-parallel-size": Flag("replicas", readers.whole),
        "dtype": Flag("dtype", readers.weights),
        "quantization": Flag("dtype", readers.quantized),
        "kv-cache-dtype": Flag("kv_dtype", readers.cache),
        "enforce-eager": Flag("cuda_graph_sizes", lambda text: "none", "switch", "none"),
        "cuda-graph-sizes": Flag("cuda_graph_sizes", readers.sizes, "many"),
        "cudagraph-capture-sizes": Flag("cuda_graph_sizes", readers.sizes, "many"),
        "num-gpu-blocks-override": Flag("extra.blocks", readers.whole),
        "kv-cache-memory-bytes": Flag("extra.kv_bytes", readers.human),
        "pipeline-parallel-size": Flag("extra.one", lambda text: readers.one(text, "pipeline stages: one is taken")),
    },
    aliases={"tp": "tensor-parallel-size", "dp": "data-parallel-size", "pp": "pipeline-parallel-size",
             "q": "quantization", "O": "compilation-config", "sc": "speculative-config", "cc": "compilation-config",
             "ep": "enable-expert-parallel", "asc": "api-server-count", "n": "nnodes", "r": "node-rank"},
    aside="host port uds uvicorn-log-level disable-uvicorn-access-log! disable-access-log-for-endpoints "
          "api-key+ ssl-* root-path middleware+ allow-credentials! allowed-origins allowed-methods allowed-headers "
          "chat-template chat-template-content-format trust-request-chat-template! default-chat-template-kwargs "
          "response-role enable-auto-tool-choice! tool-call-parser tool-parser-plugin tool-server reasoning-parser "
          "reasoning-parser-plugin exclude-tools-when-tool-choice-none! return-tokens-as-token-ids! "
          "served-model-name+ tokenizer tokenizer-mode tokenizer-revision tokenizer-pool-* skip-tokenizer-init! "
          "trust-remote-code! no-trust-remote-code! revision code-revision hf-* download-dir load-format "
          "model-loader-extra-config ignore-patterns+ use-tqdm-on-load! no-use-tqdm-on-load! config-format runner "
          "task convert seed max-logprobs logprobs-mode disable-log-stats! disable-log-requests! enable-log-requests! "
          "no-enable-log-requests! max-log-len enable-log-outputs! enable-log-deltas! enable-server-load-tracking! "
          "enable-request-id-headers! enable-prompt-tokens-details! enable-force-include-usage! disable-fastapi-docs! "
          "enable-tokenizer-info-endpoint! h11-* allowed-local-media-path allowed-media-domains+ generation-config "
          "override-generation-config guided-decoding-* structured-outputs-config logits-processors+ "
          "logits-processor-pattern otlp-traces-endpoint collect-detailed-traces+ show-hidden-metrics-for-version "
          "kv-cache-metrics! cudagraph-metrics! enable-mfu-metrics! enable-layerwise-nvtx-tracing! profiler-config "
          "prefix-caching-hash-algo headless! api-server-count data-parallel-address data-parallel-rpc-port "
          "data-parallel-backend data-parallel-start-rank data-parallel-size-local data-parallel-rank "
          "data-parallel-hybrid-lb! data-parallel-external-lb! master-addr master-port nnodes node-rank device "
          "distributed-executor-backend worker-cls worker-extension-cls ray-workers-use-nsight! "
          "max-parallel-loading-workers enable-sleep-mode! use-v2-block-manager! model-impl scheduler-cls "
          "shutdown-timeout fail-on-environ-validation! safetensors-load-strategy pt-load-map-location",
    unmodelled={
        "speculative decoding": "speculative-* spec-* num-speculative-tokens ngram-* num-lookahead-slots "
                                "typical-acceptance-*",
        "LoRA adapters": "enable-lora! enable-lora-bias! max-loras max-lora-rank max-cpu-loras lora-* "
                         "fully-sharded-loras! long-lora-scaling-factors qlora-adapter-name-or-path "
                         "enable-prompt-adapter! max-prompt-adapters max-prompt-adapter-token default-mm-loras "
                         "specialize-active-lora!",
        "images, audio and video": "limit-mm-per-prompt mm-* media-io-kwargs disable-mm-preprocessor-cache! "
                                   "disable-chunked-mm-input! skip-mm-profiling! enable-mm-embeds! "
                                   "interleave-mm-strings! video-pruning-rate language-model-only!",
        "asynchronous scheduling": "async-scheduling! no-async-scheduling! disable-async-output-proc! "
                                   "num-scheduler-steps",
        "tokens that are sent in groups": "stream-interval multi-step-stream-outputs",
        "limits on partial prefills": "max-num-partial-prefills max-long-partial-prefills "
                                      "scheduler-delay-factor",
        "KV cache outside of the GPU": "swap-space cpu-offload-* kv-transfer-config kv-offloading-size "
                                       "kv-offloading-backend kv-events-config offload-* preemption-mode",
        "experts on several GPUs": "enable-expert-parallel! no-enable-expert-parallel! enable-eplb! eplb-config "
                                   "num-redundant-experts expert-placement-strategy all2all-backend moe-backend "
                                   "enable-dbo! dbo-* ubatch-size",
        KERNELS: "compilation-config attention-backend attention-config disable-cascade-attn! "
                                      "disable-custom-all-reduce! max-seq-len-to-capture kernel-config "
                                      "max-cudagraph-capture-size optimization-level performance-mode "
                                      "decode-context-parallel-size dcp-* prefill-context-parallel-size",
        "attention windows and other positions": "disable-sliding-window! rope-scaling rope-theta "
                                                 "disable-hybrid-kv-cache-manager! "
                                                 "no-disable-hybrid-kv-cache-manager! kv-sharing-fast-prefill! "
                                                 "calculate-kv-scales! mamba-*",
        "models that do not generate": "pooler-config override-pooler-config override-attention-dtype",
        "settings under other names": "additional-config model-config ec-transfer-config weight-transfer-config "
                                      "override-neuron-config",
    },
    files=("config",),
    finish=_finish,
)
