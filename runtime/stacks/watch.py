"""Samples what the instances' own network stacks dropped, into stacks.jsonl (docs/run.md).

A line is what has changed in one instance since its line before, counted from the beginning of its
life: a fresh network namespace has counters of 0. A reading takes some 0.2 ms, so each has its own
moment, and all together take at most 1 % of a processor: from 50 instances on an instance's turn
comes less often than once a second. The last reading is made when an instance's processes are dead.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from runtime.rundir.line_files import LineFile
from runtime.stacks import counters

# Reads the counters of one network namespace through a process in it.
#
# The files show the namespace of the process that they were opened through, also once that is
# dead: so whoever opens them before an instance ends can read its last counters afterwards. Until
# they are closed the namespace, and with it eth0, is there.

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


FORMAT, VERSION = "tstorm-stacks", 1
INTERVAL_NS = 1_000_000_000
EACH_NS = 20_000_000  # more, from one instance's reading to the next one's
MAX_HELD = 100  # instances that may end at once with all they dropped; of more the last part lacks
BURY_SECONDS = 0.002
MACHINE = ""  # who counters of the whole machine belong to
APART_NS = 53_129  # after a round time: programs wake at those (in virtual time, all of them)
ROUND_NS = 1_000_000


_Incarnation = tuple[str, int]  # its instance, and a process in its network namespace


class StackWatch:
    """`moment`: plan time now, in ns. `rests`: the machine has no traffic but that of the run, so
    there is no round where nothing of it moves."""

    def __init__(self, file: LineFile, moment: Callable[[], int], *, rests: bool = False) -> None:
        self._file = file
        self._moment = moment
        self._rests = rests
        self._seen: dict[_Incarnation, dict[str, int]] = {}  # of the living
        self._held: dict[_Incarnation, OpenStack] = {}  # while they end
        self._dead: deque[tuple[_Incarnation, dict[str, int]]] = deque()  # and what was seen
        self._softnet: dict[str, int] = {}
        self._begun = False
        self._burial: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """At time 0. Nothing is written before."""
        self._softnet = softnet()
        header = {"format": FORMAT, "version": VERSION, "interval_ns": INTERVAL_NS}
        self._file.append({"kind": "header", **header})
        self._begun = True

    # -- lives ----------------------------------------------------------------------------------

    def arrived(self, instance: str, pid: int) -> None:
        """An incarnation of an instance, of which this is a process."""
        self._seen[instance, pid] = {}

    def leaving(self, instance: str, pid: int) -> None:
        """Its processes are about to be ended: what it drops until then is to be seen, too."""
        if len(self._held) < MAX_HELD and (instance, pid) in self._seen:
            with suppress(OSError):
                self._held[instance, pid] = OpenStack(pid)

    def dead(self, instance: str, pid: int) -> None:
        """Its processes are dead. It is read for the last time when there is time for it."""
        seen = self._seen.pop((instance, pid), None)
        if seen is not None:
            self._dead.append(((instance, pid), seen))
            if len(self._dead) == 1:
                self._bury_later()

    # -- readings -------------------------------------------------------------------------------

    def _write(self, instance: str, before: dict[str, int], now: dict[str, int]) -> None:
        grown = moved(before, now)
        if grown and self._begun:
            before.update(now)
            self._file.append({"at_ns": self._moment(), "instance": instance, "counters": grown})

    def _read(self, incarnation: _Incarnation, seen: dict[str, int]) -> None:
        """A process that has just died, or a file that is none, tells nothing."""
        instance, pid = incarnation
        with suppress(OSError, ValueError, IndexError):
            if incarnation in self._held:
                self._write(instance, seen, self._held[incarnation].read())
            else:
                with OpenStack(pid) as stack:
                    self._write(instance, seen, stack.read())

    def _bury_later(self) -> None:
        """One by one, so that many that end at once keep nobody waiting."""
        self._burial = asyncio.get_running_loop().call_later(BURY_SECONDS, self._bury_next)

    def _bury_next(self) -> None:
        self._bury()
        if self._dead:
            self._bury_later()

    def _bury(self) -> None:
        """The one that has been dead for longest."""
        incarnation, seen = self._dead.popleft()
        if incarnation in self._held:
            self._read(incarnation, seen)
            self._held.pop(incarnation).close()

    async def run(self, traffic: LineFile) -> None:
        """Reads counters until it is cancelled. `traffic`: a file that grows while packets move;
        instances are left out of a round if it has not grown."""
        lines = -1
        while True:
            if self._rests and traffic.lines == lines:
                traffic.grown.clear()
                await traffic.grown.wait()
            incarnations = list(self._seen.items()) if traffic.lines != lines else []
            lines = traffic.lines
            each_ns = max(INTERVAL_NS // max(len(incarnations), 1), EACH_NS)
            due_ns = _apart(time.monotonic_ns())
            end_ns = due_ns + max(INTERVAL_NS, each_ns * len(incarnations))
            for incarnation, seen in incarnations:
                due_ns += each_ns
                await _until(due_ns)
                if incarnation in self._seen:
                    self._read(incarnation, seen)
            await _until(end_ns)
            self._write(MACHINE, self._softnet, softnet())

    def finish(self) -> None:
        """The last readings: of the living, if there are any, and of the dead. Closes the file."""
        if self._burial is not None:
            self._burial.cancel()
        for incarnation, seen in self._seen.items():
            self._read(incarnation, seen)
        while self._dead:
            self._bury()
        self._write(MACHINE, self._softnet, softnet())
        self._file.close()


async def _until(due_ns: int) -> None:
    await asyncio.sleep(max(due_ns - time.monotonic_ns(), 0) / 1e9)


def _apart(now_ns: int) -> int:
    return now_ns + APART_NS - now_ns % ROUND_NS
