"""Traces of LLM requests: read them from files, take bundled ones, reshape them, declare lengths.

Read `trace` first, then `readers`, `writers`, `standins`, `declared`. This package knows no simulator.
"""

from traces.arrivals import gamma_arrivals
from traces.declared import Declared, declare
from traces.errors import TraceError
from traces.readers import READERS, load
from traces.report import ReadReport, Reject
from traces.standins import StandIn, available
from traces.trace import Trace
from traces.writers import WRITERS, convert

__all__ = [
    "READERS",
    "WRITERS",
    "Declared",
    "ReadReport",
    "Reject",
    "StandIn",
    "Trace",
    "TraceError",
    "available",
    "convert",
    "declare",
    "gamma_arrivals",
    "load",
]
