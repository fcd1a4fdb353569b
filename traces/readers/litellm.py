"""Spend logs of LiteLLM's proxy: the table LiteLLM_SpendLogs as CSV, JSON lines, or what its API answers.

Source: LiteLLM's schema of its tables. Without tokens of completion a request failed, or was no completion. The
tenant is the end user. Answers from the proxy's own cache are requests like all others here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from traces.readers.dialect import Dialect
from traces.readers.rows import BadRow

COLUMNS = {"arrival": "startTime", "prompt": "prompt_tokens", "output": "completion_tokens"}

LITELLM = Dialect(
    name="litellm",
    about="Spend logs of LiteLLM's proxy",
    columns=COLUMNS,
    optional={"tenant": "end_user", "session": "session_id"},
    unit="s",
    fails=True,
)


def pages(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of one page of the API's answer."""
    rows = document.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadRow("data", rows, "must be a list of logged requests")
    for row in rows:
        yield {"tenant": row.get("end_user"), "session": row.get("session_id"),
               **{role: row.get(name) for role, name in COLUMNS.items()}}


LITELLM_PAGE = Dialect(
    name="litellm-page",
    about="Pages of spend logs as LiteLLM's API answers them",
    columns={role: role for role in (*COLUMNS, "tenant", "session")},
    marks=("data", "total", "page"),
    expand=pages,
    unit="s",
    fails=True,
)
