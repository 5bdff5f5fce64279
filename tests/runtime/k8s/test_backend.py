"""A run in a cluster, with the cluster's parts replaced: from pods that come to an outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runtime.backend.k8s import cluster_hosts, pod_readiness
from runtime.rpc.control import ask
from tests.doubles.agent import Behaviour
from tests.runtime.k8s.scene import Scene, act
from tests.waiting import until

DEADLINE_NS = 60 * 10**9  # only a test that fails is so late
TEXT = """
service server img=x replicas=2 entrypoint=["/bin/server"]
service client img=x entrypoint=["/bin/client"] command=["--fast"]
bridge s
link server--s latency=5 up=10Mb symmetric
link client--s latency=5 up=10Mb symmetric
at 300ms server.0 leave
at 600ms server.0 join
at 700ms server.1 crash
at 900ms client--s set latency=9
at 1200ms quit
"""


def test_a_run_is_carried_out_and_logged_as_locally(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        final = await scene.run()
        assert (final.outcome, final.message) == ("completed", "")
        joins = scene.of("join")
        targets = [event["target"] for event in joins]
        assert sorted(targets[:3]) == ["client.0", "server.0", "server.1"]
        assert targets[3:] == ["server.0"]
        for event in joins:
            assert 0 <= event["started_ns"] - event["applied_ns"] < DEADLINE_NS
            assert abs(event["lag_ns"]) < DEADLINE_NS and "network_ns" in event
        assert [event["target"] for event in scene.of("leave")] == ["server.0"]
        assert [event["target"] for event in scene.of("crash")] == ["server.1"]
        assert [event["target"] for event in scene.of("cut")] == ["server.0"]
        assert len(scene.of("set")) == 2
        exits = scene.of("exit")
        assert [(e["target"], e["signal"], e["asked"]) for e in exits] == [("server.0", 15, True)]
        facts = final.facts
        assert facts["datapath"] == "user"
        assert "netem: No such file" in facts["datapath_reason"]
        assert {(row["from"], row["to"]) for row in facts["underlay"]} == {
            *(("n0", "n1"), ("n1", "n0"), ("n0", "n0"))
        }
        assert [row["planned_rtt_ns"] for row in facts["proof"]] == [20_000_000] * 2
        assert facts["hosts"][0]["instances"] == ["server.0", "client.0"]
        assert any("datapath: the packet engine, since" in m for m in scene.channel.messages())
        for node in scene.nodes:
            assert node.supervised[1]["share"] == 2  # one machine
            assert [request["do"] for request in node.supervised] == ["facts", "begin", "end"]
            order = [request["do"] for request in node.agent.requests]
            assert order.index("pods") < order.index("reach") < order.index("attach")
            assert order.index("lives") < order.index("open") < order.index("start")
            assert "reach" in order[order.index("open") : order.index("start")]
            assert order.index("start") < order.index("finish")

    # Time enough for what ends between a leave and its join, on a busy machine, too.
    later = {"600ms": "8s", "700ms": "8100ms", "900ms": "8300ms", "1200ms": "8600ms"}
    text = TEXT
    for soon, late in later.items():
        text = text.replace(f"at {soon}", f"at {late}")
    act(text, 2, tmp_path, play)


def test_names_go_to_some_agents_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are long where there are many instances: one after the other here."""
    monkeypatch.setattr(cluster_hosts, "AT_ONCE", 1)
    asked: list[float] = []

    async def play(scene: Scene) -> None:
        await scene.fill()
        for node in scene.nodes:
            find = node.agent.behave["pods"]

            def found(request: dict[str, Any], find: Behaviour = find) -> Mapping[str, object]:
                asked.append(time.monotonic())
                return find(request)

            node.agent.behave["pods"], node.agent.delays["pods"] = found, 0.2
        assert (await scene.run()).outcome == "completed"
        assert len(asked) == 2 and asked[1] - asked[0] >= 0.2

    act(TEXT, 2, tmp_path, play)


