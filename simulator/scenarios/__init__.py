"""Scenarios as text: `reading` takes one from a file, `record` is what every result carries, `template` writes the
commented file to start from. `values` and `yaml_text` say how strict that is, `named` which files count.
"""

from __future__ import annotations

from simulator.scenarios.reading import ScenarioFile, read_scenario
from simulator.scenarios.record import record

__all__ = ["ScenarioFile", "read_scenario", "record"]
