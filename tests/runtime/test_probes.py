"""Paths are measured all the time, as root and as an ordinary user, hop by hop and over hosts."""

from __future__ import annotations

import json
import os
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from runtime.probing.probe_record import OpenProbe, Probe, ProbesHeader, read
from runtime.rundir.held_directory import HeldDirectory
from tests.runtime.support import Compile, User, records
from tests.trials.scene import all_ended, finished, helper
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]

S = 1_000_000_000
DELAY_NS = 20_000_000
EARLY_NS = 100_000  # pktd begins to write so much before at most that a packet is there in time
STAR = "bridge s1\nlink a--s1 latency=5ms up=10Mb symmetric\nlink b--s1 latency=15ms\n"
PAIR = 'service a img=x exec="sleep 60"\nservice b img=x exec="sleep 60"\n' + STAR


def probed(run: Path) -> tuple[ProbesHeader, list[Probe]]:
    header, probes, _, _ = whole(run)
    return header, probes


def whole(run: Path) -> tuple[ProbesHeader, list[Probe], list[OpenProbe], int | None]:
    found = read(HeldDirectory.hold(run))
    assert found is not None
    probes = list(found.probes)
    return found.header, probes, found.open, found.untold_ns


@pytest.mark.parametrize("hosts", [0, 2])
def test_delays_lives_and_losses(plan_of: Compile, user: User, hosts: int) -> None:
    """Nothing arrives earlier than planned; what is sent while the path is cut is lost; who is not
    there is not probed, and has a namespace of its own when it is back. What is sent just before
    an end and does not come is no loss, and not left out."""
    plan = plan_of(
        PAIR + "at 0s a join\nat 0s b join\nat 1s b disconnect\nat 2s b reconnect\n"
        "at 4500ms a->s1 set loss=100%\nat 5s b crash\nat 5500ms a->s1 set loss=0%\n"
        "at 6s b join\nat 6500ms b pause\nat 7500ms b resume\n"
        "at 8s b leave\nat 9s b join\nat 10s a->s1 set loss=100%\nat 11s quit\n"
        "expect loss a b < 1% from 2500ms to 5s\nexpect loss a b < 1% from 9200ms\n"
    )
    assert user.run(plan, hosts=hosts, probes=True)["outcome"] == "completed"
    run = user.home / "out"
    header, probes, open_, untold_ns = whole(run)
    assert untold_ns is None
    manifest = json.loads((run / "manifest.json").read_text())
    assert header.pairs == (("a.0", "b.0"), ("b.0", "a.0"))
    assert header.large == (0, 1)
    assert any("large" in line for line in records(run / "probes.jsonl")[1:])
    assert header.start_monotonic_ns == manifest["start_monotonic_ns"]
    assert header.of == 2
    came = [one for one in probes if one.delay_ns is not None]
    assert min(one.delay_ns or 0 for one in came) >= DELAY_NS - EARLY_NS
    applied = {
        event["seq"]: event.get("network_ns", event["applied_ns"])
        for event in records(run / "events.jsonl")
        if "seq" in event
    }
    cut, back, deaf, crash, _, again, _, _, leave, rejoin, last = (
        applied[number] for number in range(2, 13)
    )
    lost = {one.sent_at_ns for one in probes if one.delay_ns is None}
    assert any(cut < at_ns < back for at_ns in lost)
    for one in came:
        assert not (cut < one.sent_at_ns and one.sent_at_ns + (one.delay_ns or 0) < back), one
    for down, up in ((crash, again), (leave, rejoin)):
        assert not [one for one in probes if down + S // 2 < one.sent_at_ns < up], (down, up)
    for begin, end in ((0, cut), (back, crash), (again, leave), (rejoin, 11 * S)):
        for pair in (0, 1):
            sent = [one for one in came if one.pair == pair and begin <= one.sent_at_ns < end]
            assert sent, (pair, begin, end)
    for begin, end in ((deaf, crash), (last, 11 * S)):
        assert any(one.pair == 0 and begin < one.sent_at_ns < end for one in open_), (begin, end)
        assert not [one for one in came if one.pair == 0 and begin < one.sent_at_ns < end]
    for found in json.loads((run / "summary.json").read_text())["expectations"]:
        assert found["state"] == "not_measured", found
        assert "nobody knows, since the run or an instance ended" in found["message"]


def test_no_program_notices(plan_of: Compile, user: User) -> None:
    """Nobody in an instance is asked for a protocol that it does not know, and no port is taken."""
    show = "cat /proc/net/snmp; ls -l /proc/[0-9]*/fd; cat /proc/net/udp"
    plan = plan_of(
        f"service a img=x exec=\"sh -c 'sleep 1.5; {show}; sleep 60'\"\n"
        'service b img=x exec="sleep 60"\n' + STAR + "at 0s a join\nat 0s b join\nat 3s quit\n"
    )
    assert user.run(plan, probes=True)["outcome"] == "completed"
    _, probes = probed(user.home / "out")
    assert len(probes) > 2
    said = (user.home / "out/logs/a.0.log").read_text().splitlines()
    counters = {}
    for names, values in pairwise(said):
        head, _, rest = names.partition(": ")
        if values.startswith(f"{head}: ") and head in ("Ip", "Icmp") and "In" in rest:
            counters.update(zip(rest.split(), values.split()[1:], strict=True))
    assert counters["InUnknownProtos"] == "0"
    assert counters["OutDestUnreachs"] == counters["InDestUnreachs"] == "0"
    assert not [line for line in said if "0000:" in line and "sl" not in line], "a UDP port"


def test_networks_with_ipv6_only(plan_of: Compile, user: User) -> None:
    plan = plan_of("network ipv6\n" + PAIR + "at 0s a join\nat 0s b join\nat 2s quit\n")
    assert user.run(plan, probes=True)["outcome"] == "completed"
    _, probes = probed(user.home / "out")
    assert {one.pair for one in probes} == {0, 1}
    assert min(one.delay_ns or DELAY_NS for one in probes) >= DELAY_NS - EARLY_NS


def test_links_that_have_no_room_are_not_probed_and_named(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        'service c img=x exec="sleep 60"\n' + PAIR + "link c--s1 latency=1ms up=10Kb symmetric\n"
        "at 0s a join\nat 0s b join\nat 0s c join\nat 2s quit\n"
    )
    process = user.tstorm("run", str(plan), "--out", str(user.home / "out"))
    code, said = finished(process)
    assert code == 0
    assert "4 pairs of instances (c.0 to a.0 …) are not probed" in said
    header, probes = probed(user.home / "out")
    assert header.pairs == (("a.0", "b.0"), ("b.0", "a.0"))
    assert {end for pair in header.not_probed for end in pair} == {"a.0", "b.0", "c.0"}
    assert header.of == 6
    assert probes


def test_without_probes(plan_of: Compile, user: User) -> None:
    plan = plan_of(PAIR + "at 0s a join\nat 0s b join\nat 500ms quit\n")
    assert user.run(plan, probes=False)["outcome"] == "completed"
    run = user.home / "out"
    assert not (run / "probes.jsonl").exists()
    assert not json.loads((run / "summary.json").read_text())["pairs"]


def test_start_at_and_pace(plan_of: Compile, user: User) -> None:
    """Moments are plan time, delays are not."""
    plan = plan_of(PAIR + "at 0s a join\nat 0s b join\nat 40s quit\n")
    done = user.run(plan, start_at_ns=10 * S, pace=10, probes=True)
    assert done["outcome"] == "completed"
    _, probes = probed(user.home / "out")
    assert min(one.sent_at_ns for one in probes) >= 10 * S
    assert 20 * S < max(one.sent_at_ns for one in probes) < 40 * S
    assert min(one.delay_ns or DELAY_NS for one in probes) >= DELAY_NS - EARLY_NS


def test_a_prober_that_dies_ends_no_run(plan_of: Compile, user: User) -> None:
    plan = plan_of(PAIR + "at 0s a join\nat 0s b join\nat 4s quit\n")
    process = user.tstorm("run", str(plan), "--quiet", "--out", str(user.home / "out"))
    file = user.home / "out/probes.jsonl"
    wait_until(lambda: file.exists() and records(file)[1:], "the first report")
    os.kill(helper(process, "tprobe"), signal.SIGKILL)
    code, said = finished(process)
    assert code == 0
    assert "paths are not measured from now on: tprobe ended with signal 9" in said
    [died] = [one for one in records(user.home / "out/events.jsonl") if one["kind"] == "unprobed"]
    assert died["reason"] == "tprobe ended with signal 9"
    summary = json.loads((user.home / "out/summary.json").read_text())
    assert (summary["outcome"], summary["verdict"]["state"]) == ("completed", "degraded")
    [reason] = [one for one in summary["verdict"]["reasons"] if one["what"] == "missing"]
    assert reason["text"].startswith("nobody looked at paths from ")
    _, probes, _, untold_ns = whole(user.home / "out")
    assert probes
    assert untold_ns is not None
    all_ended(user)
