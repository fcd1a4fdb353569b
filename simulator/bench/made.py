"""Traces that the benchmark makes, row for row the same for a seed. They know no policy and no cost."""

from __future__ import annotations

import numpy as np

import traces
from traces import Trace

SECOND = 10 ** 9
CONVERSATION = "azure-conv-2023"


def uniform(rows: int, seed: int = 0) -> Trace:
    """Prompts of 256 to 768 tokens, outputs of 128 to 256, a Poisson process of ten a second."""
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(SECOND / 10, rows)).astype(np.int64)
    return Trace("uniform", arrival - arrival[0], rng.integers(256, 769, rows), rng.integers(128, 257, rows))


def lognormal(rows: int, seed: int = 0) -> Trace:
    """Everybody at time 0. Prompts have a median of 245 tokens and a sigma of 1.0, outputs of 148 and 0.9."""
    rng = np.random.default_rng(seed)
    prompt, output = (np.rint(rng.lognormal(np.log(median), sigma, rows)).astype(np.int64)
                      for median, sigma in ((245, 1.0), (148, 0.9)))
    return Trace("lognormal", np.zeros(rows, np.int64), np.maximum(1, prompt), np.maximum(1, output))


def conversations(rows: int, seed: int = 0) -> Trace:
    """The stand-in of the Azure conversation trace, whole copies one after another, cut to so many rows."""
    one = traces.load(CONVERSATION, seed=seed)
    copies = -(-rows // len(one))
    starts = np.repeat(np.arange(copies) * period(one), len(one))
    arrival, prompt, output = (np.tile(column, copies)[:rows] for column in (one.arrival, one.prompt, one.output))
    return Trace(f"{CONVERSATION}, repeated", arrival + starts[:rows], prompt, output)


def period(trace: Trace) -> int:
    """From the start of a copy to the start of the next, ns: the span and one mean gap."""
    return int(trace.arrival[-1]) * len(trace) // (len(trace) - 1)
