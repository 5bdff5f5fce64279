"""Agents from start to end: real processes and a real coordinator, stand-ins for datapaths."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runtime.agent.path import lines
from runtime.agent.process.agent import FAILED, LOST, WITHOUT_DATAPATH
from runtime.coordinator.agent_link import AgentError
from runtime.coordinator.coordinator import AgreedExperiment
from runtime.coordinator.says import AgentFailed, AgentNotice, InstanceReport, StepApplied
from tests.agent.stage import DEADLINE_SECONDS, MS, Stage, act, act_in_time
from tests.agent.test_needs import expected
from tests.doubles.datapath import Commit
from tests.hold.support import HOLD
from tests.waiting import until

TWO = (
    "service a img=x replicas=2\nservice b img=x replicas=2\nbridge s\n"
    "link a--s latency=2 bw=100Mb\nlink b--s latency=3 bw=50Mb\n"
    "at 700ms s--b set loss=1%\nat 900ms b.1 leave\nat 1300ms b.1 join\nat 2s quit\n"
)


def elapsed(stage: Stage, host: int, step: int) -> int:
    return next(found.elapsed_ns for found in stage.applications(host) if found.step == step)


def of_time(commit: Commit, at_ns: int) -> bool:
    """T0 reaches an agent by way of its clock's measured offset, which is not quite 0."""
    return abs(commit.at_ns - at_ns) < 5 * MS


