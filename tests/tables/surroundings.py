"""What odd surroundings of the command come to, as a table: ``python tests/tables/surroundings.py``.

It takes some minutes.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import scripts

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from markdown import table
from surroundings import MOMENTS, SIGNALS, STOPPED, Ending, end_of, endings, stopped, surroundings, wrong

COLUMNS = ("what", "calls", "exit statuses", "faults")


def tried(folder: Path) -> Iterator[tuple[str, str, Ending, tuple[int, ...]]]:
    """Every call: what it is, the line, what came of it, and the statuses that it may have."""
    for number, each in enumerate(surroundings()):
        yield each.what, each.line, end_of(each.line, folder / str(number)), each.statuses
    for name, command, moment in product(SIGNALS, STOPPED, MOMENTS):
        ending = stopped(command, name, moment, folder / f"{name}{STOPPED.index(command)}{moment}")
        what = f"SIG{name}" if ending.sent else "a signal that never came"
        yield what, f"{command}, at {moment}", ending, endings(name, ending)


def main() -> None:
    """Print it."""
    statuses: dict[str, Counter[int]] = defaultdict(Counter)
    faults: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        for what, line, ending, allowed in tried(Path(folder)):
            statuses[what][ending.status] += 1
            if told := wrong(ending, allowed):
                faults[what] += 1
                print(f"{what}: {line}: {told}", file=sys.stderr)
    print(table(COLUMNS, [[what, sum(counts.values()), _told(counts), faults[what]]
                          for what, counts in statuses.items()]))


def _told(counts: Counter[int]) -> str:
    return ", ".join(f"{status if status >= 0 else f'by signal {-status}'} ({count}x)"
                     for status, count in sorted(counts.items()))


if __name__ == "__main__":
    scripts.Asked(__doc__).parse_args()
    main()
