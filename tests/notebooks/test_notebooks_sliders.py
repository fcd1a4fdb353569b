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

import pytest
from browser import Browser, browser
from stored import FOLDER

PATIENCE = 90
"""Seconds until the page must be there; it runs the whole notebook first."""
DESK, PHONE = 1200, 390
RATE, SPREAD = 3, 4
"""Places of two of the sliders."""
KEYS = {"Home": 36, "ArrowLeft": 37, "ArrowRight": 39}
HANDLES = "document.querySelectorAll('.noUi-handle')"
SHOWN = """(() => {
    const output = document.querySelector('.widget-output'), picture = output && output.querySelector('img')
    const cells = output && [...output.querySelectorAll('td')].map(cell => cell.textContent)
    return picture && cells && cells.includes('slots') ? [picture.src, cells] : null
})()"""
"""The picture and the cells of its table, once both are there."""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(None in (find_spec("voila"), find_spec("ipywidgets")),
                                                   reason="needs the extra 'notebooks'")]
Shown = tuple[str, dict[str, tuple[str, str]]]
"""The picture, and what the table says of static and vllm, by row."""


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
def page(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Browser]:
    """The notebook, with its sliders and its first picture."""
    with browser(tmp_path_factory.mktemp("profile")) as found:
        found.open(request.getfixturevalue("address"), DESK)
        another(found, "")
        yield found


def another(page: Browser, picture: str) -> Shown:
    """What is shown, as soon as it is another picture with a whole table below."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if (found := page.ask(SHOWN)) and found[0] != picture:
            cells = found[1]
            return found[0], {cells[at]: (cells[at + 1], cells[at + 2]) for at in range(0, len(cells), 3)}
        time.sleep(0.1)
    pytest.fail("no other picture comes")


def press(page: Browser, slider: int, key: str) -> Shown:
    """Press a key on a slider. Returns what is shown then."""
    before, _ = another(page, "")
    page.ask(f"{HANDLES}[{slider}].focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])
    return another(page, before)


def test_there_are_five_sliders_and_a_table_of_two_policies(page: Browser) -> None:
    assert page.ask(f"{HANDLES}.length") == 5
    assert another(page, "")[1]["finished"] == ("2,000", "2,000")
    assert "Traceback" not in page.ask("document.body.innerText")


def test_a_slider_changes_the_picture_and_the_figures(page: Browser) -> None:
    first = another(page, "")
    faster = press(page, RATE, "ArrowRight")
    assert float(faster[1]["requests/s"][1]) > 1.1 * float(first[1]["requests/s"][1])
    assert press(page, RATE, "ArrowLeft") == first


def test_with_equal_answers_static_batching_keeps_up(page: Browser) -> None:
    static, vllm = map(float, another(page, "")[1]["requests/s"])
    assert static < 0.75 * vllm
    static, vllm = map(float, press(page, SPREAD, "Home")[1]["requests/s"])
    assert static > 0.9 * vllm


def test_on_a_phone_nothing_runs_over_the_edge(page: Browser) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=PHONE, height=844, deviceScaleFactor=1, mobile=True)
    assert page.ask("document.documentElement.scrollWidth") <= PHONE
