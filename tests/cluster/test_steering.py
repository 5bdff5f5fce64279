"""A run in a cluster that is steered by hand: network and programs do it on all nodes, also where
an agent is started again later; and it is recorded and done again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.reader import read_plan
from runtime.rundir.pcapng import read_packets
from tests.cluster.debian import PROGRAMS_IMAGE
from tests.cluster.experiments import compile_text, tstorm
from tests.cluster.runs import AGENT, ClusterRun, command, environment
from tests.cluster.support import DEADLINE_SECONDS, ROOT, Cluster, wait_until

pytestmark = pytest.mark.cluster

TEXT = f"""
service a img="{PROGRAMS_IMAGE}" entrypoint=['/bin/sh', '-c', 'exec ping -i 0.2 b.0']
service b img="{PROGRAMS_IMAGE}" replicas=2 entrypoint=['/bin/sleep', '1000']
bridge s
link a--s latency=4ms
link b--s latency=6ms
at 1h b.0 leave
at 2h a--s set latency=5ms
"""


@pytest.fixture
def run(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], tmp_path: Path
) -> Iterator[ClusterRun]:
    found = ClusterRun(cluster, compile_text(TEXT, tmp_path), next(namespaces), tmp_path)
    try:
        found.wait_for("join", 3)
        found.wait_answers("a.0")
        yield found
    finally:
        print(found.log.read_text())
        found.end()


def did(cluster: Cluster, run: ClusterRun, what: str, *words: str) -> dict[str, Any]:
    """From elsewhere: by name and namespace."""
    run_id = json.loads((run.out / "manifest.json").read_bytes())["run_id"]
    place = ("--namespace", run.namespace, "--json")
    status, said, wrong = command(cluster, what, *place, run_id, *words)
    assert status == 0, (said, wrong, run.log.read_text())
    found: dict[str, Any] = json.loads(said)["ok"]
    return found


def capture(cluster: Cluster, run: ClusterRun, file: Path, *what: str) -> subprocess.Popen[bytes]:
    """`tstorm capture` by the directory that is filled here; it has begun."""
    with file.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tstorm", "capture", run.out, *what, "-w", file],
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env=environment(cluster),
        )
    wait_until(
        lambda: process.poll() is not None or (file.exists() and len(file.read_bytes()) > 1000),
        lambda: file.with_suffix(".log").read_text(),
    )
    return process


def pings(file: Path, instance: str) -> tuple[set[bytes], set[bytes]]:
    """Number and sequence of the echo requests that it has sent, and of the answers to it."""
    found: dict[tuple[str, int], set[bytes]] = {}
    with file.open("rb") as packets:
        for one in read_packets(packets, file.name):
            if one.data[12:14] == b"\x08\0" and one.data[23] == 1:
                kind = one.interface, one.data[34]
                found.setdefault(kind, set()).add(one.data[38:42])
    return found[f"{instance}->network", 8], found[f"network->{instance}", 0]


@dataclass(frozen=True)
class Echo:
    """A packet of a ping, as tshark reads it."""

    interface: str
    at_ns: int
    comment: str
    key: tuple[str, str]  # identifier and sequence


def echoes(file: Path) -> list[Echo]:
    fields = ("frame.interface_name", "frame.time_epoch", "frame.comment", "icmp.ident", "icmp.seq")
    argv = ["tshark", "-r", str(file), "-Y", "icmp", "-T", "fields", "-E", "occurrence=f"]
    told = subprocess.run(
        [*argv, *(word for field in fields for word in ("-e", field))],
        capture_output=True,
        text=True,
        check=True,
    )
    found = []
    for line in told.stdout.splitlines():
        interface, at, comment, ident, sequence = line.split("\t")
        found.append(Echo(interface, int(Decimal(at) * 10**9), comment, (ident, sequence)))
    return found


def by_hand(run: ClusterRun) -> list[list[Any]]:
    return [
        [one[name] for name in ("action", "kind", "target", "planned_ns")]
        for one in run.events()
        if one.get("origin") == "manual" and "seq" in one
    ]


def test_all_nodes_do_what_is_done_by_hand(
    cluster: Cluster, run: ClusterRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", os.fspath(cluster.kubeconfig))
    first = did(cluster, run, "do", "a--s set latency=40ms", "b.1 crash")
    assert (first["action"], first["events"]) == (1, 3)
    wait_until(lambda: len(by_hand(run)) == 3, "the first action")
    run.wait_answers("a.0")
    assert min(run.round_trips("a.0")[-4:]) >= 2 * (40 + 6) - 0.5

    refused, _, why = command(
        cluster, "do", "--namespace", run.namespace, str(run.out), "a--s set duplicate=5%"
    )
    assert refused == 1
    assert "duplicate" in why

    run.kill(AGENT, run.agent_of("a.0"))  # its node has the plan of the beginning only
    run.wait_for("agent_back")
    assert did(cluster, run, "do", "a--s set latency=10ms")["action"] == 2
    wait_until(lambda: len(by_hand(run)) == 5, "the second action")
    run.wait_answers("a.0")
    assert 32 - 0.5 <= min(run.round_trips("a.0")[-4:]) < 92

    assert did(cluster, run, "hold")["others"] >= 1
    assert did(cluster, run, "skip", "--to", "next")["action"] == 4
    run.wait_for("leave")
    assert did(cluster, run, "go")["action"] == 5
    done = tstorm("do", str(run.out), "at +1s quit")  # by the directory that is filled here
    assert "quit" in done
    run.process.wait(DEADLINE_SECONDS)
    assert run.process.returncode == 0, run.log.read_text()

    plan = read_plan(run.out / "plan")
    manifest = json.loads((run.out / "manifest.json").read_bytes())
    assert manifest["plan_digest"] == plan.digest
    assert len(plan.events) == len([one for one in run.events() if one.get("seq", -1) >= 0])
    assert read_plan(run.out / "planned").attached.includes == {}
    again = tmp_path / "again.tdl"
    tstorm("record", str(run.out), "-o", str(again))
    assert "b.1 crash" in again.read_text()


def test_a_run_that_was_steered_is_replayed_in_a_cluster(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], run: ClusterRun, tmp_path: Path
) -> None:
    """And its packets were looked at meanwhile, to its end."""
    looks_on = capture(cluster, run, tmp_path / "a.pcapng", "a.0")
    did(cluster, run, "do", "a--s set latency=40ms", "b.1 crash", "at +2s quit")
    run.process.wait(DEADLINE_SECONDS)
    assert run.process.returncode == 0, run.log.read_text()
    assert looks_on.wait(DEADLINE_SECONDS) == 0, (tmp_path / "a.log").read_text()
    sent, answered = pings(tmp_path / "a.pcapng", "a.0")
    assert answered, (tmp_path / "a.log").read_text()
    since = {one for one in answered if one > min(sent)}  # one was under way as it began
    assert since <= sent, "and each answer has its question"
    place = ("--namespace", next(namespaces), "--agent-cpu", "10m", "--out", tmp_path / "again")
    status, _, said = command(cluster, "replay", run.out, "--check", *place)
    assert status == 0, said
    assert "the same events, on the same targets, in the same order" in said


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_packets_of_a_path_come_from_the_engines_of_both_nodes(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], tmp_path: Path
) -> None:
    """Before the queue, behind the path and lost on it, from one end of a run to its end."""
    both = "ping -i 0.1 b.1 >/dev/null & exec ping -i 0.1 b.0"
    text = TEXT.replace("exec ping -i 0.2 b.0", both)
    run = ClusterRun(cluster, compile_text(text, tmp_path), next(namespaces), tmp_path)
    try:
        run.wait_for("join", 3)
        run.wait_answers("a.0")
        far = next(one for one in ("b.0", "b.1") if run.node_of(one) != run.node_of("a.0"))
        file = tmp_path / "path.pcapng"
        looks_on = capture(cluster, run, file, "--link", f"a.0--{far}", "--filter", "icmp")
        did(cluster, run, "do", "a--s set loss=40%", "at +4s quit")
        run.process.wait(DEADLINE_SECONDS)
        assert run.process.returncode == 0, run.log.read_text()
        assert looks_on.wait(DEADLINE_SECONDS) == 0, (tmp_path / "path.log").read_text()
        assert "; " not in (tmp_path / "path.log").read_text(), "nothing is missing"
    finally:
        print(run.log.read_text())
        run.end()
    there, back = f"a.0->{far}", f"{far}->a.0"
    at: dict[str, dict[tuple[str, str], Echo]] = {}
    for one in echoes(file):
        at.setdefault(one.interface, {})[one.key] = one
    assert at.keys() == {there, f"{there}/offered", back, f"{back}/offered"}
    start_ns = json.loads((run.out / "manifest.json").read_bytes())["start_unix_ns"]
    assert all(start_ns < one.at_ns < time.time_ns() for way in at.values() for one in way.values())
    lost = {key for key, one in at[there].items() if one.comment}
    assert {at[there][key].comment for key in lost} == {"dropped: lost by the draw"}
    come = at[there].keys() - lost
    assert come
    for key in come & at[f"{there}/offered"].keys():
        assert at[there][key].at_ns - at[f"{there}/offered"][key].at_ns >= 10 * 10**6 - 1000
    answered = at[f"{back}/offered"].keys()
    assert answered
    assert not answered & lost
    for key in answered & come:  # which the engine of another node has seen
        assert at[f"{back}/offered"][key].at_ns >= at[there][key].at_ns - 10**6


def test_agents_of_all_nodes_do_what_a_when_does(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], tmp_path: Path
) -> None:
    writes = "sleep 5; mkdir -p data/at; echo 1 > data/at/epoch; exec sleep 1000"
    text = TEXT + (
        f"service w img=\"{PROGRAMS_IMAGE}\" cwd=/var/w entrypoint=['/bin/sh', '-c', '{writes}']\n"
        "link w--s latency=1ms\n"
        'when file w "data/at/epoch" { w--s set latency=9ms }\n'
        'when log a "seq=9 " { a--s set latency=40ms }\n'
        'when log a "seq=9 " after 6s { b.1 crash }\n'
        'when log a "seq=9 " after 20s { quit }\n'
    )
    run = ClusterRun(cluster, compile_text(text, tmp_path), next(namespaces), tmp_path)
    try:
        run.process.wait(DEADLINE_SECONDS)
        said = [one for one in run.events("when") if one["target"] == "a.0"]
        assert ["refused" in one for one in said] == [False] * 3, run.log.read_text()
        assert {one["text"].rpartition("seq=9 ")[1] for one in said} == {"seq=9 "}
        changed = [one for one in run.events("set") if one.get("origin") == "condition"]
        of_a = [one for one in changed if "a.0" in one["target"]]
        assert [one["args"] for one in of_a] == [{"delay_ns": 40_000_000}] * 2
        [file] = [one for one in run.events("when") if one["target"] == "w.0"]
        assert file["text"].partition(":")[0] == "data/at/epoch"
        assert "refused" not in file, file
        of_w = [one for one in changed if "w.0" in one["target"]]
        assert [one["args"] for one in of_w] == [{"delay_ns": 9_000_000}] * 2
        assert min(run.round_trips("a.0")[-3:]) >= 2 * (40 + 6) - 0.5
        assert json.loads((run.out / "summary.json").read_bytes())["reactions"]["fired"] >= 2
        assert read_plan(run.out / "plan").attached.includes
    finally:
        print(run.log.read_text())
        run.end()
