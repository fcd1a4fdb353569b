"""Whether figures can be drawn here."""

from __future__ import annotations

import os

from simulator.errors import InputError


def check_drawing() -> None:
    """Refuse before any work a name in the environment that keeps matplotlib from loading."""
    if backend := os.environ.get("MPLBACKEND"):
        try:
            import matplotlib  # noqa: F401
        except ValueError:
            raise InputError(f"matplotlib does not know MPLBACKEND={backend}: unset it") from None
