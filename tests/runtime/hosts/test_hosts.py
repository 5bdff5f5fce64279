"""The parts of a run over local hosts, each alone; whole runs are in test_hosts_run.py."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source
from compiler.plan.parts.host_names import hostname
from compiler.plan.rules import capabilities
from compiler.plan.rules.capabilities import COMPOSE, KUBERNETES
from compiler.plan.types import Node, Topology
from runtime.agent.process.orders import (
    BindOrder,
    CutOrder,
    MovedNode,
    PortOrder,
    ResumeOrder,
)
from runtime.backend import datapath_choice
from runtime.backend.base import Effect
from runtime.backend.hosts.acknowledged import HostSteps
from runtime.backend.hosts.agent_network import sum_up
from runtime.backend.hosts.agent_state import AgentState, Port
from runtime.backend.hosts.restarts import AgentRestarts
from runtime.backend.local import hosts_backend
from runtime.backend.local.ports.devices import mac_of
from runtime.coordinator.says import StepApplied
from runtime.errors import MachineError, RunError, UnfitError
from runtime.options import RunOptions
from runtime.system import compiled_programs, namespaces
from tests.cli.process import ended
from tests.doubles.hosts import FakeHost
from tests.runtime.support import ROOT

# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hosts": 1025}, "give a whole number from 1 to 1024"),
        ({"hosts": -1}, "give a whole number from 1 to 1024"),
        ({"datapath": "kernel"}, "add --hosts 1"),
        ({"datapath": "magic", "hosts": 2}, "auto or user or kernel"),
        ({"on_agent_loss": "cry", "hosts": 2}, "keep or close"),
        ({"clock_budget_ns": 0, "hosts": 2}, "--clock-budget"),
        ({"faults": {"host2": {}}, "hosts": 2}, "no 'host2' that could have a fault"),
        ({"faults": {"host1": {"luck": 1}}, "hosts": 2}, "clock_offset_ns and drop_metadata_ppb"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_suggestion(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(RunError) as refusal:
        RunOptions(**options)
    assert words in str(refusal.value)


def test_one_machine_is_not_for_as_many_hosts_as_a_cluster() -> None:
    plan = compile_source("service a img=x replicas=2\nbridge s\nlink a--s latency=1 bw=1Mb\n").plan
    datapath_choice.check(plan, RunOptions(hosts=64))
    with pytest.raises(RunError, match="cannot have 65 local hosts") as refusal:
        datapath_choice.check(plan, RunOptions(hosts=65))
    assert refusal.value.remedy == "give --hosts 1 to 64"


def test_equal_paths_are_refused_where_a_pair_has_one_path() -> None:
    text = "routing ecmp\nservice a img=x replicas=2\nbridge s\nlink a--s latency=1 bw=1Mb\n"
    plan = compile_source(text).plan
    datapath_choice.check(plan, RunOptions())
    for options in (RunOptions(hosts=1), RunOptions(hosts=1, datapath="kernel")):
        with pytest.raises(RunError, match="routing ecmp is not possible") as refusal:
            datapath_choice.check(plan, options)
        assert refusal.value.remedy == "leave --hosts and --datapath out"
    for way in (KUBERNETES, COMPOSE):
        assert "does not carry out routing ecmp" in capabilities.refusal(plan, way)


def test_congestion_control_that_instances_may_not_have(tmp_path: Path) -> None:
    """A machine whose own default is bbr allows reno and bbr, although it has cubic."""
    (tmp_path / "ipv4").mkdir()
    for which, words in (("allowed", "reno bbr"), ("available", "reno bbr cubic")):
        (tmp_path / f"ipv4/tcp_{which}_congestion_control").write_text(words + "\n")
    said = {
        "bbr": "",
        "cubic": "lets instances have reno and bbr only (as root: sysctl -w"
        " net.ipv4.tcp_allowed_congestion_control='reno bbr cubic')",
        "veno": "which this kernel does not have: reno, bbr, cubic (as root: modprobe tcp_veno",
    }
    for control, words in said.items():
        asked = f"sysctl=net.ipv4.tcp_congestion_control:{control}"
        plan = compile_source(_ONE.replace("replicas=2", asked)).plan
        if not words:
            datapath_choice.check_congestion_control(plan, tmp_path)
            continue
        with pytest.raises(MachineError) as refusal:
            datapath_choice.check_congestion_control(plan, tmp_path)
        assert f"service a wants {asked}, " in str(refusal.value)
        assert words in str(refusal.value)
    datapath_choice.check_congestion_control(plan, tmp_path / "none")


_ONE = "service a img=x replicas=2\nbridge s\nlink a--s latency=1 bw=1Mb\n"
_DAY_EARLIER = "at 3s a.1 set clock=-86400s\n"


@pytest.mark.parametrize(
    ("more", "options", "words"),
    [
        (_DAY_EARLIER, {}, "in real time: the kernel has one clock for all programs"),
        ("when log a 'GO' {\n  it set drift=5ppm\n}\n", {}, "in real time"),
        (_DAY_EARLIER, {"time": "virtual", "pace": 2}, "with --pace"),
        (_DAY_EARLIER, {"time": "virtual", "clock_start_ns": 10**13}, "a.1 before 1970"),
        ("at 3s a.1 set clock=80000d\n", {"time": "virtual"}, "a.1 after 2200"),
    ],
)
def test_a_clock_of_its_own_is_refused_at_its_line(
    more: str, options: dict[str, Any], words: str
) -> None:
    plan = compile_source(_ONE + more).plan
    with pytest.raises(UnfitError, match="is not possible") as refusal:
        datapath_choice.check(plan, RunOptions(**options))
    assert words in refusal.value.message
    assert refusal.value.misfit.line == 4
    for way in (KUBERNETES, COMPOSE) if plan.events[-1].kind == "clock" else ():
        assert "does not carry out a clock of its own" in capabilities.refusal(plan, way)


def refused(private: str, text: str, options: dict[str, Any], words: str, what: str) -> None:
    """Line 4 is, here with these words, and elsewhere since nothing carries it out."""
    plan = compile_source(_ONE.replace("\n", f"{private}\n", 1) + text).plan
    with pytest.raises(UnfitError) as refusal:
        datapath_choice.check(plan, RunOptions(**options))
    assert words in refusal.value.message
    assert refusal.value.misfit.line == 4
    for way in (KUBERNETES, COMPOSE) if "when" not in text else ():
        assert f"does not carry out a {what}" in capabilities.refusal(plan, way)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            "at 3s a.1 crash power\n",
            {},
            "in real time: this machine's disk is that of all programs",
        ),
        ("when exit a { it crash power }\n", {"hosts": 2}, "a power failure of an instance"),
        ("at 3s a crash power\n", {"time": "virtual"}, "a has fs=private"),
    ],
)
def test_a_power_failure_is_refused_at_its_line(
    text: str, options: dict[str, Any], words: str
) -> None:
    private = " fs=private" if "fs=private" in words else ""
    refused(private, text, options, words, "power failure")


@pytest.mark.parametrize(
    ("text", "options", "machine", "words"),
    [
        ("at 3s a.1 set disk=full\n", {}, "aarch64 6.1", "system calls of aarch64 are not known"),
        ("at 3s a.1 set disk=full\n", {}, "x86_64 5.15.0-91", "that needs Linux 5.19 (seccomp)"),
        ("when exit a { it set disk=ok }\n", {"hosts": 2}, "aarch64 6.1", "for an instance"),
        ("at 3s set disk=slow:1s\n", {"time": "virtual"}, "x86_64 6.1", "a has fs=private"),
    ],
)
def test_a_fault_of_a_disk_is_refused_at_its_line(
    text: str,
    options: dict[str, Any],
    machine: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processor, kernel = machine.split()
    monkeypatch.setattr(platform, "machine", lambda: processor)
    monkeypatch.setattr(platform, "release", lambda: kernel)
    private = " fs=private" if "fs=private" in words else " exec=x"
    refused(private, text, options, words, "disk of its own")


def test_a_kernel_that_cannot_is_found_out_by_trying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe's own words are told; no probe is made where the kernel is not asked for."""
    refusing = tmp_path / "tcald"
    said = {
        "htb": {"needed": True, "found": True},
        "netem": {"needed": True, "found": False, "why": "no such qdisc"},
        "choke": {"needed": False, "found": False, "why": "nobody cares"},
    }
    refusing.write_text(f"#!/bin/sh\necho '{json.dumps(said)}'\nexit 3\n")
    refusing.chmod(0o755)
    found = compiled_programs.find
    monkeypatch.setattr(compiled_programs, "find", lambda n: refusing if n == "tcald" else found(n))
    keeper = found("tstorm-ns")
    with pytest.raises(MachineError) as refusal:
        datapath_choice.choose(RunOptions(hosts=2, datapath="kernel"), keeper)
    assert refusal.value.message.endswith("does not work here: netem: no such qdisc")
    assert "--datapath user" in refusal.value.remedy
    assert refusal.value.remedy.endswith("modprobe -a sch_netem")
    assert refusal.value.exit_code == 3
    refusing.write_text("#!/bin/sh\necho 'out of luck' >&2\nexit 1\n")
    assert datapath_choice.kernel_lacks(refusing, keeper) == {"the probe": "out of luck"}
    refusing.write_text("#!/bin/sh\nexit 0\n")
    assert datapath_choice.choose(RunOptions(hosts=2, datapath="kernel"), keeper) == (
        str(refusing),
    )
    argv = datapath_choice.choose(RunOptions(hosts=3), keeper)
    assert argv[1:] == ("--cpu-share", "3")
    assert datapath_choice.choose(RunOptions(), keeper)[1:] == ()
    assert datapath_choice.choose(RunOptions(engine_threads=2), keeper)[1:] == (
        "--engine-threads",
        "2",
    )
    assert "--virtual-time" in datapath_choice.choose(RunOptions(time="virtual"), keeper)


