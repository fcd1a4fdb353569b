"""Sketches: a few numbers as a small inline SVG, for notebooks. Text takes the colour of the page around it.

They stand here so that a trace can draw itself; they know no trace.
"""

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, ROW = 420, 84, 20
"""Units of a sketch: its width, the height of a curve, the height of a bar and the space around it."""
NAMES, NUMBERS = 110, 80
"""Room beside bars, for their names and their values."""
BLUE, ORANGE = "#3a8fc4", "#d9822b"
"""They are told apart, and stand out from a white page and from a black one."""


def bars(values: Mapping[str, float], what: str) -> str:
    """A bar for each value of 0 or more, with its name and its number; `what` says what they are."""
    longest = max(values.values(), default=0.0) or 1.0
    rows = []
    for at, (name, value) in enumerate(values.items()):
        length, middle = (WIDTH - NAMES - NUMBERS) * value / longest, ROW * at + 14
        rows.append(_text(NAMES - 6, middle, name, "end")
                    + f'<rect x="{NAMES}" y="{ROW * at + 3}" width="{length:.1f}" height="{ROW - 6}" fill="{BLUE}"/>'
                    + _text(NAMES + length + 6, middle, f"{value:,.4g}", "start"))
    return _svg("".join(rows), ROW * len(values), what)


def steps(heights: Sequence[float], what: str) -> str:
    """A filled curve of equal steps from 0 up; `what` says what it shows, and stands above."""
    top = max(heights, default=0.0) or 1.0
    points = [f"0,{HEIGHT}"]
    for at, height in enumerate(heights):
        y = f"{HEIGHT - (HEIGHT - 18) * height / top:.1f}"
        points += [f"{WIDTH * at / len(heights):.1f},{y}", f"{WIDTH * (at + 1) / len(heights):.1f},{y}"]
    shape = f'<polygon points="{" ".join([*points, f"{WIDTH},{HEIGHT}"])}" fill="{BLUE}"/>'
    return _svg(shape + _text(0, 11, what, "start"), HEIGHT, what)


def dots(points: Sequence[tuple[float, float]], marked: Sequence[bool], what: str) -> str:
    """Points from (0, 0) to the largest of each coordinate, some of them marked; `what` stands above."""
    right, top = (max((point[side] for point in points), default=0.0) or 1.0 for side in (0, 1))
    drawn = [f'<circle cx="{6 + (WIDTH - 12) * x / right:.1f}" cy="{HEIGHT - 5 - (HEIGHT - 28) * y / top:.1f}" r="3.5" '
             f'fill="{ORANGE if mark else BLUE}"/>' for (x, y), mark in zip(points, marked, strict=True)]
    return _svg("".join(drawn) + _text(0, 11, what, "start"), HEIGHT, what)


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return (f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-size="11" font-family="sans-serif" '
            f'fill="currentColor">{escape(words)}</text>')


def _svg(inside: str, height: int, what: str) -> str:
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(what)}" width="{WIDTH}" '
            f'height="{height}" viewBox="0 0 {WIDTH} {height}">{inside}</svg>')