def test_it_waits_for_pods_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_readiness, "TELL_SECONDS", 0.2)

    async def play(scene: Scene) -> None:
        await scene.fill()
        pulling = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
        scene.server.put_pod(scene.pod(0, state=pulling))
        scene.server.remove_pod("tstorm-agent-1")
        running = asyncio.create_task(scene.run())
        await until(lambda: any("ImagePullBackOff" in m for m in scene.channel.messages()), "it")
        scene.server.put_pod(scene.pod(0))
        await until(lambda: any("1 agents: n1" in m for m in scene.channel.messages()), "agents")
        scene.server.put_pod(scene.agent_pod(1))
        final = await running
        assert (final.outcome, final.message) == ("completed", "")

    act(TEXT, 2, tmp_path, play)


def test_a_pod_that_moves_while_agents_are_waited_for_is_taken_where_it_is(tmp_path: Path) -> None:
    """Also on another node, whose agent is waited for then."""

    async def play(scene: Scene) -> None:
        await scene.fill()
        scene.server.put_pod(scene.pod(0, node="n1", ips=["10.244.1.50"]))
        scene.server.put_pod(scene.pod(2, node="n1", ips=["10.244.1.52"]))
        scene.server.remove_pod("tstorm-agent-1")
        running = asyncio.create_task(scene.run())
        await until(lambda: any("1 agents: n1" in m for m in scene.channel.messages()), "agents")
        scene.server.put_pod(scene.pod(0))
        scene.server.put_pod(scene.pod(2, ips=["10.244.0.99"]))
        scene.addresses[2] = "10.244.0.99"
        scene.server.put_pod(scene.agent_pod(1))
        final = await running
        assert (final.outcome, final.message) == ("completed", "")
        assert final.facts["hosts"][0]["instances"] == ["server.0", "client.0"]
        for node in scene.nodes:
            assert [pair[0] for pair in node.addresses] == scene.addresses

    act(TEXT, 2, tmp_path, play)


BEFORE = "pod server-1 on n1 "
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "moved": ({"ips": ["10.244.1.99"]}, BEFORE + "has got another address: 10.244.1.99, before"),
    "again": ({"container_id": "containerd://another"}, BEFORE + "had its container started again"),
    "replaced": ({"uid": "other"}, BEFORE + "was deleted or replaced"),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_pod_that_is_another_before_the_start_ends_it(tmp_path: Path, how: str) -> None:
    """Nothing was proven of what it is now."""
    change, words = CHANGES[how]

    async def play(scene: Scene) -> None:
        agent = scene.nodes[1].agent
        await scene.fill()
        agent.gates["lives"] = asyncio.Event()
        running = asyncio.create_task(scene.run())
        await until(lambda: agent.asked("lives"), "the last before the start")
        await scene.change(scene.pod(1, **change))
        agent.gates["lives"].set()
        final = await running
        assert final.outcome == "failed" and words in final.message
        assert not any(node.agent.asked("start") for node in scene.nodes)

    act(TEXT, 2, tmp_path, play)


@pytest.mark.parametrize("how", ["moved", "replaced"])
def test_a_pod_that_changes_before_it_is_looked_for_is_not_missed(tmp_path: Path, how: str) -> None:
    change, words = CHANGES[how]

    async def play(scene: Scene) -> None:
        node = scene.nodes[1]
        await scene.fill()
        node.may_begin.clear()
        running = asyncio.create_task(scene.run())
        await until(lambda: len(node.supervised) == 2, "the agent to be started")
        await scene.change(scene.pod(1, **change))
        node.may_begin.set()
        final = await running
        assert final.outcome == "failed" and words in final.message
        assert not any(node.agent.asked("start") for node in scene.nodes)

    act(TEXT, 2, tmp_path, play)


def test_what_never_comes_is_named_at_the_end_of_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_readiness, "SECONDS", 0.5)

    async def play(scene: Scene) -> None:
        await scene.fill()
        scene.server.remove_pod("server-1")
        final = await scene.run()
        assert final.outcome == "failed"
        assert "1 pods: server.1: there is no pod of it yet" in final.message

    act(TEXT, 2, tmp_path, play)


