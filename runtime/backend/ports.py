"""Ports: how incarnations of instances are attached to what carries their packets.

Numbers are used again, oldest first.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from compiler.plan.types import Node, device_macs
from runtime.backend.instance import Incarnation
from runtime.backend.refusals import Refusals
from runtime.datapath.pktd import Engine, EngineError
from runtime.system.network.netlink import NetlinkRequest

QUIET_NS = 60_000_000
MANY_UNUSED = 500
LOOK_SECONDS = 1.0


class Numbers:
    """Numbers from 0, oldest first when they are used again."""

    def __init__(self) -> None:
        self._free: deque[int] = deque()
        self._count = 0

    def take(self) -> int:
        if self._free:
            return self._free.popleft()
        self._count += 1
        return self._count - 1

    def free(self, port: int) -> None:
        self._free.append(port)


class UnusedPorts:
    """Ports that wait for a moment in which no event is near, or until far too many have piled up.

    The kernel takes 20 ms and more to remove a device, and whoever asks it says nothing then.
    """

    def __init__(self) -> None:
        self._waiting: deque[int] = deque()
        self._some = asyncio.Event()

    def put(self, port: int) -> None:
        self._waiting.append(port)
        self._some.set()

    async def next(self, next_due: Callable[[], int]) -> int:
        """The oldest. `next_due`: when the next event is, CLOCK_MONOTONIC ns."""
        while True:
            await self._some.wait()
            gap = next_due() - time.monotonic_ns()
            if gap >= QUIET_NS or len(self._waiting) >= MANY_UNUSED:
                port = self._waiting.popleft()
                if not self._waiting:
                    self._some.clear()
                return port
            await asyncio.sleep(max(gap, 0) / 1e9 + 0.005)


class EnginePorts:
    """Ports of one pktd, which makes their devices itself (docs/pktd.md, `open`).

    nodes       of the topology
    refusals    is told what came from addresses that are not the instance's
    on_gone     is told whose device, and which, has disappeared though the instance lives
    """

    def __init__(
        self,
        engine: Engine,
        kind: str,
        nodes: Sequence[Node],
        refusals: Refusals,
        on_gone: Callable[[str, str], None],
    ) -> None:
        self.more: Sequence[NetlinkRequest] = ()
        self.groups = True
        self._engine = engine
        self._kind = kind
        self._nodes = nodes
        self._macs = device_macs(nodes)
        self._refusals = refusals
        self._on_gone = on_gone
        self._owners: dict[int, tuple[str, Incarnation]] = {}  # the device, and whose
        self._dropped: dict[int, dict[str, int]] = {}  # by port and reason, as it was last told
        self._numbers = Numbers()
        self._unused = UnusedPorts()
        self.kinds: set[str] = set()
        self.stamps: set[str] = set()

    async def attach(self, incarnation: Incarnation, node: int) -> int:
        port, device = self._numbers.take(), self._nodes[node].interface
        mac = f" mac={self._macs[node]}" if node in self._macs else ""
        if mac and not self._nodes[node].frames:
            mac += " arp=no"
        try:
            answer = await self._engine.call(
                f"open {port} netns=/proc/{incarnation.pid}/ns/net if={device}"
                f" kind={self._kind} remove=netns{mac}"
            )
        except BaseException:
            self._numbers.free(port)
            raise
        self._owners[port] = device, incarnation
        self.kinds.add(answer.values().get("kind", "?"))
        self.stamps.add(answer.values().get("stamp", "?"))
        return port

    async def furnished(self, _incarnation: Incarnation, _node: int, _port: int) -> None:
        """pktd found out by itself."""

    def give_back(self, port: int) -> None:
        self._unused.put(port)

    async def look(self) -> None:
        """Takes note of what pktd says about its ports. EngineError if it is gone."""
        for row in (await self._engine.call("stats ports")).body:
            port, spoofed, gone, group = map(int, row.split())
            if port not in self._owners:
                continue
            device, incarnation = self._owners[port]
            name = incarnation.name
            now, before = {"source": spoofed, "group": group}, self._dropped.get(port, {})
            self._dropped[port] = now
            more = {why: count - before.get(why, 0) for why, count in now.items()}
            if any(more.values()):
                self._refusals.add(name, {why: count for why, count in more.items() if count})
            if more["group"]:
                self._refusals.tell_of_groups(name)
            if gone and incarnation.alive():
                self._on_gone(name, device)

    async def watch(self) -> None:
        """Looks every second in which something moves, until it is cancelled."""
        with suppress(EngineError):  # gone: the driver notices by itself
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                await self._engine.moved.wait()
                await self.look()

    async def tidy(self, next_due: Callable[[], int]) -> None:
        while True:
            port = await self._unused.next(next_due)
            try:
                await self.look()  # who comes next gets the number
                await self._engine.call(f"close {port}")
            except EngineError:
                return  # the engine is gone and its devices with it; the run is ending
            self._numbers.free(port)
