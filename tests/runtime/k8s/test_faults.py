"""Faults of a cluster in the middle of a run: what goes on, what ends it, and that it is named."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from runtime.backend.k8s import cluster_hosts, supervisors
from tests.doubles.agent import KEY
from tests.runtime.k8s.scene import Scene, act
from tests.waiting import until

TEXT = """
service server img=x replicas=2 entrypoint=["/bin/server"]
service client img=x entrypoint=["/bin/client"]
bridge s
link server--s latency=5 up=10Mb symmetric
link client--s latency=5 up=10Mb symmetric
at 6s client--s set latency=9
at 6500ms quit
"""
LONG = TEXT.replace("6500ms", "90s")
Fault = Callable[[Scene], Awaitable[None]]


def outcome(tmp_path: Path, text: str, fault: Fault, check: Callable[[Scene, Any], None]) -> None:
    """Runs to the end, with a fault after the start."""

    async def play(scene: Scene) -> None:
        await scene.fill()
        running = asyncio.create_task(scene.run())
        await until(lambda: scene.channel.started and scene.of("join"), "the start")
        await fault(scene)
        check(scene, await running)

    act(text, 2, tmp_path, play)


def test_an_agent_that_dies_is_taken_up_again(tmp_path: Path) -> None:
    async def fault(scene: Scene) -> None:
        node = scene.nodes[1]
        await node.agent.die()
        node.say(say="ended", what="agent", status=-9, again=True)
        await until(lambda: scene.of("agent_lost"), "the loss")
        await node.agent.listen()
        node.say(say="started", what="agent", pid=200)
        await until(lambda: scene.of("agent_back"), "the return")

    def check(scene: Scene, final: Any) -> None:
        assert (final.outcome, final.message) == ("completed", "")
        assert [event["target"] for event in scene.of("agent_back")] == ["n1"]
        assert len(scene.of("set")) == 2
        resumed = scene.nodes[1].agent.asked("prepare")[-1]["resume"]
        assert [port[:2] for port in resumed["ports"]] == [[1, 1]]
        assert resumed["pods"][0][0] == 1 and resumed["hosts"]

    outcome(tmp_path, TEXT, fault, check)


def test_a_container_of_an_agent_that_dies_is_begun_again(tmp_path: Path) -> None:
    async def fault(scene: Scene) -> None:
        node = scene.nodes[1]
        await node.die()
        await until(lambda: scene.of("agent_lost"), "the loss")
        await node.listen()
        await until(lambda: scene.of("agent_back"), "the return")

    def check(scene: Scene, final: Any) -> None:
        assert (final.outcome, final.message) == ("completed", "")
        begun = [one for one in scene.nodes[1].supervised if one["do"] == "begin"]
        assert [one["resume"] for one in begun] == [False, True]
        assert scene.nodes[1].attached == {1}

    outcome(tmp_path, TEXT, fault, check)


def test_a_kill_for_an_agent_that_is_gone_does_not_meet_the_next_one(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        node = scene.nodes[0]
        parts = supervisors.NodeParts(node.name, node.address, KEY, lambda _text: None)
        await parts.connect(60)
        await parts.begin("user", 1)
        await node.die()
        node.may_begin.clear()
        await node.listen()
        await until(lambda: len(node.supervised) == 2, "the second begin")
        parts.agent.kill()  # it hangs, as far as the run can see
        node.may_begin.set()
        assert await parts.agent.ended == supervisors.KILLED
        await parts.facts()  # behind everything that was asked
        assert [request["do"] for request in node.supervised] == ["begin", "begin", "facts"]
        parts.restart_agent()
        parts.agent.kill()
        await until(lambda: node.supervised[-1]["do"] == "kill", "the kill of the new one")
        await parts.end()

    act(TEXT, 1, tmp_path, play)


def test_a_container_that_does_not_come_back_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisors, "BACK_SECONDS", 1.0)

    async def fault(scene: Scene) -> None:
        await scene.nodes[1].die()

    def check(scene: Scene, final: Any) -> None:
        assert final.outcome == "failed"
        assert "the agent pod of n1 was lost" in final.message

    outcome(tmp_path, LONG, fault, check)


@pytest.mark.parametrize("how", ["gone", "silent"])
def test_a_node_that_is_away_at_the_end_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Its connection is broken, or nobody has noticed yet that it is."""
    monkeypatch.setattr(supervisors, "END_SECONDS", 0.1)

    async def play(scene: Scene) -> None:
        node = scene.nodes[0]
        parts = supervisors.NodeParts(node.name, node.address, KEY, lambda _text: None)
        await parts.connect(60)
        await parts.begin("user", 1)
        node.hangs = {"end"}
        if how == "gone":
            await node.die()
            await until(lambda: parts._asker is None, "the loss")
        fault = await parts.end()
        assert fault is not None
        assert fault.message.startswith("n0 was away at the end of the run: ")

    act(TEXT, 1, tmp_path, play)


