"""The sliders of the what-if notebook in a real browser: one is moved, and the picture and its figures change."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from stored import FOLDER

PATIENCE = 90
"""Seconds until the page must be there; it runs the whole notebook first."""
WIDE, NARROW = {"width": 1200, "height": 1600}, {"width": 390, "height": 844}
REDRAWN = """([picture, before, table, cells]) => {
    const now = document.querySelector(picture)
    return now && now.src !== before && document.querySelectorAll(table).length === cells
}"""
HANDLES, PICTURE, CELLS = ".noUi-handle", ".jp-OutputArea img[src*='svg']", ".jp-OutputArea td"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("voila") is None or find_spec("ipywidgets") is None, reason="needs 'notebooks'"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="needs the extra 'browser'"),
    pytest.mark.skipif(which("chromium") is None, reason="needs chromium"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where Voila serves the notebook, on this machine only."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("voila")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([sys.executable, "-m", "voila", str(FOLDER / "04_what_if.ipynb"), "--no-browser",
                                   f"--port={port}", "--Voila.ip=127.0.0.1"], stdout=log, stderr=log,
                                  env={**os.environ, "JUPYTER_CONFIG_DIR": str(folder), "IPYTHONDIR": str(folder)})
    try:
        wait_for(port, server, folder / "log")
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait(PATIENCE)


def wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    """Until somebody listens there."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"voila does not answer: {log.read_text()}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Any:
    """The notebook, with its sliders and its first picture."""
    opened = browser.new_page(viewport=WIDE)
    opened.set_default_timeout(1000 * PATIENCE)
    opened.goto(address)
    opened.wait_for_selector(PICTURE)
    return opened


def figures(page: Any) -> dict[str, tuple[str, str]]:
    """What the table says of each policy, by row."""
    cells = page.locator(CELLS).all_inner_texts()
    return {cells[at]: (cells[at + 1], cells[at + 2]) for at in range(0, len(cells), 3)}


def move(page: Any, slider: int, key: str) -> tuple[str, str]:
    """Press a key on a slider, and wait for another picture with a whole table. Returns the pictures before and after.
    """
    before, cells = page.locator(PICTURE).get_attribute("src"), page.locator(CELLS).count()
    page.locator(HANDLES).nth(slider).press(key)
    page.wait_for_function(REDRAWN, arg=[PICTURE, before, CELLS, cells])
    return before, page.locator(PICTURE).get_attribute("src")


def test_there_are_five_sliders_and_a_table_of_two_policies(page: Any) -> None:
    assert page.locator(HANDLES).count() == 5
    assert figures(page)["finished"] == ("2,000", "2,000")
    assert "Traceback" not in page.inner_text("body")


def test_a_slider_changes_the_picture_and_the_figures(page: Any) -> None:
    before = figures(page)
    one, other = move(page, 3, "ArrowRight")    # more requests a second
    after = figures(page)
    assert one != other
    assert float(after["requests/s"][1]) > 1.1 * float(before["requests/s"][1])
    assert move(page, 3, "ArrowLeft")[1] == one
    assert figures(page) == before


def test_with_equal_answers_static_batching_keeps_up(page: Any) -> None:
    def served() -> list[float]:
        return [float(each) for each in figures(page)["requests/s"]]

    static, vllm = served()
    assert static < 0.75 * vllm
    move(page, 4, "Home")    # no spread
    static, vllm = served()
    assert static > 0.9 * vllm


def test_on_a_phone_nothing_runs_over_the_edge(page: Any) -> None:
    page.set_viewport_size(NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
