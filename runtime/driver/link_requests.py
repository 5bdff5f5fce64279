"""The local socket at which programs of nodes that move ask for links (`allocate=program`).

It is an abstract Unix socket in the network namespace of each instance of such a node, so that
whoever reaches it is inside, and lives as long as the instance does. Lines of JSON go both ways
(docs/mobility.md has them); answers come in the order of the requests. What programs send is
anybody's bytes: lines have a greatest length, peers a greatest number, a node MOST_ASKED
requests a second, and who does not read is hung up on. The rules are in runtime/driver/radios.py.

A link that programs lead is up in the plan while its nodes reach each other. The engine has it down
until a request is granted (runtime/backend/onehost/staging.py), and each grant and end is a record
of kind `radio` in events.jsonl. None is part of the timeline: a replay's programs ask again.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from math import isqrt
from typing import Any

from compiler.plan.parts import traces
from compiler.plan.parts.led_links import askers, led_links
from compiler.plan.parts.motion import Motion, decode
from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan
from runtime.backend.base import LINKS_SOCKET, Log, RunNetwork
from runtime.backend.instance import Incarnation
from runtime.driver.eventbook import sleep_until
from runtime.driver.radios import NOT_VISIBLE, RadioLink, Radios
from runtime.errors import RunError
from runtime.schedule import Schedule
from runtime.system import namespaces

LINE_BYTES = 65536
MOST_PEERS = 16  # of an instance
UNREAD_BYTES = 1 << 18  # of what is said to a peer
MOST_ASKED = 100  # requests of a node in a second
MOST_SWITCHED = 1000  # links in a second, of all nodes
_SECOND_NS = 10**9
_ASKED, _RELEASED, _LOST = "asked", "released", "lost"
Answer = Mapping[str, object]


class _Rate:
    """So many a second, counted in whole seconds of the clock."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._second = self._count = 0

    def take(self) -> int:
        """0, or the moment (CLOCK_MONOTONIC) from which on there is room again."""
        second = time.monotonic_ns() // _SECOND_NS
        if second != self._second:
            self._second, self._count = second, 0
        if self._count >= self._most:
            return (second + 1) * _SECOND_NS
        self._count += 1
        return 0