def test_a_node_that_says_why_it_cannot_end_was_not_away(tmp_path: Path) -> None:
    said: list[str] = []

    async def play(scene: Scene) -> None:
        node = scene.nodes[0]
        parts = supervisors.NodeParts(node.name, node.address, KEY, said.append)
        await parts.connect(60)
        await parts.begin("user", 1)
        node.refuses = {"end"}
        assert await parts.end() is None
        assert said == ["the agent pod of n0 cannot end: its disk is full"]

    act(TEXT, 1, tmp_path, play)


def test_a_datapath_that_dies_ends_the_run(tmp_path: Path) -> None:
    async def fault(scene: Scene) -> None:
        scene.nodes[0].say(say="ended", what="datapath", status=-11, again=False)

    def check(scene: Scene, final: Any) -> None:
        assert final.outcome == "failed"
        assert "the datapath of n0 ended with signal 11" in final.message

    outcome(tmp_path, LONG, fault, check)


@pytest.mark.parametrize("how", ["leaving", "removed", "replaced"])
def test_an_agents_pod_that_is_another_ends_the_run(tmp_path: Path, how: str) -> None:
    async def fault(scene: Scene) -> None:
        if how == "removed":
            scene.server.remove_pod("tstorm-agent-1")
        else:
            pod = scene.agent_pod(1, **({"uid": "other"} if how == "replaced" else {}))
            if how == "leaving":
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            scene.server.put_pod(pod)

    def check(scene: Scene, final: Any) -> None:
        assert final.outcome == "failed"
        assert "the agent pod of n1 was deleted or replaced" in final.message

    outcome(tmp_path, LONG, fault, check)


def test_an_instances_pod_that_is_evicted_ends_the_run(tmp_path: Path) -> None:
    async def fault(scene: Scene) -> None:
        pod = scene.pod(1, phase="Failed", reason="Evicted", message="low on memory")
        scene.server.put_pod(pod)

    def check(scene: Scene, final: Any) -> None:
        assert final.outcome == "failed"
        assert "pod server-1 on n1 was deleted or replaced: Evicted: low" in final.message

    outcome(tmp_path, LONG, fault, check)


def test_a_container_of_an_instance_that_dies_is_an_event(tmp_path: Path) -> None:
    async def fault(scene: Scene) -> None:
        node = scene.nodes[1]
        asked = len(node.agent.asked("lives"))
        node.agent.say(say="report", node=1, line=0, event="gone", elapsed_ns=node._elapsed())
        await until(lambda: scene.of("killed"), "the event")
        scene.server.put_pod(scene.pod(1, restarts=1, container_id="containerd://another"))
        await until(lambda: len(node.agent.asked("lives")) > asked, "who takes orders now")

    def check(scene: Scene, final: Any) -> None:
        assert (final.outcome, final.message) == ("completed", "")
        assert [event["target"] for event in scene.of("killed")] == ["server.1"]
        assert any("server.1 was killed from outside" in m for m in scene.channel.warnings())

    outcome(tmp_path, TEXT, fault, check)


