"""`tstorm capture` with --backend k8s: a command in the right agents' pods, and what it prints."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.rundir.pcapng import Packet, read_packets
from runtime.rundir.pcapng_writer import PacketWriter
from tests.cli.support import status, tstorm
from tests.doubles.api import FakeApi, ended
from tests.k8s.test_finding import STATE, experiment
from tests.k8s.test_finding import pod as put_pod

SENT, COME = "c.0->network", "network->c.0"
UDP = bytes(12) + b"\x08\0\x45" + bytes(8) + b"\x11" + bytes(18) + b"data"
ECHO = bytes(12) + b"\x08\0\x45" + bytes(8) + b"\x01" + bytes(10) + b"\x08" + bytes(7) + b"EPPT"
ECHO6 = bytes(12) + b"\x86\xdd" + bytes(6) + b"\x3a" + bytes(33) + b"\x80" + bytes(7) + b"EPPT"


def printed(*packets: Packet, missing: int = 0, names: tuple[str, ...] = (SENT, COME)) -> bytes:
    """What the node prints of these."""
    file = io.BytesIO()
    writer = PacketWriter(file, names, "tstorm-agent capture")
    for one in packets:
        writer.add(one)
    for name in names:
        writer.ended(name, missing)
    writer.close()
    return file.getvalue()


PRINTED = printed(
    Packet(SENT, 5, UDP, "", 0), Packet(COME, 7, ECHO, "", 0), Packet(COME, 8, ECHO6, "", 3)
)


@pytest.fixture
def cluster(server: FakeApi) -> FakeApi:
    """The run exp-1 in the namespace one: c.0 on n1, c.1 on n2, an agent on n1 and n3."""
    experiment(server, "one", "exp-1")
    labels = {"app.kubernetes.io/component": "coordinator"}
    put_pod(server, "one", "tstorm-coordinator-x", metadata={"labels": labels})
    for index, node in enumerate(("n1", "n2")):
        meta = {
            "uid": f"uid-{index}",
            "labels": {"apps.kubernetes.io/pod-index": str(index)},
            "annotations": {"thunderstorm.dev/service": "c"},
        }
        put_pod(server, "one", f"c-{index}", metadata=meta, spec={"nodeName": node})
    for node in ("n3", "n1"):
        labels = {"app.kubernetes.io/component": "agent"}
        meta, spec = {"labels": labels}, {"nodeName": node}
        put_pod(server, "one", f"tstorm-agent-{node}", metadata=meta, spec=spec)
    return server


def prints(server: FakeApi, data: bytes, how: dict[str, Any] | None, errors: bytes = b"") -> None:
    """What the command in the agent's pod does; how None: the connection breaks."""

    def said(_pod: str, argv: list[str]) -> Iterator[tuple[int, bytes]]:
        if argv[0].endswith("tstorm-coordinator"):
            yield 1, json.dumps(STATE).encode()
            yield 3, json.dumps(ended(0)).encode()
            return
        for start in range(0, len(data), 50):
            yield 1, data[start : start + 50]
        if errors:
            yield 2, errors
        if how is not None:
            yield 3, json.dumps(how).encode()

    server.on_exec = said


def capture(*words: str) -> Any:
    return tstorm("capture", "--backend", "k8s", "--namespace", "one", *words)


def test_packets_come_from_the_agent_of_its_node(cluster: FakeApi, tmp_path: Path) -> None:
    prints(cluster, PRINTED, ended(0))
    done = capture("exp-1", "c.0", "-w", str(tmp_path / "all.pcapng"), "--probes")
    assert status(done) == 0, done.output
    assert "3 packets; 3 were lost" in done.stderr
    ((name, argv),) = cluster.execs
    assert (name, argv) == ("tstorm-agent-n1", ["/usr/bin/tstorm-agent", "capture"])
    with (tmp_path / "all.pcapng").open("rb") as file:
        found = list(read_packets(file, "all"))
    assert [(one.interface, one.at_ns) for one in found] == [(SENT, 5), (COME, 7), (COME, 8)]


def test_the_runs_own_probes_are_left_out(cluster: FakeApi, tmp_path: Path) -> None:
    prints(cluster, PRINTED, ended(0))
    done = capture("exp-1", "c.0", "-w", str(tmp_path / "own.pcapng"))
    assert status(done) == 0, done.output
    assert "1 packets; 3 were lost" in done.stderr


