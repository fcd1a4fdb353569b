"""Bundled stand-ins: traces sampled from the published quantiles and counts of real ones.

The specs in `traces/specs/` hold facts (quantiles, counts, a rank correlation), never rows. A stand-in has
the lengths, the load over time and the slot shares of its source; it has neither the source's order
of rows nor its shared prefixes. The same seed gives the same trace.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from traces.arrivals import SECOND, gamma_arrivals, tick_arrivals, window_arrivals
from traces.errors import TraceError, shown, unknown
from traces.lengths import Quantiles, sample_lengths
from traces.report import ReadReport
from traces.trace import Trace

Int64 = npt.NDArray[np.int64]
# The C parser is ten times as fast; PyYAML is sometimes built without it.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class StandIn:
    """What is bundled under one name: its size, its origin, its terms and its limits."""

    name: str
    rows: int
    source: str
    citation: str
    licence: str
    arrivals: str
    notes: str


def names() -> tuple[str, ...]:
    """Names of the bundled stand-ins, in alphabetical order."""
    found = (entry.name for entry in files("traces").joinpath("specs").iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def available() -> tuple[StandIn, ...]:
    """All bundled stand-ins with rows, source and licence, in the order of their names."""
    return tuple(_card(spec_of(name)) for name in names())


def spec_of(name: str) -> dict[str, Any]:
    """The facts behind a stand-in as its YAML holds them; raises TraceError for an unknown name."""
    if name not in names():
        raise unknown("bundled trace", name, names())
    text = files("traces").joinpath("specs", f"{name}.yaml").read_text(encoding="utf-8")
    spec: dict[str, Any] = yaml.load(text, Loader=_Loader)
    return spec


def stand_in(name: str, seed: int = 0) -> Trace:
    """The bundled trace `name`, sampled with `seed`; lengths and arrivals have a stream of chance each."""
    spec = spec_of(name)
    lengths_rng, arrivals_rng = _generator(seed).spawn(2)
    rows = spec["rows"]
    prompt, output = sample_lengths(*_quantiles(spec), spec["spearman"], rows, lengths_rng)
    return Trace(
        name=name,
        arrival=_arrivals(spec["arrivals"], rows, arrivals_rng),
        prompt=prompt,
        output=output,
        source=f"stand-in (seed {seed}) for: {spec['source']}; {spec['citation']}; {_said(spec['arrivals'])}",
        licence=spec["licence"],
        report=ReadReport("stand-in", rows),
    )


def _generator(seed: int) -> np.random.Generator:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise TraceError(f"a seed must be a whole number of 0 or more, not {shown(seed)}")
    return np.random.default_rng(int(seed))


def _quantiles(spec: Mapping[str, Any]) -> tuple[Quantiles, Quantiles]:
    tail = spec["tail_probs"]
    return (
        Quantiles(spec["prompt_tokens"], tail, spec["prompt_tail"]),
        Quantiles(spec["output_tokens"], tail, spec["output_tail"]),
    )


def _arrivals(facts: Mapping[str, Any], rows: int, rng: np.random.Generator) -> Int64:
    match facts["kind"]:
        case "windows":
            window, span = facts["window_s"] * SECOND, round(facts["span_s"] * SECOND)
            return window_arrivals(facts["counts"], window, span, facts["burstiness"], rng)
        case "ticks":
            window, tick = facts["window_s"] * SECOND, facts["tick_s"] * SECOND
            return tick_arrivals(facts["counts"], window, tick, rng)
        case "poisson":
            return gamma_arrivals(rows, facts["rate"], 1, rng)
    raise TraceError(f"unknown kind of arrivals {shown(facts['kind'])} in a bundled spec")


def _said(facts: Mapping[str, Any]) -> str:
    """The arrival process in words."""
    counts = f"arrivals: published counts per {facts.get('window_s')} s"
    match facts["kind"]:
        case "windows":
            return f"{counts}, Gamma gaps of shape {facts['burstiness']} inside"
        case "ticks":
            return f"{counts}, on ticks of {facts['tick_s']} s"
    return f"arrivals: a Poisson process of {facts['rate']} requests/s ({facts['rate_is']})"


def _card(spec: Mapping[str, Any]) -> StandIn:
    copied = ("name", "rows", "source", "citation", "licence", "notes")
    return StandIn(**{key: spec[key] for key in copied}, arrivals=_said(spec["arrivals"]))
