"""Marks: the values of curves lie where the curves are drawn, and say what the axes say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from simulator.plots import svg_of
from simulator.plots.style import new_figure


def marked(figure) -> list[tuple[float, float, str]]:
    """Place and words of each mark of an SVG."""
    found = re.findall(r'<circle class="mark" cx="([\d.]+)" cy="([\d.]+)" .*?<title>(.*?)</title>', svg_of(figure))
    return [(float(x), float(y), words) for x, y, words in found]


def test_a_mark_lies_on_its_point() -> None:
    figure = new_figure(3)
    ax = figure.add_subplot()
    ax.plot([0, 1, 2], [0, 5, 10], label="a<b: more")
    ax.set(xlabel="time (s)", ylabel="requests")
    spots = marked(figure)
    assert [words for _, _, words in spots] == [
        "a&lt;b; requests: 0; time (s): 0", "a&lt;b; requests: 5; time (s): 1", "a&lt;b; requests: 10; time (s): 2"]
    point = r"([\d.]+) ([\d.]+) \n"
    drawn = re.search(f'<path d="M {point}L {point}L {point}" clip', svg_of(figure))
    assert drawn
    assert [value for x, y, _ in spots for value in (x, y)] == pytest.approx([*map(float, drawn.groups())], abs=0.1)


def test_what_has_no_name_has_no_marks() -> None:
    figure = new_figure(3)
    ax = figure.add_subplot()
    ax.plot([0, 1], [0, 1])
    ax.axhline(0.5, label="limit")
    assert marked(figure) == []
    assert "class=\"marks\"" not in svg_of(figure)


def test_steps_and_scattered_points_are_marked_and_long_curves_thinned() -> None:
    figure = new_figure(3)
    ax = figure.add_subplot()
    ax.stairs([1, 3], [0, 2, 4], label="steps")
    ax.scatter([1, 2], [2, 1], label="dots")
    ax.plot(np.arange(1000), np.zeros(1000), label="long")
    words = [words for _, _, words in marked(figure)]
    assert [word for word in words if word.startswith("steps")] == ["steps; y: 1; x: 1", "steps; y: 3; x: 3"]
    assert len([word for word in words if word.startswith("dots")]) == 2
    long = [word for word in words if word.startswith("long")]
    assert (len(long), long[0], long[-1]) == (80, "long; y: 0; x: 0", "long; y: 0; x: 999")


def test_what_lies_outside_the_axes_is_not_marked() -> None:
    figure = new_figure(3)
    figure.add_subplot().plot([0, 1, 2], [0, 1, np.nan], label="a")
    figure.axes[0].set_xlim(0.5, 2)
    assert [words for _, _, words in marked(figure)] == ["a; y: 1; x: 1"]
