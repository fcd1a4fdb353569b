"""Paged KV cache: the pages of a layer, and which tokens of which sequences attend to them.

It knows no attention kernel and no model. A page holds `page_size` tokens of one sequence; a block table lists a
sequence's pages in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, Self

import torch
from torch import Tensor


class Row(NamedTuple):
    """One sequence of a batch: its newest `new` tokens attend to all of its `length` tokens, causally."""

    new: int
    length: int
    pages: Sequence[int]


@dataclass(frozen=True)
class Pages:
    """Keys and values of one layer.

    Attributes:
        keys, values: (pages, page size, KV heads, head dimension).
    """

    keys: Tensor
    values: Tensor

    @classmethod
    def empty(cls, pages: int, page_size: int, kv_heads: int, head_dim: int, like: Tensor) -> Self:
        """Pages full of zeros, with the dtype and on the device of `like`."""
        size = (pages, page_size, kv_heads, head_dim)
        return cls(like.new_zeros(size), like.new_zeros(size))

    @property
    def page_size(self) -> int:
        """Tokens a page."""
        return self.keys.shape[1]

    def write(self, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Put keys and values (tokens, KV heads, head dimension) into these slots, counted over all pages."""
        self.keys.flatten(0, 1).index_copy_(0, slots, keys)
        self.values.flatten(0, 1).index_copy_(0, slots, values)


@dataclass(frozen=True, eq=False)
class Batch:
    """The rows of one step, as kernels want them: lists on the host, tensors on the device.

    Attributes:
        rows: What is asked, in the order in which the new tokens lie in a query.
        page_size: Tokens a page.
        tables: Block tables (rows, most pages), int32; unused places are 0.
        lengths: Tokens of each row, the new ones included (rows), int32.
        starts: Where the new tokens of each row begin, and their number at the end (rows + 1), int32.
        positions: Place of every new token in its sequence (new tokens), int64.
        slots: Where its KV belongs, counted over all pages (new tokens), int64.
    """

    rows: tuple[Row, ...]
    page_size: int
    tables: Tensor
    lengths: Tensor
    starts: Tensor
    positions: Tensor
    slots: Tensor

    @classmethod
    def of(cls, rows: Sequence[Row], page_size: int, device: torch.device | str) -> Self:
        """The batch of these rows on a device."""
        most = max(len(row.pages) for row in rows)
        tables = [[*row.pages, *[0] * (most - len(row.pages))] for row in rows]
        places = [(row, at) for row in rows for at in range(row.length - row.new, row.length)]
        slots = [row.pages[at // page_size] * page_size + at % page_size for row, at in places]
        starts = [0, *accumulate(row.new for row in rows)]
        short = {"dtype": torch.int32, "device": device}
        return cls(tuple(rows), page_size, torch.tensor(tables, **short),
                   torch.tensor([row.length for row in rows], **short), torch.tensor(starts, **short),
                   torch.tensor([at for _, at in places], device=device), torch.tensor(slots, device=device))

    @property
    def tokens(self) -> int:
        """New tokens of all rows together."""
        return sum(row.new for row in self.rows)

    @property
    def longest(self) -> int:
        """Tokens of the longest row."""
        return max(row.length for row in self.rows)

    @cached_property
    def parts(self) -> tuple[Self | None, Self | None]:
        """The leading rows of a single token, and the rows after them."""
        single = next((at for at, row in enumerate(self.rows) if row.new > 1), len(self.rows))
        if single in (0, len(self.rows)):
            return (self, None) if single else (None, self)
        return self._cut(0, single), self._cut(single, len(self.rows))

    def _cut(self, first: int, last: int) -> Self:
        """Some of the rows as a batch of their own."""
        begin, end = (sum(row.new for row in self.rows[:at]) for at in (first, last))
        return type(self)(self.rows[first:last], self.page_size, self.tables[first:last], self.lengths[first:last],
                          self.starts[first:last + 1] - begin, self.positions[begin:end], self.slots[begin:end])

    @property
    def last(self) -> Tensor:
        """Where the newest token of each row lies in a query (rows), int64."""
        return self.starts[1:].long() - 1
