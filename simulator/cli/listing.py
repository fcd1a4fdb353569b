"""`batchsim list`: what can be chosen by name. In a notebook: POLICIES, MODELS, GPUS, traces.available() and
cost_models.available_cost_models().
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text
from typer import Argument, Option

import traces
from cost_models import GPUS, MODELS, available_cost_models
from cost_models.fits import Errors, Range
from simulator.cli import complete
from simulator.cli.console import answers, print_json
from simulator.cli.flags import with_flags
from simulator.cli.grids import parts
from simulator.cli.options import COMMON, Told
from simulator.errors import choose
from simulator.policies import POLICIES, Policy
from simulator.tables import Table
from traces.fetching import CHECKSUMS

Row = dict[str, Any]


@with_flags
def list_(told: Told,
          kind: Annotated[str | None, Argument(metavar="KIND", autocompletion=complete.kinds, show_default=False, help=(
              "policies, models, gpus, traces or cost-models; the names of all if not given."))] = None,
          verbose: Annotated[bool, Option("--verbose", "-v", metavar="", rich_help_panel=COMMON,
                                          help="All that is known of each.")] = False) -> None:
    """List the policies, models, GPUs, traces and cost models that have a name."""
    if kind is None:
        _list_names(told.json)
        return
    rows, brief = KINDS[choose("list", kind, KINDS)]
    if told.json:
        print_json(rows())
    elif verbose:
        for row in rows():
            _print_card(answers(), row)
    else:
        console = answers()
        for part in parts(_table(rows(), brief), console.width):
            console.print(part)


def _list_names(as_json: bool) -> None:
    """Each kind with the names in it."""
    names = {kind: [row["name"] for row in rows()] for kind, (rows, _) in KINDS.items()}
    if as_json:
        print_json(names)
        return
    table = Grid(show_header=False, box=None, pad_edge=False)
    for kind, known in names.items():
        table.add_row(Text(kind, "bold"), Text(", ".join(known)))
    answers().print(table)


def policies() -> list[Row]:
    """Bundled policies: what they mirror, how well that is founded, their knobs and what they leave out."""
    return [{"name": name, "mirrors": kind.version, "evidence": kind.evidence, "about": _about(kind),
             "left_out": list(kind.left_out), "knobs": _knobs(kind)} for name, kind in POLICIES.items()]


def _about(kind: type[Policy]) -> str:
    return (kind.__doc__ or "").strip().split("\n")[0]


def _knobs(kind: type[Policy]) -> list[Row]:
    """Names, defaults and meanings; the meanings stand in the documentation of the class and its bases."""
    documentation = "\n".join(each.__doc__ or "" for each in reversed(kind.__mro__))
    entries = re.findall(r"^ +(\w+): (.+(?:\n {12,}.+)*)", documentation, re.MULTILINE)
    meanings = {name: " ".join(text.split()) for name, text in entries}
    return [{"name": name, "default": default, "meaning": meanings.get(name, "")}
            for name, default in kind.knobs().items()]


def models() -> list[Row]:
    """Bundled models by their published shapes."""
    return [{**asdict(spec), "parameters": spec.parameters, "kv_bytes_per_token": spec.kv_bytes_per_token()}
            for spec in MODELS.values()]


def gpus() -> list[Row]:
    """Bundled GPUs by their data sheets."""
    return [asdict(spec) for spec in GPUS.values()]


def all_traces() -> list[Row]:
    """Bundled traces, then public ones that can be fetched: size, origin and terms."""
    bundled = [{**asdict(card), "here": "bundled"} for card in traces.available()]
    return bundled + [{**asdict(each), "checksum": CHECKSUMS[each.checksum], "arrivals": "as published",
                       "here": "fetched" if each.here else "to fetch"} for each in traces.catalogue().values()]


def cost_models() -> list[Row]:
    """Forms and bundled profiles of cost models, with their origins, errors in percent and ranges."""
    return [{**row._asdict(), "errors": _stated(row.errors, asdict), "range": _stated(row.range, list)}
            for row in available_cost_models()]


def _stated(known: Errors | Range | None, shape: Callable[[Any], Any]) -> Row:
    """What is stated, by kind of step or by size; nothing of what is not."""
    return {name: shape(value) for name, value in vars(known).items() if value is not None} if known else {}


KINDS: Mapping[str, tuple[Callable[[], list[Row]], tuple[str, ...]]] = {
    "policies": (policies, ("name", "mirrors", "evidence")),
    "models": (models, ("name", "parameters", "layers", "kv_heads", "kv_bytes_per_token", "max_model_len")),
    "gpus": (gpus, ("name", "device_bytes", "bandwidth", "bf16_flops", "fp8_flops")),
    "traces": (all_traces, ("name", "rows", "here", "arrivals", "licence")),
    "cost-models": (cost_models, ("name", "form", "layout", "origin")),
}
"""What can be listed: how its rows are made, and which of their columns a short list shows."""


def _table(rows: list[Row], columns: tuple[str, ...]) -> Table:
    """A row each. A column without any number holds words."""
    words = [column for column in columns if not any(isinstance(row[column], int | float) for row in rows)]
    return Table("", tuple(map(_spaced, columns)),
                 tuple(tuple(_shown(row[column], column) for column in columns) for row in rows),
                 words=tuple(map(_spaced, words)))


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _print_card(console: Console, row: Row) -> None:
    """Everything about one, a line a fact."""
    table = Grid(title=Text(row["name"], "bold"), title_justify="left", show_header=False, box=None, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for fact, value in row.items():
        if fact == "knobs":
            for knob in value:
                table.add_row(Text(f"  {knob['name']}{_default(knob['default'])}"), Text(knob["meaning"]))
        elif fact in MEANT:
            for name, stated in value.items():
                table.add_row(f"{fact.removesuffix('s')}, {name.replace('_', ' ')}", Text(MEANT[fact](stated)))
        elif fact != "name" and value not in (None, ""):
            table.add_row(fact.replace("_", " "), Text(_shown(value, fact)))
    console.print(table, "")


def _error(stated: Row) -> str:
    """The error of one kind of step, in words."""
    bias = stated["bias_percent"]
    figures = [f"MAPE {stated['mape_percent']:g}%", f"p95 {stated['p95_percent']:g}%",
               "bias not stated" if bias is None else f"bias {bias:+g}%"]
    steps = f"{stated['points']:,} steps" if stated["points"] else "steps"
    return f"{', '.join(figures)} on {steps} that were {'held out' if stated['held_out'] else 'fitted'}"


MEANT: Mapping[str, Callable[[Any], str]] = {"errors": _error, "range": lambda ends: f"{ends[0]:,} to {ends[1]:,}"}
"""Facts with several parts, and each part in words."""


def _default(value: object) -> str:
    """The default of a knob, as --set takes it; where it has none of its own, its meaning tells what applies."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return ", not set" if value is None else f" = {f'{value:.15g}' if number else _shown(value)}"


SCALES = {"bytes": (1e9, "GB"), "bandwidth": (1e9, "GB/s"), "flops": (1e12, "TFLOP/s"), "parameters": (1e9, "B")}


def _shown(value: object, fact: str = "") -> str:
    """A value in words; large physical sizes in their usual unit."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value)) or "nothing"
    unit = next((unit for end, unit in SCALES.items() if fact.endswith(end)), None)
    if unit and isinstance(value, int | float):
        return f"{value / unit[0]:,.4g} {unit[1]}"
    if isinstance(value, int | float):
        return f"{value:,}"
    return "-" if value is None else str(value)
