"""What happens to a supervisor, scene by scene; one is run inside namespaces of its own:

    python -m tests.agent.pod.scenes NAME user|kernel PLACE

It ends with 0 if everything was as it should be; tests/agent/pod/test_supervisor.py starts it.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from runtime.agent.pod import pod_messages
from runtime.rpc import secure
from runtime.rpc.calls import RefusedError
from runtime.rundir.pcapng import read_packets
from runtime.system import procs
from tests.agent.pod.node import ADDRESS, ASK_SECONDS, KEY, ROUND_TRIP_MS, Node, times
from tests.pktd.harness import World
from tests.waiting import until

Scene = Callable[[Node], Awaitable[None]]
OTHER_KEY = bytes(32)


async def runs_follow_each_other(node: Node) -> None:
    """A whole run, then another one with another key, by the same supervisor."""
    await node.meet()
    found = pod_messages.facts(await node.ask({"do": "facts"}), "n0")
    assert found.digest == node.plan.digest
    assert found.node == "n0"
    assert found.user.why == "", found
    assert found.user.ports in ("tap", "packet")
    assert not found.running
    assert node.traces() == ""
    await node.leave()
    await node.carry_out()
    await node.shaped()
    running = pod_messages.facts(await node.ask({"do": "facts"}), "n0")
    assert running.running
    await refused(
        node,
        pod_messages.StartRequest(node.datapath, resume=False).to_record(),
        "a run is on at n0",
    )
    await node.shaped()
    await node.coordinator.stop()
    assert (await node.heard("ended"))["status"] == 0
    assert await node.end() == ""
    await node.nothing_left()
    await node.leave()
    (node.place / "key").write_bytes(OTHER_KEY)
    await node.meet(OTHER_KEY)
    await node.begin()
    assert await node.end() == ""
    assert await node.end() == "", "a second time it changes nothing"
    await node.nothing_left()


async def refused(node: Node, request: dict[str, object], words: str) -> None:
    try:
        await node.ask(request)
    except RefusedError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"{request} was not refused")


async def an_agent_dies(node: Node) -> None:
    """Packets go on; the supervisor starts it again once, and not a second time at once."""
    await node.carry_out()
    os.kill(node.begun.agent_pid, signal.SIGKILL)
    ended = await node.heard("ended")
    assert (ended["what"], ended["status"], ended["again"]) == ("agent", -9, True)
    await node.shaped()
    started = await node.heard("started")
    await node.rejoin()
    await node.shaped()
    await node.ask({"do": "kill"})
    ended = await node.heard("ended", 2)
    assert (ended["what"], ended["status"], ended["again"]) == ("agent", -9, False)
    assert not procs.identify(started["pid"])
    await node.shaped()
    assert await node.end() == ""
    await node.nothing_left()


async def a_datapath_dies(node: Node) -> None:
    """pktd killed leaves the network closed, tcald as it was; `end` opens it."""
    await node.carry_out()
    os.kill(node.begun.datapath_pid, signal.SIGKILL)
    await node.heard("ended", 2)
    ends = {message["what"]: message for message in node.said}
    assert ends["datapath"]["status"] == -9
    assert not ends["agent"]["again"]
    if node.datapath == "user":
        assert await node.ping() == []
    else:
        await node.shaped()
    assert node.traces() != ""
    assert await node.end() == ""
    await node.nothing_left()


async def a_supervisor_dies(node: Node) -> None:
    """All of its processes die with it. The next one resumes: nothing ever passes unshaped."""
    await node.carry_out()
    words = ["ping", "-n", "-i", "0.02", "-W", "1", "10.77.0.2"]
    pinging = node.world.spawn(node.pods[0], *words)
    children = node.children()
    assert {node.begun.agent_pid, node.begun.datapath_pid} <= set(children)
    node.supervisor.kill()
    node.supervisor.wait()
    gone = [procs.identify(pid) for pid in children]
    await until(lambda: not any(p and procs.alive(p) for p in gone), "its processes")
    node.start()
    await node.meet()
    await node.begin(resume=True)
    await node.rejoin()
    await node.shaped()
    pinging.send_signal(signal.SIGINT)
    assert pinging.stdout is not None
    found = times(pinging.stdout.read().decode())
    assert found, "it was answered before and after"
    assert min(found) >= ROUND_TRIP_MS - 0.1
    await node.coordinator.stop()
    assert await node.end() == ""
    await node.nothing_left()


async def nobody_resumes(node: Node) -> None:
    """What a killed supervisor has left is removed by the next one, though nobody asks it to."""
    await node.carry_out()
    node.supervisor.kill()
    node.supervisor.wait()
    assert node.traces() != ""
    node.start()
    await until(lambda: not (node.place / "tmp/ports").exists(), node.log)
    await node.nothing_left()


async def a_coordinator_stays_away(node: Node) -> None:
    """Everything ends, and the supervisor waits for the next one."""
    await node.carry_out()
    await node.leave()
    await until(lambda: not (node.place / "tmp/ports").exists(), node.log)
    await node.nothing_left()
    assert "no coordinator has been here" in node.log()
    await node.meet()
    await node.begin()
    assert await node.end() == ""


async def it_is_told_to_end(node: Node) -> None:
    """As kubelet does when the pod is deleted, in the middle of a run."""
    await node.carry_out()
    node.supervisor.terminate()
    assert await asyncio.to_thread(node.supervisor.wait, ASK_SECONDS) == 0, node.log()
    await node.nothing_left()


async def somebody_looks_on(node: Node) -> None:
    """At a path, by the program that the API server starts beside the supervisor."""
    await node.carry_out()
    looks_on = node.capture("a.0->b.0")
    head = await asyncio.to_thread(looks_on.stdout.readline)
    if node.datapath != "user":
        assert "the kernel's traffic control shapes this run" in looks_on.communicate()[1].decode()
        assert looks_on.returncode == 1
        return
    assert json.loads(head) == {"interfaces": ["a.0->b.0/offered", "a.0->b.0"], "left_out": []}
    again = node.capture("a.0->b.0").communicate()[1].decode()
    assert "cannot capture at a.0->b.0" in again, "somebody does already"
    await node.shaped()
    await node.coordinator.stop()
    assert await node.end() == ""
    data, why = await asyncio.to_thread(looks_on.communicate)
    assert looks_on.returncode == 0, why
    ends: dict[str, int] = {}
    found = list(read_packets(io.BytesIO(data), "the path", ends.__setitem__))
    offered, left = (
        {one.data[38:42]: one.at_ns for one in found if one.interface == name}
        for name in ("a.0->b.0/offered", "a.0->b.0")
    )
    assert len(left) >= 3, found
    assert offered.keys() >= left.keys()
    delay_ns = ROUND_TRIP_MS / 2 * 1e6
    assert all(left[one] - offered[one] >= delay_ns - 1e5 for one in left)
    assert 0 < min(offered.values()) < 10**12, "times are those since time 0"
    assert ends == {"a.0->b.0/offered": 0, "a.0->b.0": 0}
    await node.nothing_left()
    assert not (node.place / "tmp/captures").exists()


async def strangers_knock(node: Node) -> None:
    """Nobody without the key gets a word, whoever has it an answer, and the run goes on."""
    await node.carry_out()
    writers = []
    for attack in (b"GET / HTTP/1.1\r\n\r\n", b"", b"tstorm\0\1" + bytes(64), b"\xff" * 5000):
        reader, writer = await asyncio.open_connection(ADDRESS, pod_messages.SUPERVISOR_PORT)
        writer.write(attack)
        if attack:
            got = await asyncio.wait_for(reader.read(), ASK_SECONDS)
            assert len(got) == 40, "its greeting, and nothing else"
        writers.append(writer)
    for _ in range(40):
        _, writer = await asyncio.open_connection(ADDRESS, pod_messages.SUPERVISOR_PORT)
        writers.append(writer)
    try:
        await secure.connect(ADDRESS, pod_messages.SUPERVISOR_PORT, OTHER_KEY)
    except secure.ChannelError:
        pass
    else:
        raise AssertionError("a wrong key is taken")
    for writer in writers:
        writer.close()
    for request, words in NONSENSE:
        await refused(node, request, words)
    second = None
    try:
        second = await secure.connect(ADDRESS, pod_messages.SUPERVISOR_PORT, KEY)
    except secure.ChannelError as error:
        assert "another coordinator is connected" in str(error)
    assert second is None
    await node.shaped()
    await node.coordinator.stop()
    assert await node.end() == ""
    await node.nothing_left()


NONSENSE: list[tuple[dict[str, object], str]] = [
    ({"do": "sit"}, "'sit' is nothing to do"),
    ({"do": ["begin"]}, "is nothing to do"),
    ({}, "None is nothing to do"),
    ({"do": "begin"}, "begin: datapath is missing"),
    (
        {"do": "begin", "datapath": "/bin/sh", "resume": False, "share": 1},
        "datapath must be user or kernel, not '/bin/sh'",
    ),
    (
        {"do": "begin", "datapath": "user", "resume": "no", "share": 1},
        "resume must be true or false, not 'no'",
    ),
    (
        {"do": "begin", "datapath": "user", "resume": False, "share": 10**9},
        "share must be a number from 1 to 1000, not 1000000000",
    ),
]
SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        runs_follow_each_other,
        an_agent_dies,
        a_datapath_dies,
        a_supervisor_dies,
        nobody_resumes,
        a_coordinator_stays_away,
        it_is_told_to_end,
        somebody_looks_on,
        strangers_knock,
    )
}


def main(name: str, datapath: str, place: str) -> None:
    with World() as world:
        node = Node(world, Path(place), datapath)

        async def play() -> None:
            try:
                await SCENES[name](node)
            except BaseException:
                print(node.log(), node.said, node.agents_said[-3:], node.lost)
                raise

        try:
            asyncio.run(play())
        finally:
            node.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
