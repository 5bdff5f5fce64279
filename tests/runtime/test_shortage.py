"""What the machine runs out of is said in words: processes, namespaces, memory."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from compiler.plan.types import Node
from runtime.backend.local import nursery
from runtime.backend.local.instances import Maker
from runtime.backend.local.nursery import Program
from runtime.errors import MachineError, RunError
from runtime.system import compiled_programs, control_groups, memory, process_limits
from tests.runtime.support import ROOT, Compile, state
from tests.waiting import wait_until

DEADLINE_SECONDS = 180.0
AGAIN = os.strerror(errno.EAGAIN)


def plant(root: Path, **files: str) -> None:
    """Files of a machine; `_` in a name is a folder."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def v2(root: Path, events: str = "oom_kill 3\n") -> Path:
    plant(root, proc__self__cgroup="0::/user/run\n", proc__vmstat="oom_kill 9\n")
    group = root / "sys/fs/cgroup/user/run"
    group.mkdir(parents=True)
    (group / "memory.events").write_text(f"low 0\noom 1\n{events}")
    (group / "pids.max").write_text("100\n")
    (group / "pids.current").write_text("60\n")
    (group.parent / "pids.max").write_text("70\n")
    (group.parent / "pids.current").write_text("70\n")
    return group


def v1(root: Path) -> Path:
    plant(root, proc__self__cgroup="8:pids:/\n4:cpu,memory:/box\n0::/\n", proc__vmstat="x 1\n")
    group = root / "sys/fs/cgroup/memory/box"
    group.mkdir(parents=True)
    (group / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    return group


# -- memory -----------------------------------------------------------------------------------


def test_a_group_that_has_lost_a_process_says_so(tmp_path: Path) -> None:
    group = v2(tmp_path)
    watch = memory.Watch(tmp_path)
    assert watch.news() == ""
    (group / "memory.events").write_text("oom_kill 4\n")
    assert watch.news() == (
        "the kernel was out of memory and killed a process meanwhile "
        f"(oom_kill in {group}/memory.events went from 3 to 4)"
    )
    assert watch.news() == "", "it is news once"
    assert memory.told("gone", watch) == "gone"


def test_another_groups_lack_is_none_of_ours(tmp_path: Path) -> None:
    v2(tmp_path)
    watch = memory.Watch(tmp_path)
    plant(tmp_path, proc__vmstat="oom_kill 12\n")
    assert watch.news() == ""


def test_groups_of_the_first_version_are_asked_too(tmp_path: Path) -> None:
    group = v1(tmp_path)
    watch = memory.Watch(tmp_path)
    (group / "memory.oom_control").write_text("oom_kill 5\n")
    assert "killed 2 processes meanwhile (oom_kill in " in memory.told("gone", watch)


def test_the_machines_counter_is_asked_where_no_group_counts(tmp_path: Path) -> None:
    plant(tmp_path, proc__self__cgroup="0::/\n", proc__vmstat="nr_free_pages 1\noom_kill 0\n")
    watch = memory.Watch(tmp_path)
    plant(tmp_path, proc__vmstat="nr_free_pages 1\noom_kill 1\n")
    assert "proc/vmstat went from 0 to 1" in watch.news()


def test_the_kernels_log_names_who_was_killed(tmp_path: Path) -> None:
    group = v2(tmp_path)
    plant(tmp_path, dev__kmsg="4,1,1,-;Out of memory: Killed process 7 (before) total-vm:1kB\n")
    watch = memory.Watch(tmp_path)
    with (tmp_path / "dev/kmsg").open("a") as log:
        log.write("3,2,2,-;Memory cgroup out of memory: Killed process 12 (tprobe) total-vm:1\n")
    (group / "memory.events").write_text("oom_kill 4\n")
    assert watch.news().endswith("from 3 to 4; its log says: 12 (tprobe))")
    watch.close()


def test_a_machine_without_counters_says_nothing(tmp_path: Path) -> None:
    watch = memory.Watch(tmp_path)
    assert memory.told("gone", watch) == "gone"


# -- processes --------------------------------------------------------------------------------


def test_the_group_that_is_full_is_named(tmp_path: Path) -> None:
    group = v2(tmp_path)
    wanted = f"raise pids.max of {group.parent}, which is 70 (70 used)"
    assert process_limits.remedy(errno.EAGAIN, tmp_path) == wanted


def test_without_such_a_group_the_other_limits_are_named(tmp_path: Path) -> None:
    v1(tmp_path)
    found = process_limits.remedy(errno.EAGAIN, tmp_path)
    for word in ("RLIMIT_NPROC", "kernel.threads-max", "kernel.pid_max"):
        assert word in found
    assert "user.max_net_namespaces" in process_limits.remedy(errno.ENOSPC)
    assert process_limits.remedy(errno.ENOENT) == ""
    assert process_limits.remedy_for(f"cannot fork: {AGAIN}") == process_limits.remedy(errno.EAGAIN)
    assert process_limits.remedy_for("Resource temporarily unavailable, but not at the end") == ""


def test_a_process_that_cannot_be_started_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_arguments: object, **_options: object) -> NoReturn:
        raise BlockingIOError(errno.EAGAIN, AGAIN)

    monkeypatch.setattr(subprocess, "Popen", none)
    with pytest.raises(MachineError, match=f"cannot start the engine: {AGAIN}") as refusal:
        process_limits.start("the engine", ["true"])
    assert refusal.value.remedy


