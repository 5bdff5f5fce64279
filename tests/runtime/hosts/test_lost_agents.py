"""`tstorm run --hosts` when parts of it die, hang, or have a wrong clock: stated outcomes only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runtime.backend.local.ports.devices import mac_of
from tests.runtime.support import DEADLINE_SECONDS, ROOT, Compile, User, processes_with, records
from tests.trials.scene import driver_of, nothing_left
from tests.waiting import wait_until

# What an ordinary user may not do is no matter here; test_hosts_faults.py is run as both.
pytestmark = [pytest.mark.e2e, pytest.mark.one_user]

MS = 1_000_000
LINKS = """bridge s1
link server--s1 latency=10 up=10Mb down=10Mb
link client--s1 latency=10 up=10Mb down=10Mb
"""
# One packet every 20 ms, numbered and stamped, until the end. The server is on host0, the client on
# host1.
PINGING = 'service server\nservice client img=x exec="ping -D -i 0.02 server.0"\n' + LINKS


def agent_of(user: User, host: int) -> int:
    """The process of this host's agent; 0 if there is none."""
    address = f"100.64.1.{1 + host}:7474"
    for pid in processes_with(f"{user.home / 'out'}"):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            if "runtime.agent" in words and address in words:
                return pid
        except OSError:
            continue
    return 0


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    assert pid > 1, "no process to kill"
    os.kill(pid, number)


def events(user: User) -> list[dict[str, Any]]:
    path = user.home / "out/events.jsonl"
    return records(path) if path.exists() else []


def of_kind(user: User, kind: str) -> list[dict[str, Any]]:
    return [event for event in events(user) if event["kind"] == kind]


def applied(user: User, seq: int) -> bool:
    return any(event.get("seq") == seq for event in events(user))


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, out + err
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def answers(user: User) -> dict[int, float]:
    """Round trips in ms by number, of what was answered."""
    found = {}
    for line in (user.home / "out/logs/client.0.log").read_text().splitlines():
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "icmp_seq" in words and "time" in words:
            found[int(words["icmp_seq"])] = float(words["time"])
    return found


def interrupted(process: subprocess.Popen[str]) -> None:
    """Ends a run that has gone on for long enough."""
    process.send_signal(signal.SIGINT)
    assert result(process)["outcome"] == "interrupted"


def last_answer_ms(user: User) -> float:
    found = answers(user)
    return found[max(found)] if found else 0.0


def test_a_killed_agent_comes_back_and_traffic_goes_on(plan_of: Compile, user: User) -> None:
    """What the datapath does does not depend on the agent; what comes later, the new one does."""
    plan = plan_of(
        PINGING + "at 1s client--s1 set up=5Mb\nat 5s client--s1 set latency=40\nat 100s quit\n"
    )
    process = user.begin(plan, hosts=2)
    wait_until(lambda: applied(user, 2), "the first change")
    old = agent_of(user, 1)
    kill(old)
    new = wait_until(lambda: (pid := agent_of(user, 1)) != old and pid, "the next agent")
    wait_until(lambda: of_kind(user, "agent_back"), "its return")
    assert agent_of(user, 1) == new
    wait_until(lambda: last_answer_ms(user) >= 100.0, "the change after its return")
    interrupted(process)
    (lost,) = of_kind(user, "agent_lost")
    (back,) = of_kind(user, "agent_back")
    assert lost["target"] == back["target"] == "host1"
    assert lost["reason"]
    assert lost["applied_ns"] < back["applied_ns"]
    found = answers(user)
    missing = set(range(min(found), max(found) + 1)) - found.keys()
    assert not missing, "a packet was lost while the agent was away"
    assert min(found.values()) >= 40.0


def test_changes_that_an_agent_missed_are_late_and_in_force(plan_of: Compile, user: User) -> None:
    """Steps every 50 ms: some fall into its absence whenever it is killed."""
    changes = "".join(
        f"at {1000 + 50 * n}ms client--s1 set latency={11 + n % 5}\n" for n in range(60)
    )
    plan = plan_of(PINGING + changes + "at 4500ms client--s1 set latency=60\nat 100s quit\n")
    process = user.begin(plan, hosts=2)
    wait_until(lambda: applied(user, 4), "the first changes")
    kill(agent_of(user, 1))
    last = 2 + 2 * 61 - 1
    wait_until(lambda: applied(user, last), "the last change")
    wait_until(lambda: last_answer_ms(user) >= 140.0, "the effect of the last change")
    interrupted(process)
    planned = [event for event in events(user) if "seq" in event]
    assert sorted(event["seq"] for event in planned) == list(range(last + 1))
    late = {event["target"] for event in of_kind(user, "late")}
    assert "host1" in late, "what it missed is told"