# -- steps ----------------------------------------------------------------------------------------


class Effects:
    def __init__(self, *names: str) -> None:
        self.seen: list[tuple[int, Effect]] = []
        self.steps = HostSteps(names, lambda number, effect: self.seen.append((number, effect)))

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.seen]


def test_a_step_has_its_effect_with_the_last_host() -> None:
    found = Effects("a", "b", "c")
    for host, at in ((1, 500), (0, 700), (2, 600)):
        assert not found.seen
        assert found.steps.applied(host, StepApplied(0, at, late=False))
    assert found.seen == [(0, Effect(700, 200))]


def test_steps_have_their_effect_in_order() -> None:
    found = Effects("a", "b")
    for number in (1, 0):
        found.steps.applied(0, StepApplied(number, number, late=False))
    found.steps.applied(1, StepApplied(1, 9, late=False))
    assert found.numbers == []
    found.steps.applied(1, StepApplied(0, 8, late=False))
    assert found.numbers == [0, 1]


def test_a_lost_host_is_not_waited_for_and_comes_too_late() -> None:
    found = Effects("a", "b")
    found.steps.applied(0, StepApplied(0, 5, late=False))
    assert found.steps.waiting_for() == ["b"]
    found.steps.lost(1)
    assert found.seen == [(0, Effect(5, 0))]
    found.steps.back(1)
    assert not found.steps.applied(1, StepApplied(0, 90, late=True))
    assert found.steps.done(1) == 1
    found.steps.applied(0, StepApplied(1, 7, late=False))
    assert found.numbers == [0]
    found.steps.applied(1, StepApplied(1, 95, late=True))
    assert found.seen[1] == (1, Effect(95, 88, ("b",)))


