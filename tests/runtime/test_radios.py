"""Programs ask for links: the rules beside others of the same, and the socket and its bytes."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.sources import SourceFolder
from runtime.driver import link_requests
from runtime.driver.link_requests import LinkRequests
from runtime.driver.radios import BUSY, EXISTS, NO_FREE_RADIO, NOT_VISIBLE, RadioLink, Radios
from runtime.options import RunOptions
from runtime.schedule import Schedule
from runtime.system import namespaces
from tests.doubles.backend import FakeNetwork
from tests.waiting import in_a_loop, until

NODES, EACH = 4, 2
_node, _radio = st.integers(0, NODES - 1), st.none() | st.integers(0, EACH - 1)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("see"), _node, _node, st.booleans()),
        st.tuples(st.just("ask"), _node, _node, _radio),
        st.tuples(st.just("release"), _node, st.integers(0, EACH - 1), st.none()),
    ),
    max_size=40,
)


def _expected(
    links: list[dict[int, int]], seen: set[frozenset[int]], a: int, b: int, radio: int | None
) -> str:
    """Why a request is refused, from the list of links alone: of each its nodes with their radios;
    '' if it is not."""
    used = {(node, one[node]) for one in links for node in one}
    free = [[r for r in range(EACH) if (node, r) not in used] for node in (a, b)]
    if not free[0] or (radio is not None and radio not in free[0]):
        return BUSY
    if frozenset((a, b)) not in seen:
        return NOT_VISIBLE
    if any({a, b} <= one.keys() for one in links):
        return EXISTS
    return "" if free[1] else NO_FREE_RADIO


@given(_steps)
def test_links_are_granted_by_the_rules(steps: list[tuple[str, int, int, Any]]) -> None:
    radios = Radios(NODES, EACH)
    links: list[dict[int, int]] = []
    seen: set[frozenset[int]] = set()
    for word, a, b, more in steps:
        if word == "release":
            ended = radios.release(a, b)
            gone = [one for one in links if one.get(a) == b]
            assert (ended is None) == (not gone)
            links = [one for one in links if one not in gone]
        elif a != b and word == "see":
            is_new, lost = radios.see(a, b, sees=more)
            assert is_new == ((frozenset((a, b)) in seen) != more)
            gone = [one for one in links if {a, b} <= one.keys() and not more]
            assert (lost is None) == (not gone)
            links = [one for one in links if one not in gone]
            (seen.add if more else seen.discard)(frozenset((a, b)))
        elif a != b:
            why = _expected(links, seen, a, b, more)
            found = radios.request(a, b, more)
            assert found == why if why else isinstance(found, RadioLink)
            if isinstance(found, RadioLink):
                assert more in (None, found.radio_a)
                links.append({found.a: found.radio_a, found.b: found.radio_b})
    for node in range(NODES):
        held = [{one.a: one.radio_a, one.b: one.radio_b} for one in radios.links(node)]
        assert sorted(map(str, held)) == sorted(str(one) for one in links if node in one)


# --- the socket -----------------------------------------------------------------------------------

# Three routers 2 m apart in a row reach their neighbours; the last goes away at 1 s.
MOVES = "time,node,x,y\n0,a,0,0\n0,b,2,0\n0,c,4,0\n1,a,0,0\n1,b,2,0\n1,c,40,0\n2,c,40,0\n"
TEXT = """\
service r router
mobility m.csv nodes=r range=3m transceivers=1 rate=bands.csv allocate=program
at 3s quit
"""


class Life:
    """Of an instance, in this process's network."""

    pid = os.getpid()

    def __init__(self) -> None:
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Requests:
    """Of a run with a network that does nothing."""

    def __init__(self, folder: Path) -> None:
        (folder / "m.csv").write_text(MOVES)
        (folder / "bands.csv").write_text("distance,rate\n0,54Mb\n1,24Mb\n")
        plan = compile_source(TEXT, sources=SourceFolder(folder)).plan
        schedule = Schedule(plan, RunOptions())
        self.network: Any = FakeNetwork(lambda *_: None, schedule.clock)
        self.records: list[Mapping[str, Any]] = []
        self.all = LinkRequests(
            plan, schedule, lambda: self.network, lambda: 5, self.records.append
        )
        self.plan = plan

    async def ask(self, name: str, **words: object) -> Mapping[str, Any]:
        at = int(name.rpartition(".")[2])
        return await self.all.answer(at, name, json.dumps(words).encode())


