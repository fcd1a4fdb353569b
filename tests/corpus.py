"""One small good file of each format, as bytes; most are written by us in `samples`."""

import gzip
import io
import json
import tarfile
from pathlib import Path

from traces import WRITERS, Trace, convert

SAMPLES = Path(__file__).parent / "traces" / "samples"


def _tar(files: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return sink.getvalue()


WEKA = {"id": "s", "block_size": 4, "hash_id_scope": "local", "requests": [
    {"t": 0.0, "in": 9, "out": 5, "hash_ids": [1, 2], "think_time": 0.0},
    {"t": 6.0, "type": "subagent", "requests": [{"t": 0, "in": 4, "out": 3, "hash_ids": [1], "think_time": 0.5}]}]}
ROUND = {"provider": "p", "session_id": "s", "round_index": 0, "input_tokens_total": 100, "prefix_tokens": 90,
         "output_tokens": 7, "timing_events": [{"timestamp": "2026-06-01T05:40:20.151Z"}]}
POOL = {"chunk-0-trace.csv": b"0,0.5,1.2,Gamma,0.7,2.8\n600,1,0.9,Weibull,1.3,1.1\n",
        "chunk-0-dataset.json": json.dumps({"0": {"input_tokens": "{10: 0.25, 20: 0.75}",
                                                  "output_tokens": "{1: 1.0}"}}).encode()}
MOONCAKE = b"".join(json.dumps({"timestamp": at, "input_length": 600, "output_length": 7, "hash_ids": [0, at],
                                "session_id": "a", "delay": 5}).encode() + b"\n" for at in range(3))
OWN = Trace("own", arrival=[0, 5], prompt=[9, 9], output=[1, 2], session=("a", "a"), parent=[-1, 0], think=[0, 3],
            shared=[0, 4], tenant=("x", "y"), hash_ids=((1, 2, 3), (1, 2)), hash_block=4)

FILES: dict[str, bytes] = {
    "azure": b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n"
             b"2023-11-16 18:15:50,1,2",
    "burstgpt": (SAMPLES / "burstgpt_sessions.csv").read_bytes(),
    "qwen-bailian": (SAMPLES / "qwen_bailian.jsonl").read_bytes(),
    "mooncake": MOONCAKE,
    "batchsim": convert(OWN, ".csv"),
    "weka": _tar({"a.json": json.dumps(WEKA).encode(), "b.json": json.dumps(WEKA, indent=1).encode()}),
    "weka-table": b"session,subagent,t_s,input_tokens,output_tokens,shared_prefix_blocks64_with_prev,think_time_s\n"
                  b"1,,0,700,10,0,0.0\n1,,5,900,0,10,2.5\n1,/1,0,700,4,9,0\n",
    "tracelab": json.dumps(ROUND).encode() + b"\n" + json.dumps(ROUND).encode(),
    "vidur": b"arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,4808,10\n0.052,3180,8\n",
    "lengths": b"num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.8\n1,2,3,0.5\n",
    "splitwise-sim": b"request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
                     b"0,2,0,1,1,4096,32\n1,2,0,3,1,2048,8\n",
    "vllm-bench": (SAMPLES / "vllm_bench.json").read_bytes(),
    "guidellm": (SAMPLES / "guidellm.json").read_bytes(),
    "aiperf": (SAMPLES / "aiperf.jsonl").read_bytes(),
    "litellm": (SAMPLES / "litellm.csv").read_bytes(),
    "litellm-page": (SAMPLES / "litellm_page.json").read_bytes(),
    "otel": (SAMPLES / "otel.jsonl").read_bytes(),
    "servegen": gzip.compress(_tar(POOL), mtime=0),
    "table": b"arrival,prompt,output,tenant\n2024-05-10 00:00:01,5,6,ann\n2024-05-10 00:00:02,7,8,bob\n",
}


def parquet() -> bytes:
    """Our own columns as a Parquet table; needs pyarrow."""
    return WRITERS[".parquet"](OWN)