def test_nothing_has_an_effect_when_nobody_is_there() -> None:
    found = Effects("a")
    found.steps.lost(0)
    assert found.seen == []
    found.steps.back(0)
    found.steps.applied(0, StepApplied(0, 40, late=True))
    assert found.seen == [(0, Effect(40, 0, ("a",)))]


def test_what_is_not_wired_has_no_effect_yet() -> None:
    found = Effects("a")
    found.steps.block(0)
    found.steps.applied(0, StepApplied(0, 3, late=False))
    assert found.seen == []
    found.steps.unblock(0)
    assert found.seen == [(0, Effect(3, 0))]


# -- what agents are told again -------------------------------------------------------------------


def test_a_new_agent_is_told_what_is_there_and_what_comes() -> None:
    told = AgentState()
    told.ports = {
        0: Port(0, "/proc/1/ns/net", "e0", attached=True),
        1: Port(1, "/proc/1/ns/net", "e1", attached=True),
        2: Port(0, "/proc/1/ns/net", "e2", attached=True),  # of the life to come
        3: Port(0, "/proc/1/ns/net", "e3"),  # its agent has not answered
    }
    told.coming = {
        0: BindOrder(0, {0: 0, 1: 1}),
        1: BindOrder(1, {}, (), (0,)),
        2: BindOrder(2, {0: 2}),
    }
    assert told.bound(1)  # from the start on
    told.effect(0)
    told.effect(1)
    told.effect(7)  # of a step about which there was nothing to say
    placement = (0, 1)
    at = "/proc/1/ns/net"
    ports = (PortOrder(0, 0, at, "e0"), PortOrder(2, -1, at, "e2"))
    assert told.resume(placement, 0, 2, ()) == ResumeOrder(0, ports, (0,), 2)
    theirs = (PortOrder(1, 1, at, "e1"),)
    assert told.resume(placement, 1, 2, ()) == ResumeOrder(0, theirs, (0,), 2)
    assert list(told.coming) == [2]
    told.effect(2)
    assert told.resume(placement, 0, 3, ()).held == ()
    assert told.resume(placement, 0, 3, ()).ports[1] == PortOrder(2, 0, at, "e2")


