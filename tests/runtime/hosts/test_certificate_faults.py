"""Runs with a fault planted in them: the certificate names it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.reader import read_plan
from runtime.system import control_groups
from tests.runtime.support import Compile, User
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]
# What is judged are counters, clocks and probes, which are the same for both users.

SECONDS = 8
PLAN = f"""service server img=x exec="tprobe serve"
service client img=x exec="tprobe stream server.0 --udp 8Mb --seconds {SECONDS - 1}"
bridge s1
link server--s1 latency=5ms up=50Mb symmetric
link client--s1 latency=5ms up=50Mb symmetric
at {SECONDS}s quit
"""


def state(user: User, out: str) -> str:
    found = json.loads((user.home / out / "certificate.json").read_text(encoding="utf-8"))
    return str(found["verdict"]["state"])


def verdict(user: User, out: str) -> dict[str, Any]:
    found = json.loads((user.home / out / "certificate.json").read_text(encoding="utf-8"))
    summary = json.loads((user.home / out / "summary.json").read_text(encoding="utf-8"))
    assert found["verdict"] == summary["verdict"]
    judged: dict[str, Any] = found["verdict"]
    return judged


def reasons(user: User, out: str) -> list[tuple[str, str]]:
    return [(one["what"], one["subject"]) for one in verdict(user, out)["reasons"]]


def test_an_agent_that_lies_and_a_clock_that_is_set_are_found(plan_of: Compile, user: User) -> None:
    plan = plan_of(PLAN)
    faults = {"host0": {"clock_step_ns": 3_000_000_000}, "host1": {"count_ppb": 400_000_000}}
    user.run(plan, "faulty", hosts=2, faults=faults)
    found = reasons(user, "faulty")
    assert ("clock_step", "host0") in found
    assert [subject for what, subject in found if what == "counters"]
    user.run(plan, "fine", hosts=2)
    assert {what for what, _ in reasons(user, "fine")}.isdisjoint({"clock_step", "counters"})


def test_a_verdict_that_is_required(plan_of: Compile, user: User) -> None:
    """Where nothing was measured there is no verdict, and so not the required one."""
    plan = plan_of(PLAN.replace(f"at {SECONDS}s", "at 1s"))
    result = user.run(plan, "short", require="valid")
    assert result["outcome"] == "completed"
    assert state(user, "short") in ("unknown", "degraded")
    assert result["exit_code"] == 4
    assert user.run(plan, "free")["exit_code"] == 0


IDLE = """service a
service b
bridge s1
link a--s1 latency=5ms up=50Mb symmetric
link b--s1 latency=5ms up=50Mb symmetric
at 12s quit
"""


TRAFFIC = """service a
service b
service server img=x exec="tprobe serve"
service client img=x exec="tprobe stream server.0 --udp 20Mb --seconds 9"
bridge s1
link a--s1 latency=5ms up=50Mb symmetric
link b--s1 latency=5ms up=50Mb symmetric
link server--s1 latency=5ms up=10Mb symmetric
link client--s1 latency=5ms up=50Mb symmetric
at 10s quit
"""


def test_links_with_other_values_than_the_plans_are_found(plan_of: Compile, user: User) -> None:
    """From 3 of 10 s on the engine has 190 ms in the place of 5 on one link, and three times the
    rate on another one, through which traffic flows. The machine's clock is set, too."""
    plan = plan_of(TRAFFIC)
    number = {link.name: n for n, link in enumerate(read_plan(plan).topology.links)}
    faults = {
        f"link{number['s1->b.0']}": {"delay_ns": 190_000_000},
        f"link{number['s1->server.0']}": {"rate_bps": 30_000_000},
        "driver": {"clock_step_ns": -3_000_000_000},
    }
    assert user.run(plan, "other", faults=faults, probes=True)["outcome"] == "completed"
    assert state(user, "other") == "invalid"
    found = {(one["what"], one["subject"]): one for one in verdict(user, "other")["reasons"]}
    assert "by 3.00 s, at" in found["clock_step", "the machine"]["text"]
    late = found["path_late", "a.0 to b.0"]
    assert late["state"] == found["path_rate", "client.0 to server.0"]["state"] == "invalid"
    # 185 ms, less what the run's own large probes may wait for each other: 0.24 ms each at 50 Mb/s.
    assert 182_000_000 < late["figure_ns"] < 186_000_000
    assert late["at_ns"] >= 2_900_000_000
    shown = round(late["figure_ns"] / 1e6)
    begins = f"a.0 to b.0: packets came {shown} ms later than planned (10 ms)"
    assert late["text"].startswith(begins)
    assert late["text"].endswith("; the bound is 1 ms")
    late_ones = {subject for what, subject in found if what == "path_late"}
    assert late_ones == {"a.0 to b.0", "server.0 to b.0", "client.0 to b.0"}


