"""An agent's orders to `tstorm-hold run`: programs start, end and come back with the steps."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source
from runtime.agent.pod import podend, podprocesses, reports
from runtime.agent.pod.podend import PodEnding
from runtime.agent.pod.podprocesses import Member
from runtime.agent.process import program_supervisor
from runtime.agent.process.orders import OrderError, PortOrder, ResumeOrder
from runtime.agent.process.program_supervisor import ProgramSupervisor
from runtime.coordinator import says
from runtime.coordinator.says import AgentNotice, HoldReport, InstanceReport, Say
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tests.agent.stage import DEADLINE_SECONDS, Stage, act
from tests.hold.conftest import StartHeld
from tests.hold.support import Container
from tests.waiting import in_a_loop, until, wait_until

pytestmark = pytest.mark.e2e

UID = "0a1b2c3d-0000-4000-8000-00000000000f"
TEXT = (
    "service a img=x\nservice b img=x\nbridge s\nlink a--s latency=1\nlink b--s latency=1\n"
    "at 1s a crash\nat 1s b crash\nat 2s a join\nat 3s a leave\nat 4s quit\n"
)


def schedule(**options: Any) -> Schedule:
    return Schedule(
        compile_source("at 0s a join\nat 0s b join\n" + TEXT).plan, RunOptions(**options)
    )


def lives_to(said: list[InstanceReport]) -> Say:
    return lambda message: said.append(message) if isinstance(message, InstanceReport) else None


def test_a_program_lives_as_its_steps_say(held: StartHeld, tmp_path: Path) -> None:
    made = held("trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done")
    said: list[InstanceReport] = []  # and not what cannot be read: these containers have no /tstorm
    programs = ProgramSupervisor({"a.0": 0}, time.monotonic_ns, lambda _at: 7, lives_to(said))
    timeline = schedule()
    programs.carry_out(timeline, 0)
    assert said == []  # nobody has told of a process
    with pytest.raises(OrderError, match="of node 1 is no tstorm-hold that takes orders"):
        programs.know({0: made.pid, 1: made.process.pid})
    programs.carry_out(timeline, 0)
    assert said == []
    programs.know({0: made.pid})
    for step, names in enumerate(
        (["started"], ["ended", "crashed"], ["started"], ["ended", "left"])
    ):
        programs.carry_out(timeline, step)
        wait_until(lambda: made.names()[-len(names) :] == names, f"{names}")  # noqa: B023
        wait_until(lambda: len(made.said().split()) == 1 + (step > 1), "the program")  # noqa: B023
    assert [(life.step, life.what, life.status) for life in said] == [
        (0, "join", ""),
        (1, "crash", ""),
        (2, "join", ""),
        (3, "leave", ""),
    ]
    assert {(life.node, life.elapsed_ns) for life in said} == {(0, 7)}
    programs.close()


def test_who_is_there_already_joins_at_the_start(held: StartHeld) -> None:
    made = held("echo up; exec sleep 1000")
    said: list[InstanceReport] = []  # and not what cannot be read: these containers have no /tstorm
    programs = ProgramSupervisor({"b.0": 1}, time.monotonic_ns, lambda _at: 0, lives_to(said))
    programs.know({1: made.pid})
    programs.carry_out(schedule(start_at_ns=500_000_000), 0)
    made.wait_for("held", "started")
    assert [(life.node, life.what) for life in said] == [(1, "join")]
    made.close()
    programs.carry_out(schedule(), 1)
    assert said[-1].status == "its tstorm-hold takes no orders any more"
    programs.close()


def test_who_is_paused_at_the_start_is_paused_after_its_join(held: StartHeld) -> None:
    made = held("echo up; exec sleep 1000")
    said: list[says.Message] = []
    programs = ProgramSupervisor(
        {"a.0": 0, "b.0": 1}, time.monotonic_ns, lambda _at: 0, said.append
    )
    programs.know({0: made.pid})
    text = f"at 0s a join\nat 0s b join\nat 200ms a pause\nat 200ms b pause\n{TEXT}"
    programs.carry_out(Schedule(compile_source(text).plan, RunOptions(start_at_ns=500_000_000)), 0)
    made.wait_for("held", "started", "paused")
    lives = [message for message in said if isinstance(message, InstanceReport)]
    assert [life.what for life in lives if not life.node] == ["join"]
    notices = [message.text for message in said if isinstance(message, AgentNotice)]
    assert "no pause of b.0 at the start: there is no tstorm-hold" in notices
    programs.close()


class Watched:
    """The programs of an agent that keeps one instance, and what it says; its reports are read."""

    def __init__(self, made: Container, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        monkeypatch.setattr(reports, "FILE", (*folder.parts[1:], "reports"))
        self.said: list[says.Message] = []
        self.begun_ns = time.monotonic_ns()
        self.programs = ProgramSupervisor(
            {"a.0": 0}, time.monotonic_ns, lambda at_ns: at_ns - self.begun_ns, self.said.append
        )
        self.programs.know({0: made.pid})

    def events(self) -> list[str]:
        return [report.event for report in self.reports()]

    def reports(self) -> list[HoldReport]:
        return [message for message in self.said if isinstance(message, HoldReport)]

    def lives(self) -> list[tuple[str, str]]:
        lives = [message for message in self.said if isinstance(message, InstanceReport)]
        return [(life.what, life.status) for life in lives]


def at_one_pod(monkeypatch: pytest.MonkeyPatch) -> list[Container]:
    """The containers that are found of the pod, whatever is in the list then."""
    there: list[Container] = []

    def members(_wanted: Collection[str]) -> dict[str, list[Member]]:
        return {UID: [Member(one.pid, 1, podprocesses.network_of(one.pid)) for one in there]}

    monkeypatch.setattr(podprocesses, "members", members)
    return there


async def looked(programs: ProgramSupervisor) -> None:
    """Whoever wanted to know has had an answer, before the second of these was asked for."""
    for _ in range(2):
        await programs.find({0: UID}, "")


def test_what_a_hold_reports_is_said_with_its_times(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held("echo up; exec sleep 1000")
    watched = Watched(made, monkeypatch, tmp_path)

    async def play() -> None:
        watching = asyncio.create_task(watched.programs.watch())
        watched.programs.carry_out(schedule(), 0)
        await until(lambda: watched.events() == ["held", "started"], "the start")
        watched.programs.carry_out(schedule(), 1)
        await until(lambda: watched.events()[2:] == ["ended", "crashed"], "the crash")
        made.close()
        await until(lambda: watched.events()[4:] == ["gone"], "the container's end")
        watching.cancel()
        watched.programs.close()

    asyncio.run(play())
    said = watched.reports()
    assert [report.line for report in said] == [0, 1, 2, 3, 0]
    assert said[0].elapsed_ns < 0 < said[1].elapsed_ns < said[3].elapsed_ns
    assert said[2].signal == signal.SIGKILL
    times = [event["monotonic_ns"] - watched.begun_ns for event in made.events()]
    assert [report.elapsed_ns for report in said[:4]] == times
    assert [says.read(says.write(message)) for message in watched.said] == watched.said


@pytest.mark.parametrize("state", ["running", "about to start", "not there"])
def test_at_the_end_every_program_leaves_and_all_of_it_is_told(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """Nobody watches any more: what is said has been said before `finish` is answered."""
    made = held("trap 'sleep 0.3; exit 0' TERM; echo up; while :; do sleep 0.01; done")
    watched = Watched(made, monkeypatch, tmp_path)
    if state != "not there":
        made.give("join")
    if state == "running":
        made.wait_for_word("up")
    assert asyncio.run(watched.programs.finish()) == []
    assert made.processes() == set()
    ended = ["ignored"] if state == "not there" else ["started", "ended", "left"]
    assert watched.events() == ["held", *ended]
    watched.programs.close()


async def early(watched: Watched, wait: str) -> str:
    """What came of it, when it is over."""
    found: list[tuple[bool, str]] = []

    def over() -> bool:
        found.append(watched.programs.do_early({0: wait})[0])
        return found[-1][0]

    await until(over, f"{wait} before the start")
    return found[-1][1]


def test_a_setup_before_the_start_is_run_once_and_its_end_is_told(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held("echo up; exec sleep 1000", options=("--setup", "2", "echo", "setup"))
    watched = Watched(made, monkeypatch, tmp_path)
    assert asyncio.run(early(watched, "set_up")) == ""
    made.wait_for("held", "setup", "set_up")
    watched.programs.carry_out(schedule(), 0)
    made.wait_for("held", "setup", "set_up", "started")
    watched.programs.close()


def test_a_setup_that_fails_before_the_start_says_how(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held("exec sleep 1000", options=("--setup", "3", "sh", "-c", "exit 7"))
    watched = Watched(made, monkeypatch, tmp_path)
    assert asyncio.run(early(watched, "set_up")) == "setup ended with 7"
    watched.programs.close()


def test_who_was_started_before_the_start_joins_without_another_order(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held("echo up; exec sleep 1000", options=("--ready", "1", "true"))
    watched = Watched(made, monkeypatch, tmp_path)
    assert asyncio.run(early(watched, "ready")) == ""
    made.wait_for("held", "started", "ready")
    watched.programs.carry_out(schedule(), 0)
    assert watched.lives() == [("join", "")]
    watched.programs.carry_out(schedule(), 1)
    made.wait_for("held", "started", "ready", "ended", "crashed")
    watched.programs.carry_out(schedule(), 2)
    made.wait_for("held", "started", "ready", "ended", "crashed", "started", "ready")
    watched.programs.close()


@pytest.mark.parametrize(
    ("script", "options", "reason"),
    [
        ("exit 3", ("--ready", "1", "false"), "its program ended with 3"),
        ("exit 0", ("--ready", "1", "false"), "its program ended before it was ready"),
        (
            "exec sleep 1000",
            ("--ready", "1", "false", "--ready-timeout", "50"),
            "not ready within its ready-timeout=",
        ),
        ("exec sleep 1000", ("--setup", "1", "false"), "cannot start false: setup ended with 1"),
    ],
)
def test_why_a_program_is_not_ready_is_told(
    held: StartHeld,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    options: tuple[str, ...],
    reason: str,
) -> None:
    watched = Watched(held(script, options=options), monkeypatch, tmp_path)
    assert reason in asyncio.run(early(watched, "ready"))
    watched.programs.close()


def test_what_does_not_end_is_named(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_supervisor, "KILL_SECONDS", 0.2)
    monkeypatch.setattr(podend, "DEFAULT", PodEnding(grace_seconds=0.0))
    made = held("trap '' TERM; echo up; while :; do sleep 0.01; done")
    watched = Watched(made, monkeypatch, tmp_path)
    made.give("join")
    made.wait_for_word("up")
    assert asyncio.run(watched.programs.finish()) == [0]
    watched.programs.close()


@in_a_loop
async def test_a_container_that_ended_is_found_again_at_the_join(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is asked of it meanwhile is said to have changed nothing."""
    first = held("echo up; exec sleep 1000")
    watched = Watched(first, monkeypatch, tmp_path)
    there = at_one_pod(monkeypatch)
    found = await watched.programs.find({0: UID}, "")
    assert found.missing == {0: "no process of its pod is on this node"}
    first.close()
    watched.programs.carry_out(schedule(), 1)  # crash
    watched.programs.carry_out(schedule(), 2)  # join
    await until(lambda: len(watched.said) == 1, "the crash")
    assert watched.lives()[0][1].startswith("nothing of it was running")
    second = await asyncio.to_thread(held, "echo up; exec sleep 1000")
    there.append(second)
    await until(lambda: len(watched.said) == 2, "the join")
    assert watched.lives()[1] == ("join", "")
    await asyncio.to_thread(second.wait_for, "held", "started")
    watched.programs.close()


