"""Path mode leaves others' devices as they were, and what ends under it does no harm.

The end of pktd itself closes what it shaped until somebody takes it back.
"""

from __future__ import annotations

import subprocess
import time

import pytest

from tests.datapath.client import DEADLINE_S, Client, RefusedError
from tests.pktd.conftest import Setting
from tests.pktd.harness import PKTD, World
from tests.pktd.pods import attach, path, pods, two_pods
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

OTHERS = ["tc", "filter", "add", "dev", "eth0"]
MATCH = ["u32", "match", "u32", "0", "0", "flowid", "1:1", "action", "mirred"]


def _answers(world: World, pid: int, address: str = "10.77.0.2") -> bool:
    command = ["ping", "-c", "2", "-i", "0.05", "-W", "1", address]
    return "2 received" in world.run(pid, *command, check=False)


def _clsact(world: World, pid: int) -> bool:
    return "clsact" in world.run(pid, "tc", "qdisc", "show", "dev", "eth0")


def _filters(world: World, pid: int, side: str = "egress") -> list[str]:
    out = world.run(pid, "tc", "filter", "show", "dev", "eth0", side)
    return [line for line in out.splitlines() if "flowid" in line]


def _own(world: World, pid: int) -> list[str]:
    """The names of the devices of pktd in that namespace."""
    lines = world.run(pid, "ip", "-o", "link").splitlines()
    names = [line.split(":")[1].strip().split("@")[0] for line in lines]
    return sorted(name for name in names if name.startswith("emu"))


def _addresses(world: World, pid: int) -> str:
    """Those of eth0, whether or not the kernel is still looking for others that have them."""
    return world.run(pid, "ip", "-o", "addr", "show", "dev", "eth0").replace(" tentative", "")


def _kill(engine: Client) -> None:
    engine.process.kill()
    engine.process.wait(DEADLINE_S)


