"""`tstorm capture` with --backend k8s: a command in the right agent's pod, and what it prints."""

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


def printed(*packets: Packet, missing: int = 0) -> bytes:
    """What the node prints of these."""
    file = io.BytesIO()
    writer = PacketWriter(file, [SENT, COME], "tstorm-agent capture")
    for one in packets:
        writer.add(one)
    for name in (SENT, COME):
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
        (("exp-1", "--link", "c.0--s"), "packets of an instance"),
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