def test_the_node_filters(cluster: FakeApi, tmp_path: Path) -> None:
    """What is not wanted does not pass the API server."""
    asked: list[dict[str, Any]] = []

    def said(_pod: str, argv: list[str]) -> Iterator[tuple[int, bytes]]:
        asked.append(json.loads(argv[-1]))
        yield 1, PRINTED
        yield 3, json.dumps(ended(0)).encode()

    cluster.on_exec = said
    done = capture("exp-1", "c.0", "-w", str(tmp_path / "f.pcapng"), "--filter", "tcp")
    if "needs libpcap" in done.stderr:
        pytest.skip("libpcap is not installed")
    assert status(done) == 0, done.output
    assert "0 packets" in done.stderr, "and this end looks, too"
    (one,) = asked
    assert (one["pod"], one["instance"]) == ("uid-0", "c.0")
    assert len(bytes.fromhex(one["filter"])) % 8 == 0
    assert bytes.fromhex(one["filter"])


def test_a_connection_that_breaks_cuts_the_capture(cluster: FakeApi, tmp_path: Path) -> None:
    prints(cluster, PRINTED[:-200], None)
    done = capture("exp-1", "c.0", "-w", str(tmp_path / "cut.pcapng"))
    assert status(done) == 0, done.output
    assert "was cut off" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("exp-1", "c.7"), "no instance 'c.7'"),
        (("exp-1", "c.1"), "no agent runs on n2"),
        (("exp-2", "c.0"), "no run 'exp-2'"),
        (("exp-1", "--link", "c.0--s"), "one queue, and 'c.0--s' is none"),
        (("exp-1", "--link", "c.0->c.0"), "one queue"),
    ],
)
def test_what_cannot_be_captured_is_refused_with_the_reason(
    cluster: FakeApi, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    prints(cluster, PRINTED, ended(0))
    done = capture(*words, "-w", str(tmp_path / "no.pcapng"))
    assert status(done) == 1
    assert said in f"{done.stderr}{done.exception}"
    assert not (tmp_path / "no.pcapng").exists()
    assert all(argv[0].endswith("coordinator") for _, argv in cluster.execs)


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (b"usage: tstorm-agent [probe]\n", "another release"),
        (b"error: no run is on at n1\n", "no run is on at n1"),
    ],
)
def test_the_nodes_own_words_are_told(
    cluster: FakeApi, tmp_path: Path, errors: bytes, said: str
) -> None:
    prints(cluster, b"", ended(1), errors)
    done = capture("exp-1", "c.0", "-w", str(tmp_path / "no.pcapng"))
    assert status(done) == 1
    assert said in f"{done.stderr}{done.exception}"
    assert not (tmp_path / "no.pcapng").exists()


# -- at a path ------------------------------------------------------------------------------------

T0_NS, MS = 10**18, 10**6
THERE, BACK = ("c.0->c.1/offered", "c.0->c.1"), ("c.1->c.0/offered", "c.1->c.0")
LOST = "dropped: no room in the queue"
N1 = printed(
    Packet(THERE[0], 1 * MS, UDP, "", 0),
    Packet(THERE[1], 5 * MS, UDP, "", 0),
    Packet(THERE[1], 6 * MS, UDP, LOST, 0),
    names=THERE,
)
N2 = printed(
    Packet(BACK[0], 2 * MS, UDP, "", 0), Packet(BACK[1], 7 * MS, UDP, "", 2), names=BACK, missing=4
)


@pytest.fixture
def everywhere(cluster: FakeApi) -> FakeApi:
    """The same with an agent on n2, too, whose node is another one than that of n1."""
    labels = {"app.kubernetes.io/component": "agent"}
    meta, spec = {"labels": labels}, {"nodeName": "n2"}
    put_pod(cluster, "one", "tstorm-agent-n2", metadata=meta, spec=spec)
    return cluster


def head(interfaces: tuple[str, ...], *left_out: str) -> bytes:
    return json.dumps({"interfaces": interfaces, "left_out": left_out}).encode() + b"\n"


def at_nodes(
    server: FakeApi,
    frames: dict[str, list[tuple[int, bytes]]],
    datapath: str = "user",
    start_unix_ns: int = T0_NS,
) -> list[dict[str, Any]]:
    """What the command prints in the agent's pod of each node. Returns what it is asked."""
    asked: list[dict[str, Any]] = []

    def said(pod: str, argv: list[str]) -> Iterator[tuple[int, bytes]]:
        if argv[0].endswith("tstorm-coordinator"):
            yield (
                1,
                json.dumps(
                    {**STATE, "datapath": datapath, "start_unix_ns": start_unix_ns}
                ).encode(),
            )
            yield 3, json.dumps(ended(0)).encode()
            return
        asked.append(json.loads(argv[-1]))
        yield from frames[pod.removeprefix("tstorm-agent-")]

    server.on_exec = said
    return asked


def says(data: bytes) -> list[tuple[int, bytes]]:
    return [(1, data), (3, json.dumps(ended(0)).encode())]


