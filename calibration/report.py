"""A calibration as a page and a picture: what was timed, how well the fit says it again, and what is odd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

import numpy as np

from calibration.rows import Kind
from cost_models.profile import Profile, RawRow
from simulator.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calibration.fitting import Fitted
    from calibration.run import Calibration
    from calibration.validation import Validation

BAND = 0.1
"""Share of the measured time that the picture marks on either side."""


def error_table(fitted: Fitted) -> Table:
    """Errors of both forms on whole steps that the fit has not seen, in percent."""
    rows = [(f"{form}, {kind}", f"{found.mape_percent:.1f}%", f"{found.p95_percent:.1f}%",
             "-" if found.bias_percent is None else f"{found.bias_percent:+.1f}%", str(found.points))
            for form, errors in fitted.errors.items() for kind, found in vars(errors).items() if found]
    note = f"The profile has the form with the smaller mean error: {fitted.fit.form}."
    return Table("Error on whole steps, held out", ("", "mean", "p95", "bias", "steps"), tuple(rows), note)


def report(found: Calibration, picture: str, validation: Validation | None = None) -> str:
    """The page, in Markdown. `picture` is the name of the file beside it that holds `figure`."""
    parts = [f"# {found.profile.name}", *_facts(found), _markdown(error_table(found.fitted)),
             f"![Measured against predicted step times]({picture})"]
    if validation is not None:
        parts.append(_markdown(validation.table()))
    return "\n\n".join([*parts, _markdown(_kernels(found.profile))]) + "\n"


def _facts(found: Calibration) -> Iterator[str]:
    profile, device, software = found.profile, found.profile.device, found.profile.software
    assert device is not None
    assert software is not None
    yield f"{profile.origin.source}, {profile.origin.date}. {profile.origin.method}."
    yield (f"Device: {_listed(device)}. Software: {_listed(software)}. Host: {profile.host.h0_ms:.4g} ms a step + "
           f"{profile.host.h1_ms:.4g} ms a sequence.")
    yield " ".join([f"Attention: {found.chosen.path.name}, pages of {found.chosen.page_size} tokens.",
                    *(f"Passed over: {name} ({why})." for name, why in found.chosen.refused.items())])
    copy, matmul = (next(row for row in profile.raw if row.kernel == kernel) for kernel in ("copy", "matmul"))
    flagged = [row for row in profile.raw if row.flag]
    yield (f"Ceilings: copy {(copy.bytes or 0) / copy.median_us / 1e3:,.0f} GB/s, matrix product "
           f"{(matmul.flops or 0) / matmul.median_us / 1e6:,.2f} TFLOP/s. Between passes the median of a point moves "
           f"by {100 * found.drift:.1f}%. {len(flagged)} of {len(profile.raw)} points are flagged as odd.")


def _listed(facts: object) -> str:
    return ", ".join(f"{name} {value}" for name, value in vars(facts).items() if value is not None)


def _kernels(profile: Profile) -> Table:
    """How many points each kernel has, and how near the ceilings they come."""
    kernels = sorted({row.kernel for row in profile.raw})
    rows = []
    for kernel in kernels:
        own = [row for row in profile.raw if row.kernel == kernel]
        rows.append((kernel, str(len(own)), f"{min(row.median_us for row in own):,.1f}",
                     f"{max(row.median_us for row in own):,.1f}", f"{_spread(own):.1f}%"))
    return Table("What was timed", ("kernel", "points", "fastest, us", "slowest, us", "IQR, median"), tuple(rows))


def _spread(rows: list[RawRow]) -> float:
    return 100 * float(np.median([row.iqr_us / row.median_us for row in rows]))


def _markdown(table: Table) -> str:
    lines = [table.header, ("---", *("---:" for _ in table.header[1:])), *table.rows]
    grid = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return "\n\n".join([f"## {table.title}", grid, *([table.note] if table.note else [])])


def figure(fitted: Fitted) -> Figure:
    """Predicted over measured milliseconds of all whole steps, with the line of equality and a band about it."""
    from simulator.plots.style import BLUE, FAINT, GREEN, SOFT, VERMILION, new_axes, our_style, plain_numbers
    with our_style():
        axes, steps = new_axes(4.2), fitted.steps
        ends = np.array([0.8 * steps.ms.min(), 1.25 * steps.ms.max()])
        axes.fill_between(ends, (1 - BAND) * ends, (1 + BAND) * ends, color=FAINT, lw=0, label=f"within {BAND:.0%}")
        axes.plot(ends, ends, color=SOFT, lw=0.8)
        for kind, colour in zip(get_args(Kind), (BLUE, VERMILION, GREEN), strict=True):
            own = steps.kind(kind)
            axes.plot(steps.ms[own], fitted.predicted[own], "o", ms=3.5, color=colour, label=kind)
        axes.set(xscale="log", yscale="log", xlabel="measured step, ms", ylabel="predicted step, ms",
                 title=f"Whole steps of the engine, measured and predicted ({fitted.fit.form})")
        for axis in (axes.xaxis, axes.yaxis):
            plain_numbers(axis)
            axis.set_minor_formatter(lambda value, _: f"{value:g}")
        axes.legend(loc="upper left")
        return axes.figure    # type: ignore[return-value]
