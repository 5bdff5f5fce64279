"""Channels over real loopback TCP: friends, strangers, and somebody in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from runtime.errors import RunError
from runtime.rpc import secure
from runtime.rpc.seal import MAGIC, ClientHandshake
from runtime.rpc.secure import Channel, ChannelError, Connection, Server
from tests.waiting import in_a_loop, until

KEY = bytes(range(32))
HERE = "127.0.0.1"
DEADLINE_SECONDS = 120.0  # only a test that fails takes so long


class Meeting:
    """A server, and what became of its connections."""

    def __init__(self) -> None:
        self.channels: list[Channel] = []
        self.server = Server(KEY, self.channels.append)
        self.port = 0

    async def client(self, key: bytes = KEY, port: int = 0) -> Connection:
        return await secure.connect(HERE, port or self.port, key)

    async def stranger(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(HERE, self.port)

    async def counted(self, **wanted: int) -> None:
        """Waits until these counters have these values, and all others but two have none."""
        found: dict[str, int] = {}

        def same() -> bool:
            counts = self.server.counters()
            found.clear()
            found.update({name: count for name, count in counts.items() if count})
            found.pop("connections", None)
            return found == wanted

        await until(same, lambda: f"{found} instead of {wanted}")


def meet(talk: Callable[[Meeting], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        meeting = Meeting()
        meeting.port = await meeting.server.listen(HERE, 0)
        try:
            await asyncio.wait_for(talk(meeting), DEADLINE_SECONDS)
        finally:
            await meeting.server.close()

    asyncio.run(whole())


# -- friends ------------------------------------------------------------------------------------


def test_messages_go_both_ways_and_the_end_is_told() -> None:
    async def talk(meeting: Meeting) -> None:
        connection = await meeting.client()
        client, server = connection.channel, meeting.channels[0]
        assert connection.identity == meeting.server.identity
        for n in range(20):
            client.send({"n": n})
            server.send({"m": n})
        for n in range(20):
            received = await server.receive()
            assert received.message == {"n": n}
            assert 0 < received.at_ns <= time.monotonic_ns()
            assert (await client.receive()).message == {"m": n}
        client.send({"last": True})
        client.close()
        assert await client.closed == "closed"
        assert (await server.receive()).message == {"last": True}
        with pytest.raises(ChannelError, match="ended by the peer"):
            await server.receive()
        assert server.clean
        with pytest.raises(ChannelError, match="ended by the peer"):
            server.send({})
        await meeting.counted(authenticated=1)

    meet(talk)


def test_long_messages_and_a_reader_that_is_late() -> None:
    """Much more than the buffers hold: the sender waits, nothing is lost."""
    long = {"text": "x" * (3 << 20)}

    async def talk(meeting: Meeting) -> None:
        client = (await meeting.client()).channel
        server = meeting.channels[0]
        for n in range(12):
            client.send({**long, "n": n})
        await until(lambda: server._unread > secure.UNREAD_BYTES, lambda: "it never fills")
        for n in range(12):
            assert (await server.receive()).message == {**long, "n": n}

    meet(talk)


def test_a_peer_that_never_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secure, "UNSENT_BYTES", 1 << 20)

    async def talk(meeting: Meeting) -> None:
        client = (await meeting.client()).channel
        with pytest.raises(ChannelError, match="does not read"):
            while True:
                meeting.channels[0].send({"text": "x" * 100_000})
        await meeting.counted(authenticated=1, unread=1)
        with pytest.raises(ChannelError):
            while True:
                await client.receive()
        assert not client.clean

    meet(talk)


def test_a_cut_is_no_goodbye() -> None:
    async def talk(meeting: Meeting) -> None:
        client = (await meeting.client()).channel
        meeting.channels[0].give_up("test", "unread")
        with pytest.raises(ChannelError, match="the connection was cut"):
            await client.receive()
        assert not client.clean

    meet(talk)


@pytest.mark.parametrize("value", [float("nan"), b"bytes", {1, 2}])
def test_what_is_not_json_is_not_sent(value: object) -> None:
    async def talk(meeting: Meeting) -> None:
        client = (await meeting.client()).channel
        with pytest.raises((ValueError, TypeError)):
            client.send({"value": value})
        client.send({"good": 1})
        assert (await meeting.channels[0].receive()).message == {"good": 1}

    meet(talk)


BAD_JSON = [b"", b"{", b"[]", b"1", b'"x"', b"\xff", b'{"a":NaN}', b"[" * 100_000, b"9" * 5000]


@pytest.mark.parametrize("data", BAD_JSON, ids=lambda data: repr(data[:9]))
def test_genuine_frames_must_hold_objects(data: bytes) -> None:
    async def talk(meeting: Meeting) -> None:
        client = (await meeting.client()).channel
        assert client._sealer and client._transport
        client._transport.write(client._sealer.seal(data))
        with pytest.raises(ChannelError, match="not a JSON object"):
            await meeting.channels[0].receive()
        await meeting.counted(authenticated=1, bad_messages=1)

    meet(talk)


# -- strangers ----------------------------------------------------------------------------------


async def told(reader: asyncio.StreamReader) -> bytes:
    """Everything the server says until it hangs up."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b"?"


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100_000, MAGIC + bytes(400)])
def test_garbage_is_dropped_without_a_word(data: bytes) -> None:
    async def talk(meeting: Meeting) -> None:
        reader, writer = await meeting.stranger()
        opening = await reader.readexactly(40)
        assert opening[:8] == MAGIC
        writer.write(data)
        assert await told(reader) in (b"", b"?")
        writer.close()
        await meeting.counted(garbage=1)

    meet(talk)


