"""Prefix blocks: how many ids a prompt must have, and ids that mean something only inside of one conversation."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traces.readers.rows import BadRow, Batch, Check

Int64 = npt.NDArray[np.int64]


def blocks_fit(size: int, *, whole_only: bool | None = False) -> Check:
    """The rule that a prompt has an id for each block of `size`: prefix reuse would be invented otherwise.

    whole_only: an id stands for a full block only (so the last tokens have none); None allows both ways. A row that
    says its own block size says nothing of this, so both are allowed there.
    """
    def check(batch: Batch) -> None:
        if "hash_ids" not in batch:
            return
        sizes: Sequence[int] = batch.get("hash_block") or [size] * len(batch["prompt"])
        both = whole_only is None or "hash_block" in batch
        for ids, prompt, block in zip(batch["hash_ids"], batch["prompt"], sizes, strict=True):
            most, least = -(-prompt // block), prompt // block
            low, high = (least, most) if both else (least, least) if whole_only else (most, most)
            if not low <= len(ids) <= high:
                raise BadRow("hash_ids", list(ids), _needed(low, high, block, prompt, len(ids)))

    return check


def _needed(low: int, high: int, block: int, prompt: int, found: int) -> str:
    need = str(low) if low == high else f"{low} or {high}"
    return f"must hold {need} ids, one for each {block} of {prompt} prompt tokens, not {found}"


def in_scopes(ids: Int64, lengths: Int64, scopes: Sequence[str]) -> Int64:
    """New ids, equal where both the ids and the scopes of their rows are."""
    _, scope = np.unique(np.array(scopes, dtype=object).astype(str), return_inverse=True)
    _, plain = np.unique(ids, return_inverse=True)
    pairs = np.repeat(scope, lengths) * np.int64(len(ids) + 1) + plain
    _, fresh = np.unique(pairs, return_inverse=True)
    return fresh.astype(np.int64)