def test_a_cut_ends_a_hold_and_an_unbound_node_has_no_port() -> None:
    told = AgentState()
    told.ports = {0: Port(0, "/n", "e0", attached=True), 1: Port(1, "/n", "e1", attached=True)}
    told.coming = {
        0: BindOrder(0, {0: 0, 1: 1}),
        1: BindOrder(1, {}, (1,), (0,)),
    }
    told.effect(0)
    told.effect(1)
    told.cut(0)
    ports = (PortOrder(0, -1, "/n", "e0"), PortOrder(1, -1, "/n", "e1"))
    assert told.resume((0, 0), 0, 2, ()) == ResumeOrder(0, ports, (), 2)
    told.lives, told.pods, told.hosts = {0: 70, 1: 71}, {0: "u0", 1: "u1"}, "10.0.0.1 a\n"
    resume = told.resume((0, 1), 1, 2, ())
    assert (resume.lives, resume.pods) == ({1: 71}, {1: "u1"})
    assert resume.hosts == "10.0.0.1 a\n"
    told.moved[0] = ("10.0.0.9", "")
    assert told.resume((0, 1), 1, 2, ()).moved == (MovedNode(0, "10.0.0.9", ""),)  # of any host


def test_an_agent_that_is_back_hears_what_it_missed() -> None:
    """Also what has taken effect without it; a hold that is over is not told again, its end is."""
    told = AgentState()
    told.stage(BindOrder(1, {}, (), (7,)))
    told.effect(1)
    told.stage(BindOrder(2, {3: 9}, (), (4, 5)))
    told.lost(0)
    told.stage(BindOrder(3, {6: 8}))
    told.effect(2)
    told.cut(4)
    told.cut(7)
    assert told.back(0) == [
        BindOrder(2, {3: 9}, (), (5,)),
        BindOrder(3, {6: 8}),
        CutOrder((4, 7)),
    ]
    assert told.back(0) == []
    assert told.back(1) == []


def test_a_cut_of_a_node_that_is_held_anew_is_not_told() -> None:
    told = AgentState()
    told.lost(1)
    told.stage(BindOrder(1, {}, (), (4,)))
    told.effect(1)
    told.stage(BindOrder(3, {}, (), (4,)))
    told.cut(4)
    assert told.coming[3].hold == (4,)
    told.effect(3)
    assert told.back(1) == [BindOrder(1, {}), BindOrder(3, {}, (), (4,))]