def test_one_without_the_key_learns_nothing() -> None:
    async def talk(meeting: Meeting) -> None:
        reader, writer = await meeting.stranger()
        handshake = ClientHandshake(bytes(32))
        writer.write(handshake.feed(await reader.readexactly(40)))
        assert await told(reader) in (b"", b"?")
        writer.close()
        await meeting.counted(wrong_key=1)
        assert meeting.channels == []
        with pytest.raises(ChannelError, match="does not prove that it has this run's key"):
            await meeting.client(key=bytes(32))

    meet(talk)


def test_slow_and_half_open_strangers_lose_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secure, "HANDSHAKE_SECONDS", 0.3)

    async def talk(meeting: Meeting) -> None:
        writers = [(await meeting.stranger())[1] for _ in range(3)]
        writers[0].write(MAGIC)  # says something, and no more
        await meeting.counted(slow=3)
        for writer in writers:
            writer.close()

    meet(talk)


def test_strangers_cannot_keep_a_friend_out() -> None:
    async def talk(meeting: Meeting) -> None:
        strangers = [await meeting.stranger() for _ in range(3 * secure.STRANGERS)]
        client = (await meeting.client()).channel
        client.send({"n": 1})
        assert (await meeting.channels[0].receive()).message == {"n": 1}
        full = 3 * secure.STRANGERS + 1 - secure.STRANGERS
        await meeting.counted(authenticated=1, full=full)
        for _, writer in strangers:
            writer.close()
        await meeting.counted(authenticated=1, full=full, left=secure.STRANGERS - 1)

    meet(talk)


def test_more_connections_at_once_than_places() -> None:
    """All are accepted in one go, some given up before they have begun."""

    async def talk(meeting: Meeting) -> None:
        strangers = await asyncio.gather(*(meeting.stranger() for _ in range(60)))
        await meeting.counted(full=60 - secure.STRANGERS)
        assert (await meeting.client()).identity == meeting.server.identity
        for _, writer in strangers:
            writer.close()

    meet(talk)


# -- the agent's side seen by the coordinator ----------------------------------------------------


async def impostor(serve: Callable[..., Awaitable[None]]) -> tuple[asyncio.Server, int]:
    server = await asyncio.start_server(serve, HERE, 0)
    return server, server.sockets[0].getsockname()[1]


async def says_garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example.org ESMTP\r\n")
    await reader.read()
    writer.close()


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def sends_it_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(MAGIC + bytes(32))
    writer.write((await reader.readexactly(72))[-32:])
    await reader.read()
    writer.close()


async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


