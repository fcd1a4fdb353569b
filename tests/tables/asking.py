"""What the scripts beside this one are asked: their words on the command line, and that what they need is here."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable
from importlib.util import find_spec

NEEDED = ("pytest", "hypothesis")


def lacking(names: Iterable[str] = NEEDED) -> str:
    """A complaint about what is not installed; "" if all is."""
    missing = [name for name in names if find_spec(name) is None]
    return f"needs {' and '.join(missing)}: pip install '.[dev]', from the project's root" if missing else ""


def options(doc: str | None) -> ArgumentParser:
    """One that tells what the script's docstring says, and complains in one line."""
    return ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter)


if complaint := lacking():
    sys.exit(complaint)
