"""TGI's recordings: its options, requests and forwards, in the engine's own words.

Options (absent ones take these defaults): max_batch_total_tokens and max_batch_prefill_tokens (must be given),
block_size 1, prefix_caching false, support_chunking false, requires_padding false, max_batch_size none,
waiting_served_ratio 0.3, max_waiting_tokens 20; comment. The engine's fault of phantom prefixes is always in its
recordings, so a replay has `quirk_phantom_prefix`. Its router does not stand before them.

Requests: id, arrival (the first step whose scheduling may see it; 0), prompt_len, max_tokens, output_len (max_tokens).
No two prompts have anything in common.

A step is one forward:
    step            how many went before it
    call            prefill or decode: what the router asked for
    mode            prefill, decode or mixed: what the forward computes
    admitted        ids that the queue let in for it, in that order
    prefill         {id, tokens, prefix, last_chunk} of all who compute prompt tokens, in the order of the batch; prefix
                    counts the tokens that have KV already, last_chunk says that the prompt is done with it
    decode          ids of the others that compute, in that order
    finished        ids that emitted their last token
    arrived_during  ids that reach the queue before the next step
    blocks_held     blocks of all who compute, those that several share once for each; 0 where there are no blocks

There is neither a header nor a footer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.conformance.engine import Case, Clock, Decision, in_order
from simulator.conformance.recording import Line, Recording, known_fields, known_options, name_of, whole
from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED
from simulator.policies.tgi import Tgi
from simulator.request import Request

OPTIONS: Line = {
    "max_batch_total_tokens": None, "max_batch_prefill_tokens": None, "block_size": 1, "prefix_caching": False,
    "support_chunking": False, "requires_padding": False, "max_batch_size": None, "waiting_served_ratio": 0.3,
    "max_waiting_tokens": 20,
}
"""The recorder's options and their defaults, all of them knobs of the policy."""
REQUEST = ("id", "arrival", "prompt_len", "max_tokens", "output_len")
STEP = ("step", "call", "mode", "admitted", "prefill", "decode", "finished", "arrived_during", "blocks_held")


@dataclass(frozen=True)
class TgiCase(Case):
    """One recording of TGI. `prompts` are prompt tokens by id, `reserved` the blocks that each reserves."""

    prompts: dict[str, int]
    reserved: dict[str, int]

    def tell(self, decision: Decision, line: Line) -> Line:
        admitted = [row.name for row in decision.rows if row.kind == "new"]
        chunks = [row for row in decision.rows if row.computed < self.prompts[row.name]]
        decodes = [row.name for row in decision.rows if row.computed >= self.prompts[row.name]]
        return {
            "step": decision.start, "call": "prefill" if admitted else "decode",
            "mode": "mixed" if chunks and decodes else "prefill" if chunks else "decode", "admitted": admitted,
            "prefill": [{"id": row.name, "tokens": row.tokens, "prefix": row.computed,
                         "last_chunk": row.computed + row.tokens == self.prompts[row.name]} for row in chunks],
            "decode": decodes, "finished": decision.finished,
            "arrived_during": [each.name for each in self.requests if each.arrival == decision.start + 1],
            "blocks_held": self._held(decision),
        }

    def _held(self, decision: Decision) -> int:
        """What memory counts, less the blocks of those who sit this forward out."""
        if getattr(self.policy, "requires_padding", False):
            return 0
        computing = {row.name for row in decision.rows}
        waits = sum(self.reserved[name] for name in decision.running if name not in computing)
        return decision.used_planned + decision.shared // self.memory.block_size - waits


def tgi_case(recording: Recording, policy: type[Tgi] = Tgi, **knobs: object) -> TgiCase:
    """A recording of TGI, to be replayed by the policy of that name or by a class made from it.

    `knobs` overrule the recording's.
    """
    where = str(recording.paths["options"])
    options = known_options(recording, OPTIONS)
    options.pop("comment", None)
    total = whole(options, "max_batch_total_tokens", where, least=1)
    whole(options, "max_batch_prefill_tokens", where, least=1)
    deployment = Deployment(kv_capacity_tokens=total)
    all_knobs: dict[str, Any] = {"max_concurrent_requests": UNLIMITED, "quirk_phantom_prefix": True} | options | knobs
    try:
        chosen = policy(**all_knobs).resolve(deployment)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    requests, outputs = in_order(recording, _request)
    memory = chosen.memory(deployment, np.array(outputs, np.int64))
    return TgiCase(chosen, memory, Clock(1), requests, outputs, 0, UNLIMITED, STEP,
                   {request.name: request.prompt for request in requests},
                   {request.name: memory.demand(request, request.prompt) for request in requests})


def _request(row: Line, where: str) -> tuple[Request, int]:
    known_fields(row, REQUEST, where)
    declared = whole(row, "max_tokens", where, least=1)
    output = whole(row, "output_len", where, least=1, default=declared)
    if output > declared:
        raise InputError(f"{where}: output_len ({output}) must be at most max_tokens ({declared})")
    request = Request(0, whole(row, "arrival", where, default=0), whole(row, "prompt_len", where, least=1), declared,
                      name=name_of(row, where))
    return request, output
