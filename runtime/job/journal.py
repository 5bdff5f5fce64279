"""What the driver says, kept in files: whoever follows the run may come late, or come back.

MESSAGES grows by whole lines and has what must not be missed; PROGRESS is the latest record; FINAL
is there once the run has ended and nothing of it grows any more. Space for FINAL is put aside
(runtime.rundir.reserve), so that a disk that has filled up still gets it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from runtime.driver.driver_messages import REPORT_SECONDS, without_word
from runtime.errors import unwritten
from runtime.job.container_paths import FINAL, MESSAGES, PROGRESS
from runtime.options import FAILED
from runtime.rundir import reserve
from runtime.rundir.held_directory import HeldDirectory, write_all
from runtime.rundir.line_files import encode

FINAL_BYTES = 4 << 20  # an end over 1,000 hosts takes 2 MB: clocks and counters of each


class Journal:
    """See runtime.driver.driver (FollowerChannel). `say` is told what a person may want to read."""

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        """OSError if the folder cannot be written."""
        self.stop = asyncio.Event()
        self._say = say
        self._home = HeldDirectory.hold(home)
        self._messages = self._home.create(MESSAGES, os.O_APPEND)
        self._bytes = 0
        reserve.put_aside(self._home, FINAL_BYTES // 2)

    def report_seconds(self, _planned_seconds: float) -> float:
        return REPORT_SECONDS

    def send(self, record: Mapping[str, Any]) -> None:
        """What a full disk does not take is lost: the run's own files tell the driver of that."""
        if "progress" in record:
            progress = record["progress"]
            with suppress(OSError):
                latest = {**progress, "message": "", "warning": False}  # it is told once, below
                self._home.write(PROGRESS, encode({"progress": latest}))
            if not progress["message"]:
                return
            self._say(progress["message"])
        line = encode(record)
        try:
            write_all(self._messages, line)
        except OSError:
            os.ftruncate(self._messages, self._bytes)  # a part of a line would spoil the next one
        else:
            self._bytes += len(line)

    def close(self, final: Mapping[str, Any]) -> Mapping[str, Any]:
        """Writes the run's end; one that finds no room is replaced by one that says so. Returns
        what was written. OSError."""
        os.close(self._messages)
        try:
            reserve.spend(self._home, FINAL, encode({"final": final}))
        except OSError as error:
            reason = f"; the run: {final['message']}" if final["message"] else ""
            message = f"{unwritten(error).message}{reason}"[:4096]
            final = without_word(FAILED, message)
            reserve.spend(self._home, FINAL, encode({"final": final}))
        self._say(f"{final['outcome']}: {final['message']}".removesuffix(": "))
        return final
