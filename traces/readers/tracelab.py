"""TraceLab's rounds of coding agents: JSON lines with a session, token counts and timed events.

Source: github.com/uw-syfi/TraceLab. A round was sent when its first event happened, and ended with its last one. The
next round thinks for as long as lies between; the tokens that the provider read from its cache are those that the
round repeats. What the first round of a session found there came from other sessions and is not followed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from traces.readers.dialect import Dialect
from traces.readers.rows import BadRow


def rounds(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One round as a flat row."""
    events = document.get("timing_events")
    if not isinstance(events, list) or not events or not all(isinstance(event, dict) for event in events):
        raise BadRow("timing_events", events, "must be a list of events")
    stamps = [event.get("timestamp") for event in events]
    if not all(isinstance(stamp, str) for stamp in stamps):
        raise BadRow("timing_events", stamps, "must have a timestamp in each event")
    yield {"arrival": min(stamps), "prompt": document.get("input_tokens_total"),
           "output": document.get("output_tokens"), "session": document.get("session_id"),
           "tenant": document.get("provider"), "shared": document.get("prefix_tokens")}


TRACELAB = Dialect(
    name="tracelab",
    about="TraceLab's rounds of coding agents",
    columns={role: role for role in ("arrival", "prompt", "output", "session", "tenant", "shared")},
    marks=("session_id", "round_index", "input_tokens_total", "timing_events"),
    expand=rounds,
    fails=True,
)
