"""Whether the kernel has killed processes for want of memory, from its own counter and log.

A process that it kills ends with SIGKILL like any other that is killed; what tells them apart is
`oom_kill`, which the kernel counts before it kills: in memory.events of the victim's control group
and those above it (version 1: memory.oom_control), and in /proc/vmstat. Our own group is asked, if
it counts, since another's lack is none of ours. Whom the kernel has killed is in its log, where
that may be read. More than that the counter moved is not known, and not said.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from runtime.system import control_groups

_FILES = ("memory.events", "memory.oom_control")
_KEY = "oom_kill"
_KILLED = re.compile(r"(?:Killed|oom_reaper: reaped) process (\d+ \([^)]*\))")
_RECORD_BYTES = 8192  # longest record of /dev/kmsg
_MOST_RECORDS = 100_000


class Watch:
    """`news` tells what the kernel has done since the watch was made, or asked last."""

    def __init__(self, root: Path = control_groups.ROOT) -> None:
        self._root = root
        self._log = -1
        with suppress(OSError):
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
            self._log = os.open(root / "dev/kmsg", flags)
            os.lseek(self._log, 0, os.SEEK_END)
        self._place, self._count = self._read()

    def news(self) -> str:
        """`'the kernel was out of memory …'`, or `''` if no process was killed for that."""
        place, count = self._read()
        before, self._count = self._count, count
        if place != self._place or count <= before:
            return ""
        killed = "a process" if count == before + 1 else f"{count - before} processes"
        names = self._names()
        who = f"; its log says: {', '.join(names)}" if names else ""
        moved = f"oom_kill in {place} went from {before} to {count}"
        return f"the kernel was out of memory and killed {killed} meanwhile ({moved}{who})"

    def _read(self) -> tuple[Path, int]:
        """The nearest counter there is, and what it says."""
        machine = self._root / "proc/vmstat"
        files = [
            group / name for group in control_groups.own("memory", self._root) for name in _FILES
        ]
        for path in (*files, machine):
            count = control_groups.counter(path, _KEY)
            if count is not None:
                return path, count
        return machine, 0

    def _names(self) -> list[str]:
        """Number and name of the processes killed, from the log since we looked last."""
        found: dict[str, None] = {}
        for _ in range(_MOST_RECORDS):
            try:
                record = os.read(self._log, _RECORD_BYTES) if self._log >= 0 else b""
            except BrokenPipeError:
                continue  # records were overwritten before we read them
            except OSError:
                break
            if not record:
                break
            for one in _KILLED.findall(record.decode(errors="replace")):
                found[one] = None
        return list(found)

    def close(self) -> None:
        if self._log >= 0:
            os.close(self._log)
            self._log = -1


def told(message: str, watch: Watch) -> str:
    """A message about a process that was killed, with what the kernel knows about it."""
    news = watch.news()
    return f"{message}; {news}" if news else message
