"""The Qwen-Bailian usage traces: JSON lines like Mooncake's, but with seconds, blocks of 16 tokens and a parent chat.

Source: github.com/alibaba-edu/qwen-bailian-usagetraces-anon (KVCache Cache in the Wild, USENIX ATC 2025). A row is a
whole request: its prompt has the turns before it. The tokens of thinking are stripped from the next turn, so less
than all before it may repeat; the hash ids tell.
"""

from traces.readers.blocks import blocks_fit
from traces.readers.dialect import Dialect

BLOCK = 16

BAILIAN = Dialect(
    name="qwen-bailian",
    about="Qwen-Bailian: conversations by parent_chat_id, blocks of 16 tokens",
    columns={"arrival": "timestamp", "prompt": "input_length", "output": "output_length", "id": "chat_id",
             "parent": "parent_chat_id"},
    optional={"hash_ids": "hash_ids", "tenant": "type"},
    unit="s",
    hash_block=BLOCK,
    checks=(blocks_fit(BLOCK, whole_only=None),),
)
