"""The socket that agents' datagrams come and go by: never waits, and never works for long.

What comes in stays in the kernel's buffer until the loop asks for it, so a flood costs a bounded
part of each period and no more. What does not begin as this run's datagrams do is dropped by the
kernel (`kernel_drops`, with what found no room).
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from runtime.agent.clock import Clock
from runtime.agent.metadata.socketfilter import accept_only, drops
from runtime.agent.process.commandline import PPB
from runtime.errors import RunError
from runtime.rpc import endpoint
from runtime.rpc.endpoint import Endpoint

BUFFER_BYTES = 1 << 20  # asked for; the kernel may give less (net.core.rmem_max)
DATAGRAM_BYTES = 2048  # longer than any of ours: a longer one arrives cut, and is refused
DRAIN_NS = 4_000_000  # of a period of 25 ms
CHECK_EVERY = 64  # datagrams between two looks at the clock

COUNTERS = ("received", "drains_cut_short", "dropped_on_purpose", "send_errors")


class Mailbox:
    """Hosts are numbers. Datagrams are taken from anybody: whether one is genuine shows in it."""

    def __init__(self, clock: Clock, address: Endpoint, drop_ppb: int = 0) -> None:
        self._clock = clock
        self._drop_ppb = drop_ppb
        self._random = random.Random(0)
        self._hosts: Sequence[Endpoint] = ()
        self._counts = dict.fromkeys(COUNTERS, 0)
        self._six = endpoint.is_ipv6(address)
        family = socket.AF_INET6 if self._six else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        try:
            self._socket.bind(address)
        except OSError as error:
            self._socket.close()
            where = endpoint.text(address)
            raise RunError(f"cannot receive on {where} (UDP): {error.strerror}") from error
        self.port: int = self._socket.getsockname()[1]

    def meet(self, hosts: Sequence[Endpoint], prefix: bytes) -> None:
        """Who the others are, and how their datagrams begin. RunError for those that cannot be
        reached from here."""
        for host in hosts:
            if endpoint.is_ipv6(host) is not self._six:
                mine = "IPv6" if self._six else "IPv4"
                raise RunError(
                    f"{endpoint.text(host)} cannot be reached: this agent sends metadata by {mine}",
                    "give the agents of all hosts addresses of one family (--metadata)",
                )
        self._hosts = hosts
        with suppress(OSError):  # then strangers' datagrams are refused here, at more cost
            accept_only(self._socket, prefix)

    def drain(self, take: Callable[[int, bytes], None]) -> None:
        """Hands over what has arrived, as far as DRAIN_NS goes."""
        start = now = self._clock.now_ns()
        count = 0
        while True:
            try:
                datagram = self._socket.recv(DATAGRAM_BYTES)
            except OSError:
                break  # empty
            count += 1
            if self._drop_ppb and self._random.randrange(PPB) < self._drop_ppb:
                self._counts["dropped_on_purpose"] += 1
                continue
            take(now, datagram)
            if count % CHECK_EVERY == 0:
                now = self._clock.now_ns()
                if now - start > DRAIN_NS:
                    self._counts["drains_cut_short"] += 1
                    break
        self._counts["received"] += count

    def send(self, host: int, datagram: bytes) -> None:
        """What cannot be sent is lost, as on any network: it is told again."""
        try:
            self._socket.sendto(datagram, self._hosts[host])
        except OSError:
            self._counts["send_errors"] += 1

    def watch(self, on_arrival: Callable[[], None]) -> None:
        """Calls once when something arrives, or is there already."""
        loop = asyncio.get_running_loop()

        def arrived() -> None:
            loop.remove_reader(self._socket)
            on_arrival()

        loop.add_reader(self._socket, arrived)

    def look_away(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)

    def counters(self) -> dict[str, int]:
        return {**self._counts, "kernel_drops": drops(self._socket)}

    def close(self) -> None:
        self._socket.close()
