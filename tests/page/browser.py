"""Chromium without a window, driven over a pipe: pages are opened, used and photographed.

The protocol is Chromium's own (chromedevtools.github.io/devtools-protocol), its messages JSON with
a zero byte behind each. It goes over two pipes that the child inherits as descriptors 3 and 4, so
no port listens.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_SECONDS = 120.0  # only a test that fails takes so long
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"),
)

_AS_3_AND_4 = """import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class PageError(Exception):
    """What the browser, or a script in the page, refused."""


def program() -> str | None:
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Browser:
    """One window. `problems` has what pages wrote to the console as errors, and what they tried to
    fetch."""

    def __init__(self, argv: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="tstorm-chromium-")
        self._left = b""
        self._number = 0
        self._session: str | None = None
        self._loaded = False
        self._own = "file:"  # begin of addresses that a page may ask for
        self.problems: list[str] = []
        self._start(argv)
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def _start(self, argv: str) -> None:
        theirs, self._out = os.pipe()
        self._in, answers = os.pipe()
        # Numbers that cannot be those that the child is to have.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs, answers)]
        words = [sys.executable, "-c", _AS_3_AND_4, *map(str, ends)]
        self._process = subprocess.Popen(
            [*words, argv, *_FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=ends, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (theirs, answers, *ends):
            os.close(end)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._profile, ignore_errors=True)  # its children may still write there

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- the protocol -----------------------------------------------------------------------------

    def call(self, method: str, **values: Any) -> dict[str, Any]:
        """The answer. PageError."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": values}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            told = self._next()
            if told.get("id") == self._number:
                if "error" in told:
                    raise PageError(f"{method}: {told['error']['message']}")
                result: dict[str, Any] = told["result"]
                return result
            self._note(told)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._in], [], [], deadline - time.monotonic())
            data = os.read(self._in, 1 << 20) if ready else b""
            if not data:
                raise PageError("Chromium said nothing, or has ended")
            self._left += data
        line, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, told: dict[str, Any]) -> None:
        method, values = told.get("method"), told.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.problems.append(values["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = values["request"]["url"]
            if not url.startswith(("file:", "blob:", "about:", self._own)):
                self.problems.append(f"it asked for {url}")

    # -- what one does with a page ----------------------------------------------------------------

    def open(
        self,
        page: Path,
        width: int = 1280,
        height: int = 900,
        *,
        dark: bool = False,
        scale: float = 1,
    ) -> None:
        """Returns when it is loaded."""
        self.resize(width, height, scale)
        self.theme(dark=dark)
        self._own = "file:"
        self._go_to(page.resolve().as_uri())

    def open_served(self, link: str) -> None:
        """The same for a page of a server, which may be asked for more."""
        self.resize(1280, 900)
        self.theme(dark=False)
        self._own = link.partition("#")[0]
        self._go_to(link)

    def _go_to(self, link: str) -> None:
        self.problems.clear()
        self._loaded = False
        self.call("Page.navigate", url=link)
        while not self._loaded:
            self._note(self._next())
        self.settle()

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        """`scale`: pixels of a photograph for one of the page's."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=scale, mobile=width < 600,
        )  # fmt: skip

    def theme(self, *, dark: bool) -> None:
        value = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": value}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def run(self, script: str) -> Any:
        """What an expression is, as JSON; a promise is awaited. PageError."""
        told = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in told:
            raise PageError(str(told["exceptionDetails"]))
        return told["result"].get("value")

    def settle(self) -> None:
        """Until what was asked for is drawn: two frames."""
        frame = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
        self.run(f"{frame}.then(() => {frame})")

    def wait(self, condition: str) -> None:
        """Until an expression is true. PageError after the deadline."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > deadline:
                raise PageError(f"never came true: {condition}")
            self.settle()

    def key(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def mouse(self, kind: str, x: float, y: float) -> None:
        """`kind`: mouseMoved, mousePressed or mouseReleased."""
        button = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)
        self.settle()

    def place(self, selector: str) -> tuple[float, float, float, float]:
        """Left, top, width and height of an element, scrolled into sight."""
        words = json.dumps(selector)
        self.run(f"document.querySelector({words}).scrollIntoView({{block: 'center'}})")
        self.settle()
        box = self.run(f"document.querySelector({words}).getBoundingClientRect().toJSON()")
        return box["x"], box["y"], box["width"], box["height"]

    def photograph(self) -> bytes:
        """PNG, of what is in sight."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
