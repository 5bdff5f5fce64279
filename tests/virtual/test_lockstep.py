"""Guests and links between them: exact, the same each time, and they end together."""

import itertools
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from runtime.errors import RunError
from runtime.system import programs
from runtime.virtual.cable import Cable, CableEnd
from runtime.virtual.clockpage import ClockPage
from runtime.virtual.lockstep import Lockstep, Member, distances
from tests.virtual import guests
from tests.waiting import wait_until

MS = 10**6
SECOND = 10**9
DELAY_NS = 10 * MS
RATE_BPS = 100_000_000

# Node 0 is the guest itself, the others are the other guests, each behind a line of its own. What
# goes to one is served here, what comes from it has been served there. Commands stay open on
# descriptor 3.
NETWORK = """
ip link set lo up
mkfifo /run/commands
{pktd} --virtual-time --digest-times </run/commands >/run/answers &
exec 3>/run/commands
cat >&3 <<END
hello 1
open 0 netns=/proc/self/ns/net if=eth0
node 0 ip=10.0.0.{own}
bind 0 0
{others}
commit 0
END
sleep 1
ip addr add 10.0.0.{own}/24 dev eth0
ip link set eth0 up
{work}
printf 'stats links\\nstats pairs\\ndigests\\nclock\\nquit\\n' >&3
wait
cat /run/answers
"""

OTHER = """\
open {node} line=/dev/ttyS{node} delay={delay}
node {node} ip=10.0.0.{address}
bind {node} {node}
link {to} 0 {node} rate={rate} delay=0 jitter=0 loss=0 queue=100000 dist=normal seed={own} up=1
link {back} {node} 0 rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal seed=0 up=1
route 0 {to} {node}
route {node} {back} 0"""

SERVER = """
import hashlib, socket, time
peer = socket.create_server(("", 5000)).accept()[0]
data = b"".join(iter(lambda: peer.recv(65536), b""))
print(len(data), hashlib.sha256(data).hexdigest(), time.time_ns())
"""
CLIENT = """
import random, socket, time
begun = time.time_ns()
peer = socket.create_connection(("10.0.0.1", 5000))
peer.sendall(random.Random(1).randbytes(400_000))
peer.shutdown(socket.SHUT_WR)
print(peer.recv(1), time.time_ns() - begun)
"""


@dataclass(frozen=True)
class Joined:
    all: Sequence[guests.Guest]
    lockstep: Lockstep

    def end(self) -> list[str]:
        """What they said."""
        self.lockstep.run()
        return [one.end() for one in self.all]


@contextmanager
def joined(kernel: Sequence[str], folder: Path, *works: str) -> Iterator[Joined]:
    """A guest for each work, with a link to each other guest."""
    numbers = range(len(works))
    with ExitStack() as owned:
        ends = {
            pair: owned.enter_context(CableEnd()) for pair in itertools.permutations(numbers, 2)
        }
        started = []
        for number, work in enumerate(works):
            others = [other for other in numbers if other != number]
            place = folder / f"guest{number}"
            place.mkdir(parents=True)
            one = guests.guest(
                [*kernel, "norandmaps", f"tstorm_seed={number:064x}"],
                script(number, others, work),
                place,
                limit_ns=0,
                cables=[ends[number, other] for other in others],
            )
            started.append(owned.enter_context(one))
        members = [Member(f"g{n}", one.process, one.page) for n, one in enumerate(started)]
        cables = [
            Cable((a, b), (ends[a, b], ends[b, a]), DELAY_NS)
            for a, b in itertools.combinations(numbers, 2)
        ]
        yield Joined(started, Lockstep(members, cables))


def script(number: int, others: Sequence[int], work: str) -> str:
    """Of a guest with the address 10.0.0.NUMBER+1, and others behind its lines."""
    lines = [
        OTHER.format(
            node=node,
            address=other + 1,
            delay=DELAY_NS,
            rate=RATE_BPS,
            own=number + 1,
            to=2 * node - 2,
            back=2 * node - 1,
        )
        for node, other in enumerate(others, 1)
    ]
    pktd = programs.find("pktd")
    return NETWORK.format(pktd=pktd, own=number + 1, others="\n".join(lines), work=work)


