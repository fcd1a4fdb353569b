"""How the scripts beside this one start: what they need, and what may be said to them. It is to be imported first.

Where pytest or hypothesis is missing, that is said in one line, before anything that asks for them is imported.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

NEEDED = ("pytest", "hypothesis")
WRONG = 2


class Asked(ArgumentParser):
    """What may be said to a script: --help prints its docstring, and what is wrong gets one line."""

    def __init__(self, about: str | None) -> None:
        super().__init__(description=about, formatter_class=RawDescriptionHelpFormatter)

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG, f"{self.prog}: {message}: see --help\n")


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def file(text: str) -> Path:
    """A file that is there."""
    if not Path(text).is_file():
        raise ArgumentTypeError(f"no such file: {text}")
    return Path(text)


def check(names: tuple[str, ...] = NEEDED) -> None:
    """End the script where one of these packages is missing."""
    if missing := [name for name in names if find_spec(name) is None]:
        print(f"{Path(sys.argv[0]).name}: {' and '.join(missing)} missing: pip install -e '.[dev]'", file=sys.stderr)
        raise SystemExit(WRONG)


check()
