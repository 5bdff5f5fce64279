"""`tstorm run --ui`: the page's server as a process of its own beside the command.

It is started when the run has a directory, and ends by itself when the run has ended and browsers
have been told. What becomes of it changes nothing for the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from runtime.driver.progress import Progress

_END_SECONDS = 20.0  # for the page of a run that has ended
_MOST = 4096


class PageBeside:
    """`with PageBeside(port) as page:` and `page.seen(record)` with each record of progress."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""
        self._told = False

    def seen(self, record: Progress) -> Progress:
        """The record, with the link to show where that has come."""
        if self._process is None:
            self._process = _started(record.directory, self._port)
        link = "" if self._told else self._link(self._process)
        if not link:
            return record
        self._told = True
        words = "; ".join(filter(None, (record.message, f"its page: {link}")))
        return replace(record, message=words, news=True)

    def _link(self, process: subprocess.Popen[bytes]) -> str:
        """'' before it is there."""
        assert process.stdout is not None
        with suppress(BlockingIOError):
            self._said += os.read(process.stdout.fileno(), _MOST)
        line, end, _ = self._said.partition(b"\n")
        return line.decode("utf-8", "replace") if end else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._process
        if process is None:
            return
        try:
            process.wait(_END_SECONDS if error is None else 1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _started(directory: str, port: int) -> subprocess.Popen[bytes]:
    """A session of its own: Ctrl-C is for the run, whose end the page still shows."""
    words = ["ui", directory, "--port", str(port), "--with-run"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tstorm", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    return process
