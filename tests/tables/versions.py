"""What was tried where: the default tests in other environments, a row each.

``python tests/tables/versions.py VENV...`` runs them with the interpreter of each folder, which needs what
``pip install '.[test]'`` brings. It does not install anything: ``--oldest`` prints the oldest versions that
pyproject.toml allows, as requirements of an environment to try.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import scripts
from markdown import table

ROOT = Path(__file__).resolve().parents[2]
SHOWN = ("numpy", "pandas", "matplotlib", "simpy", "typer", "rich", "joblib")
COUNTED = ("passed", "skipped", "failed", "error")
BESIDE = {"pyparsing": "3.1"}
"""What the oldest versions need to have no newer than this: matplotlib 3.8 uses names that pyparsing 3.3 warns of."""


def oldest() -> Iterator[str]:
    """The lowest version of each dependency, those of the tests included, as pip takes them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (one for extra in ("test", "parquet", "zstd") for one in project["optional-dependencies"][extra])
    for requirement in (*project["dependencies"], *extras):
        if found := re.match(r"([\w-]+)>=([\d.]+)", requirement):
            yield f"{found[1]}=={found[2]}"
    yield from (f"{name}=={number}" for name, number in BESIDE.items())


def here() -> dict[str, str]:
    """The versions that this interpreter has."""
    return {"Python": python_version(), **{name: version(name) for name in SHOWN}}


def counts(said: str) -> dict[str, int]:
    """How many passed, were skipped, failed or broke, from the last line of pytest."""
    return {what: sum(int(number) for number in re.findall(rf"(\d+) {what}", said)) for what in COUNTED}


def tried(python: Path) -> list[str]:
    """A row of the table: the versions, and what came of the tests."""
    told = subprocess.run([python, __file__, "--here"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    print(f"{python}: {told.strip()}", file=sys.stderr)
    tests = subprocess.run([python, "-m", "pytest", "-n", "2", "-m", "not slow", "-o", "addopts=--strict-markers"],
                           cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True).stdout
    print(tests, file=sys.stderr)
    found = counts(tests.splitlines()[-1])
    return [*json.loads(told).values(), *(f"{found[what]:,}" for what in COUNTED[:2]),
            f"{found['failed'] + found['error']:,}"]


def main(arguments: Sequence[str]) -> None:
    """Print what is asked for."""
    parser = scripts.Asked(__doc__)
    parser.add_argument("pythons", nargs="*", type=interpreter, metavar="VENV", help="the folder of an environment")
    parser.add_argument("--oldest", action="store_true", help="print the oldest versions that are allowed")
    parser.add_argument("--here", action="store_true", help="print the versions that this interpreter has")
    asked = parser.parse_args(arguments)
    if not (asked.pythons or asked.oldest or asked.here):
        parser.error("name the folder of an environment, or say --oldest")
    if asked.oldest:
        print(*oldest(), sep="\n")
    elif asked.here:
        print(json.dumps(here()))
    else:
        print(table(["Python", *SHOWN, "passed", "skipped", "failed"], map(tried, asked.pythons)))


def interpreter(folder: str) -> Path:
    """The Python of an environment."""
    return scripts.file(str(Path(folder).absolute() / "bin" / "python"))


if __name__ == "__main__":
    main(sys.argv[1:])
