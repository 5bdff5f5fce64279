"""What pktd makes disappears with it, however it ends; what disappears under it does no harm."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.datapath.client import DEADLINE_S, RefusedError
from tests.pktd.conftest import Setting
from tests.pktd.flood import SENDS, flood
from tests.pktd.harness import PKTD, World, link, pair
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.alone]


def _has_device(world: World, pid: int) -> bool:
    return "eth0" in world.run(pid, "ip", "-o", "link")


def test_end_of_file_is_a_clean_exit(world: World, setting: Setting) -> None:
    engine = world.pktd()
    pids = pair(world, engine, kind=setting.kind)
    assert all(_has_device(world, pid) for pid in pids)
    assert engine.close() == 0
    wait_until(lambda: not any(_has_device(world, pid) for pid in pids), "devices are gone")


def test_quit_answers_and_exits(world: World) -> None:
    engine = world.pktd()
    assert engine("quit") == ""
    assert engine.process.wait(DEADLINE_S) == 0


@pytest.mark.ordinary
def test_kill_leaves_nothing(world: World, setting: Setting) -> None:
    engine = world.pktd()
    pids = pair(world, engine, kind=setting.kind)
    engine.process.kill()
    engine.process.wait(DEADLINE_S)
    wait_until(lambda: not any(_has_device(world, pid) for pid in pids), "devices are gone")


@pytest.mark.ordinary
def test_close_removes_the_device(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, b = pair(world, engine, kind=setting.kind)
    engine("close 0")
    # The same number and name again, at once: it waits for what is left of the first.
    engine(f"open 0 netns=/proc/{a}/ns/net if=eth0 kind={setting.kind}")
    engine("close 0")
    wait_until(lambda: not _has_device(world, a), "the device is gone")
    world.run(b, "ping", "-c", "1", "-W", "1", "10.77.0.1", check=False)
    assert engine.rows("stats pairs")[0][-1] > 0
    # The same number and name again.
    world.port(engine, 0, a, kind=setting.kind)
    engine("bind 0 0")
    engine.commit()
    assert "1 received" in world.run(b, "ping", "-c", "1", "10.77.0.1")


def test_a_name_is_free_again_whenever_it_is_asked_for(world: World, setting: Setting) -> None:
    """An open that meets the removal at any of its moments."""
    engine = world.pktd()
    pid = world.namespace()
    for moment in range(20):
        engine(f"open 0 netns=/proc/{pid}/ns/net if=eth0 kind={setting.kind}")
        engine("close 0")
        for _ in range(moment * 20):
            engine("clock")
    assert engine.close() == 0


@pytest.mark.ordinary
def test_what_a_port_had_no_room_for_is_counted(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _ = pair(world, engine, kind=setting.kind)
    flood(world, engine, a)
    lost = engine.engine()["drop_input"]
    assert lost > 0 or setting.kind == "packet", "a packet socket of root's has more room"
    engine("close 0")
    assert engine.engine()["drop_input"] == lost
    assert engine.close() == 0


def test_what_a_closed_port_has_lost_stays_counted() -> None:
    """In a user namespace, where the kernel bounds the buffer; the flood is more than pktd asks."""
    with World(rootless=True) as world:
        engine = world.pktd()
        a, _ = pair(world, engine, kind="packet")
        engine.process.send_signal(signal.SIGSTOP)
        try:
            world.run(a, "python3", "-c", SENDS)
        finally:
            engine.process.send_signal(signal.SIGCONT)
        engine("close 0")
        lost = engine.engine()["drop_input"]
        assert lost > 0
        assert engine.engine()["drop_input"] == lost
        assert engine.close() == 0


@pytest.mark.ordinary
def test_a_namespace_may_vanish(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, b = pair(world, engine, kind=setting.kind)
    c = world.namespace()
    world.port(engine, 3, c, kind=setting.kind)
    engine("node 3 ip=10.77.0.4")
    engine("bind 3 3")
    engine(link(4, 2, 3))
    engine(link(5, 3, 2))
    engine("route 0 0 3")
    engine("route 2 4 3")
    engine("route 3 5 0")
    engine.commit()
    holder = next(p for p in world.processes if p.pid == b)
    holder.kill()
    holder.wait()
    # The namespace is taken down in its own time; traffic to it goes nowhere and harms nobody.
    world.run(a, "ping", "-c", "3", "-i", "0.1", "-W", "1", "10.77.0.2", check=False)
    assert "3 received" in world.run(a, "ping", "-c", "3", "-i", "0.1", "10.77.0.4")
    engine("close 1")
    before = engine.engine()["cpu_ns"]
    time.sleep(0.2)
    assert engine.engine()["cpu_ns"] - before < 100_000_000, "it does not spin on what is gone"
    assert engine.close() == 0


def test_it_dies_with_its_parent(world: World) -> None:
    script = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([{str(PKTD)!r}],"
        " stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "assert child.stdout.readline().startswith(b'ok')\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    # Somebody else keeps the pipe open, so that it is not the end of file that ends it.
    keep_read, keep_write = os.pipe()
    os.write(keep_write, b"hello 1\n")
    script = script.replace("stdin=subprocess.PIPE", f"stdin={keep_read}")
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, pass_fds=[keep_read, keep_write]
    )
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(DEADLINE_S)
        parent.stdout.close()
        wait_until(lambda: not _alive(pid), "pktd has died with its parent")
    finally:
        os.close(keep_read)
        os.close(keep_write)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_one_socket_serves_as_both() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen([str(PKTD)], stdin=theirs.fileno(), stdout=theirs.fileno())
        theirs.close()
        ours.sendall(b"hello 1\nclock\nquit\n")
        answer = b""
        while data := ours.recv(4096):
            answer += data
        lines = answer.decode().splitlines()
        assert process.wait(DEADLINE_S) == 0
    assert lines[0].startswith("ok pktd 1 version=")
    assert int(lines[1].split()[1]) > 0
    assert lines[2] == "ok"


def test_what_the_kernel_refuses_is_told_in_its_words(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a = world.namespace()
    with pytest.raises(RefusedError, match="open /nowhere: No such file or directory"):
        engine("open 0 netns=/nowhere if=eth0")
    with pytest.raises(RefusedError, match=r"enter network namespace|make veth.*Invalid|Bad file"):
        engine(f"open 0 netns=/proc/{a}/ns/uts if=eth0 kind={setting.kind}")
    engine(f"open 0 netns=/proc/{a}/ns/net if=eth0 kind={setting.kind}")
    with pytest.raises(
        RefusedError, match=r"make (TAP|veth) eth0 in .*: (Device or resource busy|File exi)"
    ):
        engine(f"open 1 netns=/proc/{a}/ns/net if=eth0 kind={setting.kind}")
    # Nothing is left of what was refused, and the port can be opened under another name.
    engine(f"open 1 netns=/proc/{a}/ns/net if=eth1 kind={setting.kind}")
    assert world.run(a, "ip", "-o", "link").count("eth") >= 2
    assert engine.close() == 0


def test_wrong_options_are_refused() -> None:
    def status(*options: str) -> int:
        command = [str(PKTD), *options]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False
        ).returncode

    assert status() == 0
    assert status("--no-fifo", "--no-lock", "--no-bpf", "--pool-bytes", "8388608") == 0
    assert status("--virtual-time") == 0
    assert status("--version") == 0
    assert status("--pool-bytes", "1k") == 2
    assert status("--frobnicate") == 2
    assert status("extra") == 2
