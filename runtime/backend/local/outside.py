"""The ways of instances to the network of the machine, which `tstorm` opens: the driver has no
network but the run's, and asks over a socket with descriptors of what it is about.

Of an `external` that is a network card (cards.py). Of a `gateway` it is a process of slirp4netns,
which makes the device `outside` in the instance's network namespace and speaks for what is sent
there by sockets of its own, as an ordinary program of whoever runs the experiment. The driver hands
it the namespaces, a pipe whose end is the end of the process, and one by which it says that it is
ready. The first is closed with the life of the instance, and with the driver, however that ends.
While the instance is disconnected the device is down, so that nothing passes it either way.

Source: docs/nodes.md, slirp4netns(1).
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.plan.types import PlannedExternal
from runtime.backend.local import cards
from runtime.errors import MachineError, RunError
from runtime.system import compiled_programs, namespaces, process_limits
from runtime.system.network import netlink
from runtime.system.network.addresses import interface_index
from runtime.system.network.netlink import NetlinkRequest

if TYPE_CHECKING:
    from runtime.backend.local.nursery import LocalIncarnation

DEVICE = "outside"
NETWORK = "10.76.0.0/24"  # .2 is this machine's loopback, .3 answers DNS, .100 the instance
_GATEWAY = "10.76.0.2"
PROXY_ARP = ("sysctl", f"net/ipv4/conf/{DEVICE}/proxy_arp", "1")  # for whom it forwards
_PROGRAM = "slirp4netns"
_OPTIONS = ("--configure", "--netns-type=path", f"--cidr={NETWORK}")
_LEAD, _TAKE = b"o", b"c"  # how requests begin
_DESCRIPTORS = 4  # of a gateway's: network and user namespace, and the pipes
_OF_CARD = 2  # of a card's: network namespace, and a pipe for the answer
_TAKEN = b"ok"
_ANSWER_BYTES = 4096
_READY_SECONDS = END_SECONDS = 20.0


def find() -> str:
    """Raises MachineError."""
    found = shutil.which(_PROGRAM, path=compiled_programs.of_programs(os.environ))
    if found is None:
        raise MachineError(
            f"a gateway needs the program {_PROGRAM}, which this machine does not have",
            f"on Debian: apt-get install {_PROGRAM}; or leave `gateway` out",
        )
    return found


def serve(driver: socket.socket, log: int) -> None:
    """In `tstorm`: starts what is asked for until the run is over, and waits for its end."""
    started: list[subprocess.Popen[bytes]] = []
    with driver, os.fdopen(log, "wb") as said:
        while True:
            asked, descriptors, _, _ = socket.recv_fds(driver, _ANSWER_BYTES, _DESCRIPTORS)
            try:
                if asked[:1] == _TAKE and len(descriptors) == _OF_CARD:
                    os.write(descriptors[1], _taken(asked[1:].decode(), descriptors[0]))
                    continue
                if len(descriptors) < _DESCRIPTORS:
                    break
                with suppress(MachineError, OSError):  # the driver sees its pipes closed
                    started.append(_start(descriptors, said.fileno()))
            finally:
                for one in descriptors:
                    os.close(one)
    for process in started:
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)


def _taken(card: str, net: int) -> bytes:
    """The answer: what is wrong, and what to do."""
    try:
        cards.take(card, net)
    except RunError as error:
        return f"{error.message}\n{error.remedy}".encode()
    except OSError as error:
        return f"{error}\n".encode()
    return _TAKEN


def _start(descriptors: list[int], log: int) -> subprocess.Popen[bytes]:
    net, user, stays, ready = descriptors
    options = [*_OPTIONS, f"--exit-fd={stays}", f"--ready-fd={ready}"]
    if os.geteuid() != 0:
        options.append(f"--userns-path=/proc/self/fd/{user}")
    return process_limits.start(
        _PROGRAM,
        [find(), *options, f"/proc/self/fd/{net}", DEVICE],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        pass_fds=descriptors,
        start_new_session=True,  # ^C is for tstorm
    )


@dataclass(slots=True)
class _Way:
    """Of a life of a gateway: a netlink socket in its network namespace."""

    kernel: socket.socket
    connected: bool = True


class Outside:
    """The driver's end of the socket. `warn`: of a process that ends before its instance."""

    def __init__(self, descriptor: int, log_name: str, warn: Callable[[str], None]) -> None:
        os.set_inheritable(descriptor, False)  # no program of the run can ask for more
        self._tstorm = socket.socket(fileno=descriptor)
        self._log_name, self._warn = log_name, warn
        self._ways: dict[LocalIncarnation, _Way] = {}

    async def take(self, external: PlannedExternal, incarnation: LocalIncarnation) -> None:
        """Returns when the instance has the card. MachineError."""
        said, answer = os.pipe()
        net = os.open(f"/proc/{incarnation.pid}/ns/net", os.O_RDONLY)
        try:
            socket.send_fds(self._tstorm, [_TAKE + external.card.encode()], (net, answer))
        finally:
            os.close(net)
            os.close(answer)
        heard = await _first_bytes(said)
        if heard != _TAKEN:
            message, _, remedy = heard.decode(errors="replace").partition("\n")
            message = message or f"nobody has made {external.card} the card of {incarnation.name}"
            raise MachineError(message, remedy)

    async def lead(self, incarnation: LocalIncarnation) -> None:
        """Returns when the device is there, with its address and the default route."""
        stays, gone = os.pipe()
        said, ready = os.pipe()
        incarnation.gone.add_done_callback(lambda _gone: _close(gone))
        net = os.open(f"/proc/{incarnation.pid}/ns/net", os.O_RDONLY)
        user = os.open("/proc/self/ns/user", os.O_RDONLY)
        handed = (net, user, stays, ready)
        try:
            socket.send_fds(self._tstorm, [b"o"], handed)
            self._ways[incarnation] = _Way(namespaces.in_thread(lambda: _kernel_of(net)))
            incarnation.gone.add_done_callback(lambda _gone: self._forget(incarnation))
        finally:
            for one in handed:
                os.close(one)
        if not await _first_bytes(said):
            raise MachineError(
                f"{_PROGRAM} could not lead {incarnation.name} to the outside",
                f"its last words are in {self._log_name}; it must be able to open /dev/net/tun",
            )
        if not incarnation.gone.done():  # when nobody reads the pipe any more
            asyncio.get_running_loop().add_reader(gone, self._lost, incarnation, gone)

    def _forget(self, incarnation: LocalIncarnation) -> None:
        self._ways.pop(incarnation).kernel.close()

    def connect(self, incarnation: LocalIncarnation, *, connected: bool) -> None:
        """Whether a gateway leads to the outside just now."""
        way = self._ways.get(incarnation)
        if way is None or way.connected == connected:
            return
        way.connected = connected
        try:
            index = interface_index(way.kernel, DEVICE)
            refused = netlink.exchange(way.kernel, _requests(index, connected))
        except OSError as error:
            if error.errno != errno.ENODEV:  # its process has ended, which is told
                self._warn(f"{incarnation.name}: cannot change {DEVICE}: {error.strerror or error}")
            return
        for one in refused:
            if one.code != errno.EEXIST:  # a program has made a default route of its own meanwhile
                self._warn(f"{incarnation.name}: cannot {one.what}: {one.reason}")

    def _lost(self, incarnation: LocalIncarnation, gone: int) -> None:
        asyncio.get_running_loop().remove_reader(gone)
        self._warn(f"{incarnation.name} leads to the outside no longer: {_PROGRAM} ended")


def _kernel_of(net: int) -> socket.socket:
    """The thread is in this network namespace afterwards."""
    namespaces.enter_network(net)
    return netlink.opened()


def _requests(index: int, connected: bool) -> list[NetlinkRequest]:
    """With the device its routes go, and do not come back by themselves."""
    if not connected:
        return [NetlinkRequest(f"take {DEVICE} down", netlink.down(index))]
    route = netlink.default_route(index, _GATEWAY, 0)
    return [
        NetlinkRequest(f"bring {DEVICE} up", netlink.link(index, up=True)),
        NetlinkRequest(f"add the default route by {DEVICE}", route),
    ]


def _close(descriptor: int) -> None:
    asyncio.get_running_loop().remove_reader(descriptor)
    os.close(descriptor)


async def _first_bytes(descriptor: int) -> bytes:
    """Of a pipe, which is closed then; b'' where its writers end without any, or take too long."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(readable.wait(), _READY_SECONDS)
            return os.read(descriptor, _ANSWER_BYTES)
        return b""
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
