"""What odd values behind every flag of every command come to, as a table: ``python tests/tables/flags.py``.

It takes some minutes.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import scripts

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from markdown import table
from odd_flags import Case, Outcome, attempt, cases, fault, prepare

COLUMNS = ("command", "flags and arguments", "calls", "refused in one line", "answered", "faults", "longest, CPU s")
ANSWERS = (0, 1, 3)


def tried() -> dict[str, list[tuple[Case, Outcome]]]:
    """Every call and what came of it, by command."""
    found = defaultdict(list)
    with TemporaryDirectory() as folder:
        made = prepare(Path(folder) / "made")
        for number, case in enumerate(cases()):
            if number % 500 == 0:
                print(f"{number} calls made", file=sys.stderr)
            found[case.command].append((case, attempt(case, made, Path(folder) / "call")))
    return found


def row(command: str, calls: list[tuple[Case, Outcome]]) -> list[object]:
    """A line of the table."""
    statuses = Counter(outcome.status for _, outcome in calls)
    wrong = [f"{case}: {told}" for case, outcome in calls if (told := fault(case, outcome))]
    for line in wrong:
        print(line, file=sys.stderr)
    return [command, len({case.flag for case, _ in calls}), f"{len(calls):,}", f"{statuses[2]:,}",
            sum(statuses[status] for status in ANSWERS), len(wrong),
            f"{max(outcome.seconds for _, outcome in calls):.1f}"]


def main() -> None:
    """Print it."""
    found = tried()
    rows = [row(command, calls) for command, calls in found.items()]
    every = row("all", [each for calls in found.values() for each in calls])
    print(table(COLUMNS, [*rows, every]))


if __name__ == "__main__":
    scripts.Asked(__doc__).parse_args()
    main()
