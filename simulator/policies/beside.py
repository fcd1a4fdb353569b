"""The modules beside a policy file that its code imports, as its source says. It runs none of them.

It does not know a module that is imported by a computed name, and one that is no Python source. Of very many modules it
knows the nearest 64, and what stands in the first 256 KiB of their sources: that far it looks, and no further. What is
installed, and only linked to from there, is no part of a policy.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

OURS = ("simulator", "traces", "cost_models", "calibration")
"""Packages that a version stands for."""
INSTALLED = {"site-packages", "dist-packages"}
"""Folders with what others wrote."""
MOST_MODULES = 64
MOST_READ = 256 << 10
"""Bytes of source that are looked into; it takes some tens of ms, once."""
ALL = "*"

Import = tuple[int, str]
"""How many folders up it begins, 0 where Python looks for it, and the dotted name."""
Way = tuple[str, ...]
"""Names from the policy's folder to a module."""


def beside(path: str) -> tuple[str, ...]:
    """Files in the folder of a Python file, or in packages there, that its imports lead to, or theirs do; in order.

    A name that is not there is taken for a module from elsewhere.
    """
    folder, start = os.path.split(str(Path(path)))
    return tuple(sorted(os.path.join(folder, each) for each in islice(_led_to(folder, start), MOST_MODULES)))


def _led_to(folder: str, start: str) -> Iterator[str]:
    """All of them from the nearest on, each once, by their paths in the folder."""
    known, waiting, left = {start}, deque([start]), MOST_READ
    gone: set[Way] = set()
    own = os.path.join(os.path.realpath(folder), "")
    while waiting:
        at = waiting.popleft()
        size, imports = _imports(os.path.join(folder, at), left)
        left -= size
        for way in _ways(at, imports):
            new = () if way in gone else [each for each in _files_at(way, folder) if each not in known]
            gone.add(way)
            for each in new:
                if _is_beside(os.path.join(folder, each), own):
                    known.add(each)
                    waiting.append(each)
                    yield each


def _imports(path: str, most: int) -> tuple[int, tuple[Import, ...]]:
    """The bytes of a file, and what it imports; nothing where it is too large, or cannot be read, which is for Python
    to complain of.
    """
    try:
        stat = os.stat(path)
        if not os.path.isfile(path) or stat.st_size > most:
            return 0, ()
        return stat.st_size, _imported(os.path.abspath(path), stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size,
                                       stat.st_ino)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return 0, ()


@lru_cache(maxsize=16 * MOST_MODULES)
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


def _ways(at: str, imports: Iterable[Import]) -> Iterator[Way]:
    """The steps to what a file imports; what is above the policy's folder is not looked at."""
    folders = at.split(os.sep)
    for level, name in imports:
        if level <= len(folders):
            base, parts = folders[:-level] if level else [], name.split(".")
            yield from ((*base, *parts[:step]) for step in range(1, len(parts) + 1))


def _files_at(way: Way, folder: str) -> Sequence[str]:
    """Where the module to which it leads may be; a package of which all is taken may run each of its own."""
    base = os.path.join("", *way[:-1])
    if way[-1] != ALL:
        return os.path.join(base, way[-1], "__init__.py"), os.path.join(base, f"{way[-1]}.py")
    place = os.path.join(folder, base)
    try:
        names = sorted(os.listdir(place)) if os.path.isfile(os.path.join(place, "__init__.py")) else []
    except OSError:
        names = []
    return [os.path.join(base, name if name.endswith(".py") else os.path.join(name, "__init__.py")) for name in names]


def _is_beside(path: str, own: str) -> bool:
    """Whether a file is there, and not in an installed package to which there is but a link."""
    if not os.path.isfile(path):
        return False
    real = os.path.realpath(path)
    return real.startswith(own) or INSTALLED.isdisjoint(real.split(os.sep))
