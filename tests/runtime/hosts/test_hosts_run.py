"""Whole runs over local hosts with real programs, as this user and as an ordinary one."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source, write
from runtime.results.event_comparison import differ, load
from tests.intime import Attempt, in_time
from tests.runtime.support import DEADLINE_SECONDS, ROOT, Compile, User, records, written
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e
# What packets and events do over hosts is the same for both users; that an ordinary user's hosts
# carry programs and their packets is shown by the tests without this.

STAR = """
bridge s1
link server--s1 latency=10
link client--s1 latency=10
"""
EXAMPLES = sorted((ROOT / "examples").glob("*.tdl"))


def summary(user: User, out: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((user.home / out / "summary.json").read_text())
    return found


def manifest(user: User, out: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((user.home / out / "manifest.json").read_text())
    return found


def run_until(user: User, plan: Path, condition: Callable[[], Any], what: str) -> None:
    """A run over two hosts that is ended once this has come, however long that takes."""
    process = user.begin(plan, hosts=2)
    wait_until(lambda: process.poll() is not None or condition(), what)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert json.loads(out.splitlines()[-1])["outcome"] == "interrupted", out + err


def said_by(user: User, name: str) -> str:
    path = user.home / f"out/logs/{name}.log"
    return path.read_text() if path.exists() else ""


def times(user: User, name: str) -> list[float]:
    """Round trips that a ping has printed, ms."""
    said = said_by(user, name).split()
    return [float(word.split("=")[1]) for word in said if word.startswith("time=")]


SENDS = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sent = 0
    while sent < {count}:
        sent += sender.sendto(bytes(36), ("server.0", 9)) == 36
    while True:  # nothing overtakes; by then nothing is full any more
        time.sleep(2)
        sender.sendto(b"end", ("server.0", 9))
"""
COUNTS = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
    source.bind(("", 9))
    got = 0
    while source.recv(64) != b"end":
        got += 1
    rows = [line.split() for line in open("/proc/self/net/snmp") if line.startswith("Udp:")]
    print(f"got={got} full={dict(zip(*rows))['RcvbufErrors']}", flush=True)
"""


@pytest.mark.one_user
@pytest.mark.long
def test_every_datagram_is_received_or_counted_where_it_was_lost(
    plan_of: Compile, user: User, workspace: Path
) -> None:
    """As fast as a program can send, which is more than a host carries: each datagram arrives, or
    is in one of the counters of the run or of the receiver's own stack."""
    count = 60_000
    for name, text in (("send.py", SENDS.format(count=count)), ("count.py", COUNTS)):
        (workspace / name).write_text(text)
    plan = plan_of(
        f'service server img=x exec="python3 {workspace}/count.py"\n'
        f'service client img=x exec="python3 {workspace}/send.py"\n'
        + STAR
        + "at 0s server join\nat 500ms client join\nat 100s quit\n"
    )

    run_until(user, plan, lambda: "got=" in said_by(user, "server.0"), "the last datagram")
    said = [word.partition("=")[2] for word in said_by(user, "server.0").split() if "=" in word]
    got, full = map(int, said)
    found = summary(user)
    (pair,) = [p for p in found["pairs"] if (p["src"], p["dst"]) == ("client.0", "server.0")]
    engine = found["engine"]
    before = ("drop_input", "drop_device", "drop_nobuf", "drop_write", "drop_malformed")
    lost = sum(engine[name] for name in before)
    lost += sum(pair[name] for name in pair if name.startswith("drop_"))
    assert got + full + lost == count
    assert got > 0


@pytest.mark.one_user
def test_packets_between_hosts_take_the_planned_time(plan_of: Compile, user: User) -> None:
    """Over two hosts and within one: replicas 0 and 2 of the server are on the client's host."""
    plan = plan_of(
        "service server replicas=3\n"
        'service client img=x exec="ping -c 4 -i 0.2 server.0"\n'
        'service near img=x exec="ping -4 -c 4 -i 0.2 server.1"\n'
        'service six img=x exec="ping -6 -c 4 -i 0.2 server.2"\n'
        + STAR
        + "link near--s1 latency=10\nlink six--s1 latency=10\nat 100s quit\n"
    )
    names = ("client.0", "near.0", "six.0")
    run_until(user, plan, lambda: all(len(times(user, n)) == 4 for n in names), "all answers")
    hosts = manifest(user)["hosts"]
    assert [host["name"] for host in hosts] == ["host0", "host1"]
    assert [host["address"] for host in hosts] == ["100.64.1.1", "100.64.1.2"]
    assert hosts[0]["instances"] == ["server.0", "server.2", "near.0"]
    assert hosts[1]["instances"] == ["server.1", "client.0", "six.0"]
    for host in hosts:
        assert host["datapath"] == "pktd"
        assert host["clock"]["bound_ns"] <= 5_000_000
        assert host["drift_ppb"] is not None
    for name in names:
        found = times(user, name)
        assert len(found) == 4, name
        assert min(found) >= 40.0, name
    pairs = {(pair["src"], pair["dst"]): pair for pair in summary(user)["pairs"]}
    for ends in (("client.0", "server.0"), ("server.0", "client.0"), ("near.0", "server.1")):
        assert pairs[ends]["offered_pkts"] == pairs[ends]["delivered_pkts"] == 4, ends
    counters = summary(user)["hosts"]
    assert [one["name"] for one in counters] == ["host0", "host1"]
    for one in counters:
        assert one["loop"]["ticks"] > 0
        assert one["datapath"]["tx"] > 0
        assert one["metadata"]["forged"] == 0
    assert summary(user)["engine"]["tx"] == sum(one["datapath"]["tx"] for one in counters)
    page = (user.home / "out/report.html").read_text()
    assert '"title":"Hosts"' in page
    assert '"100.64.1.2"' in page
    samples = records(user.home / "out/samples.jsonl")
    assert samples[0]["columns"]["pairs"][:2] == ["src", "dst"]
    assert {sample["host"] for sample in samples[1:]} == {"host0", "host1"}


