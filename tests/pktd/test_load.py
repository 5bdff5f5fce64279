"""A pktd that is too busy gives the real-time class back, and takes it again; what it does together
is counted. The load is a planted one (`burden`). Nothing here depends on the machine's speed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.datapath.client import Client, RefusedError
from tests.pktd.conftest import Setting
from tests.pktd.harness import World, pair
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.alone]


def _facts(engine: Client) -> dict[str, str]:
    return dict(word.split("=") for word in engine("stats engine").split())


def _policy(engine: Client) -> int:
    """The scheduler's class of the data thread, by the kernel's own word."""
    tasks = Path(f"/proc/{engine.process.pid}/task")
    data = [task for task in tasks.iterdir() if (task / "comm").read_text() == "pktd-data\n"]
    assert len(data) == 1
    return os.sched_getscheduler(int(data[0].name))


def _class_is(engine: Client, name: str) -> bool:
    return _facts(engine)["class"] == name


@pytest.mark.root
def test_a_busy_pktd_leaves_the_real_time_class_and_comes_back() -> None:
    with World() as world:
        engine = world.pktd()
        if "sched=fifo" not in world.hello.split():
            pytest.skip("this machine permits no real-time scheduling")
        assert _facts(engine)["class"] == "fifo"
        assert _policy(engine) == os.SCHED_FIFO
        pids = pair(world, engine, kind="auto", delay=1_000_000)
        engine("burden 1000")
        wait_until(lambda: _class_is(engine, "other"), "the class is left")
        assert _policy(engine) == os.SCHED_OTHER
        assert int(_facts(engine)["class_left"]) >= 1
        # It carries packets all the same.
        out = world.run(pids[0], "ping", "-c", "5", "-i", "0.05", "10.77.0.2")
        assert "5 received" in out
        wait_until(lambda: engine.engine()["busy_ppm"] > 0, "a second has passed")
        engine("burden 0")
        wait_until(lambda: _class_is(engine, "fifo"), "the class is taken again")
        assert _policy(engine) == os.SCHED_FIFO
        stats = engine.engine()
        assert stats["class_left"] >= 1  # again, if a busy machine gave it less for a while
        assert stats["class_left_ns"] >= 1_000_000_000


@pytest.mark.root
def test_how_long_no_program_had_its_processor_is_known() -> None:
    with World() as world:
        engine = world.pktd()
        if "sched=fifo" not in world.hello.split():
            pytest.skip("this machine permits no real-time scheduling")
        engine("burden 300")  # in one piece of every millisecond
        wait_until(
            lambda: engine.engine()["longest_slice_ns"] >= 300_000, "a piece has been worked on"
        )


@pytest.mark.root  # an ordinary user's pktd does not get so much of a machine that others use, too
@pytest.mark.parametrize("kind", ["tap", "packet"])
def test_what_is_due_within_the_tolerance_goes_together(kind: str) -> None:
    with World() as world:
        engine = world.pktd()
        pids = pair(world, engine, kind=kind)
        assert engine.engine()["coalesced_frames"] == 0
        engine("burden 800")

        def is_coalesced() -> bool:
            out = world.run(pids[0], "ping", "-c", "100", "-i", "0.003", "10.77.0.2")
            assert "bytes from" in out  # ping does not wait for the last ones on a busy machine
            return engine.engine()["coalesced_frames"] > 0

        wait_until(is_coalesced, "packets have waited for others")
        assert 0 < engine.engine()["coalesced_max_ns"] <= 100_000


@pytest.mark.ordinary
def test_who_has_no_real_time_class_leaves_none(world: World) -> None:
    engine = world.pktd("--no-fifo")
    engine("burden 1000")
    wait_until(lambda: engine.engine()["busy_ppm"] > 0, "a second has passed")
    facts = _facts(engine)
    assert (facts["class"], facts["class_left"], facts["class_left_ns"]) == ("other", "0", "0")
    assert facts["longest_slice_ns"] == "0"


def test_in_virtual_time_nothing_follows_the_load(world: World, setting: Setting) -> None:
    engine = world.pktd("--virtual-time")
    with pytest.raises(RefusedError, match="virtual time") as refused:
        engine("burden 1000")
    assert refused.value.code == "conflict"
    pids = pair(world, engine, kind=setting.kind, delay=1_000_000)
    world.run(pids[0], "ping", "-c", "50", "-i", "0.003", "10.77.0.2")
    stats = engine.engine()
    names = ("coalesced_frames", "coalesced_max_ns", "class_left", "class_left_ns", "busy_ppm")
    assert [stats[name] for name in (*names, "steered")] == [0] * 6
    assert "steering=off" in world.hello.split()
