"""Reads the counters of one network namespace through a process in it.

The files show the namespace of the process that they were opened through, also once that is dead:
so whoever opens them before an instance ends can read its last counters afterwards. Until they are
closed the namespace, and with it eth0, is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from runtime.stacks import counters

_TEXT_BYTES = 1 << 18  # of a file; net/dev grows with the devices that an instance makes
_ABSENT = {"snmp6": (FileNotFoundError,)}  # from a kernel without IPv6
SOFTNET = Path("/proc/net/softnet_stat")


class OpenStack:
    """The files of a process's network namespace, open. OSError if it is dead."""

    def __init__(self, pid: int) -> None:
        self._files: dict[str, int] = {}
        try:
            for name in counters.FILES:
                with suppress(*_ABSENT.get(name, ())):
                    path = f"/proc/{pid}/net/{name}"
                    self._files[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.close()
            raise

    def read(self) -> dict[str, int]:
        """See counters.parse. OSError."""
        texts = dict.fromkeys(counters.FILES, b"")
        for name, descriptor in self._files.items():
            texts[name] = os.pread(descriptor, _TEXT_BYTES, 0)
        return counters.parse(texts)

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()


def softnet(path: Path = SOFTNET) -> dict[str, int]:
    """Of this machine since it was started; empty where the kernel does not say."""
    try:
        return counters.parse_softnet(path.read_bytes())
    except (OSError, ValueError, IndexError):
        return {}


def moved(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """By how much counters have grown, where they have."""
    grown = ((name, value - before.get(name, 0)) for name, value in now.items())
    return dict(sorted((name, by) for name, by in grown if by > 0))
