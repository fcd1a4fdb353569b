"""From a point to something that can be timed: real kernels on random data, in buffers that take turns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import cycle, islice

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from calibration.attention import Chosen
from calibration.engine import Engine
from calibration.grid import Grid, Point, pages_of, rows_of, tokens_of
from calibration.llama import Llama, angles, norm, pointwise, random_matrix
from calibration.machine import LEAST_FLUSH, Machine
from calibration.paged import Batch, Pages, Row
from calibration.timing import Work

MOST_TURNS, TURNS_ON_CPU = 16, 4
"""Buffers that take turns."""
ATTENTION = ("decode", "prefill", "mixed")


class Workbench:
    """Holds weights, pages and a whole model, and makes works of them.

    Args:
        machine: Where everything lies.
        model: One rank's share of the model, whole.
        chosen: Its attention.
        grid: What will be asked for.
        rng: Deals out pages and tokens.
    """

    def __init__(self, machine: Machine, model: Llama, chosen: Chosen, grid: Grid, rng: np.random.Generator) -> None:
        self._machine, self._model, self._chosen, self._rng = machine, model, chosen, rng
        self._shard, self._size = model.shard, model.head.element_size()
        self._made = torch.Generator(machine.torch_device).manual_seed(int(rng.integers(1 << 31)))
        sizes = self._shard.layer_matrices | {"lm_head": self._shard.head}
        self._matrices = {name: [self._random(size) for _ in range(self._turns(size[0] * size[1] * self._size))]
                          for name, size in sizes.items()}
        page = chosen.page_size
        attention = [pages_of(point, page) for point in grid.points() if point.kernel in ATTENTION]
        count = max(-(-grid.tokens[-1] // page), *attention)
        self._pages = Pages(*(self._random((count, page, self._shard.kv_heads, self._shard.head_dim))
                              for _ in range(2)))
        self._dealt = rng.permutation(count).tolist()
        self._engine = Engine(model, max(pages_of(Point("step", dims), page) for dims in grid.steps), page)

    def work(self, point: Point) -> Work:
        """The calls for a point."""
        if point.kernel in self._matrices:
            return self._product(point.kernel, *point.dims)
        if point.kernel in ATTENTION:
            return self._attention(point)
        made = {"copy": self._copy, "matmul": self._matmul, "rest": self._rest, "head_rest": self._head_rest,
                "step": self._step}
        return made[point.kernel](*point.dims)

    def _turns(self, size: float) -> int:
        """How many buffers of so many bytes take turns."""
        if not self._machine.is_gpu:
            return TURNS_ON_CPU
        return max(2, min(MOST_TURNS, -(-LEAST_FLUSH // max(1, int(size)))))

    def _random(self, size: tuple[int, ...]) -> Tensor:
        return torch.randn(size, dtype=self._model.dtype, device=self._model.device, generator=self._made)

    def _copy(self, size: int) -> Work:
        source = self._random((size // self._size,))
        target = torch.empty_like(source)
        return Work([partial(target.copy_, source)], 2 * size)

    def _matmul(self, size: int) -> Work:
        left, right = self._random((size, size)), random_matrix((size, size), self._model.dtype, self._model.device,
                                                                self._made)
        return Work([partial(F.linear, left, right)], 3 * size * size * self._size, 2 * size**3)

    def _product(self, kernel: str, tokens: int) -> Work:
        """A matrix product as the model has it, over weights that take turns."""
        outputs, inputs = self._matrices[kernel][0].shape
        x = self._random((tokens, inputs))
        return Work([partial(F.linear, x, matrix) for matrix in self._matrices[kernel]],
                    (outputs * inputs + tokens * (outputs + inputs)) * self._size, 2 * tokens * outputs * inputs)

    def _rest(self, tokens: int) -> Work:
        """Norms, rotary positions, the writing of KV, the gate and both additions of one layer."""
        shard, do = self._shard, pointwise(self._model.device.type)
        x, wide = self._random((tokens, shard.hidden)), self._random((tokens, shard.gate_up[0]))
        mixed = self._random((tokens, shard.heads + 2 * shard.kv_heads, shard.head_dim))
        query, keys, values = mixed.split((shard.heads, shard.kv_heads, shard.kv_heads), 1)
        every = self._pages.keys.shape[0] * self._pages.page_size
        slots = torch.from_numpy(self._rng.permutation(every)[:tokens]).to(x.device)
        cos, sin = angles(torch.arange(tokens, device=x.device), shard.head_dim, x.dtype)

        def call() -> None:
            do.norm(x, self._model.norm)
            do.rotate(query, cos, sin)
            self._pages.write(slots, do.rotate(keys, cos, sin), values)
            do.norm(x + x, self._model.norm)
            do.gate(wide)
            torch.add(x, x)

        moved = 8 * tokens * shard.hidden + 2 * tokens * (shard.qkv[0] + shard.gate_up[0])
        return Work([call] * TURNS_ON_CPU, moved * self._size)

    def _head_rest(self, sequences: int) -> Work:
        """Embedding, last norm and the choice of the likeliest token."""
        hidden, logits = self._random((sequences, self._shard.hidden)), self._random((sequences, self._shard.vocab))
        tokens = torch.from_numpy(self._rng.integers(self._shard.vocab, size=sequences)).to(hidden.device)

        def call() -> None:
            F.embedding(tokens, self._model.embedding)
            norm(hidden, self._model.norm)
            logits.argmax(-1)

        return Work([call] * TURNS_ON_CPU, (sequences * (self._shard.vocab + 4 * self._shard.hidden)) * self._size)

    def _attention(self, point: Point) -> Work:
        """One layer's attention over pages that take turns."""
        turns = min(self._turns(tokens_of(point) * self._shard.kv_values() * self._size), 64)
        dealer = cycle(self._dealt)
        batches = [Batch.of(paged(point, self._chosen.page_size, dealer), self._chosen.page_size,
                            self._model.device) for _ in range(turns)]
        query = self._random((batches[0].tokens, self._shard.heads, self._shard.head_dim))
        out = torch.empty_like(query)
        attend = self._chosen.path.attend
        pairs = sum(row.new * (row.length - (row.new - 1) / 2) for row in batches[0].rows)
        width = self._shard.heads * self._shard.head_dim
        moved = tokens_of(point) * self._shard.kv_values() + 2 * query.numel()
        return Work([partial(attend, query, self._pages, batch, out) for batch in batches], moved * self._size,
                    4 * width * pairs)

    def _step(self, *dims: int) -> Work:
        """A whole step of the engine, with all that the host does."""
        point = Point("step", dims)
        rows = paged(point, self._chosen.page_size, iter(range(1 << 30)))
        fed = self._rng.integers(self._shard.vocab, size=sum(row.new for row in rows)).tolist()
        read = self._shard.parameters - self._shard.vocab * self._shard.hidden
        kept = tokens_of(point) * self._shard.kv_values() * self._shard.layers
        return Work([partial(self._engine.compute, rows, fed)], (read + kept) * self._size,
                    2 * read * sum(row.new for row in rows))


def paged(point: Point, page_size: int, dealer: Iterator[int]) -> list[Row]:
    """The rows of an attention call or a step, with pages from the dealer."""
    return [Row(new, length, list(islice(dealer, -(-length // page_size)))) for new, length in rows_of(point)]
