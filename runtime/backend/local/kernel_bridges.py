"""Lans of the kernel's in machines with parts: a bridge in a network namespace of the machine, and
a veth into each part that is at it.

The namespace lasts as long as the netlink socket in it, which this process has: whatever ends that,
bridges and veths go with it. A part's device is there from the making of a life on, up and with its
carrier, as those of links are. It is at the bridge while the part is there and not disconnected: a
life that is prepared while the one before goes on has the same addresses.

Source: docs/nodes.md, veth(4), bridge(8); linux/if_link.h.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

from compiler.plan.types import PlannedLanEnd, PlannedMachine
from runtime.backend.local.nursery import LocalIncarnation
from runtime.backend.local.ports import devices
from runtime.errors import RunError
from runtime.system import namespaces
from runtime.system.network import netlink
from runtime.system.network.addresses import Addresses, FrameAddresses
from runtime.system.network.netlink import NetlinkRequest

_MAC = "02:54:53:03:00:{:02x}"  # of bridges
_FIRST_END = 1000  # number of a device, behind those of bridges
_MOST_BRIDGES = 200  # of a machine


class _Space:
    """The namespace of a machine, with its bridges by their lans' names."""

    def __init__(self, machine: PlannedMachine) -> None:
        self._name = f"the network of machine {machine.name}"
        try:
            self._kernel = namespaces.in_thread(_kernel_apart)
        except OSError as error:
            raise RunError(f"cannot make {self._name}: {error.strerror}") from error
        self.bridges = {lan.name: number for number, lan in enumerate(machine.lans, 2)}
        for lan, number in self.bridges.items():
            made = devices.bridge(number, f"lan{number}", _MAC.format(number))
            self.ask(
                NetlinkRequest(f"make the bridge of {lan}", made),
                NetlinkRequest(f"silence {lan}", netlink.link(number, netlink.QUIET)),
            )

    def ask(self, *requests: NetlinkRequest) -> None:
        """RunError."""
        netlink.carry_out(self._kernel, self._name, requests)

    def close(self) -> None:
        self._kernel.close()


def _kernel_apart() -> socket.socket:
    """Of a network namespace of its own."""
    os.close(namespaces.new_network())
    return netlink.opened()


class KernelBridges:
    """`machines`: those of the plan. RunError."""

    def __init__(self, machines: Sequence[PlannedMachine]) -> None:
        self._numbers = count(_FIRST_END)
        self._spaces: list[_Space] = []
        self._ends: dict[int, list[tuple[_Space, str, PlannedLanEnd]]] = {}  # by instance
        # Of each its devices, and their bridges.
        self._made: dict[LocalIncarnation, list[tuple[_Space, int, int]]] = {}
        try:
            for machine in machines:
                self._add(machine)
        except BaseException:
            self.close()
            raise

    def _add(self, machine: PlannedMachine) -> None:
        if not machine.lans:
            return
        if len(machine.lans) > _MOST_BRIDGES:
            raise RunError(f"machine {machine.name} has more than {_MOST_BRIDGES} lans")
        space = _Space(machine)
        self._spaces.append(space)
        for lan in machine.lans:
            for end in lan.ends:
                self._ends.setdefault(end.node, []).append((space, lan.name, end))

    def lead(self, incarnation: LocalIncarnation, node: int) -> list[Addresses]:
        """Makes the devices of a new life, and says what is to be configured of them. RunError."""
        found = []
        for space, lan, end in self._ends.get(node, ()):
            device, number = lan.rpartition(".")[2], next(self._numbers)
            net = os.open(f"/proc/{incarnation.pid}/ns/net", os.O_RDONLY)
            near = [("IFLA_IFNAME", f"p{number}")]
            peer = [
                ("IFLA_IFNAME", device),
                ("IFLA_ADDRESS", end.mac),
                ("IFLA_NET_NS_FD", net),
            ]
            try:
                made = devices.veth(number, near, peer, up=False)
                silenced = netlink.link(number, netlink.QUIET, up=True)
                space.ask(
                    NetlinkRequest(f"link {incarnation.name} to {lan}", made),
                    NetlinkRequest(f"silence {incarnation.name} at {lan}", silenced),
                )
            finally:
                os.close(net)
            if incarnation not in self._made:
                self._made[incarnation] = []
                incarnation.gone.add_done_callback(lambda _gone: self._forget(incarnation))
            self._made[incarnation].append((space, number, space.bridges[lan]))
            found.append(_addresses(device, end))
        return found

    def _forget(self, incarnation: LocalIncarnation) -> None:
        """At once, and not when the kernel removes the namespace of a dead instance."""
        for space, number, _ in self._made.pop(incarnation, ()):
            with suppress(RunError, OSError):  # it is gone by itself, or with the run
                space.ask(NetlinkRequest("remove it", netlink.removed(number)))

    def plug(self, incarnation: LocalIncarnation, *, plugged: bool) -> None:
        """Whether its devices are at their bridges."""
        for space, number, bridge in self._made.get(incarnation, ()):
            change = netlink.link(number, [("IFLA_MASTER", bridge if plugged else 0)])
            with suppress(RunError):  # it has died just now
                space.ask(NetlinkRequest("change a device", change))

    def close(self) -> None:
        for space in self._spaces:
            space.close()
        self._spaces.clear()


def _addresses(device: str, end: PlannedLanEnd) -> Addresses:
    own = [text.partition("/") for text in (end.ipv4, end.ipv6)]
    four, six = ((address, int(prefix or 0)) for address, _, prefix in own)
    frames = FrameAddresses(end.mac, (four[1], six[1]), ("", ""))
    return Addresses(four[0], six[0], interface=device, frames=frames)
