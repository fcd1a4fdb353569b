"""SGLang's settings: each knob by the engine's name, the defaults of a deployment, and what follows from them.

It knows nothing of a step: see `rule`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED, Lengths, Memory
from simulator.memory.paged import Paged
from simulator.memory.radix import Radix
from simulator.policies.base import Policy, flag, not_negative, one_of, positive
from simulator.policies.sglang import defaults
from simulator.policies.sglang.orders import ORDERS


@dataclass
class Settings(Policy):
    """Settings of SGLang 0.5.23.

    Attributes:
        max_running_requests: Most running requests; default by the KV pool and the model's length: 2048 to 4096, and
            at most half the pool's tokens.
        max_prefill_tokens: Prompt tokens after which nobody else joins a prefill batch.
        chunked_prefill_size: Tokens after which a prompt is cut; default by GPU memory: 2048 below 20 GiB, 4096 below
            60, 8192 below 160, else 16384. inf: prompts are whole.
        schedule_policy: Who is asked first: "fcfs", "lpm" (longest match in the cache), "lof" (longest output),
            "random" or "dfs-weight".
        schedule_conservativeness: Factor of the share of outputs that is set aside.
        init_new_token_ratio: Another start of that share; floor and decay stay as they are.
        enable_mixed_chunk: Decodes ride along with prefill batches; needs chunks.
        disable_radix_cache: KV is forgotten when it is freed.
        ignore_eos: Every request generates all that it declares, and the engine knows: no ratio discounts its output.
        page_size: Tokens a page.
        context_length: Longest prompt plus output, in tokens; default the model's.
        prefill_max_requests: Most requests a prefill batch.
        prefill_decode_interval: Decode steps that follow each prefill batch before the next may run.
        random_seed: Seed of the order "random".
    """

    max_running_requests: int | None = None
    max_prefill_tokens: int = 16384
    chunked_prefill_size: int | None = None
    schedule_policy: str = "fcfs"
    schedule_conservativeness: float = 1.0
    init_new_token_ratio: float | None = None
    enable_mixed_chunk: bool = False
    disable_radix_cache: bool = False
    ignore_eos: bool = False
    page_size: int = 1
    context_length: int | None = None
    prefill_max_requests: int | None = None
    prefill_decode_interval: int = 0
    random_seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "max_running_requests", "max_prefill_tokens", "chunked_prefill_size", "page_size",
                 "context_length", "prefill_max_requests")
        one_of(self, "schedule_policy", tuple(ORDERS))
        flag(self, "enable_mixed_chunk", "disable_radix_cache", "ignore_eos")
        not_negative(self, "prefill_decode_interval", "random_seed")
        self._share("schedule_conservativeness", "init_new_token_ratio")

    def _share(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < UNLIMITED
            if value is not None and not number:
                raise InputError(f"sglang: {name} must be a number above 0, not {value!r}")

    def resolve(self, deployment: Deployment) -> Self:
        length = self.context_length or deployment.max_model_len
        running = defaults.max_running_requests(deployment.kv_capacity_tokens, length)
        chunk = self.chunked_prefill_size or defaults.chunked_prefill_size(deployment.gpu_bytes)
        settled = replace(self, context_length=length, max_running_requests=self.max_running_requests or running,
                          chunked_prefill_size=chunk)
        for knob in ("chunked_prefill_size", "max_prefill_tokens"):
            if getattr(settled, knob) < self.page_size:
                raise InputError(f"sglang: {knob} ({getattr(settled, knob)}) must be at least page_size "
                                 f"({self.page_size}): raise the one or lower the other")
        return settled

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        pages = deployment.kv_capacity_tokens // self.page_size
        return (Paged if self.disable_radix_cache else Radix)(pages, self.page_size)

    def room(self, prompt: Lengths, deployment: Deployment) -> Lengths:
        """What is left of the model's length and of the pool: whoever may generate more would wait for ever."""
        page = self.page_size
        capacity = deployment.kv_capacity_tokens // page * page
        longest = min(self.context_length or deployment.max_model_len, capacity) - 1
        pool = capacity - 2 * page - prompt if self.foresees else capacity - page - -(-prompt // page) * page
        return np.minimum(longest - prompt, pool) - 1

    def bounded_by(self, slots: int) -> Self:
        return replace(self, max_running_requests=slots, max_prefill_tokens=UNLIMITED, chunked_prefill_size=UNLIMITED)

    @property
    def foresees(self) -> bool:
        """Whether requests are let in by what is left when each ends.

        That rule spares a token, and all tokens of one who was sent back may take most of a page more.
        """
        return self.ignore_eos and self.disable_radix_cache

    @property
    def mixes(self) -> bool:
        """Whether decodes ride along with prefill batches: only where prompts are cut."""
        assert self.chunked_prefill_size is not None
        return self.enable_mixed_chunk and self.chunked_prefill_size < UNLIMITED
