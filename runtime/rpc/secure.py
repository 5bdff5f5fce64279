"""Authenticated messages over TCP between the coordinator (client) and an agent (server).

A `Channel` carries JSON objects, in order, each as it was sent or not at all; runtime/rpc/seal.py
has the handshake and the frames. Nothing is encrypted: see docs/agent.md (Channel) for what this
gives and what it does not. A `Server` keeps strangers cheap: what they may send has a fixed size, a
time limit and a number of places, and they are told nothing.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.errors import RunError, fail
from runtime.rpc import endpoint
from runtime.rpc.jsonobject import decode, encode
from runtime.rpc.seal import (
    KEY_BYTES,
    ClientHandshake,
    Handshake,
    Opener,
    Sealer,
    SealError,
    ServerHandshake,
)

HANDSHAKE_SECONDS = 3.0  # from the connection to both proofs
STRANGERS = 16  # connections that may be unproven at one time
SILENT_SECONDS = 7.0  # a coordinator that said nothing for so long may be replaced by another
CLOSE_SECONDS = 5.0  # for what is still to be sent at the end
UNREAD_BYTES = 4 << 20  # received and not asked for: no more is read from the connection
UNSENT_BYTES = 128 << 20  # a peer that leaves so much unread is given up

COUNTERS = (
    *("connections", "authenticated", "garbage", "wrong_key", "slow", "full", "left"),
    *("busy", "replaced", "bad_frames", "bad_messages", "unread", "broken"),
)


class ChannelError(RunError):
    """The peer cannot be reached, is not who it should be, or is gone."""


def make_key() -> bytes:
    """A key for one run."""
    return os.urandom(KEY_BYTES)


def read_key(source: str) -> bytes:
    """The key in a file, or in the descriptor N if `source` is `fd:N` (read to its end, closed).

    Raises RunError naming the source; the key never gets into a message.
    """
    name, _, number = source.partition(":")
    try:
        target = int(number) if name == "fd" else Path(source)
        with open(target, "rb") as file:  # noqa: PTH123  # may be a descriptor
            key = file.read(KEY_BYTES + 1)
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read the run's key from {source}: {error}") from error
    if len(key) != KEY_BYTES:
        raise RunError(
            f"the run's key in {source} does not have {KEY_BYTES} bytes",
            f"make one: head -c {KEY_BYTES} /dev/urandom > FILE",
        )
    return key


def _decode(data: bytes) -> dict[str, Any]:
    try:
        return decode(data)
    except ValueError:
        raise SealError("bad_messages", "a message is not a JSON object") from None


@dataclass(frozen=True, slots=True)
class Received:
    """A message and when it came in (CLOCK_MONOTONIC, ns)."""

    message: dict[str, Any]
    at_ns: int


class Channel(asyncio.Protocol):
    """One connection. Made by `connect` and by a `Server`.

    peer      'ADDRESS:PORT' of the other side
    heard_ns  CLOCK_MONOTONIC of the last genuine frame
    reason    why it is over, '' while it is not; `clean`: the peer said goodbye
    closed    done, with the reason, when nothing comes any more
    """

    def __init__(self, handshake: Handshake) -> None:
        loop = asyncio.get_running_loop()
        self.peer = "?"
        self.heard_ns = 0
        self.clean = False
        self.fault = ""  # what a server counts: why it was given up
        self.ready: asyncio.Future[None] = loop.create_future()  # proven; or ChannelError
        self.closed: asyncio.Future[str] = loop.create_future()
        self._handshake = handshake
        self._sealer: Sealer | None = None
        self._opener: Opener | None = None
        self._transport: asyncio.Transport | None = None
        self._received: deque[tuple[Received, int]] = deque()
        self._unread = 0
        self._more = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self.reason = ""

    # -- asyncio's side -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        name = transport.get_extra_info("peername") or ("?", 0)
        self.peer = endpoint.text(name[:2])
        connection = transport.get_extra_info("socket")
        if connection is not None:
            endpoint.keep_alive(connection)
        if self.reason:
            transport.abort()  # given up before it began
        else:
            transport.write(self._handshake.opening)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if self.reason:
            return
        try:
            if self._opener is None:
                data = self._prove(data)
            if self._opener is not None:
                self._open(self._opener, data, now)
        except SealError as error:
            self.give_up(str(error), error.counter)

    def _prove(self, data: bytes) -> bytes:
        """Goes on with the handshake; returns what came after it."""
        assert self._transport is not None
        self._transport.write(self._handshake.feed(data))
        if self._handshake.opener is None:
            return b""
        self._opener, self._sealer = self._handshake.opener, self._handshake.sealer
        self.heard_ns = time.monotonic_ns()
        self.ready.set_result(None)
        return self._handshake.rest

    def _open(self, opener: Opener, data: bytes, now: int) -> None:
        frames = opener.frames
        try:
            messages = opener.feed(data)
        finally:
            if opener.frames != frames:
                self.heard_ns = now
        for message in messages:
            self._received.append((Received(_decode(message), now), len(message)))
            self._unread += len(message)
        if self._unread > UNREAD_BYTES and self._transport is not None:
            self._transport.pause_reading()
        if opener.ended:
            self.clean = True
            self.close("ended by the peer")
        self._more.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        reason = self.reason
        if not reason:
            inside = self._opener is not None and self._opener.inside
            reason = "the connection was cut" + (" in the middle of a message" if inside else "")
            reason += f" ({error})" if error is not None else ""
        self.reason = reason
        fail(self.ready, ChannelError(reason))
        self.closed.set_result(reason)
        self._more.set()
        self._writable.set()

    # -- the owner's side -----------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether nothing can be sent any more."""
        return bool(self.reason)

    @property
    def proven(self) -> bool:
        return self._opener is not None

    def send(self, message: Mapping[str, object] | bytes) -> None:
        """Queues a message, or what encode() has made of one.

        Raises ChannelError if the channel is over, or the peer does not read; ValueError for what
        is not JSON or longer than seal.MESSAGE_BYTES.
        """
        data = message if isinstance(message, bytes) else encode(message)
        if self._sealer is None or self._transport is None or self.reason:
            raise ChannelError(f"{self.peer} is gone: {self.reason or 'not connected'}")
        self._transport.write(self._sealer.seal(data))
        if self._transport.get_write_buffer_size() > UNSENT_BYTES:
            self.give_up("the peer does not read what it is sent", "unread")
            raise ChannelError(f"{self.peer} is gone: {self.reason}")

    async def drained(self) -> None:
        """Until the kernel has most of what was sent, or the channel is over."""
        await self._writable.wait()

    async def receive(self) -> Received:
        """The next message; may be cancelled. ChannelError once the channel is over."""
        while not self._received:
            if self.closed.done():
                raise ChannelError(f"{self.peer} is gone: {self.reason}")
            self._more.clear()
            await self._more.wait()
        found, size = self._received.popleft()
        self._unread -= size
        if self._unread <= UNREAD_BYTES and self._transport is not None:
            self._transport.resume_reading()
        return found

    def close(self, reason: str = "closed") -> None:
        """Says goodbye, after everything that was sent. Messages that came can still be read."""
        if self._transport is None or self.reason:
            return
        if self._sealer is not None:
            self._transport.write(self._sealer.end())
        self.reason = reason
        self._transport.close()
        asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._transport.abort)

    def give_up(self, reason: str, fault: str) -> None:
        """Ends the connection at once, without a word to the peer."""
        if self.reason:
            return
        self.reason, self.fault = reason, fault
        if self._transport is not None:
            self._transport.abort()