def test_counters_of_hosts_are_added_up() -> None:
    hosts = [{"tx": 3, "late_max_ns": 40, "busy_ppm": 5}, {"tx": 4, "late_max_ns": 20}, {}]
    assert sum_up(hosts) == {"tx": "7", "late_max_ns": "40", "busy_ppm": "5"}
    hosts = [{"coalesced_frames": 1, "coalesced_max_ns": 7}] * 2
    assert sum_up(hosts) == {"coalesced_frames": "2", "coalesced_max_ns": "7"}


# -- supervision ----------------------------------------------------------------------------------


class FakeCoordinator:
    """Agents come back at once, unless `refuse` says why not."""

    def __init__(self) -> None:
        self.lost: dict[int, str] = {}
        self.refuse = ""
        self.resumed: list[object] = []

    async def rejoin(self, _host: int, resume: Any, _seconds: float) -> None:
        await asyncio.sleep(0)
        if self.refuse:
            raise RunError(self.refuse)
        self.resumed.append(resume())


class Watched:
    def __init__(self) -> None:
        self.host = FakeHost(hosts_backend.host_name(0))
        self.coordinator = FakeCoordinator()
        self.changes: list[str] = []
        self.errors: list[RunError] = []
        self.supervisor = AgentRestarts(
            [self.host],  # type: ignore[list-item]
            self.coordinator,  # type: ignore[arg-type]
            lambda host: {"host": host},
            lambda _host, reason: self.changes.append(reason),
            self.errors.append,
        )
        self.supervisor.watch()

    async def settle(self, changes: int) -> None:
        async with asyncio.timeout(120):
            while len(self.changes) < changes and not self.errors:
                await asyncio.sleep(0.005)


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


def test_an_agent_that_dies_is_started_again_once() -> None:
    async def go() -> None:
        found = Watched()
        found.host.agent.ended.set_result(-9)
        await found.settle(2)
        assert found.changes == ["its process ended with signal 9", ""]
        assert (found.host.restarts, found.coordinator.resumed) == (1, [{"host": 0}])
        await found.supervisor.there(0)
        found.host.agent.ended.set_result(1)
        await found.settle(4)
        assert "the agent of host0 was lost again" in found.errors[0].message
        assert "status 1" in found.errors[0].message
        assert found.host.restarts == 1

    run(go())


def test_an_agent_that_stays_up_may_die_any_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runtime.backend.hosts.restarts.STEADY_NS", 0)

    async def go() -> None:
        found = Watched()
        for number in range(3):
            found.host.agent.ended.set_result(1)
            await found.settle(2 * number + 2)
        assert found.errors == []
        assert found.host.restarts == 3

    run(go())


def test_a_connection_that_is_cut_is_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.backend.hosts.restarts.CUT_SECONDS", 0.01)

    async def go() -> None:
        found = Watched()
        found.supervisor.lost(0, "the connection was cut")
        await found.settle(2)
        assert found.changes == ["the connection was cut", ""]
        assert found.host.restarts == 0
        assert found.errors == []

    run(go())


