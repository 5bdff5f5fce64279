"""The command in odd surroundings: names that are no text, locales, umasks. No traceback."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import ended
from tests.runtime.support import Compile, User

DEADLINE_SECONDS = 180.0
TDL = 'service a img=x exec="sleep 60"\nbridge s1\nlink a--s1 latency=1ms\nat 100ms quit\n'
NO_TEXT = b"out\xff\xe9"


def tstorm(
    user: User, *arguments: str | bytes, umask: int = -1, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [*user.prefix, user.python, "-m", "tstorm", *arguments],
        cwd=user.home,
        env={**user.environment, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=DEADLINE_SECONDS,
        umask=umask,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


@pytest.mark.e2e
@pytest.mark.parametrize("locale", ["C.UTF-8", "C", "C without UTF-8"])
def test_a_run_directory_whose_name_is_no_text(plan_of: Compile, user: User, locale: str) -> None:
    """Whoever calls it from a script goes on with the very bytes."""
    plan = plan_of(TDL)
    environment: dict[str, Any] = {"LC_ALL": locale.partition(" ")[0]}
    if "without" in locale:
        environment |= {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = tstorm(user, "run", str(plan), "--quiet", "--out", NO_TEXT, **environment)
    assert done.returncode == 0, done
    place = os.fsencode(user.home.resolve()) + b"/" + NO_TEXT
    assert done.stdout == place + b"\n"
    with open(place + b"/manifest.json", "rb") as file:  # noqa: PTH123 - of bytes
        assert json.load(file)["outcome"] == "completed"
    for command in ("inspect", "events"):
        shown = tstorm(user, command, NO_TEXT, **environment)
        assert shown.returncode == 0, shown
        shown.stdout.decode("utf-8")


def test_a_umask_that_takes_everything_is_named_and_leaves_nothing(
    plan_of: Compile, user: User
) -> None:
    if user.name == "self" and os.geteuid() == 0:
        pytest.skip("root may use what it has no rights to")
    plan = plan_of(TDL)
    text = user.home / "exp.tdl"
    text.write_text(TDL)
    text.chmod(0o644)
    before = everything(user.home)
    commands = [["run", str(plan)], ["run", str(text)], ["inspect"], ["destroy", "--all"]]
    for state in ("fresh", "used"):
        for command in commands:
            told = [] if command[0] != "run" else ["--quiet", "--out", "new/out"]
            done = tstorm(user, *command, *told, umask=0o777)
            if state == "fresh" or command[0] == "run":
                assert done.returncode == 1, done
                assert b"umask" in done.stderr, done
        for name, *more in (("compile", "-o", "e.plan"), ("render", "-o", "e.kubernetes")):
            done = tstorm(user, name, str(text), *more, umask=0o777)
            assert done.returncode == 1, done
            assert b"umask" in done.stderr, done
        assert everything(user.home) == before
        assert tstorm(user, "destroy", "--all").returncode == 0  # makes the folders of the state
        before = everything(user.home)


def everything(home: Path) -> list[str]:
    return sorted(str(path) for path in home.rglob("*"))


@pytest.mark.parametrize("most", [7, 9, 12, 20])
def test_too_few_open_files_are_named(plan_of: Compile, user: User, most: int) -> None:
    plan = plan_of(TDL.replace("img=x", "img=x replicas=20"))
    words = f'ulimit -n {most}; exec "$@"'
    shell = ["sh", "-c", words, "sh", *user.prefix, user.python, "-m", "tstorm"]
    done = ended(
        [*shell, "run", str(plan), "--quiet", "--out", "out"], cwd=user.home, env=user.environment
    )
    assert done.returncode in (1, 3), done
    assert done.stderr.startswith("error: "), done.stderr
    assert "open files" in done.stderr
    assert "ulimit" in done.stderr
    assert "[Errno" not in done.stderr
    manifest = user.home / "out/manifest.json"
    assert not manifest.exists() or json.loads(manifest.read_text())["outcome"] == "failed"


@pytest.mark.parametrize("command", [["run", "PLAN"], ["inspect", "x"], ["destroy", "x"]])
def test_a_working_directory_that_is_gone_is_named(
    plan_of: Compile, user: User, command: list[str]
) -> None:
    plan = str(plan_of(TDL))
    gone = user.home / "gone"
    gone.mkdir(mode=0o777)
    argv = [plan if word == "PLAN" else word for word in command]
    python = [*user.prefix, user.python, "-m", "tstorm", *argv]
    done = ended(
        ["sh", "-c", 'rmdir ../gone && exec "$@"', "sh", *python], cwd=gone, env=user.environment
    )
    assert (done.returncode, done.stderr) == (
        1,
        "error: the working directory: No such file or directory\n",
    )


READERS = (
    *(["check", "X"], ["fmt", "X"], ["compile", "X", "-o", "p"], ["render", "X"]),
    *(["events", "X"], ["explain", "X", "--event", "0"], ["diff", "X", "X"], ["run", "X"]),
    *(["replay", "X"], ["replay", "X", "--check"], ["inspect", "X"], ["paths", "X", "--at", "0s"]),
)


# What root may read, too, is no other thing to an ordinary user.
UNREADABLE = [
    *(("self", what) for what in ("missing", "a folder", "unreadable", "closed folder", "binary")),
    *(("ordinary", what) for what in ("unreadable", "closed folder")),
]


@pytest.mark.parametrize(("user", "what"), UNREADABLE, indirect=["user"])
def test_what_cannot_be_read_is_named(user: User, what: str) -> None:
    if what in ("unreadable", "closed folder") and user.name == "self" and os.geteuid() == 0:
        pytest.skip("root may read everything")
    place = user.home / "input.tdl"
    if what == "a folder":
        place.mkdir()
    elif what == "unreadable":
        place.touch(mode=0)
    elif what == "closed folder":
        (place / "plan").mkdir(parents=True)
    elif what == "binary":
        place.write_bytes(os.urandom(3000) + b"\xff")
    before = everything(user.home)
    if what == "closed folder":
        place.chmod(0)
    try:
        for command in READERS:
            argv = [str(place) if word == "X" else word for word in command]
            done = tstorm(user, *argv)
            assert done.returncode in (1, 2), (command, done)
            assert b"rror" in done.stderr, (command, done)
            assert not done.stdout, (command, done)
    finally:
        if what == "closed folder":
            place.chmod(0o755)
    assert [path for path in everything(user.home) if "state" not in path] == before


@pytest.mark.parametrize("stream", ["full", "closed"])
def test_output_that_goes_nowhere_is_no_traceback(
    plan_of: Compile, user: User, stream: str
) -> None:
    plan = str(plan_of(TDL))
    words = {"full": '"$@" >/dev/full 2>err', "closed": '"$@" >&- 2>err <&-'}[stream]
    for command in (["events", plan], ["inspect"], ["render", plan, "-o", "-"], ["check", "-"]):
        python = [*user.prefix, user.python, "-m", "tstorm", *command]
        done = subprocess.run(
            ["sh", "-c", words, "sh", *python],
            cwd=user.home,
            env=user.environment,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=DEADLINE_SECONDS,
        )
        said = (user.home / "err").read_text()
        assert "Traceback" not in said, said
        assert done.returncode in (0, 1), (command, said)
