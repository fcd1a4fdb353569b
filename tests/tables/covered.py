"""How much of each package the tests run, by statements and branches, and why each of the rest is not.

``python tests/tables/covered.py coverage.json`` reads what ``coverage json`` wrote. Each gap is looked up in
``gaps.yaml``; what is not there is told on stderr. The exit status is 1 then, and where a package has less than LEAST
percent.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scripts
import yaml
from gaps import Gap, gaps
from markdown import table

PACKAGES = ("simulator", "traces", "cost_models", "calibration")
LEAST = 95.0
ALL = "all"
"""In place of a list of gaps: whatever of that file does not run."""


@dataclass(frozen=True)
class Package:
    """Counts over all files of one package.

    Attributes:
        statements, branches: All there are.
        covered: Those of both that ran.
        gaps: The rest, place by place.
    """

    name: str
    statements: int
    branches: int
    covered: int
    gaps: tuple[Gap, ...]

    @property
    def percent(self) -> float:
        """Of statements and branches together."""
        return 100 * self.covered / ((self.statements + self.branches) or 1)

    def row(self) -> tuple[str, ...]:
        """A row of the table."""
        return (f"`{self.name}`", f"{self.statements:,}", f"{self.branches:,}", f"{self.percent:.2f}%",
                f"{sum(gap.count for gap in self.gaps):,}", f"{len(self.gaps):,}")


def package_of(name: str, files: Mapping[str, Any]) -> Package:
    """The counts of a package, from what `coverage json` tells of its files."""
    mine = {file: about for file, about in files.items() if file.split("/")[0] == name}
    count = Counter[str]()
    for about in mine.values():
        count.update({key: value for key, value in about["summary"].items() if isinstance(value, int)})
    return Package(name, count["num_statements"], count["num_branches"],
                   count["covered_lines"] + count["covered_branches"],
                   tuple(gap for file, about in mine.items() for gap in gaps(file, about)))


def known() -> dict[tuple[str, str], str]:
    """Why a gap is there, by its file and text."""
    told = yaml.safe_load(Path(__file__).with_name("gaps.yaml").read_text("utf-8"))
    return {(group["file"], text): group["why"] for group in told
            for text in ([ALL] if group["gaps"] == ALL else group["gaps"])}


def reason(gap: Gap, why: Mapping[tuple[str, str], str]) -> str | None:
    """Why a gap is there; None where nobody says."""
    return why.get((gap.file, gap.text), why.get((gap.file, ALL)))


def reasons(found: Iterable[Gap], why: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, int, str]]:
    """A line for each file and reason, and how many statements and branches are not run for it."""
    count = Counter[tuple[str, str]]()
    for gap in found:
        count[gap.file, reason(gap, why) or "?"] += gap.count
    yield from ((f"`{file}`", number, told) for (file, told), number in count.items())


def main(report: Path) -> int:
    """Print the tables. Exit status 1 where too little is covered, or a gap has no reason."""
    files, why = json.loads(report.read_text(encoding="utf-8"))["files"], known()
    packages = [package_of(name, files) for name in PACKAGES]
    found = [gap for package in packages for gap in package.gaps]
    print(table(["package", "statements", "branches", "covered", "not covered", "in so many places"],
                [package.row() for package in packages]))
    print("", table(["file", "not covered", "why"], reasons(found, why)), sep="\n")
    unknown = [gap for gap in found if reason(gap, why) is None]
    for gap in unknown:
        print(f"{gap.file}: {gap.text}", file=sys.stderr)
    return int(bool(unknown) or any(package.percent < LEAST for package in packages))


if __name__ == "__main__":
    parser = scripts.Asked(__doc__)
    parser.add_argument("report", nargs="?", type=Path, default=Path("coverage.json"), help="else coverage.json")
    asked = parser.parse_args()
    if not asked.report.is_file():
        parser.error(f"no such file: {asked.report}")
    try:
        sys.exit(main(asked.report))
    except (LookupError, TypeError, ValueError):
        parser.error(f"{asked.report} is not what `coverage json` wrote of these files")