def engine_of(run: int) -> int:
    """The pktd below this process."""
    parents: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                head, _, rest = (place / "stat").read_text(encoding="ascii").rpartition(")")
            except OSError:
                continue  # it has ended
            parents.setdefault(int(rest.split()[1]), []).append(int(place.name))
            names[int(place.name)] = head.partition("(")[2]
    found = [run]
    for pid in found:
        found += parents.get(pid, [])
    [engine] = [pid for pid in found if names.get(pid) == "pktd"]
    return engine


def test_an_engine_that_is_slowed_down_is_found(plan_of: Compile, user: User) -> None:
    """It stands still for 30 of every 50 ms, for some seconds: no packet is lost, many are late."""
    process = user.begin(plan_of(IDLE), "slow", probes=True)
    engine = engine_of(process.pid)
    try:
        for _ in range(100):
            os.kill(engine, signal.SIGSTOP)
            time.sleep(0.03)
            os.kill(engine, signal.SIGCONT)
            time.sleep(0.02)
    finally:
        os.kill(engine, signal.SIGCONT)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["outcome"] == "completed"
    assert state(user, "slow") in ("degraded", "invalid")
    paths = {
        subject for what, subject in reasons(user, "slow") if what in ("path_late", "path_tail")
    }
    assert paths == {"a.0 to b.0", "b.0 to a.0"}


LIMITS = {
    "cpu.max": {"max": "max", "little": "10000 100000"},
    "cpu.cfs_quota_us": {"max": "-1", "little": "10000"},  # of 100 ms
}
STARVED_NS = 3_000_000_000  # that the kernel says, of all processors together
SPINNING = IDLE.replace("service b", "service b img=x exec=\"sh -c 'while :; do :; done'\"")


@pytest.fixture
def limited() -> Iterator[Path]:
    """A control group of processors with this process in it, and what it starts."""
    before = next(group for group in control_groups.own("cpu") if (group / "cgroup.procs").exists())
    group = before / f"ts-test-{os.getpid()}"
    try:
        group.mkdir()
        if not any((group / name).exists() for name in LIMITS):
            pytest.skip("no limit of processors in a control group of our own")
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        pytest.skip(f"no control group of our own: {error}")
    try:
        yield group
    finally:
        limit(group, "max")
        while pids := (group / "cgroup.procs").read_text().split():
            for pid in pids:
                with suppress(ProcessLookupError):
                    (before / "cgroup.procs").write_text(pid)
        group.rmdir()


def limit(group: Path, how: str) -> None:
    for name, values in LIMITS.items():
        if (group / name).exists():
            (group / name).write_text(values[how])


def starved_ns(group: Path) -> int:
    older = control_groups.counter(group / "cpu.stat", "throttled_time")
    newer = control_groups.counter(group / "cpu.stat", "throttled_usec")
    return older or (newer or 0) * 1000


def test_a_run_that_is_starved_of_processors_is_found(
    plan_of: Compile, user: User, limited: Path
) -> None:
    """For a while its control group has a tenth of a processor, and a program of it wants more."""
    process = user.begin(plan_of(SPINNING), "starved", probes=True)
    limit(limited, "little")
    try:
        wait_until(lambda: starved_ns(limited) > STARVED_NS, "the kernel to say that it throttled")
    finally:
        limit(limited, "max")
    _, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert state(user, "starved") in ("degraded", "invalid")
    assert ("throttled", "the machine") in reasons(user, "starved")