class LinkRequests:
    """`listen` in each life of an instance, `step` after each step of the timeline."""

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        network: Callable[[], RunNetwork | None],
        elapsed: Callable[[], int],
        log: Log,
    ) -> None:
        self._topology = topology = plan.topology
        self._schedule = schedule
        self._network = network
        self._elapsed = elapsed
        self._log = log
        moving = [one for one in topology.mobility if one.transceivers]
        nodes = moving[0].nodes if moving else ()
        self._motion: Motion | None = None
        if moving:
            self._motion = decode(plan.attached.motions[moving[0].digest])
        self._radios = Radios(len(nodes), moving[0].transceivers if moving else 0)
        asking = askers(topology)
        self._names = [asking[node][0] for node in nodes]
        self._at = {  # which node an instance belongs to
            topology.nodes[member].name: at
            for at, node in enumerate(nodes)
            for member in asking[node][1]
        }
        numbers = {node: at for at, node in enumerate(nodes)}
        self._ends = {
            link: (numbers[a], numbers[b]) for link, (a, b) in led_links(topology).items()
        }
        self._links: dict[frozenset[int], list[int]] = {}
        for link, ends in self._ends.items():
            self._links.setdefault(frozenset(ends), []).append(link)
        self._traces = traces.of_plan(plan)
        self._states = {link: schedule.start.links[link] for link in self._ends}
        self._follow((link, state.up) for link, state in self._states.items())
        self._asked = [_Rate(MOST_ASKED) for _ in nodes]
        self._switched = _Rate(MOST_SWITCHED)
        self._peers: list[dict[asyncio.StreamWriter, None]] = [{} for _ in nodes]  # in their order
        self._tasks: set[asyncio.Task[None]] = set()
        self._switching = asyncio.Lock()
        self._servers: set[asyncio.Server] = set()

    # -- who reaches whom -------------------------------------------------------------------------

    def step(self, number: int) -> None:
        """This step of the timeline has taken effect."""
        changes = self._schedule.steps[number].epoch.links if self._ends else ()
        led = {link: state for link, state in changes if link in self._ends}
        self._states |= led
        found = self._follow((link, state.up) for link, state in led.items())
        for (at, _), lost in found.items():
            if lost is not None:
                self._end(lost, _LOST, self._names[at])
        self._tell_of_sight(found)

    def follow(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def _follow(
        self, changes: Iterable[tuple[int, bool]]
    ) -> dict[tuple[int, int], RadioLink | None]:
        """By pair of nodes of which that is new, what it has ended."""
        found: dict[tuple[int, int], RadioLink | None] = {}
        for link, up in changes:
            a, b = sorted(self._ends[link])
            is_new, lost = self._radios.see(a, b, sees=up)
            if is_new:
                found[a, b] = lost
        return found

    def _tell_of_sight(self, found: Iterable[tuple[int, int]]) -> None:
        words: dict[int, dict[str, list[str]]] = {}
        for a, b in found:
            word = "added" if b in self._radios.sees(a) else "lost"
            for at, other in ((a, b), (b, a)):
                words.setdefault(at, {"added": [], "lost": []})[word].append(self._names[other])
        for at, said in sorted(words.items()):
            self._say(at, {"say": "visible", **said})

    # -- links ------------------------------------------------------------------------------------

    def _end(self, one: RadioLink, why: str, by: str) -> None:
        """Takes it down; both nodes are told."""
        self._begin_task(self._switch(one, by, why, up=False))
        for at in (one.a, one.b):
            self._say(at, {"say": "down", **self._end_of(one, at), "why": why})

    def _other(self, one: RadioLink, at: int) -> str:
        return self._names[one.other(at)]

    async def _switch(self, one: RadioLink, by: str, why: str, *, up: bool) -> None:
        """In the order in which this is called: the lock is fair."""
        async with self._switching:
            while until := self._switched.take():
                await sleep_until(until)
            network = self._network()
            if network is None:
                return
            links = self._links[frozenset((one.a, one.b))]
            with suppress(RunError):  # the engine is gone, which ends the run
                applied_ns = await network.use(links, up=up)
                target = f"{self._names[one.a]}--{self._names[one.b]}"
                args = {"up": int(up), "why": why, "radio": one.radio_a, "other": one.radio_b}
                record = {"kind": "radio", "target": target, "args": args, "origin": by}
                plan_ns = self._schedule.clock.plan_time(applied_ns)
                self._log({**record, "planned_ns": plan_ns, "applied_ns": applied_ns})

    def _begin_task(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- the socket -------------------------------------------------------------------------------

    async def listen(self, name: str, incarnation: Incarnation) -> None:
        """In this life of an instance, before its program starts. RunError."""
        if name not in self._at or not incarnation.pid:
            return
        at, peers = self._at[name], set[asyncio.StreamWriter]()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(at, name, peers, reader, writer)

        try:
            found = namespaces.in_thread(lambda: _bound(incarnation.pid))
            server = await asyncio.start_unix_server(serve, sock=found, limit=LINE_BYTES)
        except OSError as error:
            message = f"the socket for links of {name} cannot be made: {error.strerror or error}"
            raise RunError(message) from error
        self._servers.add(server)

        def over(_done: object) -> None:
            self._servers.discard(server)
            server.close()
            for writer in peers:
                writer.transport.abort()

        incarnation.gone.add_done_callback(over)

    async def _serve(
        self,
        at: int,
        name: str,
        peers: set[asyncio.StreamWriter],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if len(peers) < MOST_PEERS:
            peers.add(writer)
            self._peers[at][writer] = None
            with suppress(OSError, asyncio.CancelledError):
                await self._converse(at, name, reader, writer)
            del self._peers[at][writer]
            peers.discard(writer)
        writer.close()

    async def _converse(
        self, at: int, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:  # longer than a line may be: where the next begins is not known
                _write(writer, {"error": f"a line has at most {LINE_BYTES} bytes"})
                return
            if not line.endswith(b"\n"):
                return
            if until := self._asked[at].take():
                _write(writer, {"refused": "slow"})
                await sleep_until(until)
                continue
            _write(writer, await self.answer(at, name, line, writer))

    async def answer(
        self, at: int, name: str, line: bytes, writer: asyncio.StreamWriter | None = None
    ) -> Answer:
        """To a program of node `at` in the instance of this name, at the other end of `writer`."""
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return {"error": "this is not a line of JSON"}
        if type(said) is not dict:
            return {"error": 'a request is an object, such as {"do": "hello"}'}
        match said.get("do"):
            case "hello":
                links = [self._end_of(one, at) for one in self._radios.links(at)]
                found = {"node": self._names[at], "radios": self._radios.each, "links": links}
                return {"ok": {**found, "at_ns": max(self._elapsed(), 0)}}
            case "visible":
                return {"ok": self._visible(at)}
            case "request":
                return await self._request(at, name, said, writer)
            case "release":
                return self._release(at, name, said)
        return {"error": "do is hello, visible, request or release"}

    def _visible(self, at: int) -> list[dict[str, object]]:
        """The nearest first, of equally near ones the first of the file."""
        seen = sorted((self._distance_mm(at, other), other) for other in self._radios.sees(at))
        return [
            {
                "node": self._names[other],
                "distance_m": mm // 1000,
                "latency_ns": self._state(at, other).delay_ns,
            }
            for mm, other in seen
        ]

    def _link(self, at: int, other: int) -> int:
        """That from one node to another."""
        links = self._links[frozenset((at, other))]
        return next(link for link in links if self._ends[link][0] == at)

    def _state(self, at: int, other: int) -> LinkState:
        """What that link has now, or would have."""
        now_ns = self._schedule.clock.plan_time(max(self._elapsed(), 0))
        return self._traces.means(self._states[self._link(at, other)], now_ns, now_ns + 1)

    def _distance_mm(self, at: int, other: int) -> int:
        assert self._motion is not None
        step = self._motion.step_at(self._schedule.clock.plan_time(max(self._elapsed(), 0)))
        one, two = (self._motion.places[node][max(step, 0)] for node in (at, other))
        if one is None or two is None:
            return 0
        return isqrt(sum((p - q) ** 2 for p, q in zip(one, two, strict=True)))

    async def _request(
        self, at: int, name: str, said: Mapping[str, Any], writer: asyncio.StreamWriter | None
    ) -> Answer:
        to, radio = said.get("to"), said.get("radio")
        if type(to) is not str or to not in self._names or to == self._names[at]:
            return {"error": "to is another node, as `visible` has them"}
        if radio is not None and not self._is_radio(radio):
            return {"error": f"radio is 0 to {self._radios.each - 1}"}
        if self._network() is None or self._elapsed() < 0:
            return {"refused": "the run has not begun"}
        found = self._radios.request(at, self._names.index(to), radio)
        if isinstance(found, str):
            return {"refused": found}
        await self._switch(found, name, _ASKED, up=True)
        if not self._radios.holds(found):
            return {"refused": NOT_VISIBLE}  # any more
        for node in (found.a, found.b):
            self._say(node, {"say": "up", **self._granted(found, node)}, but=writer)
        return {"ok": self._granted(found, at)}

    def _release(self, at: int, name: str, said: Mapping[str, Any]) -> Answer:
        radio: Any = said.get("radio")
        if not self._is_radio(radio):
            return {"error": f"radio is 0 to {self._radios.each - 1}"}
        found = self._radios.release(at, radio)
        if found is not None:
            self._end(found, _RELEASED, name)
        return {"ok": {}}

    def _is_radio(self, value: object) -> bool:
        return type(value) is int and 0 <= value < self._radios.each

    def _end_of(self, one: RadioLink, at: int) -> dict[str, object]:
        """What a node is told of a link: with whom, by which radio and which device."""
        link, nodes = self._link(at, one.other(at)), self._topology.nodes
        radio = one.radio_a if at == one.a else one.radio_b
        device = nodes[self._topology.links[link].src].interface
        return {"node": self._other(one, at), "radio": radio, "interface": device}

    def _granted(self, one: RadioLink, at: int) -> dict[str, object]:
        """The same of one that is up, and what it carries from here now: null for no limit."""
        rate_bps = self._state(at, one.other(at)).rate_bps
        return {**self._end_of(one, at), "rate_bps": rate_bps or None}

    def _say(self, at: int, words: Answer, but: asyncio.StreamWriter | None = None) -> None:
        for writer in self._peers[at]:
            if writer is not but:
                _write(writer, words)

    def close(self) -> None:
        """Nothing is granted after this."""
        for server in self._servers:
            server.close()
        for peers in self._peers:
            for writer in peers:
                writer.transport.abort()
        for task in self._tasks:
            task.cancel()


def _write(writer: asyncio.StreamWriter, words: Answer) -> None:
    """To who reads; who does not is hung up on."""
    transport = writer.transport
    if transport.get_write_buffer_size() > UNREAD_BYTES:
        transport.abort()
    elif not transport.is_closing():
        writer.write(json.dumps(words, separators=(",", ":")).encode() + b"\n")


def _bound(pid: int) -> socket.socket:
    """A socket in the network namespace of this process; the thread is in it afterwards."""
    pidfd = os.pidfd_open(pid)
    try:
        namespaces.enter_network(pidfd)
    finally:
        os.close(pidfd)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.bind("\0" + LINKS_SOCKET)
    return found
