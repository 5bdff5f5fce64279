"""Faults of disks (`set disk=`) outside of virtual time, and of instances that are not heard."""

from __future__ import annotations

import json
import signal

import pytest

from compiler.pipeline import compile_source
from runtime.backend import instance_disks
from runtime.backend.instance import CALLS_HEARD, NOT_HEARD, WRITES_HEARD
from runtime.errors import UnfitError
from runtime.options import VIRTUAL, RunOptions
from tests.doubles.backend import FakeInstance
from tests.runtime.support import Compile, User

NET = "service a replicas=2 exec=x\nbridge s\nlink a--s\n"


# Calls getpid by the 32-bit way.
NARROW = """\
import ctypes, mmap
memory = mmap.mmap(-1, 4096, prot=7)
memory.write(bytes.fromhex("b814000000cd80c3"))
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
print("went on")
"""


@pytest.mark.e2e
def test_a_32_bit_call_is_not_let_through_unheard(plan_of: Compile, user: User) -> None:
    program = user.home / "narrow.py"
    program.write_text(NARROW)
    plan = plan_of(
        f'service a exec="/usr/bin/python3 {program}"\nbridge s\nlink a--s\n'
        "at 500ms a set disk=full\nat 1s quit\n"
    )
    user.run(plan)
    assert "went on" not in (user.home / "out/logs/a.0.log").read_text()
    events = map(json.loads, (user.home / "out/events.jsonl").read_text().splitlines())
    ended = next(one for one in events if one.get("kind") == "exit")
    if ended["signal"] != signal.SIGSEGV:  # of a kernel without 32-bit calls
        assert ended["signal"] == signal.SIGSYS and "32-bit" in ended["reason"]


@pytest.mark.e2e
@pytest.mark.parametrize("hosts", [0, 2])
def test_a_disk_is_full_and_has_room_again(plan_of: Compile, user: User, hosts: int) -> None:
    """The programs of local hosts are the run's own, too."""
    plan = plan_of(
        "service a exec=\"sh -c 'echo x >f || echo full; until echo y >f; do sleep 0.02; done;"
        " cat f; head -c 3 f >&2 && echo read'\"\nbridge s\nlink a--s\n"
        "at 0s a set disk=full\nat 1s a set disk=ok\nat 1500ms quit\n"
    )
    result = user.run(plan, hosts=hosts)
    assert result["outcome"] == "completed", result
    said = (user.home / "out/logs/a.0.log").read_text().splitlines()
    assert "full" in said
    assert said[-1] == "read"
    assert (user.home / "out/instances/a.0/f").read_text() == "y\n"


@pytest.mark.parametrize(
    ("statements", "heard"),
    [
        ("at 1s a.0 set disk=full", {"a.0": WRITES_HEARD}),
        ("from 1s to 2s a set disk=slow:1s", {"a.0": WRITES_HEARD, "a.1": WRITES_HEARD}),
        (
            "at 1s a.0 set disk=error:1%\nat 2s set disk=full",
            {"a.0": CALLS_HEARD, "a.1": WRITES_HEARD},
        ),
        ("when exit a { it set disk=full }", {"a.0": WRITES_HEARD, "a.1": WRITES_HEARD}),
        ("when exit a { it set disk=error:1% }", {"a.0": CALLS_HEARD, "a.1": CALLS_HEARD}),
        ("at 1s a.1 crash power", {"a.1": WRITES_HEARD}),
        ("at 1s a crash", {}),
    ],
)
def test_what_is_heard_follows_from_the_text(statements: str, heard: dict[str, str]) -> None:
    assert instance_disks.heard(compile_source(f"{NET}{statements}\n").plan) == heard


@pytest.mark.parametrize(
    ("statement", "heard", "why"),
    [
        ("set disk=full", NOT_HEARD, "no `set disk=` of it"),
        ("set disk=full", WRITES_HEARD, ""),
        ("set disk=error:1%", WRITES_HEARD, "no `set disk=error` of it"),
        ("set disk=error:1%", CALLS_HEARD, ""),
        ("crash power", CALLS_HEARD, "no `crash power` of it"),
    ],
)
def test_what_is_not_heard_is_refused_when_it_is_asked_for(
    statement: str, heard: str, why: str
) -> None:
    plan = compile_source(f"{NET}at 1s a.0 {statement}\n").plan
    node = next(one for one in plan.topology.nodes if one.name == "a.0")
    instance = FakeInstance(node, 1)
    instance.heard = heard
    found, example = instance_disks.unwatched(plan.events, {"a.0": instance})
    assert found.endswith(why)
    assert bool(found) == bool(why) == bool(example)
    if example:
        assert "a.0" in instance_disks.heard(compile_source(f"{NET}{example}\nat 9s quit\n").plan)


@pytest.mark.parametrize("statement", ["crash power", "set disk=full"])
@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("fs=private", "fs=private"),
        ("cwd=/srv", "cwd=/srv"),
        ("mount=data:/mnt", "mount=data:/mnt"),
        ("mount=bin:/mnt:ro;data:/srv", "mount=data:/srv"),
        ("mount=data:/mnt:ro", ""),
        ("", ""),
    ],
)
def test_files_elsewhere_are_refused_before_the_run(statement: str, words: str, what: str) -> None:
    text = f"service a exec=x {words}\nbridge s\nlink a--s\nat 1s a {statement}\n"
    plan, options = compile_source(text).plan, RunOptions(time=VIRTUAL)
    if not what:
        instance_disks.check(plan, options)
        return
    with pytest.raises(UnfitError) as caught:
        instance_disks.check(plan, options)
    assert f": a has {what}, and only of files in an instance's own directory" in str(caught.value)
    assert caught.value.misfit.line == 4