def test_join_leave_crash_and_rejoin_over_hosts(plan_of: Compile, user: User) -> None:
    """As on one machine: what is told to whom, and when it can be reached."""
    program = "sh -c 'trap \\\"echo bye; exit 0\\\" TERM; echo started; sleep 60 & wait'"
    plan = plan_of(
        f'service server img=x replicas=2 exec="{program}"\n'
        'service client img=x exec="ping -D -i 0.02 server.0"\n'
        + STAR
        + "at 1s server.0 crash\nat 2s server.0 join\nat 3s server.0 crash\n"
        "at 3s server.0 join\nat 4s server.1 leave\nat 6s server.1 join\nat 7s quit\n"
    )
    assert user.run(plan, hosts=3)["outcome"] == "completed"
    logs = user.home / "out/logs"
    assert written(logs / "server.0.log") == "started\n" * 3 + "bye\n"
    assert written(logs / "server.1.log") == "started\nbye\nstarted\nbye\n"
    events = records(user.home / "out/events.jsonl")
    planned = {event["seq"]: event for event in events if "seq" in event}
    assert sorted(planned) == list(range(10))
    for event in planned.values():
        assert event["applied_ns"] >= event["due_ns"], event
        assert event["network_ns"] >= event["due_ns"], event
        assert event["network_spread_ns"] >= 0, event
    cut = next(event for event in events if event["kind"] == "cut")
    assert cut["target"] == "server.1"
    # Nothing is answered while the server is down; afterwards the new life answers.
    start = manifest(user)["start_monotonic_ns"]
    assert start > 0
    said = (logs / "client.0.log").read_text()
    numbers = [int(word.split("=")[1]) for word in said.split() if word.startswith("icmp_seq=")]
    gaps = [after - before for before, after in pairwise(numbers)]
    assert max(gaps) >= 5  # half a second of silence at one packet every 20 ms
    assert numbers[-1] >= numbers[0] + max(gaps) + 5
    assert "nreachable" not in said  # who is down is silent, as on one machine


@pytest.mark.one_user
def test_a_program_that_leaves_can_say_goodbye_to_other_hosts(plan_of: Compile, user: User) -> None:
    """Its paths are held on all hosts until it has ended, then they are cut."""
    leaving = user.home / "leaving.sh"
    leaving.write_text(
        "trap 'ping -c 3 -i 0.2 server.0 > goodbye; exit 0' TERM\nsleep 60 &\nwait\n"
    )
    leaving.chmod(0o755)
    plan = plan_of(
        f'service server\nservice client img=x exec="sh {leaving}"\n'
        + STAR
        + "at 1500ms client.0 leave\nat 100s quit\n"
    )

    def cuts() -> list[dict[str, Any]]:
        return [r for r in records(user.home / "out/events.jsonl") if r["kind"] == "cut"]

    run_until(user, plan, cuts, "the end of the hold")
    said = (user.home / "out/instances/client.0/goodbye").read_text()
    assert "3 packets transmitted, 3 received" in said
    assert cuts()[0]["applied_ns"] >= 1_900_000_000


@pytest.mark.one_user
def test_a_rate_holds_between_hosts_and_within_one(plan_of: Compile, user: User) -> None:
    """TCP gets what the collapsed path has, less its headers."""
    iperf = shutil.which("iperf3")
    if iperf is None:
        pytest.skip("iperf3 is not installed")
    in_time(lambda attempt: check_rates(plan_of, user, iperf, attempt))


