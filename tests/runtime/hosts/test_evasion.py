"""What an instance may try with all rights in its own network: nothing goes round the emulation,
nobody else is disturbed, and it is told who tried."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.support import DEADLINE_SECONDS, ROOT, Compile, User, records
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]

SCRIPT = ROOT / "tests/runtime/hosts/evade.py"
DELAY_NS = 25_000_000
STAR = "bridge s1\nlink server--s1 latency=15\nlink client--s1 latency=10\n"
BOTH = "10.77.0.1 10.77.0.2"  # server.0 on the client's host, server.1 on the other


def plan_with(user: User, plan_of: Compile, what: str, end: str = "100s") -> Path:
    return plan_of(
        f'service server img=x replicas=2 exec="{user.python} {SCRIPT} listen"\n'
        f'service client img=x exec="{user.python} {SCRIPT} {what}"\n{STAR}at {end} quit\n'
    )


def said(user: User, name: str) -> str:
    path = user.home / f"out/logs/{name}.log"
    return path.read_text() if path.exists() else ""


def delays(user: User, name: str, kind: str) -> list[int]:
    """How long datagrams of a kind were on their way to an instance, ns."""
    found = [line.split() for line in said(user, name).splitlines()]
    return [int(words[2]) for words in found if words[:2] == ["got", kind] and len(words) == 3]


def result(user: User) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((user.home / "out/summary.json").read_text())
    return found


def refused(user: User, instance: str = "client.0") -> dict[str, int]:
    rows = [row for row in result(user)["refused"] if row["instance"] == instance]
    return {k: v for row in rows for k, v in row.items() if k != "instance"}


def run_until(
    user: User, plan: Path, condition: Callable[[], Any], what: str, **options: Any
) -> str:
    """A run that is ended when this has come. Returns all that it told."""
    process = user.begin(plan, **options)
    wait_until(lambda: process.poll() is not None or condition(), what)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert json.loads(out.splitlines()[-1])["outcome"] == "interrupted", out + err
    return out


def test_no_way_round_the_datapath_is_faster(plan_of: Compile, user: User) -> None:
    """Frames made by hand, without filters and other devices: they take what is planned, or never
    come."""
    plan = plan_with(user, plan_of, f"bypass,to-all,no-filters 1 {BOTH}")

    def done() -> bool:
        return "done no-filters" in said(user, "client.0")

    told = run_until(user, plan, done, "all kinds", hosts=2)
    for server in ("server.0", "server.1"):
        for kind in ("bypass", "no-filters"):
            found = delays(user, server, kind)
            assert found, (server, kind)
            assert min(found) >= DELAY_NS, (server, kind)
        assert delays(user, server, "to-all") == []
    assert refused(user)["frame"] > 0
    assert "client.0: " in told
    assert "in a frame to all" in told


def test_nobody_is_taken_for_an_agent(plan_of: Compile, user: User) -> None:
    """The instance says, again and again, that it has the addresses of the underlay. Agents that
    nobody reaches are lost after some 6 s."""
    plan = plan_with(user, plan_of, "claim 12", "13s")
    assert user.run(plan, hosts=2)["outcome"] == "completed"
    kinds = {record["kind"] for record in records(user.home / "out/events.jsonl")}
    assert kinds.isdisjoint({"agent_lost", "late"})
    assert refused(user)["source"] > 100
    assert refused(user, "server.0").keys() <= {"group"}


@pytest.mark.parametrize("hosts", [0, 2], ids=["one engine", "hosts"])
def test_foreign_sources_are_dropped_and_told(plan_of: Compile, user: User, hosts: int) -> None:
    plan = plan_with(user, plan_of, f"spoofed,plain 1 {BOTH}")

    def done() -> bool:
        return bool(delays(user, "server.0", "plain") and delays(user, "server.1", "plain"))

    told = run_until(user, plan, done, "honest ones", hosts=hosts)
    for server in ("server.0", "server.1"):
        assert delays(user, server, "spoofed") == []
        assert min(delays(user, server, "plain")) >= DELAY_NS
    assert refused(user)["source"] > 0
    assert refused(user, "server.0").get("source", 0) == 0
    assert "client.0: " in told
    assert "--allow-spoofing" in told


@pytest.mark.parametrize("hosts", [0, 2], ids=["one engine", "hosts"])
def test_foreign_sources_may_be_allowed(plan_of: Compile, user: User, hosts: int) -> None:
    plan = plan_with(user, plan_of, f"spoofed 1 {BOTH}")

    def done() -> bool:
        return bool(delays(user, "server.0", "spoofed") and delays(user, "server.1", "spoofed"))

    run_until(user, plan, done, "spoofed ones", hosts=hosts, allow_spoofing=True)
    for server in ("server.0", "server.1"):
        assert min(delays(user, server, "spoofed")) >= DELAY_NS
    assert "source" not in refused(user)
    manifest = json.loads((user.home / "out/manifest.json").read_text())
    assert manifest["options"]["allow_spoofing"] is True


@pytest.mark.parametrize("hosts", [0, 2], ids=["one engine", "hosts"])
def test_an_instance_that_removes_its_interface_is_told(
    plan_of: Compile, user: User, hosts: int
) -> None:
    """And the others go on."""
    honest = f'service honest img=x exec="{user.python} {SCRIPT} plain 3600 {BOTH}"\n'
    text = f'service server img=x replicas=2 exec="{user.python} {SCRIPT} listen"\n{honest}'
    text += f'service client img=x exec="{user.python} {SCRIPT} cut"\n{STAR}'
    plan = plan_of(text + "link honest--s1 latency=10\nat 100s quit\n")

    def gone() -> list[dict[str, Any]]:
        events = records(user.home / "out/events.jsonl")
        return [record for record in events if record["kind"] == "device_gone"]

    before: list[int] = []

    def goes_on() -> bool:
        if not gone():
            return False
        before.append(len(delays(user, "server.1", "plain")))
        return before[-1] > before[0] + 10

    told = run_until(user, plan, goes_on, "the notice, and others go on", hosts=hosts)
    (record,) = gone()
    assert (record["target"], record["device"]) == ("client.0", "eth0")
    assert "client.0: eth0 is gone" in told
    assert min(delays(user, "server.0", "plain")) >= DELAY_NS
