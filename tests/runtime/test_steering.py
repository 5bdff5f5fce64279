"""The timeline of a run that goes on becomes another one (runtime/driver/steering.py), with
instances that only write; and peers of the control socket that mean no good."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from compiler.extension import extend, go, hold, skip
from compiler.pipeline import Compilation, compile_source, write
from compiler.plan.reader import Plan, read_plan
from compiler.plan.storage import scratch
from compiler.sources import RecordedFiles
from runtime.driver.steering import Steering
from runtime.driver.timelinerunner import TimelineRunner
from runtime.errors import RunError
from runtime.options import RunOptions
from runtime.rpc import control
from runtime.rpc.control import ControlServer, answered_by
from runtime.rundir.runfiles import LONGER_PLAN
from runtime.schedule import Schedule
from tests.doubles.backend import FakeInstance, FakeNetwork
from tests.waiting import in_a_loop, until

MS = 1_000_000
TEXT = """\
service a img=x replicas=2
service b img=x
bridge s
link a--s latency=1
link b--s latency=1
at 1500ms b leave
at 4s b join
at 6s quit
"""


class Scene:
    """A run of TEXT in `folder`, and how it is steered."""

    def __init__(self, folder: Path, text: str = TEXT, **options: Any) -> None:
        self.folder = folder
        write(compile_source(text), folder / "plan")
        plan = read_plan(folder / "plan")
        self.options = RunOptions(**options)
        schedule = Schedule(plan, self.options)
        self.events: list[Mapping[str, Any]] = []
        self.asked: list[str] = []
        nodes = [node for node in plan.topology.nodes if node.service >= 0]
        self.lives = {
            node.name: FakeInstance(node, 10 * number, self.asked, lag_ns=0)
            for number, node in enumerate(nodes)
        }
        self.runner = TimelineRunner(
            plan, schedule, self.lives, self.events.append, lambda _text: None
        )
        self.network: Any = FakeNetwork(self.runner.on_effect, schedule.clock)
        self.followed: list[Schedule] = []
        self.steering = Steering(
            folder,
            self.options,
            self.runner,
            lambda: self.network,
            self.events.append,
            self.followed.append,
        )

    async def play(self, meanwhile: Callable[[], Any]) -> None:
        """The whole run, with something beside it that begins at time 0."""
        await self.runner.stage_start(self.network)
        carrying = asyncio.create_task(self.runner.carry_out(self.network))
        await until(lambda: self.of("join"), "time 0")
        await meanwhile()
        await carrying
        await self.steering.finish()
        for one in self.lives.values():
            one.close()

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    async def do(self, text: str) -> dict[str, Any]:
        """As often as it takes on a slow machine."""
        for lead_ns in (150 * MS, 500 * MS, 1000 * MS):
            moment = await self.steering.moment({"lead_ns": lead_ns})
            answer = await self.offer(read_plan(self.folder / "plan"), moment, text)
            if "ok" in answer:
                break
        return answer

    async def offer(self, plan: Plan, moment: Mapping[str, Any], text: str) -> dict[str, Any]:
        longer = extend(plan, moment["number"], text, moment["at_ns"])
        return await self.take(longer, moment, text)

    async def take_each(self, acts: Sequence[Callable[[Plan, int, int], Compilation]]) -> None:
        """One after the other."""
        for act in acts:
            moment: dict[str, Any] = {**await self.steering.moment({"lead_ns": 500 * MS})}
            plan = read_plan(self.folder / "plan")
            longer = act(plan, moment["number"], moment["at_ns"])
            assert "ok" in await self.take(longer, moment)

    async def take(
        self, longer: Compilation, moment: Mapping[str, Any], text: str = ""
    ) -> dict[str, Any]:
        with scratch.directory(self.folder, LONGER_PLAN) as path:
            for name, data in longer.files.items():
                (path / name).write_bytes(data)
            request = {"plan": path.name, "text": text, **moment}
            return dict(await self.steering.do(request))


@in_a_loop
async def test_an_action_is_carried_out_like_what_is_planned(tmp_path: Path) -> None:
    scene = Scene(tmp_path)

    async def steer() -> None:
        first = await scene.do("a.1 crash\nat +300ms a.1 join")
        assert first["ok"]["action"] == 1
        assert [one["kind"] for one in first["ok"]["first"]] == ["crash", "join"]
        second = await scene.do("a--s set latency=9ms")
        assert second["ok"]["action"] == 2
        assert scene.runner.schedule.total == scene.runner.planned

    await scene.play(steer)
    (crash,) = scene.of("crash")
    assert (crash["target"], crash["origin"], crash["action"]) == ("a.1", "manual", 1)
    assert (crash["file"], crash["line"]) == ("do@1", 1)
    assert crash["lag_ns"] >= 0
    joins = [one["target"] for one in scene.of("join")]
    assert joins == ["a.0", "a.1", "b.0", "a.1", "b.0"]
    assert [one["action"] for one in scene.of("do")] == [1, 2]
    assert [one["text"] for one in scene.of("do")][1] == "a--s set latency=9ms"
    planned = [one for one in scene.events if one.get("seq", -1) >= 0]
    plan = read_plan(tmp_path / "plan")
    assert sorted(one["seq"] for one in planned) == [event.seq for event in plan.events]
    assert all("origin" not in one for one in planned if "do@" not in one.get("file", ""))
    assert scene.runner.applied == scene.runner.planned == len(plan.events)
    assert read_plan(tmp_path / "planned").source == TEXT.encode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan", "planned"]
    assert len(scene.followed) == 2


@in_a_loop
async def test_changes_of_links_are_added_at_once_and_written_later(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TEXT.replace("6s quit", "9s quit"))  # for slow machines
    clock = scene.runner.schedule.clock

    async def change(number: int, value: int) -> dict[str, Any]:
        for _ in range(20):
            free_ns = int(str(scene.steering.link_moment()["free_ns"]))
            now_ns = clock.plan_time(scene.runner.elapsed()) + 5 * MS
            at_ns = max(free_ns, now_ns // MS * MS)
            answer = await scene.steering.grow(
                {
                    "number": number,
                    "at_ns": at_ns,
                    "said": "x",
                    "events": [["set", "a.0->s", {"delay_ns": value}, 1]],
                    "action": f"at {at_ns}ns a.0->s set latency={value}ns\n",
                }
            )
            if "again" not in answer:
                break
        return answer

    async def steer() -> None:
        for number in range(1, 6):
            answer = await change(number, (number + 1) * MS)
            assert answer.get("ok", answer).get("action") == number, answer
        assert "whole" in await change(5, 7 * MS)  # that number is taken
        assert scene.runner.schedule.total == scene.runner.planned
        second = await scene.do("a.1 crash")  # which sees what is not written yet
        assert second["ok"]["action"] == 6
        assert (await change(7, 9 * MS))["ok"]["action"] == 7
        with pytest.raises(RunError, match="cannot be used"):
            await scene.steering.grow(
                {"number": 8, "at_ns": 5900 * MS, "said": "", "events": [["quit", "", {}, 1]],
                 "action": ""}
            )  # fmt: skip
        with pytest.raises(RunError, match="not the name"):
            await scene.steering.grow({"number": 8, "at_ns": 1, "said": "", "left": "../plan"})
        assert (await change(8, 3 * MS))["ok"]["action"] == 8

    await scene.play(steer)
    plan = read_plan(tmp_path / "plan")
    again = compile_source(plan.source, seed=plan.seed, sources=RecordedFiles(plan))
    assert again.files == {name: plan.raw(name) for name in again.files}
    assert len(scene.of("set")) == 7
    assert scene.runner.applied == scene.runner.planned == len(plan.events)
    planned = [one for one in scene.events if one.get("seq", -1) >= 0]
    assert sorted(one["seq"] for one in planned) == [event.seq for event in plan.events]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan", "planned"]


@in_a_loop
async def test_who_was_overtaken_has_changes_of_links_wait(tmp_path: Path) -> None:
    scene = Scene(tmp_path)

    async def steer() -> None:
        scene.steering.link_moment()
        for lead_ns in (500 * MS, 1500 * MS):  # as often as it takes on a slow machine
            moment = await scene.steering.moment({"lead_ns": lead_ns, "reserve": True})
            request = {"number": 1, "at_ns": moment["at_ns"], "said": "", "events": []}
            grown = asyncio.create_task(scene.steering.grow({**request, "action": ""}))
            await asyncio.sleep(0)
            answer = await scene.offer(read_plan(tmp_path / "plan"), moment, "a.1 crash")
            if "ok" in answer:
                break
        assert answer["ok"]["action"] == 1
        assert await grown == {"whole": "another action came first"}

    await scene.play(steer)


@in_a_loop
async def test_what_was_asked_for_already_is_not_overtaken(tmp_path: Path) -> None:
    """The leave at 1.5 s is at the network from 0.5 s on: an action comes after it."""
    scene = Scene(tmp_path)

    async def steer() -> None:
        await until(lambda: scene.runner.staged == 2, "the leave is asked for")
        moment: Mapping[str, Any] = await scene.steering.moment({"lead_ns": 100 * MS})
        plan = scene.runner.plan
        assert moment["at_ns"] > 1500 * MS
        early = {**moment, "at_ns": 1400 * MS}
        answer = await scene.offer(plan, early, "a.1 crash")
        assert "too late" in answer["again"]
        assert read_plan(tmp_path / "plan").digest == scene.runner.plan.digest
        assert not (tmp_path / "planned").exists()
        assert not scene.followed
        assert "ok" in await scene.do("a.1 crash")
        stale = await scene.offer(plan, moment, "a.0 crash")
        assert stale == {"again": "another action came first"}

    await scene.play(steer)
    assert [one["target"] for one in scene.of("crash")] == ["a.1"]


def test_the_end_comes_earlier_or_later(tmp_path: Path) -> None:
    async def whole(text: str, action: str, end_ns: int) -> None:
        folder = tmp_path / str(end_ns)
        folder.mkdir()
        scene = Scene(folder, text)
        before = scene.runner.schedule.end_ns

        async def steer() -> None:
            assert "ok" in await scene.do(action)

        await scene.play(steer)
        assert (scene.runner.schedule.end_ns > before) == (end_ns > 0)
        assert len(scene.of("quit")) == (end_ns == 0)

    asyncio.run(whole(TEXT.replace("at 6s quit\n", "at 30s b leave\n"), "at +100ms quit", 0))


@in_a_loop
async def test_what_would_come_after_until_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path, until_ns=3_000 * MS)

    async def steer() -> None:
        with pytest.raises(RunError, match=r"5\.0000001 s is after the run's end \(--until\)"):
            await scene.do("a.1 leave\nat 5.0000001s a.1 join")
        assert not scene.followed

    await scene.play(steer)
    assert not scene.of("do")


@pytest.mark.parametrize(
    ("action", "hint"),
    [
        ("a.1 set disk=full", "write one into it, before its `quit` (`at 9s a.1 set disk=ok`)"),
        (
            "b join",
            "have it begin and leave in the experiment (`at 0s b.0 join`, `at 0s b.0 leave`)",
        ),
    ],
)
@in_a_loop
async def test_what_nothing_was_made_for_is_refused_with_what_the_text_lacks(
    tmp_path: Path, action: str, hint: str
) -> None:
    scene = Scene(tmp_path, TEXT.replace("1500ms b leave\nat 4s b join", "40s b join"))
    del scene.lives["b.0"]

    async def steer() -> None:
        with pytest.raises(RunError) as refused:
            await scene.do(action)
        assert refused.value.remedy == f"nothing was changed: {hint}"
        assert not scene.followed

    await scene.play(steer)


_SKIPPED: tuple[Callable[[Plan, int, int], Compilation], ...] = (
    hold,
    lambda plan, number, at_ns: skip(plan, number, 5_000 * MS, at_ns),
)


@pytest.mark.parametrize("acts", [(hold,), _SKIPPED], ids=["waits", "nothing-waits"])
@in_a_loop
async def test_a_run_that_is_held_to_its_end_has_failed(
    tmp_path: Path, acts: Sequence[Callable[[Plan, int, int], Compilation]]
) -> None:
    """Also if nothing is planned any more."""
    text = TEXT.replace("at 6s quit\n", "")
    scene = Scene(tmp_path, text, until_ns=3_000 * MS)
    with pytest.raises(RunError, match=r"still held when it ended, at .* s of its text: what"):
        await scene.play(lambda: scene.take_each(acts))
    assert (len(scene.of("join")) > 3) == (acts is _SKIPPED)  # three are there at first


@in_a_loop
async def test_a_run_that_was_held_and_let_go_on_ends_in_order(tmp_path: Path) -> None:
    """Though what was planned before `--until` comes after it then."""
    scene = Scene(tmp_path, until_ns=3_000 * MS)
    await scene.play(lambda: scene.take_each((hold, go)))
    assert scene.runner.held_ns is None
    assert scene.runner.is_ending
    assert scene.runner.applied == scene.runner.planned
    assert not scene.of("quit")


@in_a_loop
async def test_a_held_run_ends_in_order_with_the_quit_that_is_skipped_to(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TEXT.replace("at 6s quit", "at 60s quit"))

    to_quit = lambda plan, number, at_ns: skip(plan, number, 60_000 * MS, at_ns)  # noqa: E731
    await scene.play(lambda: scene.take_each((hold, to_quit)))
    assert scene.runner.held_ns == 60_000 * MS
    (end,) = scene.of("quit")
    assert end["planned_ns"] == scene.runner.schedule.end_ns < 20_000 * MS
    assert scene.runner.applied == scene.runner.planned


@pytest.mark.parametrize("late", ["ending", "over"])
@in_a_loop
async def test_a_run_that_ends_takes_nothing_more(tmp_path: Path, late: str) -> None:
    scene = Scene(tmp_path, TEXT.replace("at 6s quit", "").replace("at 4s b join", "at 2s quit"))

    async def steer() -> None:
        moment = await scene.steering.moment({"lead_ns": 100 * MS})
        plan = scene.runner.plan
        if late == "ending":
            await until(lambda: scene.runner.is_ending, "the end")
        else:
            scene.runner.end_early("interrupted")
        with pytest.raises(RunError, match="ending"):
            await scene.offer(plan, moment, "a.1 crash")
        with pytest.raises(RunError, match="ending"):
            await scene.steering.moment({"lead_ns": 100 * MS})

    await scene.runner.stage_start(scene.network)
    carrying = asyncio.create_task(scene.runner.carry_out(scene.network))
    await until(lambda: scene.of("join"), "time 0")
    await steer()
    carrying.cancel()
    assert read_plan(tmp_path / "plan").source == scene.runner.plan.source
    assert not scene.of("crash")
    for one in scene.lives.values():
        one.close()


@in_a_loop
async def test_a_plan_of_something_else_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path)

    async def steer() -> None:
        moment = await scene.steering.moment({"lead_ns": 100 * MS})
        base = {**moment, "text": "x"}
        for name in ("../plan", "plan", ".do.1-1.tmp/..", "", "\0"):
            with pytest.raises(RunError, match="not the name"):
                await scene.steering.do({"plan": name, **base})
        with pytest.raises(RunError, match="cannot be used"):
            await scene.steering.do({"plan": ".do.1-1.tmp", **base})
        other = compile_source(TEXT.replace("replicas=2", "replicas=3"))
        for files in (other.files, {**other.files, "timeline.jsonl": b"{}\n" * 7}, {}):
            with scratch.directory(tmp_path, LONGER_PLAN) as path:
                for name, data in files.items():
                    (path / name).write_bytes(data)
                with pytest.raises(RunError, match=r"cannot be used|not one of this run"):
                    await scene.steering.do({"plan": path.name, **base})
        assert not scene.followed

    await scene.play(steer)
    assert scene.runner.applied == scene.runner.planned == 6


@in_a_loop
async def test_what_a_host_refuses_is_taken_back_whole(tmp_path: Path) -> None:
    scene = Scene(tmp_path, hosts=2)

    async def steer() -> None:
        scene.network.refusal = "host1 has no room"
        with pytest.raises(RunError, match="no room"):
            await scene.do("a.1 crash")
        assert (scene.network.offers, scene.followed) == (["offer", "withdraw"], [])
        assert read_plan(tmp_path / "plan").digest == scene.runner.plan.digest
        scene.network.refusal = ""
        told = await scene.do("a.1 crash")
        assert told["ok"]["action"] == 1
        assert scene.network.offers[-2:] == ["offer", "follow"]
        grown = await scene.steering.grow(
            {"number": 2, "at_ns": 5_000 * MS, "said": "", "events": [], "action": ""}
        )
        assert "whole" in grown

        async def slow(*_: object) -> str:
            scene.runner.is_ending = True  # while hosts are asked
            return ""

        scene.network.offer = slow  # type: ignore[method-assign]
        with pytest.raises(RunError, match="the run is ending"):
            await scene.do("a.0 crash")
        assert scene.network.offers[-1] == "withdraw"
        scene.runner.is_ending = False

    await scene.play(steer)
    assert [one["target"] for one in scene.of("crash")] == ["a.1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan", "planned"]


# --- the socket ---


async def _asked(path: Path, data: bytes, *, closing: bool = False) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(data)
        if closing:
            writer.write_eof()
        return await reader.read()
    except OSError:  # hung up while we were talking
        return b""
    finally:
        writer.close()


@in_a_loop
async def test_hostile_peers_are_hung_up_on_and_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "TIMEOUT_SECONDS", 0.3)
    scene = Scene(tmp_path)

    async def answer(request: Mapping[str, Any]) -> control.Reply:
        if request["ask"] == "moment":
            return await scene.steering.moment(request), None
        return await scene.steering.do(request), None

    path = tmp_path / "control"
    server = ControlServer(path, answered_by(answer))
    assert path.stat().st_mode & 0o777 == 0o600

    async def steer() -> None:
        for nonsense in (
            b"\n",
            b"{}\n",
            b"[]\n",
            b"null\n",
            b'{"ask": "do"}\n',
            b'{"ask": "moment", "lead_ns": "soon"}\n',
            b'{"ask": "moment", "lead_ns": 1e999}\n',
            b"\xff\xfe\n",
            b"[" * 60_000 + b"\n",
            b"x" * 200_000 + b"\n",
        ):
            said = await _asked(path, nonsense)
            assert not said or "error" in json.loads(said), nonsense[:20]
        assert await _asked(path, b'{"ask": "mo', closing=True) == b""
        lagging = []
        for _ in range(3 * control.MOST_PEERS):
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            peer.setblocking(False)
            try:
                peer.connect(str(path))
            except BlockingIOError:  # the backlog is full: it has the same peers to bear
                peer.close()
                await asyncio.sleep(0)
                continue
            lagging.append(peer)
        moment = asyncio.create_task(scene.do("a.1 crash"))
        assert "ok" in await moment  # the run itself is in nobody's way
        await until(lambda: not server._tasks, "they are hung up on")
        for peer in lagging:
            peer.close()
        assert "at_ns" in json.loads(await _asked(path, b'{"ask": "moment", "lead_ns": 1}\n'))

    await scene.play(steer)
    server.close()
    assert [one["target"] for one in scene.of("crash")] == ["a.1"]
    assert scene.runner.applied == scene.runner.planned == 7


@pytest.mark.root
def test_another_user_of_this_machine_is_hung_up_on(workspace: Path) -> None:
    """Also where the file would let them: whose the other end is counts."""
    setpriv = shutil.which("setpriv")
    assert setpriv

    async def whole() -> None:
        asked: list[Mapping[str, Any]] = []

        async def answer(request: Mapping[str, Any]) -> control.Reply:
            asked.append(request)
            return {"ok": True}, None

        path = workspace / "control"
        server = ControlServer(path, answered_by(answer))
        path.chmod(0o666)
        text = (
            "import socket; peer = socket.socket(socket.AF_UNIX); "
            f"peer.connect({str(path)!r}); peer.sendall(b'{{}}\\n'); print(peer.recv(100))"
        )
        other = [setpriv, "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", text]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*other, stdout=pipe, stderr=pipe)
        said, _ = await process.communicate()
        assert b"ok" not in said
        assert asked == []
        assert await _asked(path, b"{}\n") == b'{"ok": true}\n', "its own user is answered"
        server.close()

    asyncio.run(whole())


def test_a_run_that_does_not_listen_is_getting_ready_or_about_to_end(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="getting ready, or about to end"):
        control.ask(tmp_path / "socket", {"ask": "state"})
    (tmp_path / "socket").touch()
    with pytest.raises(RunError, match=r"does not answer on .*/socket: Connection refused"):
        control.ask(tmp_path / "socket", {"ask": "state"})
