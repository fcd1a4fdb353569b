"""How much of each package the tests run, by statements and branches, and why the rest is not.

``python tests/tables/covered.py coverage.json`` reads what ``coverage json`` wrote, and ends with exit status 1 where
a package has less than LEAST percent.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scripts
from markdown import table

PACKAGES = ("simulator", "traces", "cost_models", "calibration")
LEAST = 95.0
_GPU, _TORCH = "runs on a GPU only", "is for a torch that lacks this kernel"
_AIC = "needs the kernel tables of the extra aic"
_APART = "runs in processes of their own, whose surroundings the tests set and nothing measures"
_SLOW = "is run by the slow tests"
WHY = {
    "calibration/attention/flex.py": _TORCH,
    "calibration/attention/triton_decode.py": _TORCH,
    "calibration/attention/triton_kernels.py": f"{_GPU}; Triton's interpreter runs it where Triton is installed",
    "calibration/attention/varlen.py": f"{_GPU}, or {_TORCH}",
    "calibration/operating_points.py": _AIC,
    "calibration/published/aiconfigurator.py": _AIC,
    "calibration/workbench.py": _GPU,
    "cost_models/aiconfigurator.py": _AIC,
    "simulator/cli/complete.py": _APART,
    "simulator/cli/main.py": _APART,
    "simulator/cli/stopping.py": _APART,
    "simulator/guard.py": _APART,
    "simulator/plots/factors.py": _SLOW,
    "simulator/studies/campaign/cluster.py": _SLOW,
    "simulator/studies/campaign/on_dask.py": _SLOW,
    "simulator/studies/campaign/on_ray.py": _SLOW,
    "simulator/studies/reproduce/answers.py": _SLOW,
}
"""Files of which something cannot run where this was measured, and why."""


@dataclass(frozen=True)
class Package:
    """Counts over all files of one package.

    Attributes:
        statements, branches: All there are.
        covered: Those of both that ran.
        gaps: By file, how many of both did not.
    """

    name: str
    statements: int
    branches: int
    covered: int
    gaps: Mapping[str, int]

    @property
    def percent(self) -> float:
        """Of statements and branches together."""
        return 100 * self.covered / ((self.statements + self.branches) or 1)

    def row(self) -> tuple[str, ...]:
        """A row of the table."""
        told = sum(count for file, count in self.gaps.items() if file in WHY)
        return (f"`{self.name}`", f"{self.statements:,}", f"{self.branches:,}", f"{self.percent:.1f}%",
                f"{sum(self.gaps.values()):,}", f"{told:,}")


def package_of(name: str, files: Mapping[str, Any]) -> Package:
    """The counts of a package, from the summaries of its files as `coverage json` has them."""
    mine = {file: about["summary"] for file, about in files.items() if file.split("/")[0] == name}
    missed = {file: about["missing_lines"] + about["missing_branches"] for file, about in mine.items()}
    return Package(name, *(sum(about[key] for about in mine.values()) for key in ("num_statements", "num_branches")),
                   sum(about["covered_lines"] + about["covered_branches"] for about in mine.values()),
                   {file: count for file, count in missed.items() if count})


def rest(packages: Iterable[Package]) -> str:
    """What is not told file by file, in a sentence."""
    counts = [count for package in packages for file, count in package.gaps.items() if file not in WHY]
    return (f"The other {sum(counts):,} gaps lie in {len(counts):,} files, {max(counts, default=0):,} at most in one: "
            "mostly refusals, and branches that are not taken.")


def main(report: Path) -> int:
    """Print the tables. Exit status 1 where too little is covered."""
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    packages = [package_of(name, files) for name in PACKAGES]
    print(table(["package", "statements", "branches", "covered", "gaps", "of which told below"],
                [package.row() for package in packages]))
    told = [(f"`{file}`", count, WHY[file]) for package in packages for file, count in package.gaps.items()
            if file in WHY]
    print("", table(["file", "gaps", "why"], told), "", rest(packages), sep="\n")
    return int(any(package.percent < LEAST for package in packages))


if __name__ == "__main__":
    parser = scripts.Asked(__doc__)
    parser.add_argument("report", nargs="?", type=Path, default=Path("coverage.json"), help="else coverage.json")
    asked = parser.parse_args()
    if not asked.report.is_file():
        parser.error(f"no such file: {asked.report}")
    sys.exit(main(asked.report))