def check_rates(plan_of: Compile, user: User, iperf: str, attempt: Attempt) -> None:
    user = user.at_home(attempt.name("try"))
    attempt.saw(user.home / "out")
    measure = user.home / "measure.sh"  # a server may come later than its client
    again = f"until {iperf} -c $1 -t 3 -J > report; do sleep 0.1; done"
    measure.write_text(f"{again}\nmv report report.json\n")
    plan = plan_of(
        f'service server img=x replicas=2 exec="{iperf} -s -1"\n'
        f'service client img=x exec="sh {measure} server.0"\n'
        f'service second img=x exec="sh {measure} server.1"\n'
        "bridge s1\nlink server--s1 latency=2 up=100Mb down=100Mb\n"
        "link client--s1 latency=2 up=20Mb down=20Mb\n"
        "link second--s1 latency=2 up=8Mb down=8Mb\nat 100s quit\n"
    )
    rates = (("client.0", 20e6), ("second.0", 8e6))
    reports = [user.home / f"out/instances/{name}/report.json" for name, _ in rates]
    run_until(user, plan, lambda: all(path.exists() for path in reports), "both reports")
    assert [len(host["instances"]) for host in manifest(user)["hosts"]] == [2, 2]
    for (name, rate), path in zip(rates, reports, strict=True):
        report = json.loads(path.read_text())
        got = report["end"].get("sum_received", {}).get("bits_per_second", 0.0)  # nothing came
        assert 0.6 * rate <= got <= rate, (name, got)  # TCP needs some of the time to get there


def test_redis_answers_from_another_host(plan_of: Compile, user: User) -> None:
    server, client = shutil.which("redis-server"), shutil.which("redis-cli")
    if server is None or client is None:
        pytest.skip("redis is not installed")
    asking = user.home / "ask.sh"
    asking.write_text(
        f"until {client} -h server.0 ping; do sleep 0.1; done\n"
        f"{client} -h server.0 set colour blue\n{client} -h server.0 get colour\n"
    )
    plan = plan_of(
        f"service server img=x exec=\"{server} --save '' --protected-mode no\"\n"
        f'service client img=x exec="sh {asking}"\n' + STAR + "at 100s quit\n"
    )
    run_until(user, plan, lambda: "blue" in said_by(user, "client.0"), "the answer")
    said = said_by(user, "client.0").split()
    assert said[-3:] == ["PONG", "OK", "blue"], said


@pytest.mark.one_user
def test_a_start_in_the_middle_and_a_pace(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        "service server replicas=2\n"
        'service client img=x exec="ping -c 3 -i 0.1 server.1"\n'
        + STAR
        + "at 10s server.0 crash\nat 20s client--s1 set latency=30\nat 30s server.0 join\n"
        "at 60s quit\n"
    )
    options: dict[str, Any] = {
        "start_at_ns": 25_000_000_000,
        "until_ns": 55_000_000_000,
        "pace": 10,
    }
    assert user.run(plan, hosts=2, **options)["outcome"] == "completed"
    events = records(user.home / "out/events.jsonl")
    assert sorted(event["target"] for event in events if event["kind"] == "start") == [
        "client.0",
        "server.1",
    ]
    joined = next(event for event in events if event["kind"] == "join")
    assert joined["due_ns"] == 500_000_000
    assert min(times(user, "client.0")) >= 80.0


@pytest.mark.one_user
def test_a_replay_over_hosts_has_the_same_events(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        'service server img=x replicas=4 exec="sleep 60"\nbridge s1\nlink server--s1 latency=1\n'
        "at 0s server join 4\nat 300ms server crash 2\nat 600ms server join\nat 900ms quit\n"
    )
    assert user.run(plan, "one", hosts=2)["outcome"] == "completed"
    recorded = manifest(user, "one")["options"]
    assert recorded["hosts"] == 2
    assert user.run(plan, "two", **recorded)["outcome"] == "completed"
    assert user.run(plan, "three")["outcome"] == "completed"
    one = load(user.home / "one")
    assert differ(one, load(user.home / "two")) == []
    assert differ(one, load(user.home / "three")) == []


@pytest.mark.one_user
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs_over_four_hosts(example: Path, workspace: Path, user: User) -> None:
    plan = workspace / "example.plan"
    if example.with_suffix("").is_dir():  # its programs
        shutil.copytree(example.with_suffix(""), workspace / example.stem)
    source = example.read_text()
    write(compile_source(source, filename=example.name, seed=None), plan)

    def trial(attempt: Attempt) -> None:
        out = attempt.name("out")
        attempt.saw(user.home / out)
        result = user.run(plan, out, hosts=4, until_ns=2_000_000_000, images="never")
        assert result["outcome"] == "completed", result
        found = summary(user, out)
        assert found["events"]["applied"] == found["events"]["planned"]
        assert len(found["hosts"]) == 4
        assert (user.home / out / "driver.log").read_text() == ""

    in_time(trial)
