"""The command in odd surroundings: names that are no text, locales, umasks. No traceback."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.runtime.support import Compile, User

DEADLINE_SECONDS = 60.0
TDL = "service a img=x\nbridge s1\nlink a--s1 latency=1ms\nat 100ms quit\n"
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
    environment = {"LC_ALL": locale.partition(" ")[0]}
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
