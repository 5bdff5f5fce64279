"""Groups that limit instances: trees as the kernel shows them, and those of this machine."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from compiler.plan.types import Service
from runtime.backend.local.instance_commands import OUT_OF_MEMORY
from runtime.backend.local.instance_limits import Limits
from runtime.system import control_groups
from tests.runtime.support import Compile, User, dump, records
from tests.trials.scene import children
from tests.waiting import wait_until


def test_in_version_2_controllers_are_asked_for(tmp_path: Path) -> None:
    mount = tmp_path / "sys/fs/cgroup"
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice/app\n")
    (mount / "user.slice/app").mkdir(parents=True)
    run = mount / "user.slice/app/tstorm-r1"
    run.mkdir()  # a kernel fills it
    (run / "cgroup.controllers").write_text("cpu memory\n")
    (run / "cgroup.subtree_control").touch()
    (run / "a.0").mkdir()
    for name in ("memory.max", "memory.swap.max", "cpu.max"):
        (run / "a.0" / name).touch()
    found = control_groups.make("r1", tmp_path)
    assert found == control_groups.ControlGroups(run, run)
    assert found.limit("a.0", 77, 250, 1 << 20) == []
    assert (run / "a.0/cpu.max").read_text() == "25000 100000"
    assert (run / "a.0/memory.max").read_text() == "1048576"
    assert (run / "a.0/memory.swap.max").read_text() == "0"
    assert (run / "a.0/cgroup.procs").read_text() == "77"
    (run / "a.0/memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert (found.kills("a.0"), found.times_full("a.0")) == (2, 3)
    assert (found.kills("b.0"), found.times_full("b.0")) == (0, 0)


def test_without_groups_limits_are_lacking(tmp_path: Path) -> None:
    found = control_groups.make("r1", tmp_path)
    assert found == control_groups.ControlGroups(None, None)
    assert found.limit("a.0", 77, 250, 1 << 20) == ["cpu", "mem"]
    assert found.limit("a.0", 77, 0, 0) == []
    assert found.missing == {"cpu", "mem"}


def test_what_killed_an_earlier_life_explains_no_later_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = tmp_path / "a.0/memory.events"
    events.parent.mkdir()
    monkeypatch.setattr(
        control_groups, "make", lambda _run, **_pids: control_groups.ControlGroups(None, tmp_path)
    )
    killed: list[tuple[str, int]] = []
    found = Limits("r1", lambda _text: None, lambda *told: killed.append(told))
    limited = Service("a", "", ("x",), (), (), 1, (), (), (), 0, 1, ())
    found.put(0, "a.0", limited)
    assert not found.wanted_memory("a.0")
    events.write_text("oom 1\noom_kill 1\n")
    assert found.wanted_memory("a.0")
    assert not found.wanted_memory("a.0")
    events.write_text("oom 2\noom_kill 2\n")  # of one that the timeline ended
    found.put(0, "a.0", limited)
    assert not found.wanted_memory("a.0")
    events.write_text("oom 3\noom_kill 3\n")
    assert found.wanted_memory("a.0")
    events.write_text("oom 3\noom_kill 4\n")  # since the machine has no more
    assert not found.wanted_memory("a.0")
    events.write_text("oom 4\noom_kill 4\n")  # about to kill
    assert not found.wanted_memory("a.0")
    events.write_text("oom 4\noom_kill 6\n")
    found.look()
    assert killed == [("a.0", 1), ("a.0", 1), ("a.0", 1), ("a.0", 2)]


def test_who_is_refused_a_process_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only in virtual time, where an instance has a bound."""
    (tmp_path / "a.0").mkdir()
    (tmp_path / "pids.events").touch()
    monkeypatch.setattr(
        control_groups,
        "make",
        lambda _run, **_pids: control_groups.ControlGroups(None, None, tmp_path),
    )
    said: list[str] = []
    free = Service("a", "", ("x",), (), (), 1, (), (), (), 0, 0, ())

    async def carry_out() -> None:
        found = Limits("r1", said.append, lambda *_killed: None, virtual=True)
        found.put(0, "a.0", free)
        for count in (0, 3, 4):
            (tmp_path / "a.0/pids.events").write_text(f"max {count}\n")
            (tmp_path / "pids.events").write_text(f"max {count}\n")  # of all in it
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        found.close()

    asyncio.run(carry_out())
    assert (tmp_path / "a.0/pids.max").read_text() == "2000"
    [told] = said
    assert told.startswith("a.0 has 2,000 processes and threads")


def left(run_id: str) -> list[str]:
    return [str(path) for path in Path("/sys/fs/cgroup").rglob(f"tstorm-{run_id}")]


def no_groups() -> bool:
    """Whether this machine has none for us."""
    found = control_groups.make(f"probe-{os.getpid()}")
    found.remove()
    return found.memory is None


WANTS = "python3 -c 'b=bytearray(200<<20); print(len(b))'"


@pytest.mark.e2e
def test_memory_and_processors_are_limited_where_that_can_be(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        f'service server img=x mem=50Mi cpu=200m exec="{WANTS}"\n'
        f'service free img=x mem=900Mi exec="{WANTS}"\n'
        "bridge s1\nlink server--s1 latency=1\nlink free--s1 latency=1\nat 2500ms quit\n"
        'node sat cpu=500m {\n    service one img=x exec="cat /proc/self/cgroup"\n}\n'
        "link sat.one--s1 latency=1\n"
    )
    process = user.start("run", str(plan), str(user.home / "out"), "{}")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert (user.home / "out/logs/free.0.log").read_text() == f"{200 << 20}\n"
    said = (user.home / "out/logs/server.0.log").read_text()
    ended = [one for one in records(user.home / "out/events.jsonl") if one["kind"] == "exit"]
    if "cannot be enforced" in out:
        assert user.name == "ordinary" or no_groups()
        assert out.count("cannot be enforced") == 1
        assert said == f"{200 << 20}\n"
        return
    assert said == ""
    assert "/sat.0/sat.0.one.0\n" in (user.home / "out/logs/sat.0.one.0.log").read_text()
    assert {one["target"]: one["signal"] for one in ended}["server.0"] == 9
    run_id = json.loads((user.home / "out/manifest.json").read_text())["run_id"]
    assert left(run_id) == []


