"""The Mooncake traces: JSON lines with timestamp (ms), input_length, output_length, hash_ids.

Source: github.com/kvcache-ai/Mooncake, FAST 2025 release (conversation, toolagent, synthetic) and the arXiv trace.
Each id stands for one block of 512 prompt tokens and all before it, so equal ids are equal prefixes. What the tokens
are is not known. Conversations are read as other tools write them: session_id, and delay in ms after the turn before.
`hash_block`, `id`, `parent`, `shared`, `priority` and `hash_ids_filled` (the ids stand for nothing and are left out)
are ours; other tools pass over them.
"""

from traces.readers.blocks import blocks_fit
from traces.readers.dialect import Dialect

BLOCK = 512

MOONCAKE = Dialect(
    name="mooncake",
    about="Mooncake: conversation, toolagent, synthetic, arXiv",
    columns={"arrival": "timestamp", "prompt": "input_length", "output": "output_length"},
    optional={"hash_ids": "hash_ids", "hash_block": "hash_block", "session": "session_id", "think": "delay",
              "id": "id", "parent": "parent", "shared": "shared", "max_tokens": "max_tokens", "tenant": "tenant",
              "priority": "priority", "filled": "hash_ids_filled"},
    marks=("timestamp", "input_length", "output_length", "hash_ids"),
    unit="ms",
    hash_block=BLOCK,
    checks=(blocks_fit(BLOCK),),
)
