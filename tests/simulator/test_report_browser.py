"""The report in a real browser: it fits a phone and a desk, sorts, shows values, fetches nothing, and prints."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, browser
from worlds import trace_of

import simulator as sim
from cost_models import Constant
from simulator.cli.main import main
from simulator.report import report

PHONE, DESK = 390, 1280
ROWS = [(0, 5, 1 + 37 * row % 50) for row in range(60)]
FIRST = "[...document.querySelector('table').tBodies[0].rows].map(row => row.cells[1].textContent)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the report of a comparison."""
    directory = tmp_path_factory.mktemp("compared")
    assert main(["compare", "--num-prompts", "40", "--quiet", "--json", "-o", str(directory)]) == 0
    (directory / "page.html").write_text(report(directory))
    return (directory / "page.html").as_uri()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_it_fits_the_window_and_fetches_nothing(shown: Browser, page: str, width: int) -> None:
    shown.open(page, width)
    assert shown.ask("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert shown.ask("document.fonts.size") == 0
    assert shown.requests() == [page]
    assert shown.complaints() == []
    sizes = "[...document.querySelectorAll('p, li, td, th, dd')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    assert min(shown.ask(sizes)) >= 12


def test_a_figure_fits_a_phone_and_scrolls_by_itself_once_it_is_enlarged(shown: Browser, page: str) -> None:
    shown.open(page, PHONE)
    wide = "[...document.querySelectorAll('.drawing')].map(box => box.scrollWidth > box.clientWidth)"
    assert shown.ask(wide) == [False, False, False]
    button = "document.querySelector('figure button')"
    shown.ask(f"{button}.click()")
    assert shown.ask(wide) == [True, False, False]
    assert shown.ask("document.querySelector('.drawing svg').clientWidth") >= 600
    shown.ask(f"{button}.click()")
    assert shown.ask(wide) == [False, False, False]
    shown.open(page, DESK)
    assert shown.ask(wide) == [False, False, False]
    assert not shown.ask(f"{button}.checkVisibility()")


def test_the_answer_of_a_comparison_is_in_sight_on_a_phone(shown: Browser, page: str) -> None:
    shown.open(page, PHONE)
    first = "[...document.querySelectorAll('.scroll:not(.drawing)')].slice(0, 3)"
    assert shown.ask(f"{first}.map(box => box.scrollWidth <= box.clientWidth)") == [True, True, True]
    labels = f"{first}.flatMap(box => [...box.querySelectorAll('tbody th')])"
    assert max(shown.ask(f"{labels}.map(name => name.clientHeight)")) <= 130


def test_what_a_wide_table_is_of_stays_in_sight(shown: Browser, page: str) -> None:
    shown.open(page, PHONE)
    wide = "[...document.querySelectorAll('.scroll')].find(box => box.scrollWidth > box.clientWidth)"
    places = f"""(() => {{ const box = {wide}; box.scrollLeft = 60; return [box.scrollLeft, ...['caption span',
        'thead td', 'tbody th'].map(name => box.querySelector(name).getBoundingClientRect().left)] }})()"""
    assert shown.ask(places) == [60, 16, 16, 16]


def test_a_sweep_fits_a_desk(shown: Browser, tmp_path: Path) -> None:
    assert main(["sweep", "--num-prompts", "20", "--vary", "max_num_seqs=4,8", "--vary", "max_num_batched_tokens=512",
                 "--quiet", "--json", "--goodput", "ttft:500,tpot:50", "-o", str(tmp_path / "swept")]) == 0
    (tmp_path / "page.html").write_text(report(tmp_path / "swept"))
    shown.open((tmp_path / "page.html").as_uri(), DESK)
    assert shown.ask("[...document.querySelectorAll('.scroll')].every(box => box.scrollWidth <= box.clientWidth)")
    shown.open((tmp_path / "page.html").as_uri(), PHONE)
    assert shown.ask("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_click_sorts_a_table_by_size(shown: Browser, page: str) -> None:
    shown.open(page, DESK)
    sizes = "['9.2 s', '900 ms', '-', '1,000', '20%', 'x', '', '1.2.3'].sort(compare)"
    assert shown.ask(sizes) == ["20%", "900 ms", "1,000", "9.2 s", "", "-", "1.2.3", "x"]
    assert shown.ask("['2.87x', '1.00x', '2.71x', '10.5x', '2.69x'].sort(compare)") == [
        "1.00x", "2.69x", "2.71x", "2.87x", "10.5x"]
    before = shown.ask(FIRST)
    shown.ask("document.querySelector('thead button').click()")
    assert shown.ask("document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "ascending"
    after = shown.ask(FIRST)
    assert sorted(after) == sorted(before)
    assert after != before
    shown.ask("document.querySelector('thead button').click()")
    assert shown.ask(FIRST) == after[::-1]


def test_a_pointer_on_a_curve_shows_its_value(shown: Browser, page: str) -> None:
    shown.open(page, DESK)
    assert shown.ask("document.querySelectorAll('.mark').length") > 100
    shown.ask("document.querySelector('.mark').scrollIntoView({block: 'center'})")
    x, y, words = shown.ask("(() => { const mark = document.querySelector('.mark'), at = mark.getBoundingClientRect();"
                            "return [at.x + at.width / 2, at.y + at.height / 2, mark.textContent] })()")
    shown.point_at(x, y)
    assert shown.ask("[document.getElementById('value').hidden, document.getElementById('value').textContent]") == [
        False, words]
    shown.point_at(3, 3)
    assert shown.ask("document.getElementById('value').hidden")


def test_without_scripts_all_of_it_can_be_read(shown: Browser, page: str) -> None:
    shown.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        shown.open(page, DESK)
        assert shown.ask("document.querySelectorAll('table').length") > 8
        assert shown.ask("document.querySelectorAll('thead button').length") == 0
        assert shown.ask("document.body.innerText.includes('Time to first token')")
    finally:
        shown.call("Emulation.setScriptExecutionDisabled", value=False)


def test_it_prints(shown: Browser, page: str) -> None:
    shown.open(page, DESK)
    paper = b64decode(shown.call("Page.printToPDF", printBackground=True)["data"])
    assert paper.startswith(b"%PDF")
    assert 3 <= paper.count(b"/Type /Page\n") <= 14


def test_a_run_shows_itself_in_a_notebook_cell(shown: Browser, tmp_path: Path) -> None:
    result = sim.simulate(trace_of(ROWS), "vllm", cost_model=Constant(1000), kv_capacity_tokens=100_000)
    cell = tmp_path / "cell.html"
    cell.write_text(f"<!doctype html><meta charset=utf-8>{result._repr_html_()}{result.setup.trace._repr_html_()}")
    shown.open(cell.as_uri(), DESK)
    assert shown.ask("[...document.querySelectorAll('svg')].map(svg => svg.getBBox().width > 300)") == [True, True]
    assert shown.complaints() == []
