"""Commands of `expect run` in a cluster: through the API server, into the container."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from runtime.backend.instance import Incarnation, Ran, UnreachableError
from runtime.backend.k8s.podcommands import PodCommands
from runtime.errors import RunError
from tests.doubles import api
from tests.doubles.api import FakeApi, Trouble, ended, says
from tests.intime import Attempt, in_time
from tests.runtime.k8s import scene
from tests.runtime.k8s.scene import Scene


async def going(_life: Incarnation) -> None:
    """It is not paused."""


def ran(server: FakeApi, *argv: str) -> Coroutine[Any, Any, Ran]:
    commands = PodCommands(server.api(), "server-0", {"TSTORM_IPV4": "10.244.0.2"}, going)
    life = Incarnation("a.0", 0)
    return commands.run(life, commands.resolved(argv))


def test_a_command_runs_to_its_end() -> None:
    long = b"\n".join(b"line %d" % number for number in range(40))

    async def play(server: FakeApi) -> None:
        server.on_exec = lambda *_: says(b"first\n\nlast")
        assert await ran(server, "ping", "$TSTORM_IPV4", "$HOME") == Ran(0, ("first", "last"))
        assert server.execs == [("server-0", ["ping", "10.244.0.2", "$HOME"])]
        assert server.queries[-1]["container"] == "instance"
        server.on_exec = lambda *_: says(long, ended(3))
        found = await ran(server, "check")
        assert (found.status, found.said, len(found.lines)) == (3, "line 39", 10)

    api.act(play)


def test_a_command_that_cannot_be_run() -> None:
    missing = 'exec: "pong": executable file not found in $PATH'

    async def play(server: FakeApi) -> None:
        server.on_exec = lambda *_: says(b"", {"status": "Failure", "message": missing})
        assert await ran(server, "pong") == Ran(127, (missing,))
        server.on_exec = lambda *_: says(b"", {"status": "Failure", "message": "no container"})
        with pytest.raises(RunError, match="no container") as refusal:
            await ran(server, "x")
        assert not isinstance(refusal.value, UnreachableError)
        life = Incarnation("a.0", 0)
        life.gone.set_result(None)
        with pytest.raises(RunError, match="the instance is dead"):
            await PodCommands(server.api(), "server-0", {}, going).run(life, ["x"])

    api.act(play)


def test_a_command_does_not_begin_in_a_pause() -> None:
    async def play(server: FakeApi) -> None:
        never, life = asyncio.Event(), Incarnation("a.0", 0)
        waiting: list[Incarnation] = []

        async def paused(incarnation: Incarnation) -> None:
            waiting.append(incarnation)
            await never.wait()

        commands = PodCommands(server.api(), "server-0", {}, paused)
        assert await commands.run(life, ["x"], seconds=0.01) == Ran(None)
        assert (waiting, server.execs) == ([life], [])

    api.act(play)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (Trouble(status=403), "refuses to GET .*/exec: as asked"),
        (Trouble(cut=True), "gave no answer"),
        (Trouble(sends=b"HTTP/1.1 101 OK\r\nUpgrade: x\r\n\r\n"), "is no websocket"),
    ],
)
def test_an_api_server_that_is_away_proves_nothing(trouble: Trouble, words: str) -> None:
    async def play(server: FakeApi) -> None:
        server.trouble.append(trouble)
        with pytest.raises(UnreachableError, match=words):
            await ran(server, "x")

    api.act(play)


TEXT = """
service server img=x entrypoint=["/bin/server"]
service client img=x entrypoint=["/bin/client"]
bridge s
link server--s latency=5 up=10Mb symmetric
link client--s latency=5 up=10Mb symmetric
expect run "check $TSTORM_INSTANCE" ok on client within 3800ms after 100ms
at 4s quit
"""


def test_a_whole_run_runs_them_until_they_end_well(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        answers = iter([says(b"not yet", ended(1)), says(b"it is there")])
        scene.server.on_exec = lambda *_: next(answers)
        await scene.fill()
        final = await scene.run()
        assert (final.outcome, final.message) == ("completed", "")
        assert scene.server.execs == [("client-0", ["check", "client.0"])] * 2
        [record] = scene.of("expect_run")
        assert (record["target"], record["status"]) == ("client.0", 0)
        # A slow machine is asked before the client has joined: a try that reaches no container.
        assert record["tries"] >= len(scene.server.execs)
        assert record["output"] == ["it is there"]

    def trial(attempt: Attempt) -> None:
        """The client has to join, and to be asked twice, within four seconds."""
        place = tmp_path / attempt.name("try")
        place.mkdir()
        scene.act(TEXT, 2, place, play)

    in_time(trial)
