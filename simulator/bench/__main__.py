"""The fresh process of one measurement: the question is its argument, the answer one line of JSON on stdout."""

from __future__ import annotations

import json
import sys

from simulator.bench.measuring import measure
from simulator.bench.workloads import Case
from simulator.errors import InputError, PolicyError, StalledError
from simulator.policies.loading import fault_in_policy_file


def main(question: str) -> None:
    """Measure a case; what a policy or a value is to blame for is an answer, too."""
    asked = json.loads(question)
    try:
        answer = measure(Case(**asked["case"]), asked["repeat"])._asdict()
    except (InputError, PolicyError, StalledError) as error:
        answer = {"error": str(error)}
    except Exception as error:
        if not (blamed := fault_in_policy_file(error)):
            raise
        answer = {"error": blamed}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