def test_a_path_is_what_both_nodes_have_of_it_in_the_order_of_time(
    everywhere: FakeApi, tmp_path: Path
) -> None:
    nodes = {"n1": says(head(THERE) + N1), "n2": says(head(BACK) + N2)}
    asked = at_nodes(everywhere, nodes)
    done = capture("exp-1", "--link", "c.0--c.1", "-w", str(tmp_path / "p.pcapng"), "--probes")
    assert status(done) == 0, done.output
    assert "5 packets; 8 were lost" in done.stderr
    assert asked == [{"path": "c.0--c.1", "probes": 1, "filter": ""}] * 2
    agents = [pod for pod, argv in everywhere.execs if argv[0].endswith("tstorm-agent")]
    assert sorted(agents) == ["tstorm-agent-n1", "tstorm-agent-n2"]
    with (tmp_path / "p.pcapng").open("rb") as file:
        found = [(one.interface, one.at_ns - T0_NS, one.comment) for one in read_packets(file, "p")]
    assert found == [
        (THERE[0], 1 * MS, ""),
        (BACK[0], 2 * MS, ""),
        (THERE[1], 5 * MS, ""),
        (THERE[1], 6 * MS, LOST),
        (BACK[1], 7 * MS, ""),
    ], "times are those of day"


def test_one_way_is_at_the_node_that_sends(everywhere: FakeApi, tmp_path: Path) -> None:
    at_nodes(everywhere, {"n2": says(head(BACK, "c.0") + N2)})
    done = capture("exp-1", "--link", "c.1->c.0", "-w", str(tmp_path / "p.pcapng"))
    assert status(done) == 0, done.output
    assert "without what is between it and c.0: there is no path now" in done.stderr
    assert "2 packets" in done.stderr


def test_a_node_that_has_nothing_of_it_sends_no_packets(
    everywhere: FakeApi, tmp_path: Path
) -> None:
    at_nodes(everywhere, {"n1": says(head((), "c.1")), "n2": says(head(BACK, "c.1") + N2)})
    done = capture("exp-1", "--link", "c.0--c.1", "-w", str(tmp_path / "p.pcapng"))
    assert status(done) == 0, done.output
    assert "2 packets; 8 were lost" in done.stderr


def test_a_node_that_breaks_off_cuts_what_it_has(everywhere: FakeApi, tmp_path: Path) -> None:
    at_nodes(everywhere, {"n1": [(1, head(THERE) + N1[:-200])], "n2": says(head(BACK) + N2)})
    done = capture("exp-1", "--link", "c.0--c.1", "-w", str(tmp_path / "p.pcapng"))
    assert status(done) == 0, done.output
    assert f"later ones of {', '.join(THERE)} are missing" in done.stderr


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"datapath": "kernel"}, "the kernel's traffic control shapes this run"),
        ({"start_unix_ns": 0}, "the run has not begun yet"),
    ],
)
def test_where_no_engine_shapes_nothing_is_started(
    everywhere: FakeApi, tmp_path: Path, state: dict[str, Any], said: str
) -> None:
    asked = at_nodes(everywhere, {}, **state)
    done = capture("exp-1", "--link", "c.0--c.1", "-w", str(tmp_path / "no.pcapng"))
    assert status(done) == 1
    assert said in f"{done.stderr}{done.exception}"
    assert asked == []
    assert not (tmp_path / "no.pcapng").exists()


def test_what_one_node_refuses_is_captured_nowhere(everywhere: FakeApi, tmp_path: Path) -> None:
    why = b"error: cannot capture at c.0--c.1: somebody captures there\n"
    refuses = [(2, why), (3, json.dumps(ended(1)).encode())]
    at_nodes(everywhere, {"n1": says(head(THERE) + N1), "n2": refuses})
    done = capture("exp-1", "--link", "c.0--c.1", "-w", str(tmp_path / "no.pcapng"))
    assert status(done) == 1
    assert "pod tstorm-agent-n2: error: cannot capture" in f"{done.stderr}{done.exception}"
    assert not (tmp_path / "no.pcapng").exists()


def test_a_node_without_an_agent_is_named(cluster: FakeApi, tmp_path: Path) -> None:
    asked = at_nodes(cluster, {})
    done = capture("exp-1", "--link", "c.0--c.1", "-w", str(tmp_path / "no.pcapng"))
    assert status(done) == 1
    assert "no agent runs on n2" in f"{done.stderr}{done.exception}"
    assert asked == []


def test_a_coordinator_of_another_release_says_so(everywhere: FakeApi, tmp_path: Path) -> None:
    prints(everywhere, b"", ended(0))  # its state says neither datapath nor start
    done = capture("exp-1", "--link", "c.0--c.1", "-w", str(tmp_path / "no.pcapng"))
    assert status(done) == 1
    assert "of another release" in f"{done.stderr}{done.exception}"
