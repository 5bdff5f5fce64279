"""Expectations of a real run: on one host, over two, and in virtual time, where they repeat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.backend.local.instance_commands import OUT_OF_MEMORY
from tests.runtime.support import Compile, User, records

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]

TEXT = """\
service server img=x exec="sh -c 'sleep 1; echo leader elected; exec sleep 60'"
service client img=x keep=no exec="sh -c 'sleep 3; echo [12.5] > out.json; echo done 3'"
bridge s
link server--s latency=5ms up=10Mb symmetric
link client--s latency=5ms up=10Mb symmetric
at 4s client--s leave
at 6s client--s join
expect rtt client server < 200ms from 500ms to 3900ms
expect rtt client server < 15ms from 500ms to 3900ms
expect unreachable client server at 4s within 100ms
expect throughput client server > 90% of plan at 3s within 100ms
expect log server "leader elected" within 3s
expect no log * "panic"
expect exit client 0
expect run "test -e here" ok on server.0 within 1s after 1s
expect run "touch here" ok on server.0 at 500ms
figure done = log client "done ([0-9]+)"
figure ms = json client "out.json" "0"
at 7s quit
"""
STATES = ["passed", "failed", "passed", "not_measured", *["passed"] * 5]


def judged(user: User, out: str = "out") -> list[dict[str, Any]]:
    summary = json.loads((user.home / out / "summary.json").read_text())
    found: list[dict[str, Any]] = summary["expectations"]
    return found


@pytest.mark.parametrize("hosts", [0, 2])
def test_some_hold_one_fails_and_one_is_not_measured(
    plan_of: Compile, user: User, hosts: int
) -> None:
    result = user.run(plan_of(TEXT), hosts=hosts, probes=True)
    assert (result["outcome"], result["exit_code"]) == ("completed", 5), result
    found = judged(user)
    assert [one["state"] for one in found] == STATES, found
    assert found[1]["subject"] == "client.0 -> server.0"
    assert 20_000_000 <= found[1]["figure"] < 200_000_000
    events = records(user.home / "out/events.jsonl")
    told = [one["state"] for one in events if one["kind"] == "expectation"]
    assert told == STATES
    ran = [one for one in events if one["kind"] == "expect_run"]
    assert [one["status"] for one in ran] == [0, 0]
    summary = json.loads((user.home / "out/summary.json").read_text())
    assert [one["value"] for one in summary["figures"]] == ["3", "12.5"], summary["figures"]
    assert not (user.home / "out/instances/client.0").exists(), "they were read before"
    page = (user.home / "out/report.html").read_text()
    assert all(one["text"].replace("<", "\\u003c") in page.replace('\\"', '"') for one in found)


@pytest.mark.virtual
def test_in_virtual_time_they_repeat(plan_of: Compile, user: User) -> None:
    plan = plan_of(TEXT)
    for out in ("one", "two"):
        result = user.run(plan, out, time="virtual", probes=True)
        assert (result["outcome"], result["exit_code"]) == ("completed", 5), result
    found = judged(user, "one")
    assert [one["state"] for one in found] == STATES, found
    assert found == judged(user, "two")
    first, second = ((user.home / out / "events.jsonl").read_bytes() for out in ("one", "two"))
    assert first == second


# What is in force for an instance's program is for a command there, too.
RESUMED_NS = 1_600_000_000
FULL = "from 600ms to 1600ms full set disk=full\n"
IN_FORCE = f"""\
service still exec="sleep 60"
service full exec="sleep 60"
service small exec="sleep 60" mem=24Mi
bridge s
link still--s latency=1ms
link full--s latency=1ms
link small--s latency=1ms
from 600ms to 1600ms still pause
{FULL}expect run "sh -c 'sleep 0.5; echo on'" ok on still.0 at 300ms
expect run "true" ok on still.0 at 1s
expect run "true" ok on still.0 within 400ms after 1s
expect run "sh -c 'echo x >f'" ok on full.0 at 1s
expect run "sh -c 'echo x >f'" ok on full.0 at 1800ms
expect run "dd if=/dev/zero of=/dev/null bs=99M count=1" ok on small.0 at 100ms
at 3s quit
"""


@pytest.mark.parametrize("hosts", [0, 2])
def test_a_command_meets_what_its_instance_does(plan_of: Compile, user: User, hosts: int) -> None:
    """Faults of disks are refused with --hosts."""
    text = IN_FORCE.replace(FULL, "") if hosts else IN_FORCE
    user.run(plan_of(text), hosts=hosts)
    events = records(user.home / "out/events.jsonl")
    ran = {one["expectation"]: one for one in events if one["kind"] == "expect_run"}
    assert [ran[number]["status"] for number in (0, 1, 4)] == [0, 0, 0]
    assert ran[0]["output"] == ["on"]
    assert min(ran[number]["applied_ns"] for number in (0, 1)) >= RESUMED_NS
    assert ran[2]["error"].endswith(" s, in which the instance was paused")
    assert (ran[3]["status"] == 0) == bool(hosts)
    enforced = "cannot be enforced" not in (user.home / "out/summary.json").read_text()
    assert enforced == (ran[5].get("reason") == OUT_OF_MEMORY), ran[5]
