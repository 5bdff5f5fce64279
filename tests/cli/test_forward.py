"""`tstorm forward`: a port of a program inside a run, from this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.system import procs
from tests.cli.process import DEADLINE_SECONDS, begun, tstorm
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

SERVER = """\
#!/usr/bin/env python3
import os, socket, sys
listener = socket.create_server((sys.argv[1], 80))
print("listening", flush=True)
while True:
    connection, peer = listener.accept()
    got = b""
    while data := connection.recv(65536):
        got += data
    connection.sendall(os.environ["TSTORM_INSTANCE"].encode() + b" got %d" % len(got))
    connection.close()
"""
TDL = """\
service web replicas=2 exec="./server.py 0.0.0.0" expect=any
service own exec="./server.py 127.0.0.1" expect=any
bridge s
link web--s latency=200ms up=1Mb symmetric
link own--s latency=200ms up=1Mb symmetric
at 4s web.1 crash
at 6s web.1 join
at 60s quit
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "server.py").chmod(0o755)
    (tmp_path / "e.tdl").write_text(TDL)
    with begun(tmp_path, "run", "e.tdl", "--out", "r") as run:
        logs = [tmp_path / f"r/logs/{name}.log" for name in ("web.0", "web.1", "own.0")]

        def up() -> bool:
            assert run.poll() is None, run.communicate()
            return all(log.exists() and "listening" in log.read_text() for log in logs)

        wait_until(up, "programs listen")
        yield tmp_path
    tstorm(tmp_path, "destroy", "--all")


@contextmanager
def forwarded(place: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command, and the port here."""
    with begun(place, "forward", "r", *words) as process:
        assert process.stdout is not None
        address = process.stdout.readline()
        assert address.startswith("127.0.0.1:"), process.communicate()
        yield process, int(address.rpartition(":")[2])


def ask(port: int, data: bytes = b"hello") -> str:
    """What is answered; '' if the connection ends without a word."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS) as connection:
        connection.settimeout(DEADLINE_SECONDS)
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return connection.makefile("rb").read().decode()
        except OSError:
            return ""


def test_programs_answer_past_the_network_and_after_a_crash(place: Path) -> None:
    """Ten megabytes take no time over a link of 1 Mb/s, since they do not use it."""
    with forwarded(place, "web.0:80") as (_, port), forwarded(place, "own.0:80") as (_, own):
        assert ask(port, bytes(10_000_000)) == "web.0 got 10000000"
        assert ask(own) == "own.0 got 5", "also who listens for itself alone"
    with forwarded(place, "web.1:80") as (_, port):
        log = place / "r/logs/web.1.log"
        wait_until(lambda: log.read_text().count("listening") == 2, "it is there again")
        assert ask(port) == "web.1 got 5"


def test_what_cannot_be_is_told_and_the_run_goes_on(place: Path) -> None:
    with forwarded(place, "web.0:81") as (process, port):
        assert ask(port) == ""
        process.terminate()
        _, said = process.communicate(timeout=DEADLINE_SECONDS)
        assert said.count("nobody listens at web.0:81") == 1
    with forwarded(place, "web.0:80") as (_, port):
        refused = tstorm(place, "forward", "r", "web.0:80", str(port), code=1)
        assert f"cannot listen at 127.0.0.1:{port}: Address already in use" in refused.stderr
        assert "leave it out" in refused.stderr
    assert "has no instance 'web.7'" in tstorm(place, "forward", "r", "web.7:80", code=1).stderr
    for wrong in ("web.0", "web.0:0", "web.0:65536", ":80", "web.0:x"):
        assert "is not INSTANCE:PORT" in tstorm(place, "forward", "r", wrong, code=2).stderr
    assert tstorm(place, "inspect", "r").returncode == 0


def test_it_ends_with_the_run_and_leaves_no_process(place: Path) -> None:
    with forwarded(place, "web.0:80") as (process, port):
        assert ask(port) == "web.0 got 5"
        inside = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(inside) == 1
        tstorm(place, "destroy", "r")
        _, said = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 0
        assert "the run has ended" in said
        assert not procs.alive(procs.Process(int(inside[0]), 0))


def test_a_killed_one_leaves_nothing_in_the_instance(place: Path) -> None:
    with forwarded(place, "web.0:80") as (process, _):
        [inside] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
        process.wait()
        wait_until(lambda: not Path(f"/proc/{inside}/ns/net").exists(), "nobody is inside")


@pytest.mark.root
def test_another_user_of_this_machine_gets_nothing(place: Path) -> None:
    setpriv = shutil.which("setpriv")
    assert setpriv and os.geteuid() == 0
    with forwarded(place, "web.0:80") as (process, port):
        text = (
            f"import socket; c = socket.create_connection(('127.0.0.1', {port})); c.sendall(b'x')"
        )
        text += "; c.shutdown(1); print(c.recv(100))"
        argv = [setpriv, "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", text]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert "got" not in done.stdout
        assert ask(port) == "web.0 got 5", "its own user does"
        process.terminate()
        _, said = process.communicate(timeout=DEADLINE_SECONDS)
        assert "a connection of another user was refused" in said


def test_published_ports_answer_while_the_run_lasts(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "server.py").chmod(0o755)
    (tmp_path / "e.tdl").write_text(TDL)
    words = ("run", "e.tdl", "--out", "r", "--publish", "web.1:80", "--publish")
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        port, free = taken.getsockname()[1], other.getsockname()[1]
        said = tstorm(tmp_path, *words, f"own.0:80={port}", code=1).stderr
        assert f"cannot listen at 127.0.0.1:{port}: Address already in use" in said
    assert (
        "has no instance 'web.7'"
        in tstorm(tmp_path, *words[:4], "--publish", "web.7:80", code=1).stderr
    )
    assert not (tmp_path / "r").exists(), "both are found before anything runs"
    for wrong in ("web.0", "web.0:80=", "web.0:80=x", "web.0:0=1"):
        assert (
            "is not INSTANCE:PORT=LOCAL"
            in tstorm(tmp_path, "run", "e.tdl", "--publish", wrong, code=2).stderr
        )
    virtual = tstorm(tmp_path, "run", "e.tdl", "--time", "virtual", "--publish", "own.0:80", code=2)
    assert "--publish is for real time" in virtual.stderr
    (tmp_path / "e.tdl").write_text(TDL.replace("service own", f"service own publish={free}:80"))
    with begun(tmp_path, *words[:-1]) as run:
        assert run.stderr is not None
        first = run.stderr.readline()
        assert first.startswith("127.0.0.1:") and " is web.1:80" in first
        wait_until(lambda: ask(free) == "own.0 got 5", "the program listens")
        assert ask(int(first.split()[0].rpartition(":")[2])).startswith("web.1 got 5")
        tstorm(tmp_path, "destroy", "r")
        run.communicate(timeout=DEADLINE_SECONDS)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", free), 1)
