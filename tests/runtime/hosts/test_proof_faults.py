"""Shares in whole runs with lost metadata, a wrong clock, a killed agent, and under attack.

Two constant streams share a trunk in proportion to 1/RTT, 20 and 40 ms; client and server of each
are on both hosts. Bounds are those of docs/agent.md, "Faults"; rates are medians over half seconds
of what was delivered, so moments in which the machine did something else do not count.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.intime import Attempt, in_time
from tests.runs.delivered import Delivered
from tests.runtime.hosts.test_lost_agents import agent_of, kill, of_kind, result
from tests.runtime.support import DEADLINE_SECONDS, ROOT, Compile, User, records
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.alone, pytest.mark.one_user]

MBIT = 1e6
SETTLED = 0.05
ATTACKED = 0.10
PAIRS = (("c1.0", "s1.0"), ("c2.0", "s2.0"))
# In this order clients and servers of a flow are on one host each: s1 0, s2 1, c1 0, c2 1.
NETWORK = """bridges b1 b2
service s1 img=x exec="tprobe serve"
service s2 img=x exec="tprobe serve"
service c1 img=x exec="tprobe stream s1.0 --udp 8Mb --seconds 100"
service c2 img=x exec="tprobe stream s2.0 --udp 8Mb --seconds 100"
link b1--b2 latency=5ms up=6Mb symmetric
link c1--b1 latency=2ms
link c2--b1 latency=2ms
link s1--b2 latency=3ms
link s2--b2 latency=13ms
at 0s s1 join
at 0s s2 join
at 500ms c1 join
at 500ms c2 join
"""


def sampled_s(user: User) -> float:
    """How far the counters of both flows go, s since the start."""
    path = user.home / "out/samples.jsonl"
    lines = path.read_bytes().split(b"\n")[1:-1] if path.exists() else []
    seen: dict[str, float] = {}
    for line in lines:
        sample = json.loads(line)
        seen[sample["host"]] = sample["elapsed_ns"] / 1e9
    return min(seen.values(), default=0.0) if len(seen) == 2 else 0.0


def wait_for(user: User, moment_s: float) -> None:
    wait_until(lambda: sampled_s(user) >= moment_s, f"{moment_s:.1f} s of the experiment")


def check(user: User, low_s: float, high_s: float, trunk_mbps: float, bound: float) -> None:
    """Two thirds and one third of the trunk."""
    delivered = Delivered(user.home / "out")
    for pair, part in zip(PAIRS, (2 / 3, 1 / 3), strict=True):
        got, share = delivered.median_bps(pair, low_s, high_s) / MBIT, trunk_mbps * part
        assert abs(got - share) <= bound * share, (pair, got, share)


def stop(process: subprocess.Popen[str], user: User) -> list[dict[str, Any]]:
    """Ends the run; the counters of its hosts."""
    os.kill(process.pid, signal.SIGINT)
    assert result(process)["outcome"] == "interrupted"
    found: list[dict[str, Any]] = json.loads((user.home / "out/summary.json").read_text())["hosts"]
    return found


# Python runs this before anything else, where PYTHONPATH leads to it.
FAULTY = """
import sys
if "runtime.agent" in sys.orig_argv:
    sys.argv.append("--drop-metadata=300000000")
    if "100.64.1.1:7474" in sys.argv:
        sys.argv.append("--clock-offset=50000000")
