"""Watches the ports of local hosts while a run goes on: what they drop, and whether they are there.

An instance may delete its own eth0, which takes the port with it; root of the machine may delete
anything. The kernel tells of devices that go; whose end was expected is not told again.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress

from runtime.backend.local.hosts_backend import LocalHost
from runtime.backend.local.ports.veths import HostPorts
from runtime.backend.refusals import Refusals

LOOK_SECONDS = 1.0
_RTM_DELLINK = 17
_IFLA_IFNAME = 3
_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_PORT_DEVICE = re.compile(r"([pef])(\d+)")
_RECEIVE_BYTES = 1 << 16

OnGone = Callable[[int, str], None]  # a port, and the device of it that has gone


def _name(attributes: bytes) -> str:
    at = 0
    while at + 4 <= len(attributes):
        size, kind = struct.unpack_from("=HH", attributes, at)
        if size < 4 or at + size > len(attributes):
            break
        if kind & 0x3FFF == _IFLA_IFNAME:
            return attributes[at + 4 : at + size].rstrip(b"\0").decode(errors="replace")
        at += (size + 3) & ~3
    return ""


def gone(datagram: bytes) -> Iterator[str]:
    """Names of devices that have gone, from a datagram of RTMGRP_LINK."""
    at = 0
    while at + _HEADER.size + _LINK.size <= len(datagram):
        length, kind, _flags, _seq, _pid = _HEADER.unpack_from(datagram, at)
        family, *_ = _LINK.unpack_from(datagram, at + _HEADER.size)
        # A bridge says it, too, of a port that leaves it: family AF_BRIDGE.
        if kind == _RTM_DELLINK and family == socket.AF_UNSPEC:
            yield _name(datagram[at + _HEADER.size + _LINK.size : at + length])
        at += max((length + 3) & ~3, _HEADER.size)


class PortWatch:
    """Listens and counts from `begin` to `stop`."""

    def __init__(
        self, hosts: tuple[LocalHost, ...], ports: HostPorts, refusals: Refusals, on_gone: OnGone
    ) -> None:
        self._hosts = hosts
        self._ports = ports
        self._refusals = refusals
        self._on_gone = on_gone
        self._stop = asyncio.Event()

    def begin(self) -> asyncio.Task[None]:
        """The task ends after `stop`; with RunError if the kernel does not tell."""
        loop = asyncio.get_running_loop()
        for host in self._hosts:
            loop.add_reader(host.watch, self._hear, host.watch)
        return loop.create_task(self._run())

    def _hear(self, watch: socket.socket) -> None:
        try:
            datagram = watch.recv(_RECEIVE_BYTES)
        except OSError:
            return  # nothing, or more than it had room for: then some end is not told
        for name in gone(datagram):
            found = _PORT_DEVICE.fullmatch(name)
            if found is not None:
                self._on_gone(int(found[2]), name)

    async def _run(self) -> None:
        """Counts what ports have dropped, every second until `stop` and then once more. Cancelling
        it instead would lose an answer."""
        while not self._stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), LOOK_SECONDS)
            for instance, more in await self._ports.dropped():
                self._refusals.add(instance, more)

    def stop(self) -> None:
        """Listens no more."""
        loop = asyncio.get_running_loop()
        for host in self._hosts:
            loop.remove_reader(host.watch)
        self._stop.set()
