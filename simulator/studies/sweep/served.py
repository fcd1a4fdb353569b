"""Served: who of the requests of a record was not served, and how each tenant fared. It knows no run's inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from simulator.result import Result

UNSERVED = ("rejected", "failed", "aborted", "skipped")
"""Requests that end without an answer, each in one of these ways."""
TENANT = "tenant."
TOLD = ("requests", "completed", "p99_ttft_ms", "attainment", "request_goodput")
"""What a record has of a tenant, as `tenant.NAME.FIGURE`."""
MOST_TENANTS = 12
"""Of a trace with more, records have Jain's index alone."""


def unserved(each: dict[str, Any]) -> float:
    """Requests that were not served."""
    return sum(each.get(name) or 0 for name in UNSERVED)


def share_served(each: dict[str, Any]) -> float:
    """The share of its requests that were served; 1 for a record that does not tell."""
    count, lost = each.get("completed"), unserved(each)
    return 1.0 if count is None or not count + lost else count / (count + lost)


def serve_most(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that serve as great a share of their requests as any: who turns requests away has short latencies."""
    most = max(map(share_served, records), default=1.0)
    return [each for each in records if share_served(each) == most]


def share_unserved(each: dict[str, Any]) -> str:
    """How many were not, and their share of all; a dash for none."""
    count = unserved(each)
    return f"{count:,.0f} ({count / (count + each['completed']):.1%})" if count else "-"


def by_tenant(result: Result) -> dict[str, Any]:
    """The figures of each tenant, flat; none where there are not several."""
    found = result.tenants
    if not 2 <= len(found) <= MOST_TENANTS:
        return {}
    return {f"{TENANT}{each.tenant}.{name}": asdict(each)[name] for each in found for name in TOLD}


def tenants_of(records: Sequence[dict[str, Any]]) -> list[str]:
    """The tenants that any record tells of."""
    ends = f".{TOLD[0]}"
    return list(dict.fromkeys(name.removeprefix(TENANT).removesuffix(ends) for each in records for name in each
                              if name.startswith(TENANT) and name.endswith(ends)))
