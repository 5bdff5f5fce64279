"""cpu= and mem= of instances, as control groups enforce them; in virtual time the number of their
processes, too, since each is one of the machine's.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from compiler.plan.types import PlannedMachine, Service
from runtime.system import control_groups
from runtime.system.inotify import WriteWatch

PROCESSES = 2_000  # and threads, of an instance in virtual time
_FIRST = "first"  # the group of a machine's first process; those of parts have a dot
_WORDS = {"cpu": "cpu=", "mem": "mem=", "pids": "a bound on processes"}


class Limits:
    """Of one run. `warn` hears once of what this machine does not enforce; `killed`, when that is
    seen, of how many processes of an instance the kernel has killed for its `mem=`.

    In virtual time no processor is limited, since computing takes no time or its own (--cpu), and
    the groups have one name in all runs, since programs can read it.
    """

    def __init__(
        self,
        run_id: str,
        warn: Callable[[str], None],
        killed: Callable[[str, int], None],
        *,
        virtual: bool = False,
    ) -> None:
        self._groups = control_groups.make("run" if virtual else run_id, pids=virtual)
        self._warn = warn
        self._killed = killed
        self._virtual = virtual
        self._said = False
        self._machines: dict[str, str] = {}  # by instance, '' for one that is no part of any
        # By instance, as when a kill was seen last: processes killed, and limits reached.
        self._told: dict[str, tuple[int, int]] = {}
        self._full: dict[str, bool] = {}  # whether an instance was refused a process, as was told
        self._watch: WriteWatch | None = None
        self._events: BinaryIO | None = None  # the kernel tells of writes to files that are open

    def enclose(self, machine: PlannedMachine, pid: int) -> None:
        """The parts of a machine that are put in it get no more than that states; its first process
        is in it."""
        cpu_millis = 0 if self._virtual else machine.cpu_millis
        self._tell(self._groups.enclose(machine.name, cpu_millis, machine.mem_bytes))
        self._groups.limit(_FIRST, pid, 0, 0, outer=machine.name)

    def put(self, pid: int, name: str, service: Service, machine: str = "") -> None:
        """A process, and all that it will start, gets no more than the service states; it is a part
        of this machine, if there is one."""
        cpu_millis = 0 if self._virtual else service.cpu_millis
        processes = PROCESSES if self._virtual else 0
        if not cpu_millis and not service.mem_bytes and not processes and not machine:
            return
        self._machines[name] = machine
        if service.mem_bytes or machine:
            self.wanted_memory(name)  # in an earlier life
            self._told.setdefault(name, (0, 0))
        mem_bytes = service.mem_bytes
        lacking = self._groups.limit(name, pid, cpu_millis, mem_bytes, processes, machine)
        if processes:
            self._look_after(name)
        self._tell(lacking)

    def _tell(self, lacking: list[str]) -> None:
        """Once, what this machine cannot enforce."""
        if lacking and not self._said:
            self._said = True
            missing = {*lacking, *self._groups.missing}
            words = " and ".join(word for what, word in _WORDS.items() if what in missing)
            self._warn(f"{words} cannot be enforced on this machine: {control_groups.REMEDY}")

    def _look_after(self, name: str) -> None:
        """From now on it is told if it is refused a process."""
        self._full.setdefault(name, False)
        place = self._groups.pids
        if self._watch is None and place is not None:
            with suppress(OSError):  # then its programs alone are told
                self._events = (place / control_groups.EVENTS).open("rb")
                self._watch = _watch(place)
                asyncio.get_running_loop().add_reader(self._watch, self._hear)

    def _hear(self) -> None:
        """The kernel has written to one of the run's own files: to that of all refusals, maybe."""
        if self._watch is None or self._watch.names() != set():
            self._tell_refused(*self._full)

    def _tell_refused(self, *names: str) -> None:
        for name in names:
            if not self._full.get(name, True) and self._groups.refused(name, self._machines[name]):
                self._full[name] = True
                self._warn(
                    f"{name} has {PROCESSES:,} processes and threads, which is all that an instance"
                    " may have in virtual time: more were refused"
                )

    def wanted_memory(self, name: str) -> bool:
        """Whether the kernel has killed something of it for that, since this was asked last, which
        `killed` hears; to be asked when its program, or a command in it, has ended."""
        # Before Linux 6.11 the kernel writes to the file of its group only.
        self._tell_refused(name)
        if name not in self._told:
            return False
        machine, (kills, full) = self._machines[name], self._told[name]
        now = self._groups.kills(name, machine)
        if now <= kills:
            return False
        self._told[name] = (now, self._groups.times_full(name, machine))
        if self._told[name][1] <= full:
            return False  # the machine has no more, which is none of its doing
        self._killed(name, now - kills)
        return True

    def look(self) -> None:
        """At the end, whose processes were killed that nobody has asked for."""
        for name in self._told:
            self.wanted_memory(name)

    def close(self) -> None:
        self._tell_refused(*self._full)
        if self._watch is not None:
            asyncio.get_running_loop().remove_reader(self._watch)
            self._watch.close()
        if self._events is not None:
            self._events.close()
        self._groups.remove()


def _watch(place: os.PathLike[str]) -> WriteWatch:
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return WriteWatch(descriptor)
    finally:
        os.close(descriptor)
