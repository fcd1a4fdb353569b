"""The table of versions reads pytest's last line, and the oldest versions are those that pyproject.toml says."""

from __future__ import annotations

import re

import versions


def test_the_last_line_of_pytest() -> None:
    said = "= 2 failed, 4310 passed, 31 skipped, 1 error in 92.10s (0:01:32) ="
    assert versions.counts(said) == {"passed": 4310, "skipped": 31, "failed": 2, "error": 1}
    assert versions.counts("12 passed in 1.0s")["failed"] == 0


def test_each_dependency_has_a_lowest_version() -> None:
    found = dict(line.split("==") for line in versions.oldest())
    assert {"simpy", "numpy", "pandas", "matplotlib", "pyyaml", "pooch", "typer", "rich", "joblib", "filelock",
            "pytest", "hypothesis", "pyarrow", "zstandard"} <= set(found)
    assert found["numpy"] == "1.26"


def test_what_is_here_is_known() -> None:
    assert all(re.match(r"\d+\.\d+", number) for number in versions.here().values())
