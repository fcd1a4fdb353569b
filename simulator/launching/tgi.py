"""`text-generation-launcher` as a scenario: its flags by the names of TGI 3."""

from __future__ import annotations

from simulator.launching import readers
from simulator.launching.engine import Engine, Flag, NotModelled


def _graphs(text: str) -> str:
    return "none" if text == "0" else readers.sizes(text)


def _quantized(text: str) -> str:
    if text == "eetq":
        raise NotModelled("eetq weights of 8 bits: bf16 is taken, which is larger")
    return readers.quantized(text)


TGI = Engine(
    name="TGI",
    policy="tgi",
    starts=("text-generation-launcher",),
    images=("text-generation-inference",),
    model_flag="model-id",
    flags={
        "max-concurrent-requests": Flag("knobs.max_concurrent_requests", readers.whole),
        "max-batch-prefill-tokens": Flag("knobs.max_batch_prefill_tokens", readers.whole),
        "max-batch-total-tokens": Flag("knobs.max_batch_total_tokens", readers.whole),
        "max-input-tokens": Flag("knobs.max_input_tokens", readers.whole),
        "max-batch-size": Flag("knobs.max_batch_size", readers.whole),
        "waiting-served-ratio": Flag("knobs.waiting_served_ratio", readers.number),
        "max-waiting-tokens": Flag("knobs.max_waiting_tokens", readers.whole),
        "max-total-tokens": Flag("max_model_len", readers.whole),
        "num-shard": Flag("tensor_parallel_size", readers.whole),
        "cuda-memory-fraction": Flag("gpu_memory_utilization", readers.share),
        "dtype": Flag("dtype", readers.weights),
        "quantize": Flag("dtype", _quantized),
        "kv-cache-dtype": Flag("kv_dtype", readers.cache),
        "cuda-graphs": Flag("cuda_graph_sizes", _graphs),
    },
    aliases={"max-input-length": "max-input-tokens", "p": "port", "e": "env"},
    aside="revision validation-workers sharded trust-remote-code! max-best-of max-stop-sequences max-top-n-tokens "
          "hostname port prometheus-port shard-uds-path master-addr master-port huggingface-hub-cache "
          "weights-cache-override disable-custom-kernels! json-output! otlp-endpoint otlp-service-name "
          "cors-allow-origin+ api-key watermark-gamma watermark-delta ngrok! ngrok-authtoken ngrok-edge "
          "tokenizer-config-path disable-grammar-support! env! max-client-batch-size usage-stats payload-limit "
          "enable-prefill-logprobs! graceful-termination-timeout",
    unmodelled={
        "speculative decoding": "speculate",
        "LoRA adapters": "lora-adapters",
        "other positions": "rope-scaling rope-factor",
    },
)
