"""Requests and answers between two ends of a channel over real loopback TCP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from runtime.errors import RunError
from runtime.rpc import secure
from runtime.rpc.calls import Asker, RefusedError, answer
from runtime.rpc.secure import Channel, ChannelError, Server

KEY = bytes(range(32))
Talk = Callable[[Asker, list[dict[str, Any]]], Awaitable[Any]]


async def handle(request: dict[str, Any], _now: int) -> dict[str, object]:
    if request["do"] == "refuse":
        raise RunError("not today", "ask tomorrow")
    if request["do"] == "hang":
        await asyncio.Event().wait()
    return {"did": request["do"], "twice": 2 * request["n"]}


def converse(talk: Talk, serve: Callable[[Channel], Awaitable[None]] | None = None) -> Any:
    async def whole() -> Any:
        tasks: list[asyncio.Future[None]] = []

        def accept(channel: Channel) -> None:
            serving = serve(channel) if serve else answer(channel, handle)
            tasks.append(asyncio.ensure_future(serving))

        server = Server(KEY, accept)
        port = await server.listen("127.0.0.1", 0)
        says: list[dict[str, Any]] = []
        connection = await secure.connect("127.0.0.1", port, KEY)
        asker = Asker(connection.channel, says.append)
        try:
            return await asyncio.wait_for(talk(asker, says), 120)
        finally:
            await asker.close()
            await server.close()
            for task in tasks:
                task.cancel()

    return asyncio.run(whole())


def test_answers_come_in_order() -> None:
    async def talk(asker: Asker, _says: list[dict[str, Any]]) -> None:
        asked = [asker.ask({"do": "count", "n": n}, 60) for n in range(50)]
        answers = await asyncio.gather(*asked)
        assert [found.value["twice"] for found in answers] == [2 * n for n in range(50)]
        assert all(found.asked_ns < found.answered_ns for found in answers)

    converse(talk)


def test_a_refusal_has_the_agents_words_and_the_channel_lives() -> None:
    async def talk(asker: Asker, _says: list[dict[str, Any]]) -> None:
        with pytest.raises(RefusedError) as refusal:
            await asker.ask({"do": "refuse"}, 60)
        assert (refusal.value.message, refusal.value.remedy) == ("not today", "ask tomorrow")
        with pytest.raises(RefusedError, match="not a request: KeyError 'n'"):
            await asker.ask({"do": "count"}, 60)
        with pytest.raises(RefusedError, match="not a request: KeyError 'do'"):
            await asker.ask({}, 60)
        assert (await asker.ask({"do": "count", "n": 1}, 60)).value["twice"] == 2

    converse(talk)


def test_silence_ends_the_channel() -> None:
    async def talk(asker: Asker, _says: list[dict[str, Any]]) -> None:
        with pytest.raises(ChannelError, match=r"no answer to `hang` within 0\.2 s"):
            await asker.ask({"do": "hang"}, 0.2)
        with pytest.raises(ChannelError, match="is gone: no answer to `hang`"):
            await asker.ask({"do": "count", "n": 1}, 60)

    converse(talk)


def test_what_is_said_comes_between_answers() -> None:
    async def serve(channel: Channel) -> None:
        async def chatty(request: dict[str, Any], _now: int) -> dict[str, object]:
            channel.send({"say": "before", "n": request["n"]})
            return {}

        await answer(channel, chatty)

    async def talk(asker: Asker, says: list[dict[str, Any]]) -> None:
        for n in range(3):
            await asker.ask({"do": "x", "n": n}, 60)
        assert says == [{"say": "before", "n": n} for n in range(3)]

    converse(talk, serve)


LIES: list[dict[str, Any]] = [
    {},
    {"ok": 1},
    {"ok": None},
    {"error": 5},
    {"error": {}, "remedy": ""},
    {"ok": {}, "error": "both"},
    {"answer": {}},
]


@pytest.mark.parametrize("lie", LIES)
def test_an_answer_that_is_none_ends_the_channel(lie: dict[str, Any]) -> None:
    async def serve(channel: Channel) -> None:
        await channel.receive()
        channel.send(lie)
        await channel.closed

    async def talk(asker: Asker, _says: list[dict[str, Any]]) -> None:
        with pytest.raises(ChannelError, match="sent an invalid answer"):
            await asker.ask({"do": "x"}, 60)

    converse(talk, serve)


def test_an_answer_to_nothing_ends_the_channel() -> None:
    async def serve(channel: Channel) -> None:
        channel.send({"ok": {}})
        await channel.closed

    async def talk(asker: Asker, _says: list[dict[str, Any]]) -> None:
        assert "invalid answer" in await asker.channel.closed

    converse(talk, serve)


def test_an_end_while_waiting_is_an_error_at_once() -> None:
    async def serve(channel: Channel) -> None:
        await channel.receive()
        channel.give_up("test", "test")

    async def talk(asker: Asker, _says: list[dict[str, Any]]) -> None:
        waiting = [asker.ask({"do": "x"}, 60) for _ in range(3)]
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(error) for error in found] == [ChannelError] * 3

    converse(talk, serve)


def test_the_last_answer_arrives_before_the_end() -> None:
    async def serve(channel: Channel) -> None:
        await answer(channel, handle, last=lambda: True)

    async def talk(asker: Asker, _says: list[dict[str, Any]]) -> None:
        assert (await asker.ask({"do": "stop", "n": 4}, 60)).value["twice"] == 8
        await asker.channel.closed
        assert asker.channel.clean

    converse(talk, serve)


def test_a_fault_in_the_handler_ends_the_channel_at_once() -> None:
    faults: list[BaseException] = []

    async def serve(channel: Channel) -> None:
        async def broken(_request: dict[str, Any], _now: int) -> dict[str, object]:
            raise AssertionError("oops")

        try:
            await answer(channel, broken)
        except AssertionError as error:
            faults.append(error)

    async def talk(asker: Asker, _says: list[dict[str, Any]]) -> None:
        with pytest.raises(ChannelError, match="the connection was cut"):
            await asker.ask({"do": "x"}, 60)
        assert [str(fault) for fault in faults] == ["oops"]

    converse(talk, serve)