def test_a_pod_that_moves_out_of_the_runs_networks_ends_it(tmp_path: Path) -> None:
    """What is sent there is not shaped, and no agent could be resumed with it."""

    async def fault(scene: Scene) -> None:
        scene.server.put_pod(scene.pod(1, ips=["10.245.7.9"]))

    def check(scene: Scene, final: Any) -> None:
        assert final.outcome == "failed"
        words = "pod server-1 on n1 has got the address 10.245.7.9, which is in no network of the"
        assert f"{words} run: 10.244.0.0/24 10.244.1.0/24" in final.message
        assert scene.of("moved") == []
        assert not any(node.agent.asked("move") for node in scene.nodes)

    outcome(tmp_path, LONG, fault, check)


def test_a_container_that_changes_while_it_is_looked_for_in_vain_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_hosts, "FIND_SECONDS", -1.0)  # one look

    async def fault(scene: Scene) -> None:
        agent = scene.nodes[1].agent
        find, told = agent.behave["pods"], len(agent.asked("lives"))
        vain: list[Mapping[str, object]] = [{"found": [], "missing": [[1, "nothing of it"]]}]
        agent.behave["pods"] = lambda request: vain.pop() if vain else find(request)
        gate = agent.gates["pods"] = asyncio.Event()
        asked = len(agent.asked("pods"))
        await scene.change(scene.pod(1, restarts=1, container_id="containerd://another"))
        await until(lambda: len(agent.asked("pods")) > asked, "it to be looked for")
        await scene.change(scene.pod(1, restarts=2, container_id="containerd://third"))
        gate.set()
        await until(lambda: len(agent.asked("lives")) > told, "who takes orders now")

    def check(scene: Scene, final: Any) -> None:
        assert (final.outcome, final.message) == ("completed", "")
        assert not any("cannot join again" in warning for warning in scene.channel.warnings())

    outcome(tmp_path, TEXT, fault, check)


def test_nobody_joins_again_while_a_run_ends(tmp_path: Path) -> None:
    async def fault(scene: Scene) -> None:
        agent = scene.nodes[1].agent
        agent.behave["pods"] = lambda _request: {"found": [], "missing": [[1, "nothing of it"]]}
        asked = len(agent.asked("pods"))
        scene.server.put_pod(scene.pod(1, restarts=1, container_id="containerd://another"))
        await until(lambda: len(agent.asked("pods")) > asked, "its container to be looked for")
        agent.delays["finish"] = 2 * cluster_hosts.FIND_PAUSE_SECONDS
        scene.channel.stop.set()

    def check(scene: Scene, final: Any) -> None:
        assert final.outcome == "interrupted"
        asked = [request["do"] for request in scene.nodes[1].agent.requests]
        assert asked[asked.index("finish") :] == ["finish", "stop"]
        assert not any("cannot join again" in warning for warning in scene.channel.warnings())

    outcome(tmp_path, LONG, fault, check)


def test_an_api_server_that_is_away_costs_the_ends_of_logs_only(tmp_path: Path) -> None:
    async def fault(scene: Scene) -> None:
        scene.server.close()

    def check(scene: Scene, final: Any) -> None:
        assert (final.outcome, final.message) == ("completed", "")
        assert len(scene.of("set")) == 2
        incomplete = final.facts["logs_incomplete"]
        assert list(incomplete) == ["client.0", "server.0", "server.1"]
        words = "lines may be missing in the log of client.0 and 2 more: "
        assert words + incomplete["client.0"] in scene.channel.warnings()

    outcome(tmp_path, TEXT, fault, check)


@pytest.mark.parametrize("message", [{"say": "ended", "what": "node"}, {"say": "hello"}])
def test_a_supervisor_that_says_nonsense_is_cut_off_and_met_again(
    tmp_path: Path, message: dict[str, Any]
) -> None:
    async def fault(scene: Scene) -> None:
        node = scene.nodes[1]
        channels = len(node.channels)
        node.say(**message)
        await until(lambda: len(node.channels) > channels, "another connection")

    def check(scene: Scene, final: Any) -> None:
        assert (final.outcome, final.message) == ("completed", "")
        assert scene.of("agent_lost") == []

    outcome(tmp_path, TEXT, fault, check)
