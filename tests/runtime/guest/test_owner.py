"""Who runs a guest is its root, and what is written there is theirs on the host."""

from __future__ import annotations

import os

import pytest

from tests.runtime.support import Compile, User

pytestmark = pytest.mark.virtual

SCRIPT = "touch f; mkdir d; chown 0:0 f d; chmod 600 f; stat -c %n,%u:%g,%a f d; ping -c 1 client"
PLAN = (
    f"service server img=x exec=\"sh -c '{SCRIPT}'\"\n"
    'service client img=x exec="sleep 60"\nbridges s1\n'
    "link server--s1 up=1Mb down=1Mb\nlink client--s1 up=1Mb down=1Mb\nat 5s quit\n"
)


@pytest.mark.ordinary
def test_files_belong_to_root_inside_and_to_who_runs_it_outside(
    plan_of: Compile, someone: User
) -> None:
    someone.run(plan_of(PLAN), time="virtual")
    out = someone.home / "out"
    said = (out / "logs/server.0.log").read_text().splitlines()
    assert said[:2] == ["f,0:0,600", "d,0:0,755"]
    assert any("1 packets transmitted, 1 received" in line for line in said)
    for name in ("events.jsonl", "logs/server.0.log", "instances/server.0/f"):
        found = (out / name).stat()
        assert (found.st_uid, found.st_gid) == (os.geteuid(), os.getegid()), name


@pytest.mark.ordinary
def test_the_line_to_the_host_is_nobody_elses(plan_of: Compile, someone: User) -> None:
    """A program that looks for serial lines would end the run, and another could speak for it."""
    script = "ls /dev/ttyS0; echo { > /dev/ttyS0; sleep 1; echo on"
    plan = plan_of(f"service a img=x exec=\"sh -c '{script}'\"\nbridges s\nlink a--s\nat 5s quit\n")
    assert someone.run(plan, time="virtual")["outcome"] == "completed"
    said = (someone.home / "out/logs/a.0.log").read_text().splitlines()
    assert "No such file or directory" in said[0]
    assert said[-1] == "on"
