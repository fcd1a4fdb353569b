"""How long a call takes: on a GPU by CUDA graphs and events, on a CPU by the thread's own clock. It knows no kernel.

That clock stands still while other programs have the CPU, so that a busy machine measures what an idle one would. A
work is several calls of the same size on different buffers, so that none finds its data in a cache because the one
before has just used it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns, thread_time_ns
from typing import Protocol

import torch

Call = Callable[[], object]


@dataclass(frozen=True)
class Work:
    """Something to be timed.

    Attributes:
        calls: The same thing on different buffers.
        bytes: That one call must move at least.
        flops: That it computes.
    """

    calls: Sequence[Call]
    bytes: float
    flops: float = 0.0


class Timer(Protocol):
    """Times works on one device."""

    def samples(self, work: Work, repeats: int) -> list[float]:
        """Microseconds of one call, so many times, after calls that warm it up."""


class CallTimer(Timer):
    """Call by call, the host's work included; the calls take turns. On a CPU there is no other way."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def samples(self, work: Work, repeats: int) -> list[float]:
        for call in work.calls:
            timed(call, self._device)
        return [timed(work.calls[at % len(work.calls)], self._device) / 1e3 for at in range(repeats)]


def timed(call: Call, device: torch.device) -> int:
    """Nanoseconds until the call is done, on the device, too."""
    if device.type == "cpu":
        start = thread_time_ns()
        call()
        return thread_time_ns() - start
    start = perf_counter_ns()
    call()
    torch.cuda.synchronize(device)
    return perf_counter_ns() - start


class GraphTimer(Timer):
    """All calls of a work in one CUDA graph; before each replay the L2 cache is filled with something else.

    Args:
        device: Of all works.
        flush_bytes: Read before each replay; a multiple of the L2 cache.
    """

    def __init__(self, device: torch.device, flush_bytes: int) -> None:
        self._device = device
        self._other = torch.ones(flush_bytes, dtype=torch.int8, device=device)

    def samples(self, work: Work, repeats: int) -> list[float]:
        graph = self._captured(work)
        begins, ends = ([torch.cuda.Event(enable_timing=True) for _ in range(repeats)] for _ in range(2))
        for begin, end in zip(begins, ends, strict=True):
            self._other.max()
            begin.record()
            graph.replay()
            end.record()
        torch.cuda.synchronize(self._device)
        return [begin.elapsed_time(end) * 1e3 / len(work.calls) for begin, end in zip(begins, ends, strict=True)]

    def _captured(self, work: Work) -> torch.cuda.CUDAGraph:
        """The calls in a graph. They run twice before, on a stream of their own, so that nothing is set up inside."""
        aside = torch.cuda.Stream(self._device)
        aside.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(aside):
            for call in [*work.calls, *work.calls]:
                call()
        torch.cuda.current_stream(self._device).wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for call in work.calls:
                call()
        graph.replay()
        return graph
