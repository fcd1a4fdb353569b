"""SGLang's recordings: its options, requests and steps, in the engine's own words.

Options (absent ones take these defaults): max_total_tokens 256 (the pool), max_running_requests 64,
chunked_prefill_size 8192 (null: prompts are whole), max_prefill_tokens 16384, schedule_policy fcfs,
schedule_conservativeness 1, mixed_chunk false, disable_radix false, init_new_token_ratio null (the engine's own),
context_len 4096, prefill_decode_interval 0; comment. Pages hold one token, and a turn of the engine's loop is one tick.

Requests: id, arrival (the turn that first sees it, 0), prompt_len or prompt (token ids; prompts without them share
nothing), max_tokens, output_len (as many tokens as it generates; max_tokens), ignore_eos (false; the same for all).
Where prompt and max_tokens would outgrow the pool or the context, the engine clips max_tokens.

A step is one turn of the loop:
    step                 its number
    mode                 prefill, mixed (decodes ride along), decode, or null: nothing runs
    prefill              {id, tokens, prefix, last_chunk} of each prompt, in the order of the batch: the tokens that it
                         computes, those that were there before, and whether the prompt ends with them
    decode               ids of those who decode, in the order of the batch
    finished             ids of those who leave
    retracted            ids of those who were sent back to the queue for lack of memory
    aborted              ids of those who failed; always empty
    kv_in_use            tokens that requests hold in the step
    kv_cached_evictable  tokens that nobody holds, and that may be found
    waiting              ids of those who wait, in order
    running              ids of the running batch, in order; empty where it has gone into a mixed one
    batch_is_full        the word that nobody is let in
    new_token_ratio      as it was when the step was planned, to six places
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator.conformance.engine import Case, Clock, Decision
from simulator.conformance.recording import Line, Recording, known_fields, known_options, name_of, whole
from simulator.conformance.vllm import chain
from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED
from simulator.policies.sglang import Sglang
from simulator.request import Request

OPTIONS: Line = {
    "max_total_tokens": 256, "max_running_requests": 64, "chunked_prefill_size": 8192, "max_prefill_tokens": 16384,
    "schedule_policy": "fcfs", "schedule_conservativeness": 1.0, "mixed_chunk": False, "disable_radix": False,
    "init_new_token_ratio": None, "context_len": 4096, "prefill_decode_interval": 0,
}
"""The recorder's options and their defaults."""
KNOBS = {"mixed_chunk": "enable_mixed_chunk", "disable_radix": "disable_radix_cache", "context_len": "context_length"}
"""Knobs that the recorder calls by another name."""
REQUEST = ("id", "arrival", "prompt_len", "prompt", "max_tokens", "output_len", "ignore_eos")
STEP = ("step", "mode", "prefill", "decode", "finished", "retracted", "aborted", "kv_in_use", "kv_cached_evictable",
        "waiting", "running", "batch_is_full", "new_token_ratio")
MOST_STEPS = 200_000


@dataclass(frozen=True)
class SglangCase(Case):
    """One recording of SGLang.

    Attributes:
        rule: The policy, whose state is told.
    """

    rule: Sglang
    never_sleeps: ClassVar[bool] = True

    def tell(self, decision: Decision, line: Line) -> Line:
        decodes = set(decision.decoding)
        prefill = [row for row in decision.rows if row.name not in decodes]
        decode = [row.name for row in decision.rows if row.name in decodes]
        ends = set(decision.sampled)
        return {
            "step": decision.start, "mode": _mode(bool(prefill), bool(decode)),
            "prefill": [{"id": row.name, "tokens": row.tokens, "prefix": row.computed, "last_chunk": row.name in ends}
                        for row in prefill],
            "decode": decode, "finished": decision.finished, "retracted": decision.preempted, "aborted": [],
            "kv_in_use": decision.used_planned, "kv_cached_evictable": decision.evictable,
            "waiting": decision.waiting, "running": [] if prefill and decode else decision.decoding,
            "batch_is_full": self.rule.batch_is_full,
            "new_token_ratio": round(self.rule.ratio.after(decision.ahead), 6),
        }