def test_an_agent_that_does_not_come_back_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed, started again, and then the run is over with both reasons at hand."""
    monkeypatch.setattr("runtime.backend.hosts.restarts.CUT_SECONDS", 0.01)

    async def go() -> None:
        found = Watched()
        found.coordinator.refuse = "no answer in time"
        found.supervisor.lost(0, "silent")
        await found.settle(99)
        assert found.errors[0].message == "the agent of host0 did not come back: no answer in time"
        assert found.host.restarts == 1

    run(go())


def test_a_datapath_that_dies_ends_the_run_unless_it_is_ending() -> None:
    async def go() -> None:
        found = Watched()
        found.host.datapath.kill()
        await found.settle(99)
        assert found.errors[0].message == "the datapath of host0 ended with signal 9"
        other = Watched()
        other.supervisor.stop()
        other.host.datapath.kill()
        other.host.agent.kill()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (other.errors, other.changes) == ([], [])

    run(go())


# -- hosts ----------------------------------------------------------------------------------------


def test_addresses_follow_the_rule() -> None:
    assert hosts_backend.host_address(0) == "100.64.1.1"
    assert hosts_backend.host_address(63) == "100.64.1.64"
    assert hosts_backend.host_address(200) == "100.64.2.1"
    assert mac_of("10.77.1.2") == "02:00:0a:4d:01:02"
    assert hostname("a.0") != hosts_backend.host_name(0)


def test_macs_are_stated_up_to_a_number_of_instances() -> None:
    bridge = Node("s", -1, "", "", ())
    few = tuple(Node(f"a.{n}", 0, f"10.77.0.{n}", f"fd77:7473::{n}", ()) for n in range(1, 4))
    assert len(hosts_backend.neighbours(topology((*few, bridge)))) == 6
    many = few * (hosts_backend.MAX_NEIGHBOURS // 3 + 1)
    assert hosts_backend.neighbours(topology(many)) == []


def topology(nodes: tuple[Node, ...]) -> Topology:
    return Topology((), nodes, (), "", "delay")


def in_a_sandbox(script: Path) -> dict[str, Any]:
    """What it prints in the namespaces of a run, as whoever runs the tests."""
    argv = namespaces.sandbox(compiled_programs.find("tstorm-ns"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = ended([*argv, sys.executable, str(script)], env=environment, timeout=180)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.ordinary
@pytest.mark.e2e
def test_hosts_reach_each_other_and_their_instances() -> None:
    assert in_a_sandbox(ROOT / "tests/runtime/hosts/make_hosts.py") == {
        "coordinator to the last host": True,
        "program in the last host": "100.64.1.5 02:00:64:40:01:05",
        "same host": True,
        "another host": True,
        "another host, IPv6": True,
        "the life before": "first",
        "the life after": "second",
        "a port twice": "cannot make eth0 of c.0 in host0: File exists",
        "a port of nobody": "No such process",
        "removed twice": True,
    }


SEEN_BY_ITS_OWNER = ["b"]
SENT = {
    "its own": SEEN_BY_ITS_OWNER,
    "its own, IPv6": SEEN_BY_ITS_OWNER,
    "foreign source": ["source"],
    "foreign source, IPv6": ["source"],
    "foreign MAC": ["frame"],
    "one station, frame to all": ["frame"],
    "one station, IPv6, frame to all": ["frame"],
    "another's frame": [],  # it goes to c's MAC, and there what is for b is dropped
    "an agent": ["outside"],
    "an agent, frame to all": ["frame"],
    "broadcast": ["group"],
    "network's broadcast": ["group"],
    "multicast": ["group"],
    "VLAN": ["other"],
    "VLAN 0": ["other"],
    "spanning tree": ["other"],
    "LLDP": ["other"],
    "ARP request": SEEN_BY_ITS_OWNER,
    "ARP claim": ["source"],
    "ARP claim, underlay": ["source"],
    "ARP with another MAC": ["source"],
    "ARP for the underlay": ["outside"],
    "ARP from nobody": ["group"],
    "solicitation": SEEN_BY_ITS_OWNER,
    "solicitation, foreign source": ["group"],
    "solicitation, a target elsewhere": ["group"],
    "solicitation, to one": SEEN_BY_ITS_OWNER,
    "advertisement": SEEN_BY_ITS_OWNER,
    "advertisement of another's": ["source"],
    "advertisement to all": ["source"],
    "redirect": ["source"],
    "router": ["source"],
}


@pytest.mark.ordinary
@pytest.mark.e2e
def test_a_port_lets_through_what_an_honest_instance_sends_and_counts_the_rest() -> None:
    """Frames of each kind, sent round the queueing disciplines of the instance itself."""
    found = in_a_sandbox(ROOT / "tests/runtime/hosts/guard_hosts.py")
    assert list(found) == list(SENT)
    for name, fate in SENT.items():
        chatter = {"group"} - set(fate)  # what its kernel says about multicast, at any time
        assert [word for word in found[name] if word not in chatter] == fate, name
