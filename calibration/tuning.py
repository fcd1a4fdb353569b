"""The one number of a profile that is tuned on a recorded run: the host time of a step.

It is moved until the mean time per output token of the even requests is met. The odd requests are left for the test.
"""

from dataclasses import replace
from typing import Any

from cost_models import Profile
from cost_models.profile import Host
from simulator.engine_runs import EngineRun
from simulator.validation import validate

MOST_MS = 10.0
STEP_MS = 0.01
"""As fine as the answer is."""


def tuned_host(profile: Profile, run: EngineRun, **options: Any) -> Host:
    """Host time with which the simulated run has the recorded mean TPOT of its even requests.

    `options` are those of `simulator.validation.validate`. No host time is below 0 or above 10 ms a step.
    """
    low, high = 0, round(MOST_MS / STEP_MS)
    while low < high:
        middle = (low + high) // 2
        host = Host("measured", round(middle * STEP_MS, 6))
        found = validate(replace(profile, host=host), run, rows="even", **options).figures["mean_tpot_ms"]
        if found.simulated < found.recorded:
            low = middle + 1
        else:
            high = middle
    return Host("measured", round(low * STEP_MS, 6))
