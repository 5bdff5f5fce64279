"""A busy pktd that writes to many ports gives their receivers' work to other processors, and takes
it back (docs/pktd.md, Steering). The load is a planted one; no figure depends on the machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.datapath.client import Client
from tests.pktd.harness import World, link
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

ENDS = 10
# As the namespace itself sees it, in a mount of its own.
MASK = "mount -t sysfs sysfs /sys && cat /sys/class/net/eth0/queues/rx-0/rps_cpus"


def _star(world: World, engine: Client) -> list[int]:
    """Ends at one bridge: link 2k leads from end k there, 2k + 1 back."""
    pids = [world.namespace() for _ in range(ENDS)]
    engine(f"node {ENDS}")
    for end, pid in enumerate(pids):
        world.port(engine, end, pid, kind="tap")
        engine(f"node {end} ip=10.77.0.{end + 1}")
        engine(f"bind {end} {end}")
        engine(link(2 * end, end, ENDS))
        engine(link(2 * end + 1, ENDS, end))
        engine(f"route {ENDS} {2 * end + 1} {end}")
    for end in range(ENDS):
        engine(f"routes {end} {2 * end} 0-{ENDS - 1}")
    engine.commit()
    return pids


def _mask(world: World, pid: int) -> int:
    """Of the processors that do the work of what is written to the port."""
    return int(world.run(pid, "unshare", "-m", "sh", "-c", MASK).replace(",", ""), 16)


def _processors(engine: Client) -> set[int]:
    """Those that the data thread may run on."""
    tasks = Path(f"/proc/{engine.process.pid}/task")
    data = [task for task in tasks.iterdir() if (task / "comm").read_text() == "pktd-data\n"]
    return os.sched_getaffinity(int(data[0].name))


def _pings(world: World, pids: list[int]) -> list[subprocess.Popen[bytes]]:
    """Each end asks its neighbour all the time."""
    return [
        world.spawn(pid, "ping", "-q", "-i", "0.002", f"10.77.0.{(end ^ 1) + 1}")
        for end, pid in enumerate(pids)
    ]


def _are_steered(world: World, engine: Client, pids: list[int]) -> bool:
    """To other processors than the one on which the data thread stays."""
    own = sum(1 << cpu for cpu in _processors(engine))
    masks = [_mask(world, pid) for pid in pids]
    return own.bit_count() == 1 and all(mask and not mask & own for mask in masks)


def _may_steer(world: World, engine: Client) -> None:
    if len(_processors(engine)) < 2:
        pytest.skip("this machine has one processor")
    assert "steering=auto" in world.hello.split()


@pytest.mark.root
def test_work_of_many_busy_ports_goes_elsewhere_and_comes_back() -> None:
    with World() as world:
        engine = world.pktd("--engine-threads=1")
        _may_steer(world, engine)
        pids = _star(world, engine)
        all_processors = _processors(engine)
        pings = _pings(world, pids[:-2])  # the last two are silent
        engine("burden 700")
        wait_until(lambda: _are_steered(world, engine, pids[:-2]), "busy ports are steered")
        assert [_mask(world, pid) for pid in pids[-2:]] == [0, 0]
        assert "1 received" in world.run(pids[0], "ping", "-c", "1", "10.77.0.2")
        for ping in pings:
            ping.kill()
        wait_until(lambda: _processors(engine) == all_processors, "all has been taken back")
        assert [_mask(world, pid) for pid in pids] == [0] * ENDS
        stats = engine.engine()
        assert stats["steered"] >= 1 and stats["steered_ports"] >= ENDS - 2
        assert stats["steered_ns"] > 0
        assert stats["steered_refused"] == stats["drop_write"] == 0
