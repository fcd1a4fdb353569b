"""A headless Chromium for tests, spoken to over a pipe in its own protocol: pages are laid out, clicked and watched.

It needs no package, only the browser; a test that asks for it where there is none is skipped.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60


class Browser:
    """One page of a browser.

    Attributes:
        events: Everything that the browser told without being asked.
    """

    def __init__(self, process: subprocess.Popen[bytes], into: int, out_of: int) -> None:
        self.events: list[dict[str, Any]] = []
        self._process, self._into, self._out_of = process, into, out_of
        self._numbers, self._rest = count(1), b""
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer."""
        number = next(self._numbers)
        session = {"sessionId": self._session} if self._session else {}
        os.write(self._into, json.dumps({"id": number, "method": method, "params": params, **session}).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == number:
                assert "error" not in message, (method, message["error"])
                return message["result"]

    def open(self, url: str, width: int, height: int = 900) -> None:
        """Show a page in a window of this size, and wait until it has loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def point_at(self, x: float, y: float) -> None:
        """Move the mouse there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def complaints(self) -> list[str]:
        """What the page's console and its content policy had to say."""
        told = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [json.dumps(event["params"])[:300] for event in self.events if event["method"] in told]

    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        return [event["params"]["request"]["url"] for event in self.events
                if event["method"] == "Network.requestWillBeSent"]

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._out_of], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self._out_of, 1 << 16) if ready else b""
            assert chunk, "the browser says nothing"
            self._rest += chunk
        text, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browser(scratch: Path) -> Iterator[Browser]:
    """A browser that lives as long as the block; `scratch` is an empty directory for its profile."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is here")
    (theirs, into), (out_of, back) = os.pipe(), os.pipe()
    process = subprocess.Popen(    # it reads from 3 and writes to 4
        ["bash", "-c", f'exec "$@" 3<&{theirs} 4>&{back}', "bash", program, "--headless", "--no-sandbox",
         "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", f"--user-data-dir={scratch}"],
        pass_fds=(theirs, back), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(theirs)
    os.close(back)
    try:
        yield Browser(process, into, out_of)
    finally:
        process.kill()
        process.wait()
        os.close(into)
        os.close(out_of)
