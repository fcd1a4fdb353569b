"""One run on a console: a title, and the tables of `measured`. Nothing is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from simulator.cli.tables import print_table
from simulator.measured import tables


def print_summary(console: Console, document: Mapping[str, Any]) -> None:
    """What was served, and how it felt.

    Args:
        console: Where to print.
        document: The JSON of the run.
    """
    title = (f"{document['policy']} on {document['trace']}, {document['load']}: {document['model_id']} on "
             f"{_gpus(document)}")
    console.print(title, style="bold", markup=False)
    for table in tables({str(document["policy"]): document}):
        print_table(console, table)


def _gpus(summary: Mapping[str, Any]) -> str:
    size, routed = summary["tensor_parallel_size"], ""
    if summary["router"] is not None:
        count = f"{summary['replicas']:,} replicas" if summary["replicas"] > 1 else "1 replica"
        routed = f"{count} behind {summary['router']}, each on "
    return routed + (f"{size} x {summary['gpu']} (tp{size})" if size > 1 else str(summary["gpu"]))