def test_detach_restores(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, b, _ = two_pods(world, engine, kind=setting.kind, up=0)
    before = _addresses(world, b)
    assert not _answers(world, a)
    engine("detach 0")
    engine("detach 1")
    assert _answers(world, a)
    for pid in (a, b):
        assert not _clsact(world, pid)
        wait_until(lambda pid=pid: _own(world, pid) == [], "the device has gone")  # type: ignore[misc]
    assert _addresses(world, b) == before
    # The same port again.
    attach(engine, 1, b, kind=setting.kind)
    assert engine("ports") == "1"
    assert engine.line().split()[:3] == ["1", "-", "eth0"]
    assert not _answers(world, a), "nobody is bound"
    assert engine.close() == 0


def test_end_of_file_restores(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, b, _ = two_pods(world, engine, kind=setting.kind, up=0)
    assert engine.close() == 0
    assert _answers(world, a)
    for pid in (a, b):
        assert not _clsact(world, pid)
        assert _own(world, pid) == []


def test_a_killed_pktd_leaves_it_closed_and_a_new_one_takes_it_back(
    world: World, setting: Setting
) -> None:
    engine = world.pktd()
    a, b, _ = two_pods(world, engine, kind=setting.kind)
    for pid, number in ((a, 1), (b, 2)):
        world.run(pid, "ip", "addr", "add", f"192.168.9.{number}/24", "dev", "eth0")
    assert _answers(world, a)
    _kill(engine)
    assert not _answers(world, a)
    assert _answers(world, a, "192.168.9.2"), "only the prefixes are closed"
    again = world.pktd()
    # At once: it waits for what the kernel still has to remove.
    for number, pid in enumerate((a, b)):
        attach(again, number, pid, kind=setting.kind)
        again(f"node {number} ip=10.77.0.{number + 1}")
        again(f"bind {number} {number}")
    again(path(0, 1))
    again(path(1, 0))
    again.commit()
    assert _answers(world, a)
    again("detach 0")
    again("detach 1")
    assert not _clsact(world, a), "the clsact that the killed one had made"
    assert _answers(world, a)


def test_others_filters_stay(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, b, _ = pods(world, 2)
    world.run(a, "ip", "link", "add", "other", "type", "veth", "peer", "name", "rehto")
    world.run(a, "tc", "qdisc", "add", "dev", "eth0", "clsact")
    to_other = [*MATCH, "egress", "mirror", "dev", "other"]
    for side, preference in (("egress", "7"), ("egress", "40000"), ("ingress", "8")):
        world.run(a, *OTHERS, side, "pref", preference, "protocol", "arp", *to_other)
    before = (_filters(world, a), _filters(world, a, "ingress"))
    assert [len(side) for side in before] == [2, 1]
    attach(engine, 0, a, kind=setting.kind)
    assert len(_filters(world, a)) > 2
    engine("detach 0")
    assert (_filters(world, a), _filters(world, a, "ingress")) == before
    assert _clsact(world, a)
    # Theirs came after pktd's clsact: it is theirs now too.
    attach(engine, 1, b, kind=setting.kind)
    world.run(b, *OTHERS, "ingress", "pref", "7", "protocol", "arp", *MATCH[:-2])
    engine("detach 1")
    assert len(_filters(world, b, "ingress")) == 1
    assert _filters(world, b) == []


def test_one_pktd_at_a_time(world: World, setting: Setting) -> None:
    engine, second = world.pktd(), world.pktd()
    a, _, _ = two_pods(world, engine, kind=setting.kind)
    with pytest.raises(RefusedError, match=r"redirect what leaves eth0 in .* are in use"):
        attach(second, 0, a, kind=setting.kind)
    with pytest.raises(RefusedError, match="port 0 is attached already"):
        attach(engine, 0, a, kind=setting.kind)
    with pytest.raises(RefusedError, match="eth0 of that namespace is attached as port 0"):
        attach(engine, 7, a, kind=setting.kind)
    assert second.close() == 0
    wait_until(lambda: _own(world, a) == ["emu0"], "what was refused has left nothing")
    assert _answers(world, a)


def test_a_name_that_is_taken(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, b, _ = pods(world, 2)
    world.run(a, "ip", "link", "add", "emu0", "type", "veth", "peer", "name", "peer0")
    for number, pid in enumerate((a, b)):
        attach(engine, number, pid, kind=setting.kind)
        engine(f"node {number} ip=10.77.0.{number + 1}")
        engine(f"bind {number} {number}")
    engine(path(0, 1))
    engine(path(1, 0))
    engine.commit()
    assert _own(world, a) == ["emu0", "emu1"]
    assert _answers(world, a)
    assert engine.close() == 0
    assert _own(world, a) == ["emu0"]


def test_many_interfaces_of_one_namespace(world: World, setting: Setting) -> None:
    """As on a host, where every instance has one."""
    engine = world.pktd()
    host = world.namespace()
    for number in range(20):
        world.run(
            host,
            *["ip", "link", "add", f"e{number}", "type", "veth"],
            *["peer", "name", f"f{number}"],
        )
        where = f"netns=/proc/{host}/ns/net if=e{number} prefix=10.77.0.0/16"
        engine(f"attach {number} {where} kind={setting.kind}")
    expected = {f"emu{number}" for number in (*range(16), *range(32, 36))}
    assert set(_own(world, host)) == expected
    for number in range(20):
        engine(f"detach {number}")
    wait_until(lambda: _own(world, host) == [], "all of them are removed")


def test_what_cannot_be_attached(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _ = pods(world, 1)
    with pytest.raises(RefusedError, match="open /nowhere: No such file or directory"):
        engine("attach 0 netns=/nowhere if=eth0 prefix=10.0.0.0/8")
    with pytest.raises(RefusedError, match=r"look at eth7 in .*: No such device"):
        engine(f"attach 0 netns=/proc/{a}/ns/net if=eth7 prefix=10.0.0.0/8")
    with pytest.raises(RefusedError, match=r"lo in .* is no Ethernet device"):
        engine(f"attach 0 netns=/proc/{a}/ns/net if=lo prefix=10.0.0.0/8")
    with pytest.raises(RefusedError, match="enter network namespace"):
        engine(f"attach 0 netns=/proc/{a}/ns/uts if=eth0 prefix=10.0.0.0/8")
    # It stands where clsact would, and would take the filters for what comes in.
    world.run(a, "tc", "qdisc", "add", "dev", "eth0", "ingress")
    with pytest.raises(RefusedError, match="there is an ingress qdisc where clsact must be"):
        attach(engine, 0, a, kind=setting.kind)
    world.run(a, "tc", "qdisc", "del", "dev", "eth0", "ingress")
    wait_until(lambda: _own(world, a) == [], "what was refused has left nothing")
    assert not _clsact(world, a)
    attach(engine, 0, a, kind=setting.kind)


def test_the_interface_may_vanish(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, b, bridge = two_pods(world, engine, kind=setting.kind, delay=200_000_000)
    world.spawn(a, "ping", "-i", "0.05", "10.77.0.2")
    wait_until(lambda: engine.engine()["in_flight"] > 0, "something is on its way")
    world.run(bridge, "ip", "link", "del", "far1")
    wait_until(lambda: engine.engine()["drop_write"] > 0, "what would have left there is counted")
    engine("detach 0")
    wait_until(lambda: _own(world, a) == [], "pktd's device has gone")
    assert _clsact(world, b)
    assert engine.close() == 0
    assert not _clsact(world, b)


def test_the_interface_may_be_down_for_a_while(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _, _ = two_pods(world, engine, kind=setting.kind)
    world.run(a, "ip", "link", "set", "eth0", "down")
    assert not _answers(world, a)
    world.run(a, "ip", "link", "set", "eth0", "up")
    wait_until(lambda: _answers(world, a), "it goes on")


@pytest.mark.parametrize("remove", ["close", "netns"])
def test_a_namespace_may_end(world: World, setting: Setting, remove: str) -> None:
    engine = world.pktd()
    a, b, bridge = pods(world, 2)
    for number, pid in enumerate((a, b)):
        attach(engine, number, pid, kind=setting.kind, more=f" remove={remove}")
        engine(f"node {number} ip=10.77.0.{number + 1}")
        engine(f"bind {number} {number}")
    engine(path(0, 1))
    engine(path(1, 0))
    engine.commit()
    assert _answers(world, a)
    holder = next(p for p in world.processes if p.pid == b)
    holder.kill()
    holder.wait()
    engine("detach 1")
    # pktd was the last to hold the namespace: with it goes the far end of its eth0.
    wait_until(
        lambda: "far2" not in world.run(bridge, "ip", "-o", "link"), "the namespace has ended"
    )
    before = engine.engine()["cpu_ns"]
    time.sleep(0.2)
    assert engine.engine()["cpu_ns"] - before < 100_000_000, "it does not spin on what is gone"
    assert engine.close() == 0
    assert _clsact(world, a) == (remove == "netns")


def test_a_number_is_free_while_the_namespace_before_lives(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, b, _ = pods(world, 2)
    attach(engine, 0, a, kind=setting.kind, more=" remove=netns")
    engine("detach 0")
    attach(engine, 0, b, kind=setting.kind, more=" remove=netns")
    assert engine("ports") == "1"
    assert engine.line().split()[:3] == ["0", "-", "eth0"]
    assert engine.close() == 0


def test_wrong_shares_are_refused() -> None:
    for share in ("0", "1001", "x", "-1", ""):
        done = subprocess.run(
            [str(PKTD), "--cpu-share", share],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 2
        assert b"--cpu-share takes a number from 1 to 1000" in done.stderr
