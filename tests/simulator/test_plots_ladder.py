"""The ladder: bars where the frame says, one panel an order, a look for every switch, the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from simulator.errors import InputError
from simulator.plots import ladder_figure, plot_ladder, save_figure
from simulator.plots.ladder import ARTEFACT, COLOURS
from simulator.studies.switches import ARTEFACTS, HABITS
from simulator.studies.why_records import COLUMNS

ROWS = [("one", "run_to", "an artefact", 0.5, 1.0, 2.0, 2.0), ("one", "granularity", "slots", 1.0, 4.0, 4.0, 3.0),
        ("one", "memory", "blocks", 4.0, 2.0, 0.5, 1.0), ("one", "prefix", "prefixes", 2.0, 2.0, 1.0, 1.0),
        ("other", "memory", "blocks", 1.0, 2.0, 2.0, 1.0)]
FRAME = pd.DataFrame(ROWS, columns=list(COLUMNS))


def test_bars_reach_from_what_was_there_to_what_there_is() -> None:
    ax = plot_ladder(FRAME[FRAME["order"] == "one"])
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    assert bars == [(0.5, 1.0), (1.0, 4.0), (2.0, 4.0), (2.0, 2.0)], "a switch that loses goes to the left"
    assert [text.get_text() for text in ax.texts][:4] == ["2.00x", "2.00x in steps", "4.00x", "3.00x in steps"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["an artefact", "slots", "blocks", "prefixes"]
    assert ax.get_xscale() == "log"
    assert ax.get_xlim()[0] < 0.5
    assert ax.get_xlim()[1] > 4


def test_every_switch_has_a_colour_of_its_own_and_an_artefact_has_none() -> None:
    assert set(COLOURS) == set(HABITS)
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert not set(COLOURS) & set(ARTEFACTS)
    first = plot_ladder(FRAME[:2]).patches
    assert (first[0].get_hatch(), first[1].get_hatch()) == (ARTEFACT["hatch"], None)


def test_a_panel_an_order_on_one_axis(tmp_path: Path) -> None:
    figures = [ladder_figure(FRAME, "Title", "times") for _ in range(2)]
    panels = figures[0].axes
    assert [ax.get_title(loc="left") for ax in panels] == ["One", "Other"]
    assert panels[0].get_xlim() == panels[1].get_xlim()
    one, other = (save_figure(figure, tmp_path / f"{at}.svg").read_bytes() for at, figure in enumerate(figures))
    assert one == other


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        ladder_figure(FRAME[:0])
