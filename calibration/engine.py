"""A small engine that carries out the Steps of any policy: what the simulator only counts, it computes.

It derives its block tables by itself and knows no clock. The policy's padding is not computed, prefixes are not shared
and nothing is swapped: it refuses such steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from calibration.llama import Llama
from calibration.paged import Batch, Row
from calibration.tables import BlockTables
from simulator.errors import InputError
from simulator.request import Request
from simulator.step import Queue, Step


class Engine:
    """A model, its KV cache, and what every request has said so far.

    Args:
        model: The model.
        pages: Pages of its KV cache.
        page_size: Tokens a page.
        seed: Of the prompts: request i has the same one in every engine with this seed.
    """

    def __init__(self, model: Llama, pages: int, page_size: int, seed: int = 0) -> None:
        self.model, self._page_size, self._seed = model, page_size, seed
        self._cache = model.cache(pages, page_size)
        self.tables = BlockTables(pages, page_size)
        self.tokens: dict[int, list[int]] = {}
        """Prompt and generated tokens by request index; who has left is still there."""

    def execute(self, step: Step, queue: Queue) -> None:
        """Compute one step, and keep the token that each caught-up request emits."""
        if step.pad_to or step.spent or step.times > 1:
            raise InputError("the engine computes no padding: set padded=false and no run_to")
        for victim in step.preempted:
            self.tables.release(victim)
        work = self._work(step, queue)
        if not work:
            return
        rows = [Row(new, request.computed + new, self.tables.grow(request, new)) for request, new in work]
        fed = [token for request, new in work
               for token in self._known(request)[request.computed:request.computed + new]]
        self._keep(work, self.compute(rows, fed))

    def compute(self, rows: Sequence[Row], fed: Sequence[int]) -> list[int]:
        """One forward pass over these rows, fed with their new tokens; the likeliest next token of each row."""
        device = self.model.device
        batch = Batch.of(rows, self._page_size, device)
        hidden = self.model.forward(torch.tensor(fed, device=device), self._cache, batch)
        said: list[int] = self.model.sample(hidden[batch.last]).tolist()
        return said

    def release(self, request: Request) -> None:
        """The request has left: its pages are free."""
        self.tables.release(request)

    def _work(self, step: Step, queue: Queue) -> list[tuple[Request, int]]:
        """Who computes how many tokens; single tokens come first."""
        decodes = [(request, 1) for request in queue.running.values() if request.decoding] if step.decodes else []
        return decodes + sorted(step.chunks, key=lambda chunk: chunk[1] > 1)

    def _known(self, request: Request) -> list[int]:
        """Prompt and generated tokens of a request."""
        if request.index not in self.tokens:
            self.tokens[request.index] = prompt_of(request.index, request.prompt, self.model.shard.vocab, self._seed)
        return self.tokens[request.index]

    def _keep(self, work: Sequence[tuple[Request, int]], sampled: list[int]) -> None:
        """Whoever has computed all that it knows emits a token."""
        for (request, new), token in zip(work, sampled, strict=True):
            if request.computed + new == request.known:
                self.tokens[request.index].append(token)


def prompt_of(index: int, tokens: int, vocab: int, seed: int) -> list[int]:
    """The made-up prompt of a request."""
    drawn: list[int] = np.random.default_rng([seed, index]).integers(vocab, size=tokens).tolist()
    return drawn


@torch.inference_mode()
def said_alone(model: Llama, prompt: int, tokens: list[int]) -> list[int]:
    """What the model would have said at every place of a conversation, computed in one go and without company.

    A greedy answer is right if it equals this from the prompt's end on.
    """
    row = Row(len(tokens), len(tokens), [0])
    batch = Batch.of([row], len(tokens), model.device)
    hidden = model.forward(torch.tensor(tokens, device=model.device), model.cache(1, len(tokens)), batch)
    said: list[int] = model.sample(hidden[prompt - 1:-1]).tolist()
    return said