def test_a_container_that_ends_again_and_again_is_an_error(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        waits = {"waiting": {"reason": "CrashLoopBackOff"}}
        last = {"terminated": {"exitCode": 127}}
        scene.server.put_pod(scene.pod(0, state=waits, restarts=3, last=last))
        final = await scene.run()
        assert final.outcome == "failed"
        assert "container instance of pod server-0 ends again and again, with status 127" in (
            final.message
        )

    act(TEXT, 2, tmp_path, play)


@pytest.mark.parametrize("which", ["digest", "version", "pod"])
def test_nothing_of_another_plan_or_release_takes_part(tmp_path: Path, which: str) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        if which == "pod":
            other = scene.pod(2)
            other["metadata"]["annotations"]["thunderstorm.dev/plan"] = "e" * 64
            scene.server.put_pod(other)
        else:
            setattr(scene.nodes[1], which, "another")
        final = await scene.run()
        assert final.outcome == "failed"
        named = "pod client-0 is of another plan" if which == "pod" else "n1"
        assert named in final.message

    act(TEXT, 2, tmp_path, play)


def test_the_kernels_datapath_where_all_nodes_have_it(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        for node in scene.nodes:
            node.kernel = {}
        await scene.fill()
        final = await scene.run()
        assert final.facts["datapath"] == "kernel"
        begun = [node.supervised[1]["datapath"] for node in scene.nodes]
        assert begun == ["kernel", "kernel"]

    act(TEXT, 2, tmp_path, play)


@pytest.mark.parametrize("fault", ["bypasses", "uncounted", "short"])
def test_where_packets_are_not_shaped_no_run_starts(tmp_path: Path, fault: str) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        if fault == "short":
            scene.nodes[1].rtt_ns = lambda _node, _address: 300_000
        else:
            setattr(scene.nodes[1], fault, True)
        final = await scene.run()
        assert final.outcome == "failed"
        words = {
            "bypasses": "packets of instances pass although their network is closed",
            "uncounted": "the datapath has not seen them",
            "short": "packets are not shaped",
        }
        assert words[fault] in final.message and "(sent on n1)" in final.message
        assert not scene.channel.started
        assert not any(node.agent.asked("start") for node in scene.nodes)

    act(TEXT, 2, tmp_path, play)


def test_a_path_below_the_underlay_is_a_warning(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        final = await scene.run()
        assert final.outcome == "completed"
        wanted = "server.0 -> server.1 is planned to take 0.020 ms; the cluster's own network takes"
        assert f"{wanted} 0.080 ms more" in scene.channel.warnings()

    text = TEXT.replace("latency=5 ", "latency=10us ").replace("latency=9", "latency=9us")
    act(text, 2, tmp_path, play)


def test_a_program_that_does_not_start_is_the_end_of_the_run(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        scene.nodes[0].fails["client.0"] = "Exec format error"
        final = await scene.run()
        (failed,) = [event for event in scene.of("exit") if "error" in event]
        assert (failed["target"], failed["error"]) == ("client.0", "Exec format error")
        said = "client.0: cannot start '/bin/client': Exec format error"
        assert said in scene.channel.warnings()
        assert (final.outcome, final.programs_failed) == ("failed", True)
        assert final.message.startswith(said)

    act(TEXT, 2, tmp_path, play)


def test_a_stop_ends_programs_and_nodes(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        running = asyncio.create_task(scene.run())
        await until(lambda: scene.channel.started, "the start")
        scene.channel.stop.set()
        assert (await running).outcome == "interrupted"
        for node in scene.nodes:
            assert node.agent.asked("finish") and node.agent.asked("stop")
            assert node.supervised[-1]["do"] == "end"

    act(TEXT.replace("1200ms", "60s"), 2, tmp_path, play)


def test_a_pod_that_has_another_address_on_its_node_is_taken_up_again(tmp_path: Path) -> None:
    """All agents and all names follow; its own agent attaches it anew."""
    server, at = 1, "10.244.1.99"  # server.1 on n1

    async def play(scene: Scene) -> None:
        await scene.fill()
        running = asyncio.create_task(scene.run())
        await until((tmp_path / "events.jsonl").exists, "the start")
        await until(lambda: scene.of("join"), "the first step")
        node = scene.nodes[1]
        found = {"found": [[server, 2001, 1501, "run"]], "missing": []}
        node.agent.behave["pods"] = lambda _request: found
        before = len(node.agent.requests)
        scene.server.put_pod(scene.pod(server, ips=[at], container_id="containerd://another"))
        await until(lambda: len(node.agent.asked("lives")) == 2, "its new process to be told")
        for each in scene.nodes:
            assert [request["moved"] for request in each.agent.asked("move")] == [
                [[server, at, ""]]
            ]
            assert f"{at} server.1 server-1" in each.agent.asked("pods")[-1]["hosts"]
        asked = [request["do"] for request in node.agent.requests[before:]]
        asked = asked[asked.index("pods") :]
        assert asked == ["pods", "detach", "attach", "bind", "move", "pods", "lives"]
        assert node.agent.asked("attach")[-1]["netns"] == "/proc/1501/ns/net"
        assert node.agent.asked("bind")[-1]["bind"] == [[server, server]]
        assert node.agent.asked("lives")[-1]["lives"] == [[server, 2001]]
        state, _ = await asyncio.to_thread(ask, tmp_path / "control", {"ask": "state"})
        shown = {one["name"]: (one["ipv4"], one["ipv6"]) for one in state["instances"]}
        assert (shown["server.0"], shown["server.1"]) == ((scene.addresses[0], ""), (at, ""))
        scene.channel.stop.set()
        await running
        assert [(e["target"], e["address"]) for e in scene.of("moved")] == [("server.1", at)]

    act(TEXT.replace("at 700ms server.1 crash\n", "").replace("1200ms", "60s"), 2, tmp_path, play)


def test_the_kernels_datapath_need_not_count_before_the_start(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        for node in scene.nodes:
            node.kernel, node.uncounted = {}, True
        await scene.fill()
        final = await scene.run()
        assert (final.outcome, final.message) == ("completed", "")

    act(TEXT, 2, tmp_path, play)


READY = """
service server img=x entrypoint=["/bin/server"] setup="init" ready=tcp:80
service client img=x entrypoint=["/bin/client"]
service late img=x entrypoint=["/bin/late"] setup="init"
bridge s
link server--s latency=5
link client--s latency=5
link late--s latency=5
at 100ms late join
at 300ms quit
"""


def asked_early(scene: Scene) -> list[list[Any]]:
    return [
        pair for node in scene.nodes for one in node.agent.asked("early") for pair in one["nodes"]
    ]


def test_setups_run_before_the_start_and_a_failed_one_is_said(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        answers: list[Mapping[str, object]] = [
            {"pending": [0], "failed": []},
            {"pending": [], "failed": [[0, "setup!"]]},
        ]
        looks = iter(answers)
        for node in scene.nodes:
            node.agent.behave["early"] = lambda _request: next(looks)
        final = await scene.run()
        assert final.outcome == "completed"
        assert asked_early(scene) == [[0, "set_up"]] * 2
        order = [request["do"] for request in scene.nodes[0].agent.requests]
        assert order.index("open") < order.index("early") < order.index("start")
        assert "server.0: setup!" in scene.channel.warnings()

    act(READY, 2, tmp_path, play)


def test_a_run_that_starts_when_ready_starts_programs_first(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        for node in scene.nodes:
            node.agent.behave["early"] = lambda _request: {"pending": [], "failed": []}
        final = await scene.run()
        assert final.outcome == "completed"
        assert sorted(asked_early(scene)) == [[0, "ready"]]  # the other is a client

    act("start when ready" + READY, 2, tmp_path, play)


def test_what_is_not_ready_ends_a_run_that_waits_for_it(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        for node in scene.nodes:
            node.agent.behave["early"] = lambda request: {
                "pending": [],
                "failed": [[node, "no"] for node, wait in request["nodes"] if wait == "ready"],
            }
        final = await scene.run()
        assert (final.outcome, final.message) == ("failed", "server.0: no")
        assert final.programs_failed is True
        assert all("start" not in [r["do"] for r in n.agent.requests] for n in scene.nodes)

    act("start when ready" + READY, 2, tmp_path, play)
