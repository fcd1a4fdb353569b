"""A recorder: drives the scheduler and KV cache manager of an installed vLLM 0.33.0 with a model that only pretends.

    python drive.py DIRECTORY

For each NAME.options.json and NAME.requests.jsonl there it writes NAME.trace.jsonl; `batchsim conformance vllm` reads
the three. It is run by an interpreter that has vLLM, and imports nothing of batchsim. vLLM's own code is unchanged:
SchedulerConfig, CacheConfig, KVCacheConfig, Request and Scheduler are the real ones; the rest of the configuration is a
plain object with what the scheduler reads of it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakes

VERSION = "0.33.0"
DEFAULTS = {"max_num_seqs": 16, "max_num_batched_tokens": 2048, "block_size": 16, "num_gpu_blocks": 1000,
            "enable_chunked_prefill": True, "enable_prefix_caching": False, "long_prefill_token_threshold": 0,
            "policy": "fcfs", "max_model_len": 8192, "watermark": 0.0, "scheduler_reserve_full_isl": True,
            "clock": "step", "step_base_us": 0, "step_per_token_us": 0, "max_steps": 200_000}
SCHEDULING = ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "enable_chunked_prefill", "policy",
              "long_prefill_token_threshold", "watermark", "scheduler_reserve_full_isl")
SHARED, OWN = 1_000_000, 2_000_000    # where token ids of groups and of single requests begin

Line = dict[str, Any]


class Engine:
    """One scheduler, and what is noted of its steps."""

    def __init__(self, options: Line, own: dict[str, int]) -> None:
        self.scheduler = make_scheduler(options)
        self.pool = self.scheduler.kv_cache_manager.block_pool
        self.blocks = options["num_gpu_blocks"] - 1
        self._own = own
        self._victims: list[str] = []
        self._scheduling = False
        self._free = self.scheduler.kv_cache_manager.free
        self.scheduler.kv_cache_manager.free = self._listen

    def _listen(self, request: Any, *args: Any, **named: Any) -> Any:
        """Blocks that are freed while the scheduler decides are a victim's."""
        if self._scheduling:
            self._victims.append(request.request_id)
        return self._free(request, *args, **named)

    def step(self) -> Line:
        """Schedule, pretend that the model ran, and update."""
        scheduler = self.scheduler
        before = {name: request.status.name for name, request in scheduler.requests.items()}
        self._victims, self._scheduling = [], True
        output = scheduler.schedule()
        self._scheduling = False
        line = self._scheduled(output, before)
        scheduler.update_from_output(output, self._model_output(line))
        line["finished"] = [entry[0] for entry in line["sched"] if entry[0] not in scheduler.requests]
        return line | self._after()

    def _scheduled(self, output: Any, before: dict[str, str]) -> Line:
        kinds = {"WAITING": "new", "PREEMPTED": "resumed"}
        sched, sampled = [], []
        for name, tokens in output.num_scheduled_tokens.items():
            request = self.scheduler.requests[name]
            computed = request.num_computed_tokens    # those of this step are counted already
            sched.append([name, kinds.get(before[name], "running"), tokens, computed - tokens])
            if computed >= request.num_tokens:
                sampled.append(name)
        assert [entry[0] for entry in sched if entry[1] == "new"] == [new.req_id for new in output.scheduled_new_reqs]
        return {"sched": sched, "preempted": self._victims, "tokens": output.total_num_scheduled_tokens,
                "used_sched": self.blocks - self.pool.get_num_free_blocks(), "sampled": sampled}

    def _model_output(self, line: Line) -> Any:
        """A token for everyone who samples; nobody else ever has it."""
        from vllm.v1.outputs import ModelRunnerOutput
        names = [entry[0] for entry in line["sched"]]
        tokens = [[self._own[name]] if name in line["sampled"] else [] for name in names]
        return ModelRunnerOutput(req_ids=names, req_id_to_index={name: at for at, name in enumerate(names)},
                                 sampled_token_ids=tokens, logprobs=None, prompt_logprobs_dict=dict.fromkeys(names))

    def _after(self) -> Line:
        free = self.pool.get_num_free_blocks()
        running = [request.request_id for request in self.scheduler.running]
        waiting = [request.request_id for request in self.scheduler.waiting]
        return {"used": self.blocks - free, "free": free, "n_running": len(running), "n_waiting": len(waiting),
                "running": running, "waiting": waiting}