@in_a_loop
async def test_a_program_asks_and_both_ends_of_the_link_are_taken_up(tmp_path: Path) -> None:
    run = Requests(tmp_path)
    hello = await run.ask("r.1", do="hello")
    assert hello == {"ok": {"node": "r.1", "radios": 1, "links": [], "at_ns": 5}}
    near = {"distance_m": 2, "latency_ns": 7}  # 2 m of light: 6.67 ns
    seen = [{"node": "r.0", **near}, {"node": "r.2", **near}]
    assert await run.ask("r.1", do="visible") == {"ok": seen}
    assert await run.ask("r.0", do="request", to="r.2") == {"refused": "not visible"}
    granted = await run.ask("r.1", do="request", to="r.2")
    link = {"node": "r.2", "radio": 0, "interface": "eth1", "rate_bps": 24_000_000}
    assert granted == {"ok": link}
    ((links, up),) = run.network.used
    assert [run.plan.topology.links[link].name for link in links] == ["r.1->r.2", "r.2->r.1"]
    assert up
    (record,) = run.records
    assert (record["target"], record["origin"]) == ("r.1--r.2", "r.1")
    assert record["args"] == {"up": 1, "why": "asked", "radio": 0, "other": 0}
    assert await run.ask("r.1", do="request", to="r.0") == {"refused": "busy"}
    assert await run.ask("r.0", do="request", to="r.1") == {"refused": "no free radio"}
    assert await run.ask("r.2", do="release", radio=0) == {"ok": {}}
    await until(lambda: len(run.records) == 2, "the end of the link")
    assert run.network.used[-1] == (links, False)
    assert run.records[-1]["args"]["why"] == "released"


@in_a_loop
async def test_a_link_ends_when_its_nodes_do_not_reach_each_other_any_more(tmp_path: Path) -> None:
    run = Requests(tmp_path)
    assert "ok" in await run.ask("r.2", do="request", to="r.1", radio=0)
    for number in range(1, len(run.all._schedule.steps)):
        run.all.step(number)
    await until(lambda: len(run.records) == 2, "the end of the link")
    assert run.records[-1]["args"] == {"up": 0, "why": "lost", "radio": 0, "other": 0}
    assert await run.ask("r.2", do="visible") == {"ok": []}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"[" * 60000,
        b"1" * 60000,
        b"[]",
        b'{"do":"drop"}',
        b'{"do":["hello"]}',
        b'{"do":"request"}',
        b'{"do":"request","to":"r.1"}',
        b'{"do":"request","to":"r.0","radio":1e999}',
        b'{"do":"request","to":"r.0","radio":true}',
        b'{"do":"release","radio":-1}',
        b'{"do":"release","radio":null}',
    ],
)
@in_a_loop
async def test_what_is_no_request_is_answered_and_changes_nothing(
    tmp_path: Path, line: bytes
) -> None:
    run = Requests(tmp_path)
    assert "error" in await run.all.answer(1, "r.1", line)
    assert not run.records


@given(st.binary(max_size=200) | st.text().map(lambda text: json.dumps({"do": text}).encode()))
@in_a_loop
async def test_any_bytes_have_an_answer(
    tmp_path_factory: pytest.TempPathFactory, line: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "radios"
    folder.mkdir(exist_ok=True)
    assert len(await Requests(folder).all.answer(0, "r.0", line)) == 1


@in_a_loop
async def test_the_socket_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers beyond the most are hung up on, and so is who sends a line without an end; who asks
    too often is told so."""
    name = f"tstorm-test-{os.getpid()}"
    monkeypatch.setattr(link_requests, "LINKS_SOCKET", name)
    monkeypatch.setattr(link_requests, "MOST_PEERS", 2)
    monkeypatch.setattr(namespaces, "enter_network", lambda _pidfd: None)

    ends: list[asyncio.StreamWriter] = []

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        end = socket.socket(socket.AF_UNIX)
        end.connect("\0" + name)
        reader, writer = await asyncio.open_unix_connection(sock=end)
        ends.append(writer)
        return reader, writer

    run, life = Requests(tmp_path), Life()
    await run.all.listen("r.0", life)  # type: ignore[arg-type]
    one, two = await connect(), await connect()
    for number, (reader, writer) in enumerate((one, two)):
        writer.write(b'{"do":"hello"}\n')
        assert b'"ok"' in await reader.readline(), number
    third, _ = await connect()
    assert await third.read() == b""
    one[1].write(b"x" * (link_requests.LINE_BYTES + 10))
    assert b"at most" in await one[0].readline()
    assert await one[0].read() == b""
    two[1].write(b'{"do":"visible"}\n' * (link_requests.MOST_ASKED + 1))
    answers = [await two[0].readline() for _ in range(link_requests.MOST_ASKED)]
    assert b'{"refused":"slow"}\n' in answers
    life.gone.set_result(None)
    assert await two[0].read() is not None  # hung up on, with what was on its way
    run.all.close()
    for end in ends:
        end.close()
        with suppress(OSError):
            await end.wait_closed()
