"""What all tests share: it puts `worlds` and `invariants` on the path, and makes hypothesis repeatable."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from worlds import SHARED

os.environ.setdefault("SOURCE_DATE_EPOCH", "1800000000")    # two results of one run have the same bytes
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)    # whoever starts the tests may ignore it; what they start shall not
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None, print_blob=False,
                          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recordings and published data beside the project; a test that needs it is skipped without it."""
    if not SHARED.is_dir():
        pytest.skip("needs the recordings in ../shared, which are not here")
    return SHARED
