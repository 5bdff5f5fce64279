"""kill -9 and SIGSTOP of each part of a run over hosts: what is told, and that nothing is left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.support import DEADLINE_SECONDS, Compile, User, processes_with, records
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e
# What agents say and do to packets is the same for both users; that nothing of an ordinary user's
# is left, however a run ends, is shown by the tests without this.

PLAN = """
service server img=x replicas=4 exec="sh -c 'sleep 61 & sleep 62'"
service client img=x exec="ping -i 0.05 server.0"
bridge s1
link server--s1 latency=5 up=10Mb down=10Mb
link client--s1 latency=5
at 100ms server.1 crash
at 100ms server.1 join
at 60s quit
"""
MOMENTS = random.Random(4).sample(range(50, 3000, 10), 3)  # ms after the start


def with_parent(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                tail = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            if int(tail[1]) == parent:
                found.append(int(entry.name))
    return found


def words(pid: int) -> list[str]:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_text().split("\0")
    except OSError:
        return []


def driver_of(process: subprocess.Popen[str]) -> int:
    """tstorm, keeper, init, driver: each the child of the one before. 0: not yet."""
    found = process.pid
    for _ in range(3):
        children = with_parent(found)
        if not children:
            return 0
        found = children[0]
    return found


def agents(process: subprocess.Popen[str], host: int) -> list[int]:
    address = f"100.64.1.{host + 1}:7474"
    return [pid for pid in with_parent(driver_of(process)) if address in words(pid)]


def datapaths(process: subprocess.Popen[str]) -> list[int]:
    """In the order of the hosts."""
    mine = with_parent(driver_of(process))
    return sorted(pid for pid in mine if any(word.endswith("/pktd") for word in words(pid)[:1]))


def nothing_left(user: User) -> None:
    """No process knows the run directory any more, and no record, socket or mount is left."""
    run = str(user.home / "out")
    wait_until(lambda: not processes_with(run), "the end of every process")
    user.call("destroy")
    assert list((user.home / "state").glob("tstorm/active/*")) == []
    assert list((user.home / "xdg").rglob("*.sock")) == []
    assert run not in Path("/proc/self/mountinfo").read_text()
    named = Path("/run/netns")
    assert not named.exists() or not [name for name in named.iterdir() if "host" in name.name]


def result_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert "outcome" in found, err
    return found


def said(user: User, kind: str) -> list[dict[str, Any]]:
    return [r for r in records(user.home / "out/events.jsonl") if r["kind"] == kind]


def replies(user: User) -> int:
    return (user.home / "out/logs/client.0.log").read_text().count("time=")


@pytest.mark.parametrize("moment", MOMENTS)
def test_killing_tstorm_kills_everything(plan_of: Compile, user: User, moment: int) -> None:
    process = user.start("run", str(plan_of(PLAN)), str(user.home / "out"), '{"hosts": 3}')
    time.sleep(moment / 1000)  # the moment is the point: any will do
    process.send_signal(signal.SIGKILL)
    process.wait()
    run = str(user.home / "out")
    wait_until(lambda: not processes_with(run), "the end of every process")
    assert run not in Path("/proc/self/mountinfo").read_text()
    if (user.home / "state").exists():  # else it had not come to its record yet
        nothing_left(user)


def test_killing_the_driver_ends_the_run(plan_of: Compile, user: User) -> None:
    process = user.begin(plan_of(PLAN), hosts=3)
    os.kill(driver_of(process), signal.SIGKILL)
    result = result_of(process)
    assert result["outcome"] == "failed"
    nothing_left(user)


@pytest.mark.one_user
def test_killing_a_datapath_fails_the_run_and_names_its_host(plan_of: Compile, user: User) -> None:
    process = user.begin(plan_of(PLAN), hosts=3)
    os.kill(datapaths(process)[1], signal.SIGKILL)
    result = result_of(process)
    assert result["outcome"] == "failed"
    assert result["message"].startswith("the datapath of host1 ended with signal 9")
    nothing_left(user)


@pytest.mark.one_user
def test_a_killed_agent_is_replaced_and_traffic_goes_on(plan_of: Compile, user: User) -> None:
    """The datapath goes on meanwhile; a second loss soon after ends the run, naming the host."""
    process = user.begin(plan_of(PLAN), hosts=2)
    wait_until(lambda: replies(user) >= 5, "some traffic")
    [first] = agents(process, 0)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: said(user, "agent_back"), "the agent's return")
    [lost] = said(user, "agent_lost")
    assert lost["target"] == "host0"
    before = replies(user)
    wait_until(lambda: replies(user) >= before + 5, "traffic after the agent's return")
    numbers = [
        int(word.split("=")[1])
        for word in (user.home / "out/logs/client.0.log").read_text().split()
        if word.startswith("icmp_seq=")
    ]
    assert numbers == list(range(1, len(numbers) + 1))  # not one was lost
    [second] = agents(process, 0)
    assert second != first
    assert "--resume" in words(second)
    os.kill(second, signal.SIGKILL)
    result = result_of(process)
    assert result["outcome"] == "failed"
    assert "the agent of host0 was lost again" in result["message"]
    nothing_left(user)


@pytest.mark.one_user
def test_what_an_agent_missed_is_told_as_late(plan_of: Compile, user: User) -> None:
    """All agents are killed before a step is staged: it takes effect when they are back."""
    plan = plan_of(
        'service server\nservice client img=x exec="ping -i 0.2 server.0"\nbridge s1\n'
        "link server--s1 latency=5\nlink client--s1 latency=5\n"
        "at 3s client--s1 set latency=25\nat 100s quit\n"
    )
    process = user.begin(plan, hosts=2)
    wait_until(lambda: replies(user) >= 5, "some traffic")
    for host in (0, 1):
        os.kill(agents(process, host)[0], signal.SIGKILL)
    wait_until(lambda: len(said(user, "agent_back")) == 2, "the return of both")
    back = said(user, "agent_back")
    assert sorted(record["target"] for record in back) == ["host0", "host1"]

    def times() -> list[float]:
        text = (user.home / "out/logs/client.0.log").read_text()
        return [float(word.split("=")[1]) for word in text.split() if word.startswith("time=")]

    wait_until(lambda: times()[-1] >= 60.0, "the effect of the step")
    assert min(times()) >= 20.0
    assert said(user, "set")
    os.kill(process.pid, signal.SIGTERM)
    assert result_of(process)["outcome"] == "interrupted"


@pytest.mark.one_user
def test_a_host_that_closes_drops_everything_until_its_agent_is_back(
    plan_of: Compile, user: User
) -> None:
    """SIGSTOP: nobody renews the lease. The other policy is in the test before the last."""
    process = user.begin(plan_of(PLAN), hosts=2, on_agent_loss="close")
    wait_until(lambda: replies(user) >= 5, "some traffic")
    [agent] = agents(process, 0)
    os.kill(agent, signal.SIGSTOP)

    def silent() -> bool:
        before = replies(user)
        time.sleep(0.3)  # six times the client's interval
        return replies(user) == before

    wait_until(silent, "the end of the lease")
    before = replies(user)
    with suppress(ProcessLookupError):  # it may have been replaced meanwhile
        os.kill(agent, signal.SIGCONT)
    wait_until(lambda: replies(user) >= before + 5, "traffic after the agent's return")
    os.kill(process.pid, signal.SIGTERM)
    assert result_of(process)["outcome"] == "interrupted"


def test_a_life_leaves_nothing_behind_in_its_host(plan_of: Compile, user: User) -> None:
    """Descriptors of the driver and of the datapath, and devices, after a dozen lives."""
    lives = "".join(
        f"at {500 + 250 * n}ms server.0 crash\nat {600 + 250 * n}ms server.0 join\n"
        for n in range(12)
    )
    plan = plan_of(
        'service server img=x exec="sleep 60"\nservice client\nbridge s1\n'
        f"link server--s1 latency=1\nlink client--s1 latency=1\n{lives}at 60s quit\n"
    )
    process = user.begin(plan, hosts=1)
    watched = [driver_of(process), *datapaths(process)]

    def descriptors() -> list[int]:
        return [len(list((Path("/proc") / str(pid) / "fd").iterdir())) for pid in watched]

    def lived(count: int) -> bool:
        joins = [record for record in said(user, "join") if "started_ns" in record]
        return len(joins) >= count

    wait_until(lambda: lived(3), "two lives")
    most = [number + 12 for number in descriptors()]  # some lives are being made or taken away
    wait_until(lambda: lived(13), "all lives")
    assert all(now <= limit for now, limit in zip(descriptors(), most, strict=True))
    os.kill(process.pid, signal.SIGTERM)
    assert result_of(process)["outcome"] == "interrupted"
    nothing_left(user)


def test_a_signal_ends_a_run_over_hosts_cleanly(plan_of: Compile, user: User) -> None:
    process = user.begin(plan_of(PLAN), hosts=3)
    os.kill(process.pid, signal.SIGTERM)
    result = result_of(process)
    assert result["outcome"] == "interrupted"
    summary = json.loads((user.home / "out/summary.json").read_text())
    assert [host["name"] for host in summary["hosts"]] == ["host0", "host1", "host2"]
    assert all("missing" not in host for host in summary["hosts"])
    nothing_left(user)


@pytest.mark.one_user  # it is patient, and needs no rights
def test_a_clock_budget_that_cannot_be_kept_stops_the_start(plan_of: Compile, user: User) -> None:
    result = user.run(plan_of(PLAN), hosts=2, clock_budget_ns=1)
    assert result["outcome"] == "failed"
    assert "the clock of host0 is not known well enough" in result["message"]
    assert "--clock-budget" in result["message"]
    nothing_left(user)


@pytest.mark.one_user
def test_faults_can_be_injected_and_are_recorded(plan_of: Compile, user: User) -> None:
    """A clock that is 2 s ahead is measured and changes nothing; metadata is lost on purpose."""
    plan = plan_of(
        "service server\n"
        'service client img=x replicas=2 exec="ping -i 0.02 server.0"\nbridge s1\n'
        "link server--s1 latency=5 up=10Mb down=10Mb\nlink client--s1 latency=5\n"
        "at 2s client--s1 set latency=25\nat 3s quit\n"
    )
    faults = {"host1": {"clock_offset_ns": 2_000_000_000, "drop_metadata_ppb": 500_000_000}}
    assert user.run(plan, hosts=3, faults=faults)["outcome"] == "completed"
    manifest = json.loads((user.home / "out/manifest.json").read_text())
    assert manifest["options"]["faults"] == faults
    clock = manifest["hosts"][1]["clock"]
    assert abs(clock["offset_ns"] - 2_000_000_000) <= clock["bound_ns"]
    summary = json.loads((user.home / "out/summary.json").read_text())
    assert summary["hosts"][0]["mailbox"]["dropped_on_purpose"] == 0
    assert summary["hosts"][1]["mailbox"]["dropped_on_purpose"] > 0
    changed = [event for event in said(user, "set") if event["network_ns"]]
    assert all(event["network_spread_ns"] < 1_000_000_000 for event in changed)


@pytest.mark.one_user
def test_inspect_and_exec_work_in_a_run_over_hosts(plan_of: Compile, user: User) -> None:
    process = user.begin(plan_of(PLAN), hosts=2)
    run = str(user.home / "out")
    wait_until(lambda: replies(user) >= 3, "some traffic")
    state = wait_until(
        lambda: (s := user.call("inspect", run))["pairs"] and s, "counters of what moved"
    )
    assert {pair["src"] for pair in state["pairs"]} >= {"client.0"}
    assert state["links"] == []
    entered = user.start("exec", run, "server.0", "ip", "-br", "addr", "show", "eth0")
    out, err = entered.communicate(timeout=DEADLINE_SECONDS)
    assert "10.77.0.1/16" in out, err
    user.call("destroy", run)
    assert result_of(process)["outcome"] == "interrupted"
    nothing_left(user)