def _mode(prefill: bool, decode: bool) -> str | None:
    if prefill:
        return "mixed" if decode else "prefill"
    return "decode" if decode else None


def sglang_case(recording: Recording, policy: type[Sglang] = Sglang) -> SglangCase:
    """A recording of SGLang, to be replayed by the policy of that name or by a class made from it."""
    where, options = str(recording.paths["options"]), options_of(recording)
    rows = [(where, _checked(row, where)) for where, row in recording.requests()]
    deployment = Deployment(options["max_total_tokens"], options["context_len"])
    try:
        chosen = _policy(options, _ignore_eos(rows), policy).resolve(deployment)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    requests, outputs = _requests(rows, chosen, deployment)
    return SglangCase(chosen, chosen.memory(deployment, np.array(outputs, np.int64)), Clock(1), requests, outputs, 1,
                      MOST_STEPS, STEP, chosen)


def options_of(recording: Recording) -> Line:
    """A recording's options, the defaults filled in."""
    where, options = str(recording.paths["options"]), known_options(recording, OPTIONS)
    for name in ("max_total_tokens", "context_len"):
        whole(options, name, where, least=2)
    return options


def _policy(options: Line, ignore_eos: bool, kind: type[Sglang]) -> Sglang:
    knobs = {KNOBS.get(name, name): value for name, value in options.items()
             if name not in ("max_total_tokens", "comment")}
    if knobs["chunked_prefill_size"] is None:
        knobs["chunked_prefill_size"] = UNLIMITED
    return kind(**knobs, ignore_eos=ignore_eos)


def _checked(row: Line, where: str) -> Line:
    known_fields(row, REQUEST, where)
    name_of(row, where)
    whole(row, "max_tokens", where, least=1)
    whole(row, "output_len", where, least=1, default=row["max_tokens"])
    whole(row, "arrival", where, default=0)
    return row


def _ignore_eos(rows: list[tuple[str, Line]]) -> bool:
    """Whether all requests go on to their max_tokens."""
    first = bool(rows) and rows[0][1].get("ignore_eos", False)
    for where, row in rows:
        if row.get("ignore_eos", False) is not first:
            raise InputError(f"{where}: ignore_eos must be true for all requests or for none")
    return first


def _requests(rows: list[tuple[str, Line]], policy: Sglang,
              deployment: Deployment) -> tuple[list[Request], list[int]]:
    """All requests in the order in which they are sent, clipped as the engine does it, and their outputs."""
    names: dict[str, str] = {}
    runs: dict[Any, int] = {}
    found: list[Request] = []
    outputs: list[int] = []
    for where, row in sorted(rows, key=lambda pair: pair[1].get("arrival", 0)):
        if row["id"] in names:
            raise InputError(f"{where}: id '{row['id']}' is also in {names[row['id']]}")
        names[row["id"]] = where.rpartition(", ")[2]
        prompt, prefix = _prompt(row, where, runs)
        room = policy.room(np.array([prompt]), deployment)
        limit = max(1, min(row["max_tokens"], int(room[0])))
        found.append(Request(len(found), row.get("arrival", 0), prompt, limit, prefix=prefix, name=row["id"]))
        outputs.append(min(row.get("output_len", limit), limit))
    return found, outputs


def _prompt(row: Line, where: str, runs: dict[Any, int]) -> tuple[int, tuple[tuple[Any, int], ...]]:
    """How long the prompt is, and which tokens it may share with others."""
    if "prompt" not in row:
        return whole(row, "prompt_len", where, least=1), ()
    tokens = row["prompt"]
    if not isinstance(tokens, list) or not tokens or "prompt_len" in row:
        raise InputError(f"{where}: prompt must be a list of token ids, and then without prompt_len")
    return len(tokens), chain(tokens, 1, runs)