def make_scheduler(options: Line) -> Any:
    """The real scheduler, with one full-attention KV group."""
    import torch
    from vllm.config import CacheConfig, SchedulerConfig
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec

    scheduling = SchedulerConfig(**{name: options[name] for name in SCHEDULING}, is_encoder_decoder=False,
                                 async_scheduling=False)
    cache = CacheConfig(block_size=options["block_size"], enable_prefix_caching=options["enable_prefix_caching"])
    cache.num_gpu_blocks = options["num_gpu_blocks"]
    config = make_config(options, scheduling, cache)
    register_all_kvcache_specs(config)
    spec = FullAttentionSpec(block_size=options["block_size"], num_kv_heads=1, head_size=1, dtype=torch.float32)
    blocks = KVCacheConfig(num_blocks=options["num_gpu_blocks"], kv_cache_tensors=[],
                           kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    grammar = SimpleNamespace(should_advance=lambda request: False, accept_tokens=lambda request, tokens: True,
                              grammar_bitmask=lambda *args, **named: None)
    return Scheduler(vllm_config=config, kv_cache_config=blocks, structured_output_manager=grammar,
                     block_size=options["block_size"], log_stats=False)


def make_config(options: Line, scheduling: Any, cache: Any) -> Any:
    """What the scheduler reads for a plain decoder on one GPU, without speculation and connectors."""
    model = SimpleNamespace(
        max_model_len=options["max_model_len"], is_encoder_decoder=False, is_multimodal_model=False,
        supports_multimodal_inputs=False, uses_mrope=False, runner_type="generate", is_diffusion=False,
        return_sampling_mask=False, multimodal_config=None)
    parallel = SimpleNamespace(
        pipeline_parallel_size=1, data_parallel_size=1, data_parallel_rank=0, data_parallel_index=0,
        decode_context_parallel_size=1, prefill_context_parallel_size=1)
    observed = SimpleNamespace(kv_cache_metrics=False, per_request_spec_decode_metrics="none", enable_mfu_metrics=False,
                               enable_logging_iteration_details=False)
    return SimpleNamespace(
        scheduler_config=scheduling, cache_config=cache, model_config=model, parallel_config=parallel,
        observability_config=observed, lora_config=None, kv_events_config=None, kv_transfer_config=None,
        ec_transfer_config=None, speculative_config=None, structured_outputs_config=None, diffusion_config=None,
        ec_manager_config=SimpleNamespace(get_encoder_cache_manager_obj=lambda: None),
        aux_output_config=SimpleNamespace(enabled=False), is_mm_encoder_only=False, num_speculative_tokens=0,
        num_lookahead_tokens=0, num_prefill_lookahead_tokens=0, num_hash_lookahead_tokens=0, max_concurrent_batches=1,
        max_in_flight_tokens=options["max_num_batched_tokens"], use_v2_model_runner=False)


def make_requests(rows: list[Line], options: Line, own: dict[str, int]) -> list[Any]:
    """The engine's requests. Those of a group have tokens in common, unless token ids are given."""
    from vllm.sampling_params import SamplingParams
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.request import Request

    init_none_hash(sha256)
    hasher = get_request_block_hasher(options["block_size"], sha256) if options["enable_prefix_caching"] else None
    groups: dict[Any, int] = {}
    made = []
    for row in rows:
        tokens = row.get("prompt_token_ids")
        if tokens is None:
            group = row.get("prefix_group")
            shared = 0 if group is None else min(row.get("prefix_tokens", 0), row["prompt_tokens"])
            token = SHARED + groups.setdefault(group, len(groups))
            tokens = [token] * shared + [own[row["id"]]] * (row["prompt_tokens"] - shared)
        sampling = SamplingParams(max_tokens=row["output_tokens"], ignore_eos=True, temperature=0.0)
        made.append(Request(request_id=row["id"], prompt_token_ids=tokens, sampling_params=sampling,
                            pooling_params=None, priority=row.get("priority", 0), arrival_time=float(arrival(row)),
                            block_hasher=hasher))
    return made


def arrival(row: Line) -> int:
    """When a request comes, in the clock's units."""
    return row.get("arrival_us", row.get("arrival_step", 0))


def run(options: Line, rows: list[Line]) -> list[Line]:
    """All lines of a trace: a header, the steps, a footer."""
    own = {row["id"]: OWN + at for at, row in enumerate(rows)}
    requests = make_requests(rows, options, own)
    refused = [request.request_id for request in requests if request.num_prompt_tokens >= options["max_model_len"]]
    coming = sorted((request for request in requests if request.request_id not in refused),
                    key=lambda request: request.arrival_time)
    engine = Engine(options, own)
    steps = list(take_steps(engine, options, coming))
    header = {"vllm_version": VERSION, "options": options, "n_requests": len(rows), "usable_blocks": engine.blocks,
              "rejected": refused}
    footer = {"steps": len(steps), "tokens": sum(step["tokens"] for step in steps),
              "preemptions": sum(len(step["preempted"]) for step in steps),
              "finished": sum(len(step["finished"]) for step in steps), "unfinished": [*engine.scheduler.requests]}
    return [{"header": header}, *steps, {"footer": footer}]


def take_steps(engine: Engine, options: Line, coming: list[Any]) -> Any:
    """Step after step, until nobody is left, nothing can run and nobody comes, or there were too many."""
    by_step, now, number = options["clock"] == "step", 0, 0
    here = engine.scheduler.requests
    while number < options["max_steps"] and (coming or here):
        if not here:
            now = max(now, int(coming[0].arrival_time))
        arrived = []
        while coming and coming[0].arrival_time <= now:
            arrived.append(coming[0].request_id)
            engine.scheduler.add_request(coming.pop(0))
        line = engine.step()
        yield {"step": now if by_step else number, **({} if by_step else {"t_us": now}), "arrived": arrived, **line}
        number += 1
        now += 1 if by_step else options["step_base_us"] + options["step_per_token_us"] * line["tokens"]
        if not line["tokens"] and not line["preempted"] and not coming:
            return


def main(directory: Path) -> None:
    """Record every scenario of a directory."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    fakes.install()
    from vllm.version import __version__ as version
    if version != VERSION:
        sys.exit(f"this records vLLM {VERSION}, and {version} is installed: pip install --no-deps vllm=={VERSION}")
    for path in sorted(directory.glob("*.options.json")):
        name = path.name.removesuffix(".options.json")
        given = json.loads(path.read_text())
        options = DEFAULTS | {option: given[option] for option in DEFAULTS if option in given}
        rows = [json.loads(line) for line in (directory / f"{name}.requests.jsonl").read_text().splitlines()]
        lines = [json.dumps(line, separators=(",", ":")) + "\n" for line in run(options, rows)]
        (directory / f"{name}.trace.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
