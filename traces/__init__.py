"""Traces of LLM requests: read them from files, take bundled ones, reshape them, declare lengths.

Read `trace` first, then `readers`, `writers`, `standins`, `shaping`, `declared`. This package knows no simulator.
"""

from traces.arrivals import gamma_arrivals
from traces.declared import Declared, declare
from traces.errors import TraceError
from traces.fetching import Public, catalogue, fetch, public
from traces.fitting import Kept, fit, kept
from traces.readers import READERS, load
from traces.report import ReadReport, Reject
from traces.shape import Shape, shape_of
from traces.shaping import capped, repeated, sampled, shaped, spread, stretched, truncated
from traces.spec import Spec, generate, read_spec
from traces.standins import StandIn, available
from traces.tenants import mixed, of_tenants, split
from traces.trace import Trace
from traces.writers import WRITERS, convert

__all__ = [
    "READERS",
    "WRITERS",
    "Declared",
    "Kept",
    "Public",
    "ReadReport",
    "Reject",
    "Shape",
    "Spec",
    "StandIn",
    "Trace",
    "TraceError",
    "available",
    "capped",
    "catalogue",
    "convert",
    "declare",
    "fetch",
    "fit",
    "gamma_arrivals",
    "generate",
    "kept",
    "load",
    "mixed",
    "of_tenants",
    "public",
    "read_spec",
    "repeated",
    "sampled",
    "shape_of",
    "shaped",
    "split",
    "spread",
    "stretched",
    "truncated",
]
