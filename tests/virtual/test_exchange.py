"""The control socket of a run in virtual time: questions go to a guest, here a script, and back."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import RunError
from runtime.rpc import control
from runtime.virtual import control_exchange, time_limits
from runtime.virtual.clockpage import NEVER, ClockPage, State
from runtime.virtual.control_exchange import STEP_NS, ControlExchange
from runtime.virtual.line import PARTS
from runtime.virtual.time_limits import LEAD_NS, RealPace, TimeLimits
from tests.waiting import in_a_loop

Record = dict[str, Any]


class Guest:
    """What the exchange puts on the line, in order; `say` answers."""

    def __init__(self, path: Path) -> None:
        self.heard: asyncio.Queue[Record] = asyncio.Queue()
        self.asked: list[str] = []
        self.path = path
        self.page = ClockPage.create()
        self.told: list[str] = []
        self.begun_ns = 1_000
        limits, send = TimeLimits(self.page), self.heard.put_nowait
        self.exchange = ControlExchange(
            path,
            lambda record: send({**record}),
            self.note,
            limits,
            RealPace(limits),
            lambda: self.begun_ns,
            self.told.append,
        )

    def note(self, what: str) -> None:
        self.asked.append(what)

    def pause(self, now_ns: int, next_ns: int = NEVER) -> None:
        """It waits then, for nothing that comes by itself, or for this moment."""
        page = self.page._page
        page.now_ns, page.next_ns, page.state = now_ns, next_ns, State.WAITS

    async def until_limit(self, limit_ns: int | None) -> None:
        while self.page.limit_ns != limit_ns:
            await asyncio.sleep(0.001)

    async def next(self) -> Record:
        return await asyncio.wait_for(self.heard.get(), 10)

    def say(self, number: int, **said: object) -> None:
        self.exchange.hear({"call": number, "say": said})

    def end(self, number: int) -> None:
        self.exchange.hear({"call": number, "over": True})

    async def ask(self, **request: object) -> Record:
        return (await asyncio.to_thread(control.ask, self.path, request))[0]

    @asynccontextmanager
    async def stream(self, **request: object) -> AsyncIterator[Stream]:
        reader, writer = await asyncio.open_unix_connection(str(self.path), limit=1 << 26)
        stream = Stream(reader, writer)
        stream.say(**request)
        try:
            yield stream
        finally:
            writer.close()


class Stream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def say(self, **said: object) -> None:
        self._writer.write(json.dumps(said).encode() + b"\n")

    async def next(self) -> Record | None:
        line = await asyncio.wait_for(self._reader.readline(), 10)
        return json.loads(line) if line else None


def played(scene: Callable[[Guest], Coroutine[Any, Any, None]], folder: Path) -> Guest:
    async def play() -> Guest:
        guest = Guest(folder / "control.sock")
        await scene(guest)
        await guest.exchange.close()
        return guest

    guest = asyncio.run(play())
    assert not guest.path.exists()
    return guest


def test_answers_reach_who_asked_in_whatever_order_they_come(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        first = asyncio.create_task(guest.ask(ask="state", who=1))
        one = await guest.next()
        second = asyncio.create_task(guest.ask(ask="state", who=2))
        two = await guest.next()
        assert (one["say"]["who"], two["say"]["who"]) == (1, 2)
        guest.say(two["call"], answer="two")
        guest.end(two["call"])
        assert await second == {"answer": "two"}
        guest.say(one["call"], answer="one")
        guest.end(one["call"])
        assert await first == {"answer": "one"}

    assert played(scene, tmp_path).asked == ["state", "state"]


def test_nobody_else_may_connect(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        assert guest.path.stat().st_mode & 0o777 == 0o600
        assert guest.path.stat().st_uid == os.geteuid()

    played(scene, tmp_path)


def test_an_answer_of_many_megabytes_arrives_whole(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        rows = [[number, "x" * 100] for number in range(100_000)]
        asking = asyncio.create_task(guest.ask(ask="state"))
        call = (await guest.next())["call"]
        guest.say(call, links=rows)
        guest.end(call)
        assert await asking == {"links": rows}

    played(scene, tmp_path)


def test_a_refusal_is_raised_where_the_question_was_asked(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        asking = asyncio.create_task(guest.ask(ask="state"))
        call = (await guest.next())["call"]
        guest.say(call, error="not now", remedy="later")
        guest.end(call)
        with pytest.raises(RunError, match="not now") as found:
            await asking
        assert found.value.remedy == "later"

    played(scene, tmp_path)


def test_a_guest_that_does_not_answer_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_exchange, "ANSWER_SECONDS", 0.05)

    async def scene(guest: Guest) -> None:
        asking = asyncio.create_task(guest.ask(ask="state"))
        call = (await guest.next())["call"]
        with pytest.raises(RunError, match="did not answer") as found:
            await asking
        assert "compute without a pause" in found.value.remedy
        assert await guest.next() == {"call": call, "over": True}
        guest.say(call, late=True)  # is nobody's any more

    played(scene, tmp_path)


def test_entering_is_answered_without_the_guest(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        assert await guest.ask(ask="enter", instance="a.0") == {"time": "virtual"}
        assert guest.heard.empty()

    assert played(scene, tmp_path).asked == []


@pytest.mark.parametrize(
    "line", [b"{}\n", b'{"ask": 1}\n', b"no json\n", b"[]\n", b"\n", b"{}{}\n", b"{}\n{}\n"]
)
def test_what_is_no_request_does_not_reach_the_guest(tmp_path: Path, line: bytes) -> None:
    async def scene(guest: Guest) -> None:
        reader, writer = await asyncio.open_unix_connection(str(guest.path))
        writer.write(line)
        assert "error" in json.loads(await reader.readline())
        writer.close()
        assert guest.heard.empty()

    played(scene, tmp_path)


def test_a_peer_that_hangs_up_ends_its_call(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        async with guest.stream(ask="exec"):
            call = (await guest.next())["call"]
        assert await guest.next() == {"call": call, "over": True}
        assert (await guest.ask(ask="enter"))["time"] == "virtual"  # others are served

    played(scene, tmp_path)


def test_a_stream_goes_both_ways_and_parts_are_confirmed(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        async with guest.stream(ask="exec") as stream:
            call = (await guest.next())["call"]
            guest.say(call, started=True)
            guest.say(call, out="aGk=")
            assert await stream.next() == {"started": True}
            assert await stream.next() == {"out": "aGk="}
            assert await guest.next() == {"call": call, "took": True}
            for number in range(2 * PARTS):
                stream.say(**{"in": str(number)})
            for number in range(PARTS):
                assert await guest.next() == {"call": call, "say": {"in": str(number)}}
            assert guest.heard.empty()  # the others wait until these are taken
            guest.exchange.hear({"call": call, "took": True})
            assert await guest.next() == {"call": call, "say": {"in": str(PARTS)}}
            guest.say(call, status=3)
            guest.end(call)
            assert await stream.next() == {"status": 3}
            assert await stream.next() is None
            assert guest.heard.empty()  # who said the last word need not hear that it is over

    played(scene, tmp_path)


@in_a_loop
async def test_the_end_of_the_run_is_the_end_of_every_call(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        async with guest.stream(ask="exec") as stream:
            call = (await guest.next())["call"]
            guest.say(call, status=137)
            closing = asyncio.create_task(guest.exchange.close())
            assert await stream.next() == {"status": 137}
            assert await stream.next() is None
            await closing

    await scene(Guest(tmp_path / "control.sock"))


def test_a_guest_cannot_answer_what_nobody_asked(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        for number in (1, 0, -1):
            with pytest.raises(RunError, match="nobody asked"):
                guest.exchange.hear({"call": number, "say": {}})
        for wrong in ("1", None, 1.5):
            with pytest.raises(RunError, match="call"):
                guest.exchange.hear({"call": wrong, "say": {}})

    played(scene, tmp_path)


@pytest.mark.parametrize("said", [5, "out", ["out"], None])
def test_an_answer_is_an_object(tmp_path: Path, said: object) -> None:
    async def scene(guest: Guest) -> None:
        asking = asyncio.create_task(guest.ask(ask="state"))
        number = (await guest.next())["call"]
        with pytest.raises(RunError, match="say"):
            guest.exchange.hear({"call": number, "say": said})
        guest.say(number, answer=1)
        guest.end(number)
        assert await asking == {"answer": 1}

    played(scene, tmp_path)


def test_a_connection_that_says_nothing_is_no_call(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
            silent.connect(str(guest.path))
            assert (await guest.ask(ask="enter"))["time"] == "virtual"
        assert guest.heard.empty()

    played(scene, tmp_path)


def test_time_is_held_to_real_time_while_somebody_types(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        async with guest.stream(ask="exec", terminal=None):
            await guest.next()
            await guest.until_limit(None)
        await guest.next()
        async with guest.stream(ask="exec", terminal=[24, 80]):
            await guest.next()
            assert guest.page.limit_ns is not None
        await guest.next()
        while guest.page.limit_ns is not None:
            await asyncio.sleep(0.001)

    played(scene, tmp_path)


def test_a_guest_that_is_slower_than_real_time_does_not_catch_up() -> None:
    page = ClockPage.create()
    pace = RealPace(TimeLimits(page))
    for _ in range(10):
        pace.advance(LEAD_NS)
    assert page.limit_ns == LEAD_NS  # its clock has not moved
    page.close()


# --- time that is stopped ---


def test_an_action_comes_while_time_stands_still(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        guest.pause(5_000)
        async with guest.stream(ask="stop") as stream:
            told = {"at_ns": 5_000, "stopped_ns": 4_000, "now_ns": 4_000}
            assert await stream.next() == told
            assert guest.page.limit_ns == 5_000
            assert guest.heard.empty()
            stream.say(plan="longer")
            call = await guest.next()
            assert call["say"] == {"ask": "do", "plan": "longer"}
            assert guest.page.read().state == State.RUNS
            assert guest.page.limit_ns == 5_000
            guest.pause(5_000)  # looks at the clock: it waits for its own time
            await guest.until_limit(5_000 + control_exchange.ACTION_NS)
            guest.say(call["call"], ok={"action": 1})
            guest.end(call["call"])
            assert await stream.next() == {"ok": {"action": 1}}
            await guest.until_limit(5_000 + control_exchange.ACTION_NS)  # and no further
        await guest.until_limit(None)
        assert guest.heard.empty()
        assert guest.asked == []  # it comes again, and changes nothing that it does not say

    played(scene, tmp_path)


def test_an_action_has_time_where_others_hold_it_and_no_more_than_it_takes(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        guest.pause(5_000)
        guest.exchange._limits.set("another", 5_000)
        async with guest.stream(ask="stop") as stream:
            await stream.next()
            stream.say(plan="longer")
            call = await guest.next()
            guest.pause(5_000, 5_256)  # looks at the clock
            await guest.until_limit(5_256)
            guest.pause(5_256, 5_512)
            await guest.until_limit(5_512)
            guest.say(call["call"], ok={"action": 1})
            assert await stream.next() == {"ok": {"action": 1}}
            await guest.until_limit(5_000)
        await guest.until_limit(5_000)

    played(scene, tmp_path)


def test_an_answer_takes_no_time_where_it_stands_still(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        assert guest.page._page.free_turns == 0
        async with guest.stream(ask="exec") as stream:
            call = await guest.next()
            assert guest.page._page.free_turns == time_limits.FREE_TURNS
            asking = asyncio.create_task(guest.ask(ask="state"))
            other = await guest.next()
            guest.say(other["call"], live=True)
            guest.end(other["call"])
            assert await asking == {"live": True}
            assert guest.page._page.free_turns == time_limits.FREE_TURNS
            guest.end(call["call"])
            assert await stream.next() is None
        assert guest.page._page.free_turns == 0

    played(scene, tmp_path)


def test_an_action_that_is_not_taken_is_a_question_like_others(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        guest.pause(5_000)
        async with guest.stream(ask="stop") as stream:
            await stream.next()
            stream.say(plan="longer")
            guest.say((await guest.next())["call"], error="no")
            assert await stream.next() == {"error": "no"}
        await guest.until_limit(None)

    assert played(scene, tmp_path).asked == ["do"]


def test_who_stops_time_and_goes_away_changes_nothing(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        guest.pause(5_000)
        async with guest.stream(ask="stop") as stream:
            await stream.next()
        await guest.until_limit(None)
        assert guest.heard.empty()

    assert played(scene, tmp_path).asked == []


def test_time_is_held_and_goes_on_and_the_guest_hears_nothing(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        guest.pause(5_000)
        assert await guest.ask(ask="go time") == {"went": False}
        assert await guest.ask(ask="held time") == {"time_held_ns": None}
        assert await guest.ask(ask="hold time") == {"time_held_ns": 4_000}
        with pytest.raises(RunError, match="held already"):
            await guest.ask(ask="hold time")
        assert await guest.ask(ask="held time") == {"time_held_ns": 4_000}
        guest.pause(5_512)  # some looks at the clock later
        async with guest.stream(ask="stop") as stream:
            told = {"at_ns": 5_000, "stopped_ns": 4_000, "now_ns": 4_512}
            assert await stream.next() == told
        asking = asyncio.create_task(guest.ask(ask="state"))
        call = (await guest.next())["call"]
        guest.say(call, live=True)
        guest.end(call)
        assert await asking == {"live": True, "time_held_ns": 4_000}
        await guest.until_limit(5_000)
        assert await guest.ask(ask="go time") == {"went": True}
        await guest.until_limit(None)
        assert guest.heard.empty()

    guest = played(scene, tmp_path)
    assert guest.asked == ["state"]
    assert [words.partition(":")[0] for words in guest.told] == [
        "time is held at 0.000004 s",
        "time goes on",
    ]


def test_time_is_not_stopped_before_the_run_has_begun(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        guest.pause(5_000)
        for begun_ns in (0, 6_000):
            guest.begun_ns = begun_ns
            with pytest.raises(RunError, match="has not begun"):
                await guest.ask(ask="stop")
            await guest.until_limit(None)

    played(scene, tmp_path)


def test_time_is_held_at_0_if_the_run_has_not_begun(tmp_path: Path) -> None:
    async def scene(guest: Guest) -> None:
        guest.begun_ns = 0
        guest.pause(5_000, 5_001)
        asking = asyncio.create_task(guest.ask(ask="hold time"))
        await guest.until_limit(5_000 + STEP_NS)
        guest.begun_ns = 9 * STEP_NS  # it is ready
        guest.pause(5_000 + STEP_NS)
        await guest.until_limit(9 * STEP_NS)
        guest.pause(9 * STEP_NS)
        assert await asking == {"time_held_ns": 0}

    assert played(scene, tmp_path).told[0].startswith("time is held at 0 s")


def test_a_run_that_does_not_begin_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_exchange, "BEGIN_SECONDS", -1.0)

    async def scene(guest: Guest) -> None:
        guest.begun_ns = 0
        guest.pause(5_000)
        with pytest.raises(RunError, match="has not begun"):
            await guest.ask(ask="hold time")
        await guest.until_limit(None)

    played(scene, tmp_path)


def test_a_guest_that_does_not_pause_is_not_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits.TimeLimits.stop, "__defaults__", (0.02,))

    async def scene(guest: Guest) -> None:
        guest.page._page.state = State.RUNS
        with pytest.raises(RunError, match="did not come to a stop"):
            await guest.ask(ask="hold time")
        assert guest.page.limit_ns is None
        assert await guest.ask(ask="go time") == {"went": False}

    played(scene, tmp_path)
