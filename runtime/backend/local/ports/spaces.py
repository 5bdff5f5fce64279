"""Network namespaces for local hosts: without IPv6 of their own, forwarding nothing, each with a
netlink socket in it and one that hears of its devices."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from runtime.errors import MachineError
from runtime.system.namespaces import in_thread
from runtime.system.network import netlink

_CLONE_NEWNET = 0x40000000
_RTMGRP_LINK = 1
_WATCH_BYTES = 4 << 20


class Space(NamedTuple):
    """A namespace is there as long as its descriptor, or a process in it."""

    net: int
    netlink: socket.socket
    watch: socket.socket

    def close(self) -> None:
        os.close(self.net)
        self.netlink.close()
        self.watch.close()


def make(names: Sequence[str]) -> list[Space]:
    """Fresh namespaces. MachineError if the kernel refuses one; then there are none."""
    return in_thread(lambda: _spaces(names))


def _spaces(names: Sequence[str]) -> list[Space]:
    made: list[Space] = []
    try:
        for name in names:
            made.append(_space(name))
    except BaseException:
        for space in made:
            space.close()
        raise
    return made


def _space(name: str) -> Space:
    """This thread is in it afterwards."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(ctypes.c_int(_CLONE_NEWNET)) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise MachineError(
            f"cannot create the network namespace of {name}: {reason}",
            "run `tstorm doctor`; sysctl user.max_net_namespaces limits their number",
        )
    _without_ipv6()
    _without_forwarding(name)
    _without_bridge_filters()
    descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    connection = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    connection.bind((0, 0))
    netlink.prepare(connection)
    return Space(descriptor, connection, _watch())


def _watch() -> socket.socket:
    """Hears of devices that come and go."""
    found = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    found.setblocking(False)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WATCH_BYTES)
    found.bind((0, _RTMGRP_LINK))
    return found


def _without_ipv6() -> None:
    """Hosts speak IPv4 to each other; what instances say in IPv6 passes the bridges all the same.

    So no device of a host gets a link-local address and talks about it into the instances. Where
    this cannot be switched there is that talk, and nothing else is wrong.
    """
    for which in ("all", "default"):
        with suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1", encoding="ascii")


def _without_bridge_filters() -> None:
    """Where br_netfilter is loaded, each packet would pass the firewall's hooks in every bridge on
    its way: rules there are none in here, and three bridges cost a fifth of a small packet's time.
    """
    for which in ("ip", "ip6", "arp"):
        with suppress(OSError):
            switch = Path(f"/proc/sys/net/bridge/bridge-nf-call-{which}tables")
            switch.write_text("0", encoding="ascii")


def _without_forwarding(name: str) -> None:
    """A fresh namespace may have it from the machine, which may be a router."""
    switch = Path("/proc/sys/net/ipv4/ip_forward")
    try:
        with suppress(OSError):
            switch.write_text("0", encoding="ascii")
        if switch.read_text(encoding="ascii").strip() == "0":
            return
        reason = "it stays on"
    except OSError as error:
        reason = error.strerror or str(error)
    raise MachineError(
        f"cannot keep {name} from forwarding between its networks: {reason}",
        "as root: sysctl net.ipv4.ip_forward=0, or make /proc/sys writable",
    )
