"""WEKA's agentic coding sessions: JSON documents with the requests of one session each, or a CSV made from them.

Source: github.com/callanjfox/kv-cache-tester. Times are seconds from the start of a session; when the sessions
started is not published, so all of them start at 0. A sub-agent is a conversation of its own inside of a session. Its
times count from its own start, or from that of the session: they do the former if they begin before it does. In the
CSV its start is not told. Hash ids stand for 64 full tokens, and mean something only inside of their session unless
the document says that they are global.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from traces.readers import values
from traces.readers.blocks import blocks_fit
from traces.readers.dialect import Dialect
from traces.readers.rows import BadRow

BLOCK = 64
STARTS = "when sessions started is not told: all of them start at 0"


def requests(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The requests of a session and of its sub-agents as flat rows."""
    session, size = document.get("id"), document.get("block_size", BLOCK)
    scope = "" if document.get("hash_id_scope") == "global" else session
    for row in _chain(document, Decimal(0), ""):
        yield row | {"session": session, "scope": scope, "hash_block": size}


def _chain(holder: Mapping[str, Any], start: Decimal, branch: str) -> Iterator[dict[str, Any]]:
    """The requests of one chain, and after them those of its sub-agents."""
    entries = holder.get("requests")
    if not isinstance(entries, list):
        raise BadRow("requests", entries, "must be a list of requests")
    agents = 0
    for entry in entries:
        if not isinstance(entry, dict):
            raise BadRow("requests", entry, "must hold objects")
        if "requests" in entry:
            agents += 1
            spawned = start + _seconds(entry, "t")
            name = f"{branch}/{entry.get('agent_id', agents)}"
            yield from _chain(entry, spawned if _relative(entry, spawned) else Decimal(0), name)
        else:
            yield _row(entry, start, branch)


def _row(entry: Mapping[str, Any], start: Decimal, branch: str) -> dict[str, Any]:
    return {"arrival": str(start + _seconds(entry, "t")), "prompt": entry.get("in"), "output": entry.get("out"),
            "hash_ids": entry.get("hash_ids"), "think": entry.get("think_time"), "branch": branch}


def _relative(agent: Mapping[str, Any], spawned: Decimal) -> bool:
    """Whether the first time in a sub-agent stands before the sub-agent itself does."""
    entries = agent["requests"]
    first = entries[0] if isinstance(entries, list) and entries else None
    return isinstance(first, dict) and _seconds(first, "t") < spawned


def _seconds(entry: Mapping[str, Any], name: str) -> Decimal:
    try:
        return values.exact(entry.get(name))
    except values.Refused as broken:
        raise BadRow(name, entry.get(name), str(broken)) from None


WEKA = Dialect(
    name="weka",
    about="WEKA's agentic coding sessions, one JSON document each or a tar archive of them",
    columns={"arrival": "arrival", "prompt": "prompt", "output": "output", "hash_ids": "hash_ids",
             "hash_block": "hash_block", "session": "session", "branch": "branch", "scope": "scope", "think": "think"},
    marks=("id", "hash_id_scope", "requests"),
    expand=requests,
    unit="s",
    checks=(blocks_fit(BLOCK),),
    fails=True,
    notes=(STARTS,),
)

WEKA_TABLE = Dialect(
    name="weka-table",
    about="WEKA's sessions as a table of requests, with counts of blocks shared with the turn before",
    columns={"arrival": "t_s", "prompt": "input_tokens", "output": "output_tokens", "session": "session",
             "branch": "subagent", "shared": "shared_prefix_blocks64_with_prev", "think": "think_time_s"},
    unit="s",
    rules={"shared": values.blocks_of(BLOCK)},
    fails=True,
    notes=(STARTS, "when sub-agents started is not told either: they start with their session"),
)