"""


def test_lost_metadata_and_a_wrong_clock(plan_of: Compile, user: User) -> None:
    """30 % of all datagrams, and 50 ms: shares are as without, also after a change."""
    folder = user.home / "faults"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FAULTY)
    path = user.environment.get("PYTHONPATH", str(ROOT))
    user.environment = {**user.environment, "PYTHONPATH": f"{folder}{os.pathsep}{path}"}
    plan = plan_of(NETWORK + "at 5s set b1--b2 up=3Mb down=3Mb\nat 11s quit\n")

    def trial(attempt: Attempt) -> None:
        somebody = user.at_home(attempt.name("try"))
        attempt.saw(somebody.home / "out")
        assert somebody.run(plan, hosts=2)["outcome"] == "completed"
        check(somebody, 2.5, 5.0, 6, SETTLED)
        check(somebody, 6.5, 10.5, 3, SETTLED)
        check_faults(somebody)

    in_time(trial)


def check_faults(user: User) -> None:
    """They were there: the clock was wrong, and datagrams were lost."""
    offset = json.loads((user.home / "out/manifest.json").read_text())["hosts"][0]["clock"]
    assert abs(offset["offset_ns"] - 50_000_000) <= offset["bound_ns"]
    for host in json.loads((user.home / "out/summary.json").read_text())["hosts"]:
        lost, all_of_them = host["mailbox"]["dropped_on_purpose"], host["mailbox"]["received"]
        assert 0.15 <= lost / all_of_them <= 0.45
        assert host["metadata"]["taken"] > 0
        assert host["metadata"]["missing"] > 0


def test_a_killed_agent_comes_back_to_its_share(plan_of: Compile, user: User) -> None:
    """Nothing changes while it is away; a change after its return is shared as it should be."""
    plan = plan_of(NETWORK + "at 18s set b1--b2 up=3Mb down=3Mb\nat 60s quit\n")

    def trial(attempt: Attempt) -> None:
        somebody = user.at_home(attempt.name("try"))
        attempt.saw(somebody.home / "out")
        kill_and_check(somebody, plan)

    in_time(trial)


def kill_and_check(user: User, plan: Path) -> None:
    process = user.begin(plan, hosts=2)
    wait_for(user, 4.5)
    kill(agent_of(user, 1))
    [back] = wait_until(lambda: of_kind(user, "agent_back"), "the agent's return")
    [lost] = of_kind(user, "agent_lost")
    away, returned = lost["applied_ns"] / 1e9, back["applied_ns"] / 1e9
    wait_for(user, 22.5)
    hosts = stop(process, user)
    assert returned < 15, "or the run would have ended"
    check(user, 2.5, away, 6, SETTLED)
    check(user, returned + 1, returned + 3, 6, SETTLED)
    check(user, 20.0, 22.5, 3, SETTLED)
    assert hosts[0]["metadata"]["restarts_seen"] == 1
    assert hosts[1]["run"]["step"] == hosts[0]["run"]["step"]


def attack(user: User, host: int, seconds: float) -> dict[str, int]:
    """From a program in that host; what it sent."""
    pid = agent_of(user, host)
    assert pid > 1
    more = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    inside = ["nsenter", f"--target={pid}", *more, "--net", sys.executable]
    done = subprocess.run(
        [
            *inside,
            str(ROOT / "tests/runtime/hosts/attack.py"),
            f"100.64.1.{1 + host}",
            str(seconds),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    sent: dict[str, int] = json.loads(done.stdout)
    return sent


def test_attacks_on_metadata_and_control(plan_of: Compile, user: User) -> None:
    """Genuine datagrams again, as good as genuine ones, and garbage, all at line rate."""
    process = user.begin(plan_of(NETWORK + "at 60s quit\n"), hosts=2)
    wait_for(user, 3.0)
    began = sampled_s(user)
    sent = attack(user, 1, 4.0)
    ended = sampled_s(user)
    wait_for(user, ended + 3)
    hosts = stop(process, user)
    assert min(sent.values()) > 5, sent
    check(user, began + 0.5, ended, 6, ATTACKED)
    check(user, ended + 0.5, ended + 3, 6, SETTLED)
    victim = hosts[1]
    counted = {**victim["metadata"], **victim["mailbox"]}
    # What came through is told apart; the kernel threw away what begins wrongly or found no room.
    assert 0 < counted["replayed"] + counted["late"] <= sent["replayed"]
    assert 0 < counted["forged"] <= sent["forged"]
    assert counted["kernel_drops"] >= sent["garbage"] * 0.9
    assert counted["restarts_seen"] == hosts[0]["metadata"]["forged"] == 0
    assert victim["channel"]["garbage"] > 0
    assert [host["channel"]["authenticated"] for host in hosts] == [1, 1]
    assert of_kind(user, "agent_lost") == []
    assert records(user.home / "out/events.jsonl"), "told to the end"