@contextmanager
def busy() -> Iterator[None]:
    """Every processor has something else to do."""
    spinning = ["sh", "-c", "while :; do :; done"]
    hogs = [subprocess.Popen(spinning) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def python(folder: Path, name: str, source: str) -> str:
    (folder / name).write_text(source)
    return f"/usr/bin/env PYTHONDONTWRITEBYTECODE=1 python3 -I {folder / name}"


@pytest.mark.virtual
def test_pings_of_both_are_exact_and_the_same_on_a_busy_machine(
    kernel: list[str], tmp_path: Path
) -> None:
    works = ("ping -c 3 10.0.0.2; sleep 5", "sleep 3; ping -c 2 -s 1400 10.0.0.1; sleep 3")
    with joined(kernel, tmp_path / "idle", *works) as it:
        first = it.end()
        counts = it.lockstep.counts
    with busy(), joined(kernel, tmp_path / "busy", *works) as it:
        assert it.end() == first
        assert it.lockstep.counts == counts
    assert (counts.frames, counts.late, counts.unheard) == (10, 0, 0)
    for said, packet_bytes in zip(first, (84, 1428), strict=True):
        exact_ms = 2 * (DELAY_NS + packet_bytes * 8 * SECOND / RATE_BPS) / MS
        shortest_ms, _, longest_ms, _ = map(float, said.split("mdev = ")[1].split()[0].split("/"))
        # ping tells microseconds, and looks at the clock four times, which takes one
        assert exact_ms - 0.001 < shortest_ms <= longest_ms < exact_ms + 0.002
        assert "0% packet loss" in said
        assert "0 1 5 3108 5 3108 0 0 0 0" in said.splitlines()


@pytest.mark.virtual
def test_tcp_transfer_arrives_and_is_the_same(kernel: list[str], tmp_path: Path) -> None:
    works = (
        python(tmp_path, "server.py", SERVER),
        "sleep 2; " + python(tmp_path, "client.py", CLIENT),
    )
    with joined(kernel, tmp_path / "one", *works) as it:
        first = it.end()
        assert it.lockstep.counts.late == 0
    assert "400000 " in first[0]
    with joined(kernel, tmp_path / "two", *works) as it:
        assert it.end() == first


@pytest.mark.virtual
def test_three_guests_with_links_between_all(kernel: list[str], tmp_path: Path) -> None:
    works = [f"sleep {n}; ping -c 2 -i 2 10.0.0.{1 + (n + 1) % 3}; sleep 6" for n in range(3)]
    with joined(kernel, tmp_path / "one", *works) as it:
        first = it.end()
        assert (it.lockstep.counts.frames, it.lockstep.counts.late) == (12, 0)
    for said in first:
        assert "2 received, 0% packet loss" in said
    with joined(kernel, tmp_path / "two", *works) as it:
        assert it.end() == first


@pytest.mark.virtual
def test_killed_guest_ends_the_run_and_leaves_nothing(kernel: list[str], tmp_path: Path) -> None:
    with joined(kernel, tmp_path, "ping -c 5 10.0.0.2", "sleep 60") as it:
        it.lockstep.run(2 * SECOND)
        leaders = [one.process.pid for one in it.all]
        it.all[1].process.kill()
        with pytest.raises(RunError, match="guest g1: its kernel was killed by signal 9"):
            it.lockstep.run()
    wait_until(lambda: not any(map(dict, map(guests.session, leaders))), "their processes remain")


def test_guests_may_go_as_far_as_no_other_reaches_them() -> None:
    """left - middle - right, and one that is alone."""
    with CableEnd() as one, CableEnd() as other:
        cables = [
            Cable((0, 1), (one, other), 3 * MS),
            Cable((1, 0), (one, other), 9 * MS),
            Cable((1, 2), (one, other), 5 * MS),
        ]
    assert distances(4, cables) == [
        [6 * MS, 3 * MS, 8 * MS, None],
        [3 * MS, 6 * MS, 5 * MS, None],
        [8 * MS, 5 * MS, 10 * MS, None],
        [None, None, None, None],
    ]


def test_cable_without_delay_is_refused() -> None:
    with CableEnd() as one, CableEnd() as other:
        cable = Cable((0, 1), (one, other), 0)
        with pytest.raises(RunError, match="not joined without a delay"):
            Lockstep([], [cable])


def test_guests_that_all_wait_for_ever_are_named() -> None:
    page = ClockPage.create()
    page._page.state, page._page.next_ns = 2, (1 << 64) - 1
    with subprocess.Popen(["sleep", "60"]) as process:
        lockstep = Lockstep([Member("lonely", process, page)], [])
        with pytest.raises(RunError, match="ever going to happen in lonely"):
            lockstep.run()
        process.kill()
    page.close()