@pytest.mark.parametrize(
    "serve, words",
    [
        (says_garbage, "the peer does not speak this protocol"),
        (hangs_up, "the connection was cut"),
        (sends_it_back, "does not have this run's key"),
        (says_nothing, "does not answer"),
    ],
)
@in_a_loop
async def test_what_is_no_agent_is_named(
    serve: Callable[..., Awaitable[None]], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if serve is says_nothing:
        monkeypatch.setattr(secure, "HANDSHAKE_SECONDS", 0.3)
    server, port = await impostor(serve)
    with pytest.raises(ChannelError, match=words) as error:
        await secure.connect(HERE, port, KEY)
    assert f"{HERE}:{port}" in error.value.message
    server.close()
    await server.wait_closed()
    with pytest.raises(ChannelError, match=r"cannot connect to .*: Connection refused"):
        await secure.connect(HERE, port, KEY)


def test_a_second_coordinator_is_told_and_the_first_goes_on() -> None:
    async def talk(meeting: Meeting) -> None:
        client = (await meeting.client()).channel
        with pytest.raises(ChannelError, match="another coordinator is connected") as error:
            await meeting.client()
        assert error.value.remedy == "end the other run first"
        client.send({"n": 1})
        assert (await meeting.channels[0].receive()).message == {"n": 1}
        await meeting.counted(authenticated=2, busy=1)

    meet(talk)


def test_a_silent_coordinator_can_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secure, "SILENT_SECONDS", 0.0)

    async def talk(meeting: Meeting) -> None:
        old = (await meeting.client()).channel
        new = (await meeting.client()).channel
        assert "cut" in await old.closed
        new.send({"n": 2})
        assert (await meeting.channels[1].receive()).message == {"n": 2}
        await meeting.counted(authenticated=2, replaced=1)

    meet(talk)


# -- somebody in between ------------------------------------------------------------------------

Meddle = Callable[[int, bytes], bytes]


async def relay(port: int, meddle: Meddle) -> tuple[asyncio.Server, int]:
    """Passes bytes on; those of the client go through `meddle` with their number."""

    async def pump(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, change: Meddle
    ) -> None:
        number = 0
        try:
            while data := await reader.read(1 << 16):
                writer.write(change(number, data))
                number += 1
        except OSError:
            pass
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(HERE, port)
        back = asyncio.ensure_future(pump(far_reader, writer, lambda _number, data: data))
        await pump(reader, far_writer, meddle)
        await asyncio.wait({back})

    return await impostor(serve)


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


MEDDLERS: dict[str, Meddle] = {
    "alters": lambda number, data: flipped(data, -3) if number == 2 else data,
    "alters the length": lambda number, data: flipped(data, 3) if number == 2 else data,
    "repeats": lambda number, data: data * 2 if number == 2 else data,
    "leaves out": lambda number, data: b"" if number == 2 else data,
    "adds": lambda number, data: bytes(64) + data if number == 2 else data,
}


@pytest.mark.parametrize("how", MEDDLERS)
def test_what_somebody_in_between_does_is_noticed(how: str) -> None:
    """Part 0 is the handshake; each part after it is one message, the second is meddled with."""
    passed = [0]

    def meddle(number: int, data: bytes) -> bytes:
        passed[0] = number
        return MEDDLERS[how](number, data)

    async def talk(meeting: Meeting) -> None:
        middle, port = await relay(meeting.port, meddle)
        client = (await meeting.client(port=port)).channel
        server = meeting.channels[0]
        found: list[dict[str, Any]] = []
        with pytest.raises(ChannelError):
            for n in range(1, 9):
                client.send({"n": n, "filler": "f" * 300})
                await until(
                    lambda wanted=n: passed[0] >= wanted or client.closed.done(),  # type: ignore[misc]
                    lambda: "nothing is passed on",
                )
                if n == 1:
                    found.append((await server.receive()).message)
            while True:
                found.append((await server.receive()).message)
        assert [message["n"] for message in found] in ([1], [1, 2])
        if how != "repeats":
            assert len(found) == 1
        await meeting.counted(authenticated=1, bad_frames=1)
        middle.close()
        await middle.wait_closed()

    meet(talk)


# -- an address ---------------------------------------------------------------------------------


def test_an_agent_is_found_by_ipv6() -> None:
    async def talk(meeting: Meeting) -> None:
        server = Server(KEY, lambda _channel: None)
        port = await server.listen("::1", 0)
        connection = await secure.connect("::1", port, KEY)
        assert connection.identity == server.identity
        assert connection.channel.peer == f"[::1]:{port}"
        await server.close()
        with pytest.raises(ChannelError, match=rf"cannot connect to \[::1\]:{port}: "):
            await secure.connect("::1", port, KEY)

    meet(talk)


def test_an_address_that_is_taken_is_named() -> None:
    async def talk(meeting: Meeting) -> None:
        with pytest.raises(RunError, match=f"cannot listen on {HERE}:{meeting.port}: "):
            await Server(KEY, lambda _channel: None).listen(HERE, meeting.port)

    meet(talk)
