"""What of the caller's environment and descriptors the processes of a run have: see docs/run.md."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.backend.local import environment
from runtime.system.procs import descendants
from tests.runtime.support import Compile, User, records
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

SECRET = "hush-4711"
KEY = re.compile(rb"(?<![\w/.-])(?:[0-9a-fA-F]{32,}|[A-Za-z0-9+/_-]{43}=?)(?![\w/.-])")
LOOK = (
    "for p in /proc/[0-9]*; do echo $p; tr '\\\\0' '\\\\n' < $p/environ; ls /proc/self/fd; done;"
    " echo done; exec sleep 300"
)
PLAN = f"""
service server img=x replicas=2 exec="sh -c \\"{LOOK}\\""
bridge s1
link server--s1 latency=1
at 200s quit
"""
DESCRIPTORS = "import os; print(*sorted(os.listdir('/proc/self/fd')))"
HOSTS = [0, 2]


def with_secret(user: User) -> User:
    more = {"SECRET_TOKEN": SECRET, "XDG_SECRET": SECRET, "PYTHONDONTWRITEBYTECODE": "1"}
    return replace(user, environment={**user.environment, **more})


def environment_of(pid: int) -> dict[str, str]:
    words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def uncommon(variables: dict[str, str]) -> set[str]:
    """Their names, but for those of the locale, to which Python adds one by itself (PEP 538)."""
    return {name for name in variables if not name.startswith("LC_")}


def command_of(pid: int) -> bytes:
    """Nothing of one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def looked(log: Path) -> bool:
    return log.exists() and log.read_text().endswith("done\n")


def below(process: subprocess.Popen[str]) -> list[int]:
    return [found.pid for found in descendants(process.pid)]


@pytest.mark.parametrize("hosts", HOSTS)
def test_no_process_of_a_run_has_a_secret_of_the_caller(
    plan_of: Compile, user: User, hosts: int
) -> None:
    caller = with_secret(user)
    process = caller.begin(plan_of(PLAN), hosts=hosts)
    run = user.home / "out"
    logs = [run / f"logs/server.{index}.log" for index in (0, 1)]
    wait_until(lambda: all(map(looked, logs)), "both programs' look around")
    wait_until(lambda: len(records(run / "events.jsonl")) >= 2, "both programs")
    found = {pid: environment_of(pid) for pid in below(process)}
    commands = {pid: command_of(pid) for pid in found}
    assert SECRET in environment_of(process.pid).values(), "it was there to be had"
    # keeper, init, driver, nursery; of each instance two, PID 1 and its program; pktd, or of each
    # host two, agent and datapath
    assert len(found) == 4 + 4 + (2 * hosts or 1)
    for pid, variables in found.items():
        assert SECRET not in str(variables), commands[pid]
        assert SECRET.encode() not in commands[pid]
        assert not KEY.search(commands[pid]), commands[pid]
    documented = environment.inherited(caller.environment).keys()
    for variables in found.values():
        if "TSTORM_INSTANCE" not in variables:
            assert uncommon(variables) <= environment.of_driver(caller.environment).keys()
    entry = [pid for pid, words in commands.items() if b"nursery" in words.split(b"\0")]
    assert len(entry) == 1 + 2, "the nursery, and two that it has made"
    for pid in entry:
        assert uncommon(found[pid]) <= documented
    for log in logs:
        said = log.read_text()
        assert SECRET not in said
        assert "/proc/1\n" in said
    user.call("destroy", str(run))
    process.wait(60)


def test_an_entered_command_has_the_programs_environment_and_no_descriptor(
    plan_of: Compile, user: User
) -> None:
    process = with_secret(user).begin(plan_of(PLAN))
    run = str(user.home / "out")
    look = f"cat /proc/[0-9]*/environ | tr '\\0' '\\n'; exec {user.python} -c \"{DESCRIPTORS}\""
    entered = with_secret(user).start("exec", run, "server.0", "sh", "-c", look)
    out, err = entered.communicate(timeout=60)
    assert entered.returncode == 0, err
    assert "TSTORM_INSTANCE=server.0" in out.splitlines()
    assert SECRET not in out
    assert out.splitlines()[-1] == "0 1 2 3", "the last is that of the listing itself"
    user.call("destroy", run)
    process.wait(60)


def test_a_program_has_three_descriptors(plan_of: Compile, user: User) -> None:
    script = user.home / "look.py"
    script.write_text(DESCRIPTORS)
    plan = plan_of(
        f'service server img=x exec="{user.python} {script}"\nbridge s1\n'
        "link server--s1 latency=1\nat 200s quit\n"
    )
    process = user.begin(plan)
    log = user.home / "out/logs/server.0.log"
    wait_until(lambda: log.exists() and log.read_text().endswith("\n"), "its word")
    assert log.read_text() == "0 1 2 3\n", "the last is that of the listing itself"
    user.call("destroy", str(user.home / "out"))
    process.wait(60)


def test_what_python_needs_still_reaches_the_driver(plan_of: Compile, user: User) -> None:
    """A package of the caller's PYTHONPATH, and its place for packages of the user's own."""
    base = str(user.home / "base")
    more = {"PYTHONUSERBASE": base, "HOME": str(user.home)}
    started = replace(user, environment={**user.environment, **more})
    process = started.begin(plan_of(PLAN))
    drivers = [pid for pid in below(process) if b"runtime.driver\0" in command_of(pid)]
    assert drivers
    for pid in drivers:
        found = environment_of(pid)
        assert found["PYTHONUSERBASE"] == base
        assert user.environment["PYTHONPATH"] in found["PYTHONPATH"]
        assert "HOME" not in found
    user.call("destroy", str(user.home / "out"))
    process.wait(60)