TAKES = "dd if=/dev/zero of=/dev/null bs=200M count=1"
SEVERAL = f"""\
service all mem=50Mi exec="{WANTS}"
service child mem=50Mi exec="sh -c '{TAKES}; {TAKES}; sleep 60'"
service free mem=900Mi exec="{WANTS}"
bridge s1
link all--s1 latency=1ms
link child--s1 latency=1ms
link free--s1 latency=1ms
at 3s child leave
at 4s quit
"""


@pytest.mark.e2e
@pytest.mark.parametrize("hosts", [0, 2])
def test_every_record_has_who_was_killed_for_its_mem(
    plan_of: Compile, user: User, hosts: int
) -> None:
    """A program, and children of one that goes on."""
    if no_groups() or user.name == "ordinary":
        pytest.skip("groups are mostly root's")
    process = user.start(
        "run", str(plan_of(SEVERAL)), str(user.home / "out"), dump({"hosts": hosts})
    )
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    events = records(user.home / "out/events.jsonl")
    ended = {one["target"]: one.get("reason") for one in events if one["kind"] == "exit"}
    assert ended == {"all.0": OUT_OF_MEMORY, "child.0": None, "free.0": None}
    killed = [(one["target"], one["processes"]) for one in events if one["kind"] == "oom_kill"]
    assert killed == [("all.0", 1), ("child.0", 2)]
    summary = json.loads((user.home / "out/summary.json").read_text())
    assert [(one["target"], one["processes"]) for one in summary["oom_kills"]] == killed
    assert [one["reason"] for one in summary["failures"]] == [OUT_OF_MEMORY]
    assert f"all.0: its program ended by itself with signal 9: {OUT_OF_MEMORY}" in out
    assert "child.0: the kernel killed 2 processes of it, since it wanted more memory" in out


@pytest.mark.e2e
@pytest.mark.root
@pytest.mark.parametrize("whole", [True, False])
def test_groups_of_a_killed_run_are_removed(plan_of: Compile, user: User, *, whole: bool) -> None:
    """By `destroy`; where tstorm itself goes on, by it."""
    if user.name == "ordinary":
        pytest.skip("groups are mostly root's")
    plan = plan_of(
        'service server img=x mem=500Mi exec="sleep 60"\nbridge s1\nlink server--s1 latency=1\n'
        "at 60s quit\n"
    )
    process = user.begin(plan)
    run_id = json.loads((user.home / "out/manifest.json").read_text())["run_id"]
    made = left(run_id)
    if whole:
        os.kill(process.pid, 9)
        process.wait()
        destroyed = user.tstorm("destroy", "--all")
        out, err = destroyed.communicate(timeout=60)
        assert destroyed.returncode == 0, out + err
    else:
        ((_, keeper),) = children(process.pid)
        os.kill(keeper, 9)
        process.communicate(timeout=60)
    wait_until(lambda: left(run_id) == [], "the groups are gone")
    assert made or no_groups()


def test_parts_of_a_machine_have_groups_in_its_own(tmp_path: Path) -> None:
    """As the kernel shows them in version 1: nothing else is asked for there."""
    for place in ("cpu", "memory"):
        (tmp_path / place).mkdir()
    found = control_groups.ControlGroups(tmp_path / "cpu", tmp_path / "memory")
    for group in ("cpu/sat.0", "memory/sat.0", "cpu/sat.0/sat.0.a.0", "memory/sat.0/sat.0.a.0"):
        (tmp_path / group).mkdir()
        (tmp_path / group / "cgroup.procs").touch()  # a kernel makes it
    assert found.enclose("sat.0", 1500, 1 << 20) == []
    assert found.limit("sat.0.a.0", 77, 0, 0, outer="sat.0") == []
    assert (tmp_path / "cpu/sat.0/cpu.cfs_quota_us").read_text() == "150000"
    assert (tmp_path / "memory/sat.0/memory.limit_in_bytes").read_text() == "1048576"
    for place in ("cpu", "memory"):
        assert (tmp_path / place / "sat.0/sat.0.a.0/cgroup.procs").read_text() == "77"
        assert (tmp_path / place / "sat.0/cgroup.procs").read_text() == ""
    (tmp_path / "memory/sat.0/sat.0.a.0/memory.oom_control").write_text("oom_kill 3\n")
    (tmp_path / "memory/sat.0/memory.failcnt").write_text("5\n")  # its own has no limit
    assert found.kills("sat.0.a.0", "sat.0") == 3
    assert found.times_full("sat.0.a.0", "sat.0") == 5


def test_without_groups_parts_are_not_kept_apart(tmp_path: Path) -> None:
    found = control_groups.make("r1", tmp_path)
    assert found.enclose("sat.0", 0, 0) == ["cpu"]
    assert found.enclose("sat.0", 0, 1 << 20) == ["cpu", "mem"]
    assert found.limit("sat.0.a.0", 77, 0, 0, outer="sat.0") == []
