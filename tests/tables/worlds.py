"""The table of drawn worlds: how many of each policy, and what they came to.

    python tests/tables/worlds.py [WORLDS]

WORLDS is how many of each policy and kind, 15 if it is not given; `drawn.play.holds` says what is asked of each.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import scripts
from markdown import table

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))
os.environ.setdefault("SOURCE_DATE_EPOCH", "1800000000")

from drawn.checks import RUN  # noqa: E402
from drawn.play import play  # noqa: E402
from drawn.scenarios import KINDS  # noqa: E402
from invariants import REPLICA  # noqa: E402

from simulator.policies import POLICIES  # noqa: E402

COLUMNS = ("worlds", "requests", "steps", "preemptions", "prompts found", "cancelled", "turned away")
START = 2


def counted(worlds: int) -> dict[str, Counter[str]]:
    """What the worlds of each policy came to, of each kind, and all."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*POLICIES, *KINDS, "all")}
    for name in POLICIES:
        for kind in KINDS:
            found = play(name, kind, worlds, START)
            for row in (name, kind, "all"):
                counts[row].update(found)
        print(f"{name}: {dict(counts[name])}", file=sys.stderr)
    return counts


def main(worlds: int) -> None:
    counts = counted(worlds)
    print(table(("kind of world", *COLUMNS),
                [(row, *(f"{count[column]:,}" for column in COLUMNS)) for row, count in counts.items()]))
    print(f"\nIn each: {len(REPLICA)} invariants of every replica and {len(RUN)} of the run, fast and exact; the same "
          "bytes fast, exact\nand a second time; all metrics and every slot-second as the event log has them.")


if __name__ == "__main__":
    asked = scripts.Asked(__doc__)
    asked.add_argument("worlds", nargs="?", type=scripts.count, default=15,
                       help="of each policy and kind; 15 if not given")
    main(asked.parse_args().worlds)
