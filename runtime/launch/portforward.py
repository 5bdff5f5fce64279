"""Forwards a TCP port of this machine to a program in an instance of a run that goes on.

A connection begins inside the instance, so nothing of the emulated network touches it. A process
that has entered the instance's network hands out sockets there, one process for each incarnation
and none for a connection: this process stays where it is, and connects them.

Only this machine can reach the port, and on it only who carries this out, or root: whose the other
end of a connection is stands in /proc/net/tcp.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from runtime.errors import RunError, no_instance
from runtime.launch import registry
from runtime.options import VIRTUAL
from runtime.rpc.control import ask
from runtime.system import namespaces
from runtime.system.process_scope import namespace

HERE = "127.0.0.1"
CONNECTIONS = 200  # at a time; more wait
CONNECT_SECONDS = 10.0
LOOK_SECONDS = 0.5  # between two looks at whether the run goes on
PART_BYTES = 1 << 16
_FAMILIES = {b"4": socket.AF_INET, b"6": socket.AF_INET6}

Say = Callable[[str], None]
Address = tuple[bytes, str]  # its family and it


class NeverError(RunError):
    """Nobody gets into an instance of this run."""


class Sockets:
    """Those of one incarnation of an instance, from a process in its network."""

    def __init__(self, pidfd: int, addresses: list[Address], *, user: bool) -> None:
        self.pidfd, self.addresses = pidfd, addresses
        self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = os.fork()
        if self._process == 0:
            self._control.close()
            _hand_out(other, pidfd, user=user)
        other.close()
        self._control.settimeout(CONNECT_SECONDS)

    def new(self, family: bytes) -> socket.socket:
        """OSError where there is none any more."""
        self._control.send(family)
        _, found, _, _ = socket.recv_fds(self._control, 1, 1)
        if not found:
            raise ConnectionRefusedError
        return socket.socket(fileno=found[0])

    def close(self) -> None:
        self._control.close()
        os.close(self.pidfd)
        os.waitpid(self._process, 0)


def _hand_out(control: socket.socket, pidfd: int, *, user: bool) -> None:
    """In a process of its own, until nobody asks any more."""
    with suppress(OSError, KeyboardInterrupt):
        namespaces.enter_network(pidfd, user=user)
        while family := control.recv(1):
            with socket.socket(_FAMILIES[family], socket.SOCK_STREAM) as found:
                socket.send_fds(control, [b"."], [found.fileno()])
    os._exit(0)


class Forwarder:
    """Connects what reaches `listener` with a port of an instance, as long as the run goes on."""

    def __init__(self, run: str, instance: str, port: int, say: Say) -> None:
        self._record = registry.find(run)
        self._instance, self._port, self._say = instance, port, say
        self._sockets: Sockets | None = None
        self._said = ""
        self._free = asyncio.Semaphore(CONNECTIONS)
        state, _ = ask(Path(self._record.socket), {"ask": "state"})
        names = [one["name"] for one in state["instances"]]
        if instance not in names:
            raise no_instance(instance, names)
        try:
            self._open()
        except NeverError:
            raise
        except RunError as error:  # it may join yet
            self._tell(str(error))

    async def carry_out(self, listener: socket.socket) -> None:
        """Until the run has ended."""
        server = await asyncio.start_server(self._serve, sock=listener)
        try:
            while self._record.is_live:
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            server.close()
            self._close()

    def _open(self) -> None:
        """RunError if the instance is not there, or not now."""
        path = Path(self._record.socket)
        answer, pidfd = ask(path, {"ask": "enter", "instance": self._instance})
        if answer.get("time") == VIRTUAL:
            raise NeverError(
                "the run has virtual time, in which nobody waits for who asks from outside",
                f"ask from inside: tstorm exec {self._record.run_id} {self._instance} -- CMD",
            )
        assert pidfd is not None
        own = answer["environment"]
        found = [(b"4", own.get("TSTORM_IPV4")), (b"6", own.get("TSTORM_IPV6"))]
        found += [(b"4", HERE), (b"6", "::1")]  # where a program listens for itself alone
        addresses = [(family, address) for family, address in found if address]
        user = answer["user_namespace"] != namespace("user")
        self._sockets = Sockets(pidfd, addresses, user=user)
        # Its network would stay as long as somebody is in it.
        asyncio.get_running_loop().add_reader(pidfd, self._close)

    def _close(self) -> None:
        if self._sockets is not None:
            asyncio.get_running_loop().remove_reader(self._sockets.pidfd)
            self._sockets.close()
            self._sockets = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self._free:
            with suppress(OSError), closing(writer):
                if not _is_of_us(
                    writer.get_extra_info("peername"), writer.get_extra_info("sockname")
                ):
                    self._tell("a connection of another user was refused")
                    return
                inside = await self._connected()
                if inside is None:
                    return
                from_inside, to_inside = await asyncio.open_connection(sock=inside)
                with closing(to_inside):
                    await asyncio.gather(_pump(reader, to_inside), _pump(from_inside, writer))

    async def _connected(self) -> socket.socket | None:
        """A socket inside the instance; None, and told, where nobody listens."""
        loop = asyncio.get_running_loop()
        for _ in range(2):  # the incarnation that was asked last may be gone
            try:
                if self._sockets is None:
                    self._open()
                assert self._sockets is not None
                for family, address in self._sockets.addresses:
                    found = self._sockets.new(family)
                    found.setblocking(False)
                    try:
                        connecting = loop.sock_connect(found, (address, self._port))
                        await asyncio.wait_for(connecting, CONNECT_SECONDS)
                        self._said = ""
                        return found
                    except OSError:
                        found.close()
            except OSError:
                pass
            except RunError as error:
                self._tell(str(error))
                return None
            self._close()
        self._tell(f"nobody listens at {self._instance}:{self._port}")
        return None

    def _tell(self, text: str) -> None:
        """The same once."""
        if text != self._said:
            self._said = text
            self._say(text)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What comes, and its end."""
    while data := await reader.read(PART_BYTES):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def _is_of_us(peer: tuple[str, int], own: tuple[str, int]) -> bool:
    """Whether the other end of a connection over loopback is this user's or root's."""
    wanted = [_hexadecimal(*peer), _hexadecimal(*own)]
    with Path("/proc/net/tcp").open() as table:
        for line in table:
            words = line.split()
            if words[1:3] == wanted:
                return int(words[7]) in (0, os.geteuid())
    return False