def test_every_step_is_in_force_at_its_time(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        facts = await stage.ready()
        assert [fact["instances"] for fact in facts] == [2, 2]
        assert {fact["datapath"] for fact in facts} == {"pktd"}
        assert all(not datapath.told.paths for datapath in stage.datapaths)  # staged only
        await stage.bind(0, {0: 0, 1: 1, 2: 2, 3: 3})
        t0_ns = await stage.coordinator.start()
        steps = stage.plan.epochs
        for host, datapath in enumerate(stage.datapaths):
            await until(lambda: len(stage.applied(host)) == len(steps), "all steps")  # noqa: B023
            assert stage.applied(host) == [(n, False) for n in range(len(steps))]
            own = [node for node, at in enumerate(stage.placement) if at == host]
            assert datapath.told.ports.keys() == set(own)
            for number, epoch in enumerate(steps):
                at_ns = t0_ns + epoch.at_ns
                done = [commit for commit in datapath.history if of_time(commit, at_ns)]
                wanted = expected(stage.plan, stage.plan.state_at(epoch.at_ns), own)
                assert done[-1].open == wanted
                if number:
                    assert all(commit.staged_ns < at_ns for commit in done)
                assert 0 <= elapsed(stage, host, number) - epoch.at_ns < 10_000 * MS
        stopped = await stage.coordinator.stop()
        assert {answer["run"]["applied"] for answer in stopped.answers.values()} == {len(steps)}
        assert [process.wait(DEADLINE_SECONDS) for process in stage.processes] == [0, 0]

    act_in_time(tmp_path, TWO, 2, play)


def test_the_first_step_can_be_tried_before_it_begins(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.bind(0, {0: 0, 1: 1, 2: 2, 3: 3})
        (datapath,) = stage.datapaths
        assert (datapath.told.open_paths(), datapath.told.ports) == ({}, {})
        await stage.coordinator.broadcast({"do": "open"})
        first = expected(stage.plan, stage.plan.state_at(0), range(4))
        assert datapath.told.open_paths() == first
        assert datapath.told.ports == {0: 0, 1: 1, 2: 2, 3: 3}
        assert stage.applied(0) == [], "nothing has begun"
        t0_ns = await stage.coordinator.start()
        await until(lambda: stage.applied(0), "step 0")
        assert elapsed(stage, 0, 0) >= 0
        assert [commit.open for commit in datapath.history if of_time(commit, t0_ns)] == [first]
        with pytest.raises(AgentError, match="has started already"):
            await stage.coordinator.broadcast({"do": "open"})
        await until(lambda: len(stage.applied(0)) == len(stage.plan.epochs), "all steps")

    act(tmp_path, TWO, 1, play)


def test_a_hold_keeps_paths_until_it_is_cut(tmp_path: Path) -> None:
    """b.1 (node 3) leaves with step 2 and comes back with step 3, which leaves time for the cut."""

    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.bind(0, {0: 0, 1: 1, 2: 2, 3: 3})
        back_ns = await stage.coordinator.start() + stage.plan.epochs[3].at_ns
        await stage.bind(2, {}, hold=[3])
        await until(lambda: len(stage.applied(0)) >= 3, "step 2")
        (datapath,) = stage.datapaths
        assert datapath.told.paths[0, 3]["up"] == datapath.told.paths[3, 0]["up"] == 1
        await stage.coordinator.broadcast({"do": "cut", "nodes": [3]})
        await stage.bind(3, {3: 7})
        await until(lambda: len(stage.applied(0)) == 4, "step 3")
        state = stage.plan.state_at(stage.plan.epochs[3].at_ns)
        assert datapath.told.open_paths() == expected(stage.plan, state, range(4))
        assert datapath.told.ports[3] == 7
        cut = [c for c in datapath.history if c.applied_ns < back_ns - 5 * MS][-1]
        state = stage.plan.state_at(stage.plan.epochs[2].at_ns)
        assert cut.open == expected(stage.plan, state, range(4))

    act(tmp_path, TWO.replace("1300ms", "8s").replace("2s quit", "9s quit"), 1, play)


@pytest.mark.parametrize("late", [False, True])
def test_who_comes_back_ends_its_hold(tmp_path: Path, late: bool) -> None:
    """`late`: the agent has told the datapath of the step already when it hears of it."""

    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.bind(0, {0: 0, 1: 1, 2: 2, 3: 3})
        t0_ns = await stage.coordinator.start()
        at_ns = {number: t0_ns + epoch.at_ns for number, epoch in enumerate(stage.plan.epochs)}
        (datapath,) = stage.datapaths

        def told(step: int) -> bool:
            return any(of_time(c, at_ns[step]) for c in (*datapath.waiting, *datapath.history))

        if late:
            await until(lambda: told(2), "step 2 to be staged")
        await stage.bind(2, {}, hold=[3])
        await until(lambda: len(stage.applied(0)) >= 3, "step 2")
        assert (0, 3) in datapath.told.open_paths()
        if late:
            await until(lambda: told(3), "step 3 to be staged")
        await stage.bind(3, {3: 9})
        await until(lambda: len(stage.applied(0)) == 4, "step 3")
        state = stage.plan.state_at(stage.plan.epochs[3].at_ns)
        assert datapath.told.open_paths() == expected(stage.plan, state, range(4))
        assert datapath.told.ports[3] == 9
        held = [c for c in datapath.history if c.applied_ns < at_ns[3] - 5 * MS][-1]
        assert held.open[0, 3]["up"] == held.open[3, 0]["up"] == 1

    act(tmp_path, TWO, 1, play)


def test_an_agent_to_which_nobody_comes_ends_when_it_has_waited(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        stage.processes[0].kill()
        stage.processes[0].wait(DEADLINE_SECONDS)
        stage.processes[0] = stage.start_agent(replace(stage.options(0), wait_seconds=1))
        assert await stage.ended(0) == LOST
        assert "coordinator is lost" in (tmp_path / "agents.log").read_text()

    act(tmp_path, TWO, 1, play, lost_seconds=4)


def test_requests_that_make_no_sense(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        coordinator = stage.coordinator
        await coordinator.connect(DEADLINE_SECONDS)
        for request, words in (
            ({"do": "dance"}, "nothing to do"),
            ({"do": "start", "t0_ns": 1}, "was not prepared"),
            (
                {"do": "attach", "node": 0, "port": 1, "netns": "/x", "if": "eth0"},
                "was not prepared",
            ),
            ({"do": "cut", "nodes": []}, "was not prepared"),
            ({"do": "prepare"}, "options"),
        ):
            with pytest.raises(AgentError, match=words):
                await coordinator.request(0, request)
        with pytest.raises(AgentError, match="give every host the plan of this run"):
            await coordinator.prepare(replace_digest(stage))
        wrong = stage.experiment()
        object.__setattr__(wrong.options, "on_agent_loss", "explode")  # no coordinator says that
        with pytest.raises(AgentError, match="on_agent_loss is 'explode'"):
            await coordinator.prepare(wrong)
        await coordinator.prepare(stage.experiment())
        with pytest.raises(AgentError, match="prepared already"):
            await coordinator.prepare(stage.experiment())
        for request, words in (
            ({"do": "attach", "node": 0, "port": 1, "netns": "/a b", "if": "eth0"}, "one word"),
            (
                {"do": "attach", "node": 0, "port": -1, "netns": "/a"},
                "port must be an integer from 0 to 65534, not -1",
            ),
            ({"do": "bind", "step": 99, "bind": []}, "no step 99"),
            ({"do": "bind", "step": 0, "bind": [[77, 1]]}, "node 77 is no instance"),
            ({"do": "bind", "step": 0, "bind": [[1]]}, r"bind\[0\] must be a list of 2"),
            ({"do": "start", "t0_ns": "now"}, "t0_ns must be an integer from .* not 'now'"),
        ):
            with pytest.raises(AgentError, match=words):
                await coordinator.request(0, request)

    act(tmp_path, TWO, 1, play)


def replace_digest(stage: Stage) -> AgreedExperiment:
    experiment = stage.experiment()
    return AgreedExperiment(experiment.run, "0" * 64, experiment.placement, experiment.options)


def test_ports_are_attached_to_the_networks_of_the_plan(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.ready()
        request = {"do": "attach", "node": 0, "port": 4, "netns": "/proc/9/ns/net", "if": "eth0"}
        assert await stage.coordinator.request(0, request) == {"kind": "packet", "stamp": "read"}
        (datapath,) = stage.datapaths
        wanted = "netns=/proc/9/ns/net if=eth0 prefix=10.77.0.0/16,fd77:7473::/64"
        assert datapath.ports == {4: wanted}
        await stage.coordinator.request(0, {"do": "detach", "port": 4})
        assert datapath.ports == {}

    act(tmp_path, TWO, 1, play)


def test_instances_have_the_addresses_that_the_coordinator_tells(tmp_path: Path) -> None:
    """Those of pods are not the plan's, and may be of one family."""

    async def play(stage: Stage) -> None:
        pods = tuple((f"10.244.{node}.7", "") for node in range(4))
        stage.placed = replace(stage.placed, addresses=pods, networks=("10.244.0.0/16",))
        await stage.ready()
        (datapath,) = stage.datapaths
        assert datapath.told.nodes == {node: {"ip": f"10.244.{node}.7"} for node in range(4)}
        request = {"do": "attach", "node": 0, "port": 4, "netns": "/n", "if": "eth0"}
        await stage.coordinator.request(0, request)
        assert datapath.ports == {4: "netns=/n if=eth0 prefix=10.244.0.0/16"}
        await stage.coordinator.request(0, {"do": "move", "moved": [[2, "10.244.9.9", ""]]})
        assert datapath.told.nodes[2] == {"ip": "10.244.9.9"}
        for wrong, words in (
            ([2, "10.9.9.9", ""], "node 2 is at 10.9.9.9, which is in no network of the run"),
            ([2, "10.244.9.9"], r"moved\[0\] must be a list of 3"),
            ([4, "10.244.9.9", ""], "node 4 is no instance"),
        ):
            with pytest.raises(AgentError, match=words):
                await stage.coordinator.request(0, {"do": "move", "moved": [wrong]})

    act(tmp_path, TWO, 1, play)


@asynccontextmanager
async def a_gate(directory: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A tstorm-hold that takes orders and ends with 0 at a join."""
    with (directory / "gate").open("wb") as log:
        gate = subprocess.Popen([HOLD, "gate"], stderr=log)
    try:
        await until(lambda: "held" in (directory / "gate").read_text(), "the gate")
        yield gate
    finally:
        gate.kill()
        gate.wait()


def test_an_agent_carries_out_the_process_events_of_its_own_instances(tmp_path: Path) -> None:
    """b.1 (node 3), whose program a tstorm-hold keeps: here a gate, which ends with its join."""

    async def play(stage: Stage) -> None:
        await stage.ready()
        own, other = stage.placement[3], 1 - stage.placement[3]
        refusal = "is no tstorm-hold that takes orders"
        for host, pair, words in (
            (own, [3, os.getpid()], f"process {os.getpid()} of node 3 {refusal}"),
            (own, [3, 1], r"lives\[0\]\[1\] must be an integer from 2"),
            (other, [3, 2], "node 3 is not on this host"),
        ):
            with pytest.raises(AgentError, match=words):
                await stage.coordinator.request(host, {"do": "lives", "lives": [pair]})
        async with a_gate(tmp_path) as gate:
            await stage.coordinator.request(own, {"do": "lives", "lives": [[3, gate.pid]]})
            await stage.coordinator.start()
            assert await asyncio.to_thread(gate.wait, DEADLINE_SECONDS) == 0  # joined
            await until(lambda: len(stage.lives()) == 4, "all process events")
        lives = stage.lives()
        gone = "its tstorm-hold takes no orders any more"
        said = [(life.step, life.node, life.what, life.status) for life in lives]
        assert said == [
            (0, 1, "join", "nobody has told which process keeps it"),
            (0, 3, "join", ""),
            (2, 3, "leave", gone),
            (3, 3, "join", gone),
        ]
        assert all(life.elapsed_ns >= 0 for life in lives)
        first = [m for n, m in stage.said if n == own and getattr(m, "step", -1) == 0]
        assert [type(m) for m in first] == [InstanceReport, InstanceReport, StepApplied]

    act(tmp_path, TWO, 2, play)


def test_samples_say_what_moved(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.coordinator.start()
        row = "0 2 10 15000 9 13500 1 0 0 0"
        stage.datapaths[0].pairs = [row]
        found = await until(stage.samples, "a sample")
        assert found[0].pairs == [[int(word) for word in row.split()]]
        assert found[0].elapsed_ns >= 0
        stage.datapaths[0].pairs = [row]
        await stage.coordinator.stop()
        assert len(stage.samples()) == 2

    act(tmp_path, TWO, 1, play)


def test_an_agent_takes_the_place_of_one_that_crashed(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.bind(0, {0: 0, 1: 1, 2: 2, 3: 3})
        t0_ns = await stage.coordinator.start()
        (datapath,) = stage.datapaths
        await until(lambda: stage.applied(0), "step 0")
        stage.processes[0].send_signal(signal.SIGKILL)
        await until(lambda: stage.lost, "the loss")
        datapath.ports = {8: "old", 3: "here"}
        known = len(stage.applied(0))  # one, unless this machine is very busy
        missing_ns = t0_ns + stage.plan.epochs[known].at_ns + 50 * MS
        await until(lambda: time.monotonic_ns() > missing_ns, "a step goes by meanwhile")
        before = len(datapath.history)
        stage.again(0)
        resume = {"ports": [[3, 3, "/proc/1/ns/net", "e3"], [4, 0, "/n", "eth0"]], "applied": known}
        assert await stage.coordinator.rejoin(0, lambda: resume)
        assert datapath.ports.keys() == {3, 4}
        assert datapath.told.ports.items() >= {3: 3, 0: 4}.items()
        said = stage.applied(0)
        missed = [step for step, late in said if late]
        assert missed == list(range(known, known + len(missed)))
        assert missed
        state = stage.plan.state_at(stage.plan.epochs[missed[-1]].at_ns)
        assert datapath.history[-1].open == expected(stage.plan, state, range(4))
        assert len(datapath.history) > before
        await until(lambda: len(stage.applied(0)) == len(stage.plan.epochs), "the other steps")
        assert [step for step, _ in stage.applied(0)] == list(range(len(stage.plan.epochs)))

    act(tmp_path, TWO, 1, play)


def test_an_instance_whose_network_has_gone_meanwhile_does_not_end_the_run(tmp_path: Path) -> None:
    """a.0 (node 0) is attached where it was; the pod of b.1 (node 3) has no process. The agent
    may look at process 1, as on a node."""
    uid = "0a1b2c3d-0000-4000-8000-00000000000f"

    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.bind(0, {0: 0, 1: 1, 2: 2, 3: 3})
        await stage.coordinator.start()
        (datapath,) = stage.datapaths
        await until(lambda: stage.applied(0), "step 0")
        stage.processes[0].send_signal(signal.SIGKILL)
        await until(lambda: stage.lost, "the loss")
        datapath.ports, datapath.told.ports = {0: "here"}, {}
        datapath.refuse = "attach"
        user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
        stage.inside = ("unshare", *user, "--pid", "--fork", "--kill-child", "--mount-proc")
        stage.again(0)
        ports = [[0, 0, "/proc/self/ns/net", "eth0"], [3, 3, "/proc/0/ns/net", "eth0"]]
        resume = {"ports": ports, "applied": 1, "pods": [[3, uid]]}
        assert await stage.coordinator.rejoin(0, lambda: resume)
        assert datapath.told.ports == {0: 0}
        assert stage.texts(AgentNotice) == ["b.1 is not attached: the network of its pod is gone"]
        await stage.coordinator.request(0, {"do": "detach", "port": 3})
        datapath.refuse = ""
        request = {"do": "attach", "node": 3, "port": 3, "netns": "/proc/self/ns/net", "if": "eth0"}
        await stage.coordinator.request(0, request)
        await stage.bind(0, {3: 3})
        await until(lambda: datapath.told.ports == {0: 0, 3: 3}, "the binding")

    act(tmp_path, TWO[: TWO.index("at ")] + "at 60s quit\n", 1, play)


def test_process_events_that_were_missed_are_carried_out_by_the_next_agent(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.ready()
        t0_ns = await stage.coordinator.start()
        await until(lambda: stage.applied(0), "step 0")
        stage.processes[0].send_signal(signal.SIGKILL)
        await until(lambda: stage.lost, "the loss")
        join_ns = t0_ns + stage.plan.epochs[3].at_ns + 50 * MS
        await until(lambda: time.monotonic_ns() > join_ns, "b.1 (node 3) is to be back")
        stage.again(0)
        async with a_gate(tmp_path) as gate:
            resume = {"ports": [], "applied": 3, "lives": [[3, gate.pid]]}
            resume["moved"] = [[3, "10.77.0.9", "fd77:7473::9"]]
            assert await stage.coordinator.rejoin(0, lambda: resume)
            assert await asyncio.to_thread(gate.wait, DEADLINE_SECONDS) == 0
        moved = {"ip": "10.77.0.9", "ip6": "fd77:7473::9"}
        assert stage.datapaths[0].told.nodes[3] == moved
        (life,) = stage.lives()
        assert (life.step, life.what, life.status) == (3, "join", "")
        assert life.elapsed_ns > join_ns - t0_ns

    act(tmp_path, TWO, 1, play)


def test_orders_that_died_with_an_agent_are_given_by_the_next_one(tmp_path: Path) -> None:
    """Their step counts as applied, and is not carried out as a whole again."""

    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.coordinator.start()
        await until(lambda: stage.applied(0), "step 0")
        stage.processes[0].send_signal(signal.SIGKILL)
        await until(lambda: stage.lost, "the loss")
        stage.again(0)
        async with a_gate(tmp_path) as gate:
            resume: dict[str, Any] = {"ports": [], "applied": 1, "lives": [[3, gate.pid]]}
            resume["orders"] = [[0, 3, "leave"], [0, 3, "join"]]
            assert await stage.coordinator.rejoin(0, lambda: resume)
            assert await asyncio.to_thread(gate.wait, DEADLINE_SECONDS) == 0
        lives = [(life.step, life.what, life.status) for life in stage.lives()]
        assert lives[:2] == [(0, "leave", ""), (0, "join", "")]

    act(tmp_path, TWO, 1, play)


def test_limits_of_sharing_come_with_the_step_that_changes_the_link(tmp_path: Path) -> None:
    """Two flows fill one link; a step halves it. In that very instant both have half as much."""
    text = (
        "service a img=x replicas=2\nservice b img=x\nbridge s\n"
        "link a--s latency=2 bw=100Mb\nlink b--s latency=3 bw=80Mb\n"
        "at 1500ms b--s set bw=40Mb\nat 60s quit\n"
    )

    async def play(stage: Stage) -> None:
        await stage.ready()
        t0_ns = await stage.coordinator.start()
        (datapath,) = stage.datapaths
        at_ns = t0_ns + stage.plan.epochs[1].at_ns
        sent, last = 0.0, time.monotonic()
        while not any(of_time(c, at_ns) for c in datapath.history):
            now = time.monotonic()
            for pair in ((0, 2), (1, 2)):
                path = datapath.told.paths.get(pair)
                rate = float(path["rate"]) if path else 0.0
                old = datapath.moved.get(pair, (0, 0, 0, 0, 0))
                sent = old[1] + rate / 8 * (now - last)
                datapath.moved[pair] = (int(sent / 1500), int(sent), old[2], 0, 30_000)
            last = now
            await asyncio.sleep(0.002)
        before = [c for c in datapath.history if c.applied_ns < at_ns - 5 * MS][-1].open
        assert [before[pair]["rate"] for pair in ((0, 2), (1, 2))] == [40_000_000] * 2
        limits: Any = await until(
            lambda: [c for c in datapath.history if c.lines and c.staged_ns > at_ns - 20 * MS],
            "the limits of the new network",
        )
        assert all(limits[0].open[pair]["rate"] <= 40_000_000 for pair in ((0, 2), (1, 2)))
        if limits[0].at_ns:  # else this machine was too busy: the loop met the step too late
            assert of_time(limits[0], at_ns)
            assert [limits[0].open[pair]["rate"] for pair in ((0, 2), (1, 2))] == [20_000_000] * 2

    act_in_time(tmp_path, text, 1, play)


def test_two_agents_share_a_link_by_what_they_tell_each_other(tmp_path: Path) -> None:
    text = (
        "service a img=x replicas=2\nservice b img=x\nbridge s\n"
        "link a--s latency=2 bw=100Mb\nlink b--s latency=3 bw=80Mb\nat 60s quit\n"
    )

    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.coordinator.start()
        assert stage.placement[:2] == (0, 1)
        last = time.monotonic()

        def settled() -> bool:
            """Both send all that they may."""
            nonlocal last
            now = time.monotonic()
            for host, pair in ((0, (0, 2)), (1, (1, 2))):
                datapath = stage.datapaths[host]
                rate = float(datapath.told.paths[pair]["rate"]) if datapath.told.paths else 0.0
                sent = datapath.moved.get(pair, (0, 0, 0, 0, 0))[1] + rate / 8 * (now - last)
                datapath.moved[pair] = (int(sent / 1500), int(sent), 0, 0, 30_000)
            last = now
            rates = [
                stage.datapaths[host].told.paths.get(pair, {}).get("rate")
                for host, pair in ((0, (0, 2)), (1, (1, 2)))
            ]
            return rates == [40_000_000, 40_000_000]

        await until(settled, "half for each")

    act(tmp_path, text, 2, play)


def test_without_a_coordinator_everything_is_cut(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.coordinator.start()
        await until(lambda: stage.applied(0), "step 0")
        await stage.coordinator.close()
        assert await stage.ended(0) == 4
        assert stage.datapaths[0].lease_ns == 1
        assert "coordinator is lost" in (tmp_path / "agents.log").read_text()

    act(tmp_path, TWO, 1, play, lost_seconds=4)


@pytest.mark.parametrize("on_loss", ["keep", "close"])
def test_a_crash_leaves_what_the_policy_says(tmp_path: Path, on_loss: str) -> None:
    async def play(stage: Stage) -> None:
        await stage.ready(on_agent_loss=on_loss)
        await stage.coordinator.start()
        (datapath,) = stage.datapaths
        await until(lambda: "usage" in datapath.commands, "the first tick")
        assert (datapath.lease_ns > 0) == (on_loss == "close")
        stage.processes[0].terminate()
        assert await stage.ended(0) == 0
        assert datapath.lease_ns == 0  # an orderly end leaves the network as it is
        assert datapath.told.open_paths()

    act(tmp_path, TWO, 1, play)


def test_a_datapath_that_ends_or_refuses_is_a_failure(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.coordinator.start()
        await until(lambda: stage.applied(0) and stage.applied(1), "step 0")
        stage.datapaths[0].close()
        stage.datapaths[1].refuse = "usage"
        await until(lambda: len(stage.texts(AgentFailed)) == 2, "both failures")
        assert any("datapath of this host has ended" in text for text in stage.texts(AgentFailed))
        assert any("usage is refused on request" in text for text in stage.texts(AgentFailed))
        for process, status in zip(stage.processes, (WITHOUT_DATAPATH, FAILED), strict=True):
            assert await asyncio.to_thread(process.wait, DEADLINE_SECONDS) == status

    act(tmp_path, TWO, 2, play)


def test_what_the_datapath_says_is_passed_on(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.coordinator.start()
        stage.datapaths[0].say("lease expired")
        await until(lambda: stage.texts(AgentNotice), "the notice")
        assert stage.texts(AgentNotice) == ["the datapath says: lease expired"]
        stage.datapaths[0].say("failed 3 0 17 the old rates are in force")
        await until(lambda: stage.texts(AgentFailed), "the failure")
        assert "the old rates are in force" in stage.texts(AgentFailed)[0]

    act(tmp_path, TWO, 1, play)


def test_garbage_on_the_metadata_port_does_no_harm(tmp_path: Path) -> None:
    import socket

    async def play(stage: Stage) -> None:
        await stage.ready()
        await stage.coordinator.start()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number in range(20_000):
                sender.sendto(bytes([number & 255]) * (number % 1400), (f"{stage.network}.1", 7473))
                if number % 500 == 0:
                    await asyncio.sleep(0)
        await until(lambda: len(stage.applied(0)) == len(stage.plan.epochs), "all steps")
        assert all(not late for _, late in stage.applied(0))
        status = await stage.coordinator.request(0, {"do": "status"})
        assert status["mailbox"]["kernel_drops"] == 20_000
        assert status["metadata"]["taken"] == 0

    act(tmp_path, TWO, 1, play)


def test_lines_of_a_port() -> None:
    assert lines.attach_line(1, "/n", "eth0", ("10.0.0.0/8", "fd00::/8")) == (
        "attach 1 netns=/n if=eth0 prefix=10.0.0.0/8,fd00::/8"
    )
