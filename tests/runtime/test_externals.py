"""`external`: machines behind network cards at the ends of links. The cards are veths and the
machines namespaces, all of them in a network namespace that the test makes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.cli.process import command, ended, environment, tstorm
from tests.waiting import wait_until

needs_cards = pytest.mark.skipif(
    os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("nsenter")),
    reason="needs root, iproute2 and util-linux",
)
TEXT = """\
service server exec="tprobe serve"
service client exec="ping -c 3 -i 0.3 pc" expect=success
external pc if=cpc address=10.1.1.123
external tv if=ctv prefix=10.2.0.0/16 own=192.168.2.50/24 gateway=192.168.2.1
bridge s1
link server--s1 latency=1ms
link client--s1 latency=1ms
link pc--s1 latency=20ms
link tv--s1 latency=30ms up=20Mb symmetric
start when ready
at 200ms pc--s1 set latency=20ms
at 6s pc disconnect
expect rtt min server pc > 41ms from 0s to 5s
expect unreachable server pc within 1s after 6s
at 8s quit
"""
IDLE = "service a\nexternal pc if=cpc address=10.1.1.123\nlink a--pc latency=1ms\nat 300s quit\n"
# The one is a neighbour of the run's card; before the other is a router with its own network.
WORLD = """
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip link set lo up
for m in pc tv; do
    ip netns add $m
    ip link add name c$m type veth peer name eth0 netns $m
    ip link set c$m up
    ip -n $m link set eth0 up
    ip -n $m link set lo up
done
ip -n pc addr add 10.1.1.123/24 dev eth0
for to in 10.77.0.0/16 10.2.0.0/16; do ip -n pc route add $to dev eth0; done
ip -n tv addr add 192.168.2.1/24 dev eth0
ip -n tv addr add 10.2.0.7/32 dev lo
ip -n tv route add default via 192.168.2.50 src 10.2.0.7
echo ready
exec sleep infinity
"""


class World:
    """A machine with two network cards, and who is behind them."""

    def __init__(self, place: Path) -> None:
        self.place = place
        argv = ["unshare", "--net", "--mount", "sh", "-ec", WORLD]
        self._holder = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n"

    def inside(self, *argv: str) -> list[str]:
        return ["nsenter", f"--target={self._holder.pid}", "--net", "--mount", f"--wd={self.place}",
                *argv]  # fmt: skip

    def done(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return ended(self.inside(*argv), env=environment(self.place))

    def tstorm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.done(*command(*arguments))

    def is_free(self) -> bool:
        """Whether the first card can be had, is up, and is where it was."""
        taken = self.done("ip", "link", "add", "name", "mine", "link", "cpc", "type", "macvlan",
                          "mode", "passthru")  # fmt: skip
        if taken.returncode == 0:
            self.done("ip", "link", "del", "mine")
        flags = self.done("ip", "-o", "link", "show", "cpc").stdout
        return taken.returncode == 0 and ",UP" in flags

    def close(self) -> None:
        self._holder.kill()
        self._holder.communicate()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path)) as found:
        yield found


def _below(pid: int) -> dict[int, str]:
    """Processes that this one has started, and those that these have, with their arguments."""
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
                waiting.append(child)
    return found


@contextmanager
def _running(world: World) -> Iterator[subprocess.Popen[bytes]]:
    """A run that has begun."""
    argv = world.inside(*command("run", "exp.tdl", "--quiet", "--out", "run"))
    started = subprocess.Popen(argv, env=environment(world.place), stderr=subprocess.DEVNULL)
    try:
        events = world.place / "run/events.jsonl"
        wait_until(lambda: events.exists() and events.stat().st_size, "the beginning of the run")
        yield started
    finally:
        started.kill()
        started.wait()


@needs_cards
@pytest.mark.e2e
def test_real_machines_are_at_the_ends_of_links(world: World) -> None:
    (world.place / "exp.tdl").write_text(TEXT)
    with _running(world) as running:
        ping = ("ip", "netns", "exec", "pc", "ping", "-c", "2", "-i", "0.2", "-W", "1", "10.2.0.7")
        seen: list[str] = []

        def reached() -> bool:
            seen.append(world.done(*ping).stdout)
            return "2 received" in seen[-1]

        wait_until(reached, "an answer from one machine to the other through the run")
        assert running.wait() == 0
    least = float(seen[-1].rsplit("mdev = ", 1)[1].split("/")[0])
    assert least >= 100.0  # 20 ms and 30 ms, there and back
    summary = json.loads((world.place / "run/summary.json").read_text())
    assert summary["verdict"]["state"] != "INVALID"
    log = (world.place / "run/logs/client.0.log").read_text()
    assert "PING pc.0 (10.1.1.123)" in log and "3 received" in log
    assert world.is_free()


@needs_cards
@pytest.mark.e2e
@pytest.mark.parametrize("whom", ["tstorm", "runtime.driver", "pktd"])
def test_the_card_comes_back_whatever_dies(world: World, whom: str) -> None:
    (world.place / "exp.tdl").write_text(IDLE)
    with _running(world) as running:
        second = world.tstorm("run", "exp.tdl", "--quiet", "--out", "second")
        assert second.returncode == 1
        told = " ".join(second.stderr.split())
        assert "exp.tdl:2: external pc: cpc is used by another run" in told
        if whom == "tstorm":
            running.kill()
        else:
            pid = next(pid for pid, line in _below(running.pid).items() if whom in line)
            os.kill(pid, signal.SIGKILL)
        running.wait()
        wait_until(world.is_free, "the card to be the machine's again")
    world.tstorm("destroy", "--all")


KILLED = """
import os, signal
from runtime.backend.local import cards
cards.netlink.removed = lambda _index: os.kill(os.getpid(), signal.SIGKILL)
cards.check("cpc")
"""


@needs_cards
@pytest.mark.e2e
def test_who_is_killed_while_it_tries_a_card_leaves_none_taken(world: World) -> None:
    assert world.done(sys.executable, "-c", KILLED).returncode == -signal.SIGKILL
    wait_until(world.is_free, "the card to be the machine's again")
    assert "@cpc" not in world.done("ip", "-br", "link").stdout


REFUSED = {
    "ip addr add 10.9.0.1/24 dev cpc": "cpc has an address of the machine, 10.9.0.1",
    "ip addr flush dev cpc && ip route add default dev cpc": "cpc has the machine's default route",
    "ip link set cpc down": "cpc is down",
    "ip link set cpc up && ip link add br0 type bridge && ip link set cpc master br0": "cpc is",
    "ip link del cpc": "there is no network card cpc; there are br0, ctv",
}
CHECKS = """
import subprocess, sys
from runtime.backend.local import cards
cards.check("cpc")
for change in sys.argv[1:]:
    subprocess.run(["sh", "-ec", change], check=True)
    try:
        cards.check("cpc")
    except cards.CardError as error:
        print(error.message, error.remedy, sep="; ")
"""


@needs_cards
@pytest.mark.e2e
def test_cards_that_cannot_be_had_are_refused(world: World) -> None:
    done = world.done(sys.executable, "-c", CHECKS, *REFUSED)
    for said, why in zip(done.stdout.splitlines(), REFUSED.values(), strict=True):
        assert said.startswith(why), done.stderr


@pytest.mark.parametrize("options", [("--time", "virtual"), ("--hosts", "2")])
def test_elsewhere_externals_are_refused_with_the_line(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "exp.tdl").write_text(IDLE)
    done = tstorm(tmp_path, "run", "exp.tdl", "--quiet", *options, "--out", "run", code=None)
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "exp.tdl:2: " in said and "(external pc) is not possible" in said