def _hexadecimal(address: str, port: int) -> str:
    """As proc(5) writes an end of a connection over IPv4: its bytes as a number of this machine."""
    number = int.from_bytes(socket.inet_aton(address), "little")
    return f"{number:08X}:{port:04X}"


def listening(port: int | None, wanted: int) -> socket.socket:
    """At this port of this machine; by default at the one that is wanted inside, if this user may
    have it and nobody else does, else at any. RunError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if port is None:
            try:
                listener.bind((HERE, wanted))
            except OSError:
                listener.bind((HERE, 0))
        else:
            listener.bind((HERE, port))
        listener.listen()
    except OSError as error:
        listener.close()
        hint = "leave it out for any free one" if port is not None else ""
        raise RunError(f"cannot listen at {HERE}:{port}: {error.strerror}", hint) from error
    return listener


def inherited(descriptor: int) -> socket.socket:
    """A listener that who has started this process has opened. RunError."""
    try:
        return socket.socket(fileno=descriptor)
    except OSError as error:
        raise RunError(f"descriptor {descriptor}: {error.strerror}") from error


def forward_from(listener: socket.socket, run: str, target: tuple[str, int], say: Say) -> None:
    """As `forward`, for a listener that is there already."""

    async def whole() -> None:
        with listener:
            await Forwarder(run, *target, say).carry_out(listener)

    asyncio.run(whole())


def forward(run: str, instance: str, port: int, local: int | None, opened: Say, say: Say) -> None:
    """Until the run has ended or Ctrl-C. `opened` is told the address here. RunError."""

    async def whole() -> None:
        forwarder = Forwarder(run, instance, port, say)
        with listening(local, port) as listener:
            opened("{}:{}".format(*listener.getsockname()))
            await forwarder.carry_out(listener)

    asyncio.run(whole())