class Server:
    """Listens for one coordinator.

    `on_channel` is called with each channel once it is proven; it is the only one then. While a
    coordinator is there (has said something within SILENT_SECONDS) another one is told so and sent
    away. `identity` tells a client whether it meets the same process again.
    """

    def __init__(self, key: bytes, on_channel: Callable[[Channel], None]) -> None:
        self.identity = os.urandom(8).hex()
        self._key = key
        self._on_channel = on_channel
        self._server: asyncio.Server | None = None
        self._strangers: dict[Channel, asyncio.TimerHandle] = {}
        self._current: Channel | None = None
        self._counts: Counter[str] = Counter()

    async def listen(self, address: str, port: int) -> int:
        """Returns the port (for 0, the one that the kernel chose). Raises RunError."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._connection, address, port, backlog=64)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            where = endpoint.text((address, port))
            raise RunError(f"cannot listen on {where}: {reason}") from error
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    def use(self, key: bytes) -> None:
        """From now on connections prove this key; those that have proven the other one stay."""
        self._key = key

    def counters(self) -> dict[str, int]:
        """connections, authenticated, and why the others were dropped.

        garbage, wrong_key, slow (no proof in time), full (too many strangers), left (went away
        unproven). Of proven ones: busy (another coordinator was there), replaced (it was silent),
        bad_frames, bad_messages, unread (it did not read), broken (a fault of ours).
        """
        return {name: self._counts[name] for name in COUNTERS}

    def _connection(self) -> Channel:
        channel = Channel(ServerHandshake(self._key))
        self._counts["connections"] += 1
        loop = asyncio.get_running_loop()
        timer = loop.call_later(HANDSHAKE_SECONDS, channel.give_up, "no proof in time", "slow")
        self._strangers[channel] = timer
        channel.ready.add_done_callback(lambda _: self._known(channel))
        channel.closed.add_done_callback(lambda _: self._over(channel))
        if len(self._strangers) > STRANGERS:
            # The oldest goes: somebody with the key needs its place only for an instant.
            oldest = next(iter(self._strangers))
            self._forget(oldest)
            oldest.give_up("too many connections without proof", "full")
        return channel

    def _forget(self, channel: Channel) -> None:
        timer = self._strangers.pop(channel, None)
        if timer is not None:
            timer.cancel()

    def _known(self, channel: Channel) -> None:
        self._forget(channel)
        if channel.over or not channel.proven:
            return
        self._counts["authenticated"] += 1
        old = self._current
        if old is not None and not old.over:
            if time.monotonic_ns() - old.heard_ns < SILENT_SECONDS * 1e9:
                self._counts["busy"] += 1
                text = f"another coordinator is connected, from {old.peer}"
                channel.send({"error": text, "remedy": "end the other run first"})
                channel.close("another coordinator was there first")
                return
            old.give_up("silent, and another connection took its place", "replaced")
        self._current = channel
        channel.send({"say": "welcome", "identity": self.identity})
        self._on_channel(channel)

    def _over(self, channel: Channel) -> None:
        self._forget(channel)
        if channel.fault:
            self._counts[channel.fault] += 1
        elif not channel.proven:
            self._counts["left"] += 1

    async def close(self) -> None:
        """Ends listening and all connections."""
        for channel in list(self._strangers):
            channel.give_up("closed", "left")
        if self._current is not None:
            self._current.close()
            await asyncio.wait({self._current.closed})
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


@dataclass(frozen=True, slots=True)
class Connection:
    """A proven channel to an agent, and which process is at its other end."""

    channel: Channel
    identity: str


async def connect(address: str, port: int, key: bytes) -> Connection:
    """One attempt, at most HANDSHAKE_SECONDS. Raises ChannelError that says what is wrong."""
    where = endpoint.text((address, port))
    try:
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            return await _connect(address, port, key)
    except TimeoutError:
        raise ChannelError(f"{where} does not answer", "is an agent running there?") from None
    except OSError as error:
        reason = (
            os.strerror(error.errno) if error.errno else str(error)
        )  # asyncio has its own words
        raise ChannelError(f"cannot connect to {where}: {reason}") from error


async def connect_by(
    deadline: float, address: str, port: int, key: bytes, pause_s: float
) -> Connection:
    """Tries until `deadline` (of the loop's clock), with pauses. ChannelError with the reason of
    the last attempt that had one."""
    loop = asyncio.get_running_loop()
    refused = ChannelError("no answer in time")
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                return await connect(address, port, key)
        except TimeoutError:
            pass  # the reason of the attempt before says more
        except ChannelError as error:
            refused = error
        if loop.time() + pause_s >= deadline:
            raise refused
        await asyncio.sleep(pause_s)


async def _connect(address: str, port: int, key: bytes) -> Connection:
    loop = asyncio.get_running_loop()
    _, channel = await loop.create_connection(lambda: Channel(ClientHandshake(key)), address, port)
    where = endpoint.text((address, port))
    try:
        await _proof(channel, where)
        first = (await channel.receive()).message
        if first.get("say") != "welcome":
            text, remedy = str(first.get("error", first)), str(first.get("remedy", ""))
            raise ChannelError(f"{where} refuses: {text:.200}", f"{remedy:.200}")
    except BaseException:
        channel.give_up("not wanted", "left")
        raise
    return Connection(channel, str(first.get("identity", "")))


async def _proof(channel: Channel, where: str) -> None:
    """Waits until the agent has proven itself. Raises ChannelError."""
    await asyncio.wait({channel.ready})
    error = channel.ready.exception()
    if error is not None:
        reason = channel.closed.result() if channel.closed.done() else str(error)
        raise ChannelError(
            f"{where} does not prove that it has this run's key: {reason}",
            "is it an agent of this run?",
        )
