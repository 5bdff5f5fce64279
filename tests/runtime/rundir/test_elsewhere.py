"""One home and two containers, or two user namespaces: real runs seen from the other side."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.support import Compile, User, processes_with
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

PLAN = """
service server img=x replicas=2 exec="sleep 300"
bridge s1
link server--s1 latency=1
at 200s quit
"""
ENDED_SECONDS = 60


def among(user: User, *options: str) -> User:
    """The same user in namespaces of its own: what unshare(1) makes."""
    return replace(user, prefix=[*user.prefix, "unshare", *options])


def container(user: User) -> User:
    """Its PID 1 is what is started, and dies with unshare."""
    own_user = [] if user.name == "self" and os.geteuid() == 0 else ["--user", "--map-root-user"]
    return among(user, *own_user, "--pid", "--fork", "--mount-proc", "--kill-child")


def records(user: User) -> list[Path]:
    return sorted((user.home / "state/tstorm/active").glob("*.json"))


def outcome_of(user: User, out: str = "out") -> str | None:
    manifest = json.loads((user.home / out / "manifest.json").read_text())
    return manifest.get("outcome")


def refusal(user: User, *arguments: str) -> str:
    process = user.start(*arguments)
    out, err = process.communicate(timeout=ENDED_SECONDS)
    assert process.returncode == 1, out + err
    return str(json.loads(out.splitlines()[-1])["error"])


def test_a_second_container_leaves_a_live_run_alone(plan_of: Compile, user: User) -> None:
    """Whatever it is told to do: the run goes on, and whoever started it still has it."""
    plan, other, run = plan_of(PLAN), container(user), str(user.home / "out")
    process = user.begin(plan)
    (record,) = records(user)
    before = record.read_bytes()
    (left,) = other.call("destroy")
    assert left["directory"] == run
    assert "in another container" in left["elsewhere"]
    assert not left["was_live"]
    for command in ("inspect", "destroy"):
        assert "in another container" in refusal(other, command, run)
    assert "its record is locked" in refusal(other, "forget", run)
    assert other.run(plan, "other", until_ns=100_000_000)["outcome"] == "completed"
    assert [path.read_bytes() for path in records(user)] == [before]
    assert process.poll() is None
    assert user.call("inspect", run)["live"] is True
    assert outcome_of(user) is None
    assert [one["was_live"] for one in user.call("destroy", run)] == [True]
    assert process.wait(ENDED_SECONDS) == 0
    assert records(user) == []


def test_the_record_of_a_container_that_is_gone_is_forgotten_when_asked(
    plan_of: Compile, user: User
) -> None:
    process, run = container(user).begin(plan_of(PLAN)), str(user.home / "out")
    assert "its record is locked" in refusal(user, "forget", run)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: not processes_with(run), "the end of every process", ENDED_SECONDS)
    assert "in another container" in refusal(user, "inspect", run)
    (left,) = user.call("destroy")
    assert "in another container" in left["elsewhere"]
    assert len(records(user)) == 1
    assert [one["forgotten"] for one in user.call("forget", run)] == [True]
    assert records(user) == []


@pytest.mark.parametrize("nested", ["the run", "who asks"])
def test_a_run_is_seen_entered_and_ended_across_user_namespaces(
    plan_of: Compile, user: User, nested: str
) -> None:
    """The user is the same one, whatever number it has on each side."""
    inside = among(user, "--user", "--map-root-user")
    starter, asker = (inside, user) if nested == "the run" else (user, inside)
    process, run = starter.begin(plan_of(PLAN)), str(user.home / "out")
    state = asker.call("inspect", run)
    assert (state["live"], state["directory"]) == (True, run)
    entered = asker.start("exec", run, "server.1", "hostname")
    out, err = entered.communicate(timeout=ENDED_SECONDS)
    if nested == "the run":
        assert (entered.returncode, out) == (0, "server-1\n"), err
    else:  # user_namespaces(7): nobody enters a namespace that is not below its own
        assert entered.returncode == 125
        assert "cannot enter the instance's namespaces" in err
    assert [one["was_live"] for one in asker.call("destroy", run)] == [True]
    process.wait(ENDED_SECONDS)
    assert outcome_of(user) == "interrupted"
    assert records(user) == []
