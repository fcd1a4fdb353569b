"""A grid that a CPU has timed in a second: the structure of a calibration, never its figures."""

from __future__ import annotations

from dataclasses import replace

from calibration.grid import CPU_QUICK

MINI = replace(CPU_QUICK, copy_bytes=1 << 16, matmul=32, tokens=(1, 8, 16), heads=(1, 4), sequences=(1, 4),
               context=(8, 24), chunk=(8, 16), prior=(0, 16), mixed=CPU_QUICK.mixed[:4], repeats=2,
               steps=((0, 0, 1, 8), (0, 0, 1, 20), (0, 0, 2, 8), (0, 0, 4, 16), (8, 0, 0, 0), (8, 8, 0, 0),
                      (16, 0, 0, 0), (16, 8, 0, 0), (8, 0, 1, 8), (8, 8, 1, 20), (8, 0, 3, 8), (16, 0, 1, 8),
                      (16, 8, 3, 20), (16, 8, 2, 8)))