def test_an_agent_that_hangs_is_replaced(plan_of: Compile, user: User) -> None:
    """Stopped for good: nothing ends, nothing answers. The run goes on with another one."""
    process = user.begin(plan_of(PINGING + "at 100s quit\n"), hosts=2)
    old = agent_of(user, 1)
    kill(old, signal.SIGSTOP)
    wait_until(lambda: of_kind(user, "agent_back"), "its successor")
    assert agent_of(user, 1) not in (0, old)
    (lost,) = of_kind(user, "agent_lost")
    assert "no answer to `time`" in lost["reason"]
    process.send_signal(signal.SIGINT)
    assert result(process)["outcome"] == "interrupted"
    assert min(answers(user).values()) >= 40.0


def devices() -> set[str]:
    return {entry.name for entry in Path("/sys/class/net").iterdir()}


@pytest.mark.parametrize("who", ["tstorm", "driver"])
def test_a_killed_coordinator_leaves_nothing(plan_of: Compile, user: User, who: str) -> None:
    before = devices()
    process = user.begin(plan_of(PINGING + "at 60s quit\n"), hosts=3)
    assert all(agent_of(user, host) for host in range(3))
    kill(process.pid if who == "tstorm" else driver_of(process))
    if who == "driver":
        assert result(process)["outcome"] == "failed"
    else:
        process.wait()
    nothing_left(user)
    assert devices() == before


# Python runs this before anything else, where PYTHONPATH leads to it.
WRONG_CLOCKS = """
import sys
if "runtime.agent" in sys.orig_argv:
    offsets = {"100.64.1.1:7474": 50_000_000, "100.64.1.2:7474": -2_000_000_000}
    for word in list(sys.argv):
        if word in offsets:
            sys.argv.append(f"--clock-offset={offsets[word]}")
"""


def test_wrong_clocks_change_the_network_together(plan_of: Compile, user: User) -> None:
    """50 ms ahead, 2 s behind and right: every step takes effect everywhere at its time.

    How exactly is seen in tests/coordinator/test_with_agents.py, whatever else the machine does.
    """
    folder = user.home / "faults"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WRONG_CLOCKS)
    folder.chmod(0o755)
    path = user.environment.get("PYTHONPATH", str(ROOT))
    user.environment = {**user.environment, "PYTHONPATH": f"{folder}{os.pathsep}{path}"}
    changes = "".join(f"at {n}s client--s1 set latency={10 + 5 * n}\n" for n in (1, 2, 3))
    plan = plan_of(PINGING + changes + "at 4s quit\n")
    assert user.run(plan, hosts=3)["outcome"] == "completed"
    hosts = json.loads((user.home / "out/manifest.json").read_text())["hosts"]
    for host, offset in zip(hosts, (50 * MS, -2000 * MS, 0), strict=True):
        clock = host["clock"]
        assert abs(clock["offset_ns"] - offset) <= clock["bound_ns"]
    bound = max(host["largest_bound_ns"] for host in hosts)
    for event in events(user):
        if "seq" in event:
            assert event["network_ns"] >= event["due_ns"] - 2 * bound
            assert event["network_spread_ns"] < 1000 * MS  # uncorrected: more than 2 s


FLOOD = """
import os, socket, sys, time
end, target, count = time.monotonic() + 1.5, sys.argv[1], 0
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
    while time.monotonic() < end:
        for _ in range(200):
            datagrams.sendto(os.urandom(1 + count % 1400), (target, 7473))
            count += 1
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as stranger:
            stranger.setblocking(False)
            stranger.connect_ex((target, 7474))
print("sent", count)
"""


def test_garbage_at_line_rate_from_an_instance(plan_of: Compile, user: User) -> None:
    """A program that gives itself an address of the agents' network, and states their MACs, gets
    nothing to them: what it sends ends at its own port, counted. (What agents make of garbage that
    reaches them: test_proof_faults.py.)"""
    (user.home / "flood.py").write_text(FLOOD)
    (user.home / "flood.sh").write_text(
        "ip addr add 100.64.77.7/16 dev eth0 &&"
        f" ip neigh replace 100.64.1.2 lladdr {mac_of('100.64.1.2')} dev eth0 nud permanent &&"
        f" exec {user.python} -I {user.home}/flood.py 100.64.1.2\n"
    )
    plan = plan_of(
        PINGING
        + f'service enemy img=x exec="sh {user.home}/flood.sh"\nlink enemy--s1 latency=1\n'
        + "at 1s client--s1 set latency=20\nat 6s quit\n"
    )
    assert user.run(plan, hosts=2)["outcome"] == "completed"
    log = (user.home / "out/logs/enemy.0.log").read_text()
    assert log.startswith("sent "), log
    summary = json.loads((user.home / "out/summary.json").read_text())
    (refused,) = [row for row in summary["refused"] if row["instance"] == "enemy.0"]
    assert refused["outside"] > 1000
    for host in summary["hosts"]:
        assert host["channel"]["authenticated"] == 1
        assert host["channel"]["garbage"] == 0
        assert host["metadata"]["garbage"] == host["metadata"]["forged"] == 0
        assert host["mailbox"]["kernel_drops"] == 0
        assert host["run"]["step"] == 2
    assert of_kind(user, "agent_lost") == []
    assert answers(user), "the others go on"
