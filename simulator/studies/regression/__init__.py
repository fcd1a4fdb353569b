"""regression: has a change made serving worse? A run beside a saved baseline, metric by metric; in a test three lines:

    from simulator.studies import regression

    def test_serving_is_what_it_was():
        regression.regress("baselines/chat.json").check()

It compares data, never pictures. Read `side` first, then `recorded`, `baseline`, `tolerances`, `comparing`, `causes`.
"""

from simulator.studies.regression.baseline import Baseline, new_baseline, read_baseline
from simulator.studies.regression.found import (
    CHANGED,
    NOTHING,
    PASS,
    REGRESSION,
    WRONG,
    Compared,
    Regression,
)
from simulator.studies.regression.regress import accept, regress, save

__all__ = ["CHANGED", "NOTHING", "PASS", "REGRESSION", "WRONG", "Baseline", "Compared", "Regression", "accept",
           "new_baseline", "read_baseline", "regress", "save"]
