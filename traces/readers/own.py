"""Tables as `batchsim trace convert` writes them: every column of a trace, times in ns, as CSV or Parquet.

In CSV the ids of a row are whole numbers with blanks between them.
"""

from traces.readers.blocks import blocks_fit
from traces.readers.dialect import Dialect

NAMES = {"arrival": "arrival_ns", "prompt": "prompt_tokens", "output": "output_tokens", "max_tokens": "max_tokens",
         "tenant": "tenant", "priority": "priority", "session": "session", "id": "id", "parent": "parent",
         "think": "think_ns", "shared": "shared_tokens", "hash_ids": "hash_ids", "hash_block": "hash_block"}
"""The column of each role."""
NEEDED = ("arrival", "prompt", "output")

OWN = Dialect(
    name="batchsim",
    about="Tables written by `batchsim trace convert`, exact to the ns",
    columns={role: NAMES[role] for role in NEEDED},
    optional={role: name for role, name in NAMES.items() if role not in NEEDED},
    unit="ns",
    checks=(blocks_fit(1),),
)