def test_a_thread_that_cannot_be_started_is_named() -> None:
    class Full(ThreadPoolExecutor):
        def submit(self, *_arguments: Any, **_options: Any) -> NoReturn:
            raise RuntimeError("can't start new thread")

    async def trial() -> None:
        await process_limits.in_thread(Full(1), lambda: None)

    with pytest.raises(MachineError, match="cannot start a thread"):
        asyncio.run(trial())


@pytest.fixture
def pids() -> Iterator[Path]:
    """A control group of our own that limits processes."""
    mounts = [group / "pids.max" for group in control_groups.own("pids")]
    parent = next((path.parent for path in mounts if path.exists()), None)
    parent = parent or next(iter(control_groups.own("pids")))
    own = parent / f"tstorm-test-{os.getpid()}"
    try:
        own.mkdir()
        (own / "pids.max").write_text("max")
    except OSError as error:
        with suppress(OSError):
            own.rmdir()
        pytest.skip(f"no control group for processes can be made: {error}")
    yield own
    wait_until(lambda: not (own / "cgroup.procs").read_text(), "the group's last process")
    own.rmdir()


@pytest.mark.e2e
@pytest.mark.root
@pytest.mark.parametrize("most", [2, 3, 4, 5, 6, 7, 8])
def test_a_limit_of_processes_is_told_with_its_remedy(
    plan_of: Compile, workspace: Path, pids: Path, most: int
) -> None:
    plan = plan_of(
        'service a img=x replicas=20 exec="sleep 60"\nbridge s1\nlink a--s1 latency=1ms\n'
        "at 1s quit\n"
    )
    (pids / "pids.max").write_text(str(most))
    done = subprocess.run(
        [sys.executable, "-m", "tstorm", "run", str(plan), "--quiet", "--out", "out"],
        cwd=workspace,
        env={**os.environ, "PYTHONPATH": str(ROOT), **state(workspace)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
        preexec_fn=lambda: (pids / "cgroup.procs").write_text("0") and None,
    )
    assert done.returncode in (1, 3), done
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stderr.startswith("error: "), done.stderr
    assert "[Errno" not in done.stderr
    if "driver.log" in done.stderr:  # pktd has no thread: its words are where the message says
        assert AGAIN in (workspace / "out/driver.log").read_text()
    else:
        assert AGAIN in done.stderr
        assert "pids.max" in done.stderr
    manifest = json.loads((workspace / "out/manifest.json").read_text())
    assert manifest["outcome"] == "failed"
    assert not list((workspace / "state/tstorm/active").iterdir())


# -- an instance that is killed while it is made ----------------------------------------------


class Refusing:
    """A network that finds the instance dead."""

    more = ()

    async def attach(self, holder: nursery.LocalIncarnation, _node: int) -> int:
        holder.kill()
        raise RunError("pktd refused `open`: No such file or directory")


@pytest.mark.e2e
@pytest.mark.root
def test_an_instance_that_is_killed_at_set_up_is_told(tmp_path: Path) -> None:
    program = Program(("/bin/true",), {}, tmp_path, tmp_path / "log")

    async def whole() -> None:
        with (tmp_path / "ns.log").open("wb") as log:
            made = nursery.start(compiled_programs.find("tstorm-ns"), {}, log)
            try:
                maker = Maker(made, Refusing())  # type: ignore[arg-type]
                with pytest.raises(RunError) as refusal:
                    await maker.make({0: Node("a.0", 0, "10.77.0.1", "fd77:7473::1", ())})
                assert refusal.value.message == (
                    "instance a.0 died while it was being set up: "
                    "pktd refused `open`: No such file or directory"
                )
                assert "killed its first process" in refusal.value.remedy
                holder = made.spawn("b.0", "b-0")
                (await asyncio.wait_for(holder.ready, DEADLINE_SECONDS)).close()
                signal.pidfd_send_signal(holder.pidfd, signal.SIGKILL)
                await asyncio.wait_for(holder.gone, DEADLINE_SECONDS)
                with pytest.raises(RunError, match=r"^instance b\.0 had died before") as refusal:
                    holder.order_start(program)
                assert "killed its first process" in refusal.value.remedy
            finally:
                made.close()

    asyncio.run(whole())


# -- a program that the kernel kills for want of memory ----------------------------------------


@pytest.fixture
def little_memory() -> Iterator[Path]:
    """A control group of our own with 250 MB."""
    parent = next(
        (group for group in control_groups.own("memory") if (group / "cgroup.procs").exists()), None
    )
    own = (parent or Path("/nowhere")) / f"tstorm-test-{os.getpid()}"
    try:
        own.mkdir()
        limit = own / "memory.limit_in_bytes"
        limit = limit if limit.exists() else own / "memory.max"
        if not limit.exists():
            raise OSError(errno.ENOTSUP, "the controller is not enabled there")
        limit.write_text(str(250 << 20))
    except OSError as error:
        with suppress(OSError):
            own.rmdir()
        pytest.skip(f"no control group for memory can be made: {error}")
    yield own
    wait_until(lambda: not (own / "cgroup.procs").read_text(), "the group's last process")
    own.rmdir()


@pytest.mark.e2e
@pytest.mark.root
def test_a_program_that_ran_out_of_memory_is_told_so(
    plan_of: Compile, workspace: Path, little_memory: Path
) -> None:
    program = f"{sys.executable} -c 'bytearray(10**9)'"
    plan = plan_of(
        f'service a img=x exec="{program}"\nbridge s1\nlink a--s1 latency=1ms\nat 600s quit\n'
    )
    within = ["sh", "-c", f'echo 0 > {little_memory}/cgroup.procs && exec "$@"', "sh"]
    process = subprocess.Popen(
        [*within, sys.executable, "-m", "tstorm", "run", str(plan), "--out", "out"],
        cwd=workspace,
        env={**os.environ, "PYTHONPATH": str(ROOT), **state(workspace)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    events = workspace / "out/events.jsonl"
    try:
        wait_until(
            lambda: (
                process.poll() is not None or (events.exists() and "exit" in events.read_text())
            ),
            "the end of the program",
        )
        process.terminate()
        _, said = process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130, said
    words = "the kernel was out of memory and killed a process meanwhile"
    assert f"a.0: its program ended by itself with signal 9: {words}" in said
    (ended,) = json.loads((workspace / "out/summary.json").read_text())["exits"]
    assert ended["reason"].startswith(words)
