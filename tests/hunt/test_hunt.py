"""A hunt in virtual time finds a planted bug: two leaders at once, where whoever hears of none for
a while becomes one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import command, ended, environment

pytestmark = pytest.mark.virtual

NODE = """\
import os, socket, time
me = int(os.environ["TSTORM_INDEX"])
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.bind(("", 7000))
line.settimeout(0.1)
leads, heard = me == 0, time.monotonic()
while True:
    print("state=" + ("leader" if leads else "follower"), flush=True)
    try:
        if leads:
            line.sendto(b"here", (f"node.{1 - me}", 7000))
        line.recv(100)
        heard = time.monotonic()
        if leads:
            print("two leaders", flush=True)
    except OSError:
        pass
    leads = leads or time.monotonic() > heard + 0.4
"""
EXPERIMENT = """\
service node replicas=2 exec="/usr/bin/python3 node.py" files=node.py
link node--node latency=2ms
at 2s quit
expect no log node "two leaders"
hunt { pause node.0; at most 1; lasting 600ms..800ms; quiet 500ms at the end }
"""
HUNT = ("hunt", "two.tdl", "--storms", "1", "--attempts", "1", "--repeat", "1", "--branches", "0")


def hunt(place: Path, *more: str) -> str:
    """What it says, which is that there is a find."""
    done = ended(command(*HUNT, "--out", "h", *more), cwd=place, env=environment(place))
    assert done.returncode == 5, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def hunted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    place = tmp_path_factory.mktemp("hunt")
    (place / "node.py").write_text(NODE)
    (place / "two.tdl").write_text(EXPERIMENT)
    return place, json.loads(hunt(place, "--format", "json"))


def test_it_finds_it_and_says_so(hunted: tuple[Path, dict[str, Any]]) -> None:
    place, found = hunted
    assert found["outcomes"] == {"passed": 0, "failed": 1, "silent": 0}
    assert found["reached"]["state"] > 0
    assert found["reached"]["heard"] > 0
    (one,) = found["finds"]
    assert one["failures"] == ['expect no log node "two leaders"']
    assert (one["kinds"], one["faults"]) == (["pause"], 1)
    assert json.loads((place / "h" / "summary.json").read_bytes()) == found


def test_a_find_is_an_experiment_of_its_own_that_fails(
    hunted: tuple[Path, dict[str, Any]],
) -> None:
    place, _ = hunted
    folder = place / "h" / "finds" / "0001"
    assert "node.0 pause" in (folder / "repro.tdl").read_text()
    assert (folder / "run" / "report.html").exists()
    own = environment(place)
    path = f"{Path(sys.executable).parent}:{own['PATH']}"
    again = ended([folder / "command"], cwd="/", env={**own, "PATH": path})
    assert again.returncode == 5, again.stderr


def test_nothing_is_left_and_nothing_is_done_twice(hunted: tuple[Path, dict[str, Any]]) -> None:
    place, _ = hunted
    before = (place / "h" / "results.jsonl").read_bytes()
    assert "find 1: " in hunt(place)
    assert (place / "h" / "results.jsonl").read_bytes() == before
    assert list((place / "tmp").glob("tstorm-hunt-*")) == []
