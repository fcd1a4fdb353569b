"""One run on a console: a title, its batch over time, and the tables of `run_tables`. Nothing is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from simulator.cli.tables import print_table
from simulator.counting import counted
from simulator.facts import kv_stored
from simulator.fullness import Fullness
from simulator.run_tables import shown, tables
from simulator.scenario import Scenario


def print_summary(console: Console, document: Mapping[str, Any], load: str, assumed: Sequence[str] = ()) -> None:
    """What was served, and how it felt.

    Args:
        console: Where to print.
        document: The JSON of the run.
        load: When its requests come, in words.
        assumed: Lines that stand under the title.
    """
    title = f"{document['policy']} on {document['trace']}, {load}: {_model(document)} on {_gpus(document)}"
    console.print(title, style="bold", markup=False)
    for line in assumed:
        console.print(line, style="dim", markup=False)
    served, *others = tables({str(document["policy"]): document})
    print_table(console, served)
    if document["batch_over_time"]:
        _print_batch(console, Fullness(*document["batch_over_time"].values()))
    for table in others:
        print_table(console, table)


def _print_batch(console: Console, full: Fullness) -> None:
    """The batch over time as a line of bars."""
    most = max(full.sequences)
    title = f"batch over {full.ends[-1]:,.4g} s, up to {shown(most)} sequence{'s' * (most != 1)}"
    console.print(f"\n{title}\n|{full.drawn()}|", markup=False)


def _model(document: Mapping[str, Any]) -> str:
    """The model, and how it is stored where that is no matter of course."""
    weights = "" if document["dtype"] == Scenario.dtype else f" in {document['dtype']}"
    return f"{document['model_id']}{weights}{kv_stored(document['kv_dtype'])}"


def _gpus(summary: Mapping[str, Any]) -> str:
    size, routed = summary["tensor_parallel_size"], ""
    if summary["router"] is not None:
        routed = f"{_replicas(summary)} behind {summary['router']}, each on "
    return routed + (f"{size} x {summary['gpu']} (tp{size})" if size > 1 else str(summary["gpu"]))


def _replicas(summary: Mapping[str, Any]) -> str:
    """How many there are, or may be."""
    count = counted(summary["replicas"], "replica")
    if summary["autoscale"] is None:
        return count
    bounds = f"{summary['min_replicas']:,} to {summary['max_replicas']:,}"
    return f"{count} to begin with, {bounds} by {summary['autoscale']},"