@pytest.mark.parametrize("elsewhere", [True, False])
@in_a_loop
async def test_nobody_joins_in_a_network_of_which_nobody_has_told(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """`elsewhere`: its sandbox was replaced; else what shaped its network was detached. Without
    shaping nothing is to be sent."""
    first = held("echo up; exec sleep 1000")
    watched = Watched(first, monkeypatch, tmp_path)
    pod = at_one_pod(monkeypatch)
    await watched.programs.find({0: UID}, "")
    first.close()
    if not elsewhere:
        watched.programs.detached(podprocesses.network_of(os.getpid()))
    spaces = ("--net",) if elsewhere else ()
    second = await asyncio.to_thread(held, "echo up; exec sleep 1000", prefix=spaces)
    pod.append(second)
    watched.programs.carry_out(schedule(), 2)  # join
    await looked(watched.programs)
    assert second.names() == ["held"]
    assert watched.lives() == []
    watched.programs.know({0: second.pid})
    await until(watched.lives, "the join")
    assert watched.lives() == [("join", "")]
    await asyncio.to_thread(second.wait_for, "held", "started")
    watched.programs.close()


def test_a_network_that_never_comes_is_said(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_supervisor, "BACK_SECONDS", 0.1)
    first = held("echo up; exec sleep 1000")
    watched = Watched(first, monkeypatch, tmp_path)
    pod = at_one_pod(monkeypatch)

    async def play() -> None:
        await watched.programs.find({0: UID}, "")
        first.close()
        pod.append(await asyncio.to_thread(held, "exec sleep 1000", prefix=("--net",)))
        watched.programs.carry_out(schedule(), 2)
        await until(watched.lives, "the refusal")
        watched.programs.close()

    asyncio.run(play())
    ((what, status),) = watched.lives()
    assert what == "join"
    assert status.endswith("the coordinator has not told that its network is attached")


@pytest.mark.parametrize("told", ["the process", "the network", "neither", "unattached"])
@in_a_loop
async def test_an_agent_that_resumes_takes_up_what_the_coordinator_has_told_of(
    held: StartHeld, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    made = held("echo up; exec sleep 1000")
    pod = at_one_pod(monkeypatch)
    pod.append(made)
    said: list[InstanceReport] = []
    programs = ProgramSupervisor({"a.0": 0}, time.monotonic_ns, lambda _at: 7, lives_to(said))
    at = "/proc/self/ns/net" if told in ("the network", "unattached") else "/proc/0/ns/net"
    resume = ResumeOrder(
        t0_ns=0,
        ports=(PortOrder(0, 0, at, "eth0"),),
        held=(),
        applied=0,
        lives={0: made.pid if told == "the process" else 2},
        pods={0: UID},
        hosts="",
        moved=(),
    )
    attached = set() if told == "unattached" else {podprocesses.network_of(os.getpid())}
    assert await programs.networks(resume.pods) == {0: f"/proc/{made.pid}/ns/net"}
    await programs.restore(resume, attached)
    programs.carry_out(schedule(), 0)
    if told in ("neither", "unattached"):
        await looked(programs)
        assert (said, made.names()) == ([], ["held"])
        programs.know({0: made.pid})
    await until(lambda: said, "the join")
    await asyncio.to_thread(made.wait_for, "held", "started")
    programs.close()


def test_a_pod_whose_gate_is_open_is_still_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in it takes orders; echoes need no more than its network. Of another pod there is
    nothing on the node."""
    space = podprocesses.network_of(os.getpid())
    inside = {UID: [Member(os.getpid(), 1, space)]}
    monkeypatch.setattr(podprocesses, "members", lambda _wanted: inside)
    programs = ProgramSupervisor(
        {"a.0": 0, "b.0": 1}, time.monotonic_ns, lambda _at: 7, print, (0, 1)
    )
    resume = ResumeOrder(
        t0_ns=0,
        ports=(),
        held=(),
        applied=1,
        lives={},
        pods={0: UID, 1: UID.replace("0", "1")},
        hosts="",
        moved=(),
    )
    asyncio.run(programs.restore(resume, {space}))
    assert programs.networks_of([0, 1]) == {0: os.getpid()}
    programs.close()


def test_after_the_end_nobody_joins(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held("echo up; exec sleep 1000")
    watched = Watched(made, monkeypatch, tmp_path)
    assert asyncio.run(watched.programs.finish()) == []
    watched.programs.carry_out(schedule(), 0)  # join
    made.give("crash")
    made.wait_for("held", "ignored", "ignored")  # the leave, the crash
    assert watched.lives() == []
    watched.programs.close()


def test_joins_that_wait_end_with_the_run(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the one that a second one waits for."""
    first = held("echo up; exec sleep 1000")
    watched = Watched(first, monkeypatch, tmp_path)
    pod = at_one_pod(monkeypatch)

    async def play() -> None:
        await watched.programs.find({0: UID}, "")
        first.close()
        watched.programs.carry_out(schedule(), 2)
        watched.programs.carry_out(schedule(), 2)
        await looked(watched.programs)
        assert await watched.programs.finish() == []
        second = await asyncio.to_thread(held, "echo up; exec sleep 1000")
        pod.append(second)
        await until(lambda: len(watched.lives()) == 2, "both ends")
        second.give("crash")
        await asyncio.to_thread(second.wait_for, "held", "ignored")
        watched.programs.close()

    asyncio.run(play())
    assert sorted(watched.lives()) == [
        ("join", "it was to end before its container was back"),
        ("join", "the run is over"),
    ]


def test_a_join_that_a_leave_overtakes_is_said_not_to_have_been(
    held: StartHeld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = held("echo up; exec sleep 1000")
    watched = Watched(made, monkeypatch, tmp_path)
    at_one_pod(monkeypatch)

    async def play() -> None:
        await watched.programs.find({0: UID}, "")
        made.close()
        watched.programs.carry_out(schedule(), 2)
        await asyncio.sleep(0)
        watched.programs.carry_out(schedule(), 3)
        await until(lambda: len(watched.said) == 2, "both")
        watched.programs.close()

    asyncio.run(play())
    assert [(what, status[:27]) for what, status in watched.lives()] == [
        ("join", "it was to end before its co"),
        ("leave", "nothing of it was running: "),
    ]


def test_without_a_coordinator_no_program_goes_on(held: StartHeld, tmp_path: Path) -> None:
    made = held("echo up; exec sleep 1000")

    async def play(stage: Stage) -> None:
        await stage.ready()
        node = next(n for n, at in enumerate(stage.plan.topology.nodes) if at.name == "b.0")
        lives = {"do": "lives", "lives": [[node, made.pid]]}
        await stage.coordinator.request(stage.placement[node], lives)
        await stage.coordinator.start()
        await until(stage.lives, "the join")
        await stage.coordinator.close()
        agent = stage.processes[stage.placement[node]]
        assert await asyncio.to_thread(agent.wait, DEADLINE_SECONDS) == 4
        made.wait_for("held", "started", "ended", "left")
        assert made.processes() == set()

    text = (
        "service a img=x\nservice b img=x\nbridge s\n"
        "link a--s latency=1\nlink b--s latency=1\nat 60s quit\n"
    )
    act(tmp_path, text, 1, play)
