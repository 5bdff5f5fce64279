"""While a run goes on: what its machine is busy with, about once a second, and what the devices of
instances have counted, some of them at a time so that nothing waits for it.

Of each instance the life that was seen for the longest time is kept
(runtime/certify/interfaces.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.backend.instance import Instance
from runtime.judge.machine_load import OwnMachine
from runtime.system.network import netdev

INTERVAL_SECONDS = 1.0
AT_A_TIME = 8  # devices: some 0.2 ms
MOST = 2000  # instances: what is told of them has to fit into one message

Counts = tuple[int, int, int, int]


@dataclass(slots=True)
class _Seen:
    """A life: when it was looked at first and last, and what its device had counted then."""

    pid: int
    first_ns: int
    first: Counts
    last_ns: int
    last: Counts

    def row(self) -> list[int]:
        more = (after - before for before, after in zip(self.first, self.last, strict=True))
        return [self.first_ns, self.last_ns, *more]

    @property
    def span_ns(self) -> int:
        return self.last_ns - self.first_ns


class MachineWatch:
    """`elapsed`: ns since time 0. `clock_step_ns`: see OwnMachine."""

    def __init__(
        self,
        instances: Mapping[str, Instance],
        elapsed: Callable[[], int],
        clock_step_ns: int = 0,
        proc: Path = Path("/proc"),
    ) -> None:
        self._instances = instances
        self._elapsed = elapsed
        self._proc = proc
        self._machine = OwnMachine(clock_step_ns)
        self._present: dict[str, _Seen] = {}
        self._longest: dict[str, _Seen] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self._machine.look(self._elapsed())
            await self.look()
            await asyncio.sleep(INTERVAL_SECONDS)

    async def look(self) -> None:
        """At all devices, once."""
        for number, name in enumerate([*self._instances][:MOST]):
            self._look_at(name, self._instances[name])
            if number % AT_A_TIME == AT_A_TIME - 1:
                await asyncio.sleep(0)

    def _look_at(self, name: str, instance: Instance) -> None:
        incarnation = instance.present
        counts = (
            device(self._proc, incarnation.pid)
            if incarnation is not None and incarnation.pid
            else None
        )
        if incarnation is None or counts is None:
            return
        now, seen = self._elapsed(), self._present.get(name)
        fell = seen is not None and any(a < b for a, b in zip(counts, seen.last, strict=True))
        if seen is None or seen.pid != incarnation.pid or fell:
            self._present[name] = seen = _Seen(incarnation.pid, now, counts, now, counts)
        seen.last_ns, seen.last = now, counts
        best = self._longest.get(name)
        if best is None or seen.span_ns >= best.span_ns:
            self._longest[name] = seen

    def facts(self) -> dict[str, Any]:
        """For the driver's last words."""
        found = {name: seen.row() for name, seen in sorted(self._longest.items()) if seen.span_ns}
        return {"machine": self._machine.record(), "interfaces": found}


def device(proc: Path, pid: int) -> Counts | None:
    """What an instance's device has counted; None if it is not there any more."""
    try:
        found = netdev.counts((proc / str(pid) / "net/dev").read_bytes())
    except OSError:
        return None
    if found is None:
        return None
    return found.rx_bytes, found.rx_packets, found.tx_bytes, found.tx_packets
