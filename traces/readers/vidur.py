"""Vidur's processed traces: CSV with seconds from the first row and lengths, or with lengths alone.

Source: github.com/microsoft/vidur and its descendants. Files of lengths alone have no arrivals: they come from
data sets of chats and documents, such as ShareGPT, whose rows may follow each other in one conversation.
"""

from traces.readers.content import Content
from traces.readers.dialect import Dialect, letters
from traces.readers.table import ALIASES

_LENGTHS = {"prompt": "num_prefill_tokens", "output": "num_decode_tokens"}

VIDUR = Dialect(
    name="vidur",
    about="Vidur's traces with arrivals in seconds",
    columns={"arrival": "arrived_at", **_LENGTHS},
    unit="s",
)


class Lengths(Dialect):
    """Lengths without times: files with a column that may be an arrival are none."""

    def recognises(self, content: Content) -> bool:
        return super().recognises(content) and not any(letters(key) in ALIASES["arrival"] for key in content.keys)


LENGTHS = Lengths(
    name="lengths",
    about="Lengths alone, as Vidur and Sarathi-Serve have them of ShareGPT and arXiv; no arrivals",
    columns=_LENGTHS,
    timeless=True,
    notes=("rows stand in the order of their file, which may follow conversations",),
)
