"""What a supervisor is given at its start, and what it finds out by itself."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from compiler.plan.format import TOOL_VERSION, PlanError
from compiler.plan.reader import read_plan
from compiler.plan.storage import delivery
from compiler.plan.storage.plan_shards import pack
from runtime.agent.pod import __main__ as program
from runtime.agent.pod import supervisor_settings
from runtime.agent.pod.node_facts import cgroup_kind
from runtime.agent.pod.pod_messages import SUPERVISOR_PORT
from runtime.agent.process import portlog
from runtime.agent.process.portlog import Interface
from runtime.errors import RunError
from runtime.rpc.seal import MAGIC
from tests.cli.process import ended
from tests.pktd.harness import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[3]
TEXT = "service a img=x replicas=2\nbridge s\nlink a--s latency=1\nat 5s quit\n"
VARIABLES = {
    "TSTORM_NODE": "n0",
    "TSTORM_POD_IP": "fd00::7",
    "TSTORM_EXPERIMENT": "ab" * 32,
    "TSTORM_VERSION": TOOL_VERSION,
}


def test_the_environment_says_where_it_is() -> None:
    found = supervisor_settings.read(VARIABLES)
    assert (found.name, found.address, found.digest) == ("n0", "fd00::7", "ab" * 32)
    assert os.fstat(found.net).st_ino == Path("/proc/self/ns/net").stat().st_ino
    os.close(found.net)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"TSTORM_NODE": ""}, "TSTORM_NODE is not set"),
        ({"TSTORM_EXPERIMENT": ""}, "TSTORM_EXPERIMENT is not set"),
        ({"TSTORM_POD_IP": "agent-7"}, "TSTORM_POD_IP is 'agent-7'"),
        ({"TSTORM_VERSION": "9.9"}, "the manifests are of release 9.9"),
    ],
)
def test_a_wrong_environment_is_named(change: dict[str, str], words: str) -> None:
    with pytest.raises(RunError, match=words):
        supervisor_settings.read({**VARIABLES, **change})


def test_the_program_says_what_is_wrong_and_ends() -> None:
    done = ended(
        [sys.executable, "-P", "-m", "runtime.agent.pod"],
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT), **VARIABLES, "TSTORM_POD_IP": "nowhere"},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("the supervisor cannot go on: TSTORM_POD_IP is 'nowhere'")


# -- the plan -----------------------------------------------------------------------------------


@pytest.mark.parametrize("slim", [False, True])
def test_a_plan_is_put_together_from_its_shards_once(tmp_path: Path, slim: bool) -> None:
    compiled = compile_source(TEXT, filename="e.tdl", seed=None)
    (tmp_path / "shards").mkdir()
    for name, data in pack(compiled.files, slim=slim).items():
        (tmp_path / "shards" / name).write_bytes(data)
    digest = compiled.plan.digest
    delivery.receive(tmp_path / "shards", tmp_path / "plan", digest)
    assert read_plan(tmp_path / "plan").digest == digest
    first = (tmp_path / "plan").stat().st_ino
    delivery.receive(tmp_path / "shards", tmp_path / "plan", digest)
    assert (tmp_path / "plan").stat().st_ino == first, "it was there already"
    with pytest.raises(PlanError, match="instead of"):
        delivery.receive(tmp_path / "shards", tmp_path / "plan", "ab" * 32)
    assert read_plan(tmp_path / "plan").digest == digest


def test_no_shards_are_named_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="it has no shards") as caught:
        delivery.receive(tmp_path, tmp_path / "plan", "ab" * 32)
    assert str(tmp_path) in str(caught.value)


# -- the probe ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("greeting", "status"), [(MAGIC, 0), (b"HTTP/1.1 ", 1), (b"ts", 1)])
def test_the_probe_wants_a_supervisor_and_no_other_server(
    monkeypatch: pytest.MonkeyPatch, greeting: bytes, status: int
) -> None:
    near, far = socket.socketpair()
    far.sendall(greeting)
    far.close()
    monkeypatch.setenv("TSTORM_POD_IP", "10.0.0.7")
    asked = []

    def connect(address: tuple[str, int], _seconds: float) -> socket.socket:
        asked.append(address)
        return near

    monkeypatch.setattr(socket, "create_connection", connect)
    assert program.probe() == status
    assert asked == [("10.0.0.7", SUPERVISOR_PORT)]


def test_the_probe_says_why_there_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TSTORM_POD_IP", "127.0.0.1")
    with socket.socket() as taken:  # bound and not listening: refused
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(program, "SUPERVISOR_PORT", taken.getsockname()[1])
        assert program.probe() == 1
    assert "no supervisor: " in capsys.readouterr().err


# -- what is found out --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0::/\n", "v2"),
        ("0::/../../pod7\n", "v2"),
        ("12:cpu,cpuacct:/a\n1:name=systemd:/b\n", "v1"),
        ("12:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/\n", "hybrid"),
    ],
)
def test_kinds_of_control_groups(text: str, kind: str) -> None:
    assert cgroup_kind(text) == kind


def test_attached_interfaces_are_remembered_and_found(tmp_path: Path) -> None:
    file = tmp_path / "ports"
    assert portlog.read(file) == ("", [])
    portlog.begin(file, "kernel")
    assert portlog.read(file) == ("kernel", [])
    inode = Path("/proc/self/ns/net").stat().st_ino
    for _ in range(2):
        portlog.enter(file, "/proc/self/ns/net", "eth0")
    with file.open("a") as lines:
        lines.write("17 et")  # its writer was killed
    (here,) = portlog.read(file)[1]
    assert here == Interface(inode, "eth0", "/proc/self/ns/net")
    assert portlog.find(here) == "/proc/self/ns/net"
    moved = portlog.find(Interface(inode, "eth0", "/proc/0/ns/net"))
    assert Path(moved).stat().st_ino == inode
    assert portlog.find(Interface(1, "eth0", "/proc/self/ns/net")) == ""
    with pytest.raises(RunError, match="cannot attach eth0 of /proc/0/ns/net: No such file"):
        portlog.enter(file, "/proc/0/ns/net", "eth0")
    portlog.begin(file, "user")
    assert portlog.read(file) == ("user", [])
