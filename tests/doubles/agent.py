"""Agents that are not: they answer as docs/agent.md says, or as a test wants, over loopback TCP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from runtime.coordinator.agent_link import Host
from runtime.errors import RunError
from runtime.rpc.calls import answer
from runtime.rpc.secure import Channel, Server

KEY = bytes(range(32))
HERE = "127.0.0.1"
DEADLINE_SECONDS = 120.0  # only a test that fails takes so long

Behaviour = Callable[[dict[str, Any]], Mapping[str, object]]


class FakePeer:
    """Whoever a coordinator connects to: one process after the other on one port."""

    def __init__(self, address: str = HERE, port: int = 0) -> None:
        self.address = address
        self.port = port
        self.channels: list[Channel] = []
        self._server: Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, key: bytes = KEY) -> None:
        self._server = Server(key, self._accept)
        self.port = await self._server.listen(self.address, self.port)

    def _accept(self, channel: Channel) -> None:
        self.channels.append(channel)
        self.do(answer(channel, self._handle, self._stopped))

    def do(self, action: Coroutine[Any, Any, None]) -> None:
        """Goes on until it dies."""
        task = asyncio.ensure_future(action)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _stopped(self) -> bool:
        return False

    async def _handle(self, request: dict[str, Any], now: int) -> Mapping[str, object]:
        raise NotImplementedError

    def say(self, **message: object) -> None:
        self.channels[-1].send(message)

    def cut(self) -> None:
        """Only the connection."""
        self.channels[-1].give_up("test", "unread")

    async def die(self) -> None:
        """As SIGKILL: no goodbye, nobody listens any more."""
        for channel in self.channels:
            channel.give_up("killed", "unread")
        for task in list(self._tasks):
            task.cancel()
        if self._server is not None:
            await self._server.close()
            self._server = None


class FakeAgent(FakePeer):
    """Answers as an agent does, as far as a coordinator can tell.

    behave   answers by `do` instead of the usual ones
    hangs    what is never answered
    delays   seconds before an answer
    gates    what it waits for before an answer
    """

    def __init__(self, number: int, offset_ns: int = 0, address: str = HERE, port: int = 0) -> None:
        super().__init__(address, port)
        self.number = number
        self.offset_ns = offset_ns
        self.behave: dict[str, Behaviour] = {}
        self.hangs: set[str] = set()
        self.delays: dict[str, float] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.requests: list[dict[str, Any]] = []  # all but `time`
        self.times = 0

    @property
    def host(self) -> Host:
        return Host(f"host{self.number}", self.address, self.port)

    def clock(self) -> int:
        return time.monotonic_ns() + self.offset_ns

    def _stopped(self) -> bool:
        return bool(self.requests) and self.requests[-1]["do"] == "stop"

    async def _handle(self, request: dict[str, Any], now: int) -> Mapping[str, object]:
        do = request["do"]
        if do == "time":
            self.times += 1
        else:
            self.requests.append(request)
        if do in self.hangs:
            await asyncio.Event().wait()
        await asyncio.sleep(self.delays.get(do, 0.0))
        if do in self.gates:
            await self.gates[do].wait()
        if do in self.behave:
            return self.behave[do](request)
        if do == "time":
            return {"t2": now + self.offset_ns, "t3": self.clock()}
        if do == "prepare":
            return {"digest": request["digest"], "datapath": "fake"}
        return {"did": do}

    def asked(self, do: str) -> list[dict[str, Any]]:
        return [request for request in self.requests if request["do"] == do]


class SlowLink:
    """Passes bytes on later: another time for each direction, in seconds."""

    def __init__(self, port: int, there: float, back: float) -> None:
        self._far = port
        self._delays = (there, back)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, HERE, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(HERE, self._far)
        there = self._pump(reader, far_writer, self._delays[0])
        back = self._pump(far_reader, writer, self._delays[1])
        self._tasks.update(map(asyncio.ensure_future, (there, back)))

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await reader.read(1 << 16):
                loop.call_later(delay, writer.write, data)
        except OSError:
            pass
        await asyncio.sleep(delay)
        writer.close()

    async def close(self) -> None:
        """Once both ends have closed their connections."""
        assert self._server is not None
        await asyncio.wait(self._tasks)
        self._server.close()
        await self._server.wait_closed()


def refuse(_request: dict[str, Any]) -> Mapping[str, object]:
    raise RunError("no room", "make some")
