"""Band: what an error of the step times would do to a run. It keeps figures and simulates nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.frozen import Kept

BANDED = ("output_throughput", "mean_ttft_ms", "mean_tpot_ms")
"""The figures of a summary that a band is given for."""


@dataclass(frozen=True)
class Band(Kept):
    """The same run with every step shorter, and with every step longer.

    Attributes:
        bias: By how much, as a share of the step.
        shorter: The figures with shorter steps, by the names in BANDED.
        longer: The figures with longer ones.
    """

    bias: float
    shorter: Mapping[str, float | None]
    longer: Mapping[str, float | None]

    def record(self) -> dict[str, Any]:
        """Bias in percent, and the lower and the higher of both values of each figure."""
        found: dict[str, Any] = {"error_band_percent": 100 * self.bias}
        for name in BANDED:
            ends = self.shorter[name], self.longer[name]
            measured = [end for end in ends if end is not None]
            found[f"{name}_low"], found[f"{name}_high"] = min(measured, default=None), max(measured, default=None)
        return found


NO_BAND: dict[str, Any] = dict.fromkeys(["error_band_percent", *(f"{name}_{end}" for name in BANDED
                                                               for end in ("low", "high"))])
"""What a summary says where there is no band."""
