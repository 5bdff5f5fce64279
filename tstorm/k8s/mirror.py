"""The coordinator's run directory, mirrored into a local one while it grows.

Only files that grow by appending come (runtime.job); each is continued where it ends here, so a
broken connection costs nothing but time.
"""

from __future__ import annotations

import os
import re

from runtime.errors import RunError, unwritten
from runtime.rundir.held_directory import HeldDirectory, write_all
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import DRIVER_LOG, EVENTS, LOG_TIMES, LOGS, PROBES, SAMPLES

MESSAGES = "messages.jsonl"  # of the stream only: it is no file of a run directory
_TOP = (EVENTS, SAMPLES, LOG_TIMES, PROBES, DRIVER_LOG)
_LOG = re.compile(r"[\w.-]+\.log", re.ASCII)
_OPEN = 64  # descriptors kept for files that grow


class Mirror:
    """`have`: bytes that are here, by file; what the coordinator is told when it goes on."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._logs = directory.enter(LOGS)
        self._files: dict[str, int] = {}
        self.have: dict[str, int] = {}

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Bytes of a file from `offset` on. RunError for one that is none of a run's, or a gap."""
        before = self.have.get(name, 0)
        if offset > before:
            raise RunError(
                f"the coordinator left out bytes {before} to {offset} of {name}", "run it again"
            )
        rest = data[before - offset :]
        if rest or name not in self.have:  # empty files are there, too, as on one machine
            try:
                write_all(self._descriptor(name), rest)
            except OSError as error:
                raise unwritten(error) from error
        self.have[name] = before + len(rest)

    def _descriptor(self, name: str) -> int:
        if name not in self._files:
            if len(self._files) >= _OPEN:
                os.close(self._files.pop(next(iter(self._files))))
            folder, inner = self._place(name)
            self._files[name] = folder.append_to(inner)
        return self._files[name]

    def _place(self, name: str) -> tuple[HeldDirectory, str]:
        folder, _, inner = name.rpartition("/")
        if not folder and inner in _TOP:
            return self._directory, inner
        if folder == LOGS and _LOG.fullmatch(inner):
            return self._logs, inner
        raise RunError(f"the coordinator sent {name!r:.80}, which is no file of a run")

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])
