"""The modules beside a policy file that its code imports, as its source says. It runs none of them.

Of a module that is imported by a computed name it knows nothing.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

OURS = ("simulator", "traces", "cost_models", "calibration")
"""Packages that a version stands for."""
MOST_BYTES = 4 << 20
"""Of a source that is looked into."""

Import = tuple[int, str]
"""How many folders up it begins, 0 where Python looks for it, and the dotted name."""


def beside(path: str) -> tuple[str, ...]:
    """Files in the folder of a Python file, or in packages there, that its imports lead to, or theirs do; in order.

    A name that is not there is taken for a module from elsewhere.
    """
    start = Path(path)
    found: dict[Path, None] = {}
    waiting = [start]
    while waiting:
        at = waiting.pop()
        for level, name in _imports(at):
            base = start.parent if not level else at.parents[min(level, len(at.parents)) - 1]
            new = [each for each in _leading_to(base, name)
                   if each not in found and each != start and each.is_relative_to(start.parent)]
            found.update(dict.fromkeys(new))
            waiting += new
    return tuple(sorted(map(str, found)))


def _imports(path: Path) -> tuple[Import, ...]:
    """What a file imports; nothing where it cannot be read, which is for Python to complain of."""
    try:
        stat = path.stat()
        if not path.is_file() or stat.st_size > MOST_BYTES:
            return ()
        return _imported(str(path.resolve()), stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return ()


@lru_cache(maxsize=256)
def _imported(path: str, *as_it_is: int) -> tuple[Import, ...]:
    with open(path, "rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")    # Python gives them when it runs the file
        tree = ast.parse(file.read())
    found = (each for node in ast.walk(tree) for each in _names(node))
    return tuple(dict.fromkeys((level, name) for level, name in found if level or name.split(".")[0] not in OURS))


def _names(node: ast.AST) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from ((0, alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ((node.level, ".".join(filter(None, (node.module, alias.name)))) for alias in node.names)


def _leading_to(base: Path, name: str) -> Iterator[Path]:
    """The files that Python runs on the way to a module."""
    for part in name.split("."):
        base = base / part
        yield from (file for file in (base / "__init__.py", base.parent / f"{part}.py") if os.path.isfile(file))
