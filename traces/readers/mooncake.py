"""The Mooncake traces: JSON lines with timestamp (ms), input_length, output_length, hash_ids.

Source: github.com/kvcache-ai/Mooncake, FAST 2025 release. Each id stands for one block of 512 prompt tokens
and all before it, so equal ids are equal prefixes. What the tokens are is not known.
"""

from traces.readers.dialect import Batch, Dialect
from traces.readers.rows import BadRow

BLOCK = 512


def blocks_fit(batch: Batch) -> None:
    """Raise BadRow where the number of ids is not ceil(prompt / 512): prefix reuse would be invented."""
    if "hash_ids" not in batch:
        return
    for ids, prompt in zip(batch["hash_ids"], batch["prompt"], strict=True):
        blocks = -(-prompt // BLOCK)
        if len(ids) != blocks:
            rule = f"must hold {blocks} ids, one for each {BLOCK} of {prompt} prompt tokens, not {len(ids)}"
            raise BadRow("hash_ids", list(ids), rule)


MOONCAKE = Dialect(
    name="mooncake",
    shape="jsonl",
    columns={
        "arrival": "timestamp",
        "prompt": "input_length",
        "output": "output_length",
        "hash_ids": "hash_ids",
    },
    aliases={"max_tokens": ("maxtokens",), "tenant": ("tenant",)},
    unit="ms",
    hash_block=BLOCK,
    check=blocks_fit,
)
