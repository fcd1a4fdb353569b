"""Sketches: what they say is what they were given, and text stays text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from traces import Trace
from traces.sketch import BLUE, ORANGE, bars, dots, steps

SVG = "{http://www.w3.org/2000/svg}"


def widths(text: str) -> list[float]:
    return [float(bar.get("width", "")) for bar in ElementTree.fromstring(text).iter(f"{SVG}rect")]


def test_bars_are_as_long_as_their_values() -> None:
    text = bars({"a": 1.0, "b": 4.0, "none": 0.0}, "things")
    one, four, none = widths(text)
    assert (four / one, none) == (4, 0)
    assert re.findall(r">([^<>]+)</text>", text) == ["a", "1", "b", "4", "none", "0"]


def test_steps_reach_the_top_at_their_largest() -> None:
    text = steps([1, 2, 0], "requests")
    points = ElementTree.fromstring(text).find(f"{SVG}polygon")
    assert points is not None
    assert points.get("points") == "0,84 0.0,51.0 140.0,51.0 140.0,18.0 280.0,18.0 280.0,84.0 420.0,84.0 420,84"


def test_dots_are_coloured_by_their_marks() -> None:
    text = dots([(1, 1), (2, 4)], [True, False], "points")
    assert re.findall(r'fill="(#[^"]+)"', text) == [ORANGE, BLUE]


@pytest.mark.parametrize("text", [bars({}, "x"), bars({"a": 0.0}, "x"), steps([], "x"), steps([0.0], "x"),
                                  dots([], [], "x"), bars({"<b>": 1.0}, "a & \"b\""), steps([1], "<i>")])
def test_nothing_and_anything_can_be_drawn(text: str) -> None:
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert root.get("aria-label") in ("x", 'a & "b"', "<i>")


def test_a_trace_shows_its_arrivals_and_its_lengths() -> None:
    trace = Trace("<mine>", np.array([0, 1, 2]) * 10**9, np.array([10, 20, 30]), np.array([1, 2, 3]))
    text = trace._repr_html_()
    assert "Trace &lt;mine&gt;: 3 requests over 2.0 s" in text
    assert "<tr><th>prompt</th><td>10</td><td>20</td><td>30</td><td>20</td></tr>" in text
    assert text.count("<svg") == 1
    assert trace.head(0)._repr_html_() == "<p><b>Trace &lt;mine&gt;: no requests</b></p>"


def test_a_trace_prints_the_words_that_it_shows() -> None:
    trace = Trace("mine", np.array([0, 1, 2]) * 10**9, np.array([10, 20, 30]), np.array([1, 2, 3000]), source="here")
    assert str(trace) == """<Trace mine: 3 requests over 2.0 s, median prompt 20 and output 2 tokens>
requests/s over 2 s; at most 60 in 0.01667 s

tokens  p1  p50    p99   mean
prompt  10   20     30     20
output   1    2  2,940  1,001

here"""
    shown = trace._repr_html_()
    assert all(line.strip("<>").split("  ")[0] in shown for line in str(trace).splitlines())
    assert str(trace.head(0)) == repr(trace.head(0)) == "<Trace mine: no requests>"
