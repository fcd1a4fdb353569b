"""How often each interval holds the truth, and what leaving out a warm-up does to a mean: the README's table.

``python tests/tables/intervals.py`` prints it, in about a minute of CPU time. The queues are those of
tests/simulator/statistics/lindley.py, whose truth is known; a 95% interval is to hold it in 93% to 97% of the runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import scripts
from markdown import table

sys.path.insert(0, str(Path(__file__).parents[1] / "simulator" / "statistics"))

from lindley import CASES, RULES, STARTS, bias_of


def main() -> None:
    rows = []
    for case in CASES:
        print(case.interval, case.queue, file=sys.stderr)
        held, errors = case.outcomes()
        rows.append((case.interval, case.queue, f"{len(held):,}", f"{np.mean(held):.1%}",
                     f"{np.mean(errors):+.3f} ± {np.std(errors) / len(errors) ** 0.5:.3f}"))
    print(table(["interval", "queue", "intervals", "hold the truth", "bias of the estimate"], rows))
    print()
    print(table(["warm-up", "start", "values a run", "bias, all values", "bias, warm-up left out", "left out, mean",
                 "of 1,000 runs never settle"],
                [bias_of(rule, start, values) for rule in RULES for start in STARTS for values in (500, 2_000, 8_000)]))


if __name__ == "__main__":
    scripts.Asked(__doc__).parse_args()
    main()
