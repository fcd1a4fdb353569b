"""Attention over a paged KV cache, through whichever way works on this device and is right.

`PATHS` lists the ways, the most wanted first; `working_path` tries them against the float64 reference in `check`.
"""

from __future__ import annotations

from calibration.attention.base import AttentionPath
from calibration.attention.choosing import PATHS, Chosen, working_path

__all__ = ["PATHS", "AttentionPath", "Chosen", "working_path"]
