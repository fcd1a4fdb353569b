"""Overflow: where requests wait while no replica takes one, and in which order they leave. It knows no clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable
from heapq import heappop, heappush

from simulator.request import Request

OVERFLOWS = ("shed", "fcfs", "priority", "fair")
"""What becomes of a request that no replica takes: it is refused, or it waits."""


class Line(ABC):
    """Requests that wait at the router."""

    @abstractmethod
    def push(self, request: Request) -> None:
        """Take in a request."""

    @abstractmethod
    def pop(self) -> Request:
        """Let the next one go; there must be one."""

    @abstractmethod
    def remove(self, request: Request) -> bool:
        """Let this one go; False if it is not here."""

    @abstractmethod
    def __len__(self) -> int:
        """How many wait."""


class Turns(Line):
    """Each group in turn lets one go, the groups in the order in which they came, each in the order of arrival.

    Only turns in this line count: what a group was handed on while nobody had to wait is not held against it.

    Args:
        group: Of a request. With one group for all of them it is first come, first served.
    """

    def __init__(self, group: Callable[[Request], Hashable]) -> None:
        self._group, self._waiting = group, 0
        self._groups: OrderedDict[Hashable, OrderedDict[Request, None]] = OrderedDict()

    def push(self, request: Request) -> None:
        self._groups.setdefault(self._group(request), OrderedDict())[request] = None
        self._waiting += 1

    def pop(self) -> Request:
        name, group = next(iter(self._groups.items()))
        request, _ = group.popitem(last=False)
        self._waiting -= 1
        if group:
            self._groups.move_to_end(name)
        else:
            del self._groups[name]
        return request

    def remove(self, request: Request) -> bool:
        name = self._group(request)
        group = self._groups.get(name, OrderedDict())
        if request not in group:
            return False
        del group[request]
        self._waiting -= 1
        if not group:
            del self._groups[name]
        return True

    def __len__(self) -> int:
        return self._waiting


class ByPriority(Line):
    """The most urgent first; of the same priority, first come, first served."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Request]] = []
        self._here: set[Request] = set()    # those of the heap that have not been removed
        self._pushed = 0

    def push(self, request: Request) -> None:
        heappush(self._heap, (request.priority, self._pushed, request))
        self._here.add(request)
        self._pushed += 1

    def pop(self) -> Request:
        while (request := heappop(self._heap)[2]) not in self._here:
            pass
        self._here.remove(request)
        return request

    def remove(self, request: Request) -> bool:
        if request not in self._here:
            return False
        self._here.remove(request)
        return True

    def __len__(self) -> int:
        return len(self._here)


def line_for(overflow: str, tenants: tuple[str, ...] | None) -> Line | None:
    """Where requests wait by the name of an order, given the tenant of each row; None where they are refused."""
    match overflow:
        case "fcfs":
            return Turns(lambda request: None)
        case "fair":
            assert tenants is not None
            return Turns(lambda request: tenants[request.index])
        case "priority":
            return ByPriority()
    return None
