"""Scenarios as text: `reading` takes one from a file, `recording` makes the record that every result carries, and
`template` writes the commented file to start from. `values` and `yaml_text` say how strict that is, `named` which files
count.
"""

from __future__ import annotations

from simulator.scenarios.reading import ScenarioFile, read_scenario
from simulator.scenarios.recording import record

__all__ = ["ScenarioFile", "read_scenario", "record"]
