"""Block tables: which page holds which tokens of which request. It knows no KV, no kernel and no policy."""

from __future__ import annotations

from simulator.errors import InputError
from simulator.request import Request


class BlockTables:
    """Pages dealt out to requests as they grow.

    Args:
        pages: How many there are.
        page_size: Tokens a page.
    """

    def __init__(self, pages: int, page_size: int) -> None:
        self._free = list(range(pages - 1, -1, -1))
        self._page_size = page_size
        self._tables: dict[int, list[int]] = {}
        self._filled: dict[int, int] = {}    # tokens whose KV is here

    @property
    def free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    def grow(self, request: Request, tokens: int) -> list[int]:
        """The request's pages once its next `tokens` tokens have a place.

        Raises InputError if the policy counts KV as computed that is not here, or if no page is left.
        """
        computed, filled = request.computed, self._filled.get(request.index, 0)
        if computed > filled:
            raise InputError(f"request {request.index} reuses KV of {computed} tokens, of which the engine holds "
                             f"{filled}: it shares no prefixes and swaps nothing (set enable_prefix_caching=false)")
        table = self._tables.setdefault(request.index, [])
        lacking = -(-(computed + tokens) // self._page_size) - len(table)
        if lacking > self.free:
            raise InputError(f"the engine has {self.free} free pages, request {request.index} needs {lacking} more: "
                             "give it more pages, or the policy less memory")
        table.extend(self._free.pop() for _ in range(lacking))
        self._filled[request.index] = computed + tokens
        return table

    def release(self, request: Request) -> None:
        """Take the request's pages back."""
        self._filled.pop(request.index, None)
        self._free.extend(reversed(self._tables.pop(request.index, [])))
