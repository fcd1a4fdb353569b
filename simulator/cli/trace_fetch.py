"""`batchsim trace fetch`: a public trace from its own home. In a notebook: `traces.fetch(traces.public(name))`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

import traces
from simulator.cli import complete
from simulator.cli.console import answers, print_json
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import Told
from traces.fetching import CHECKSUMS


@with_flags
def fetch(name: Annotated[str, Argument(metavar="NAME", autocompletion=complete.public_traces, help=(
              "A public trace: see `batchsim list traces`."))], told: Told) -> None:
    """Download a public trace, check it, and keep it; `--trace NAME` means it from then on."""
    found = traces.public(name)
    if not told.quiet and not found.here:
        size = "" if found.bytes is None else f", {found.bytes / 1e6:,.1f} MB"
        note(f"fetching {found.url}{size}")
    path = traces.fetch(found)
    if told.json:
        print_json({"name": found.name, "file": str(path), "licence": found.licence, "citation": found.citation,
                    "sha256": found.sha256, "checksum": found.checksum})
        return
    console = answers()
    for fact, value in (("licence", found.licence), ("cite", found.citation), ("file", path),
                        ("sha256", f"{found.sha256} ({CHECKSUMS[found.checksum]})")):
        console.print(f"{fact}: {value}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"use it with --trace {found.name}", markup=False, highlight=False)
