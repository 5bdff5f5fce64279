"""`tstorm shrink`: what it refuses, and one experiment that is shrunk with real runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.cli.support import status
from tests.cli.support import tstorm as in_process
from tests.comparing.made import run

# The client reaches the server by two ways, and fails where both are gone. Everything else that
# happens is no reason.
REDUNDANT = """\
service client exec="sh -c 'sleep 1; tprobe rtt server.0 --count 1 --timeout 500ms'"
service server exec="tprobe serve"
service other
bridges a b c
link client--a latency=1ms
link server--b latency=1ms
link other--c latency=1ms
link a--b latency=5ms
link a--c latency=1ms
link c--b latency=1ms

at 1s client--a set latency=3ms
from 2s to 9s other disconnect
at 3s other--c set loss=1%
from 4s to 6s other--c flap 500ms
at 5s server--b set latency=2ms
at 6s a--b leave and other--c set up=5Mb   # one way
at 7s a--c;other--c leave                  # and the other
for i in 1..3 {
    at 1${i}s client--a set latency=${i}ms
}
at 15s server--b set jitter=100us
at 16s client--a set jitter=100us
quit when client exits
expect exit client 0
"""


@pytest.mark.parametrize("value", ["0", "3/2", "x", "1/0", "101", "1/", "-1"])
def test_wrong_repeats_are_refused(value: str, tmp_path: Path) -> None:
    (tmp_path / "x.tdl").write_text(REDUNDANT, encoding="utf-8")
    assert status(in_process("shrink", str(tmp_path / "x.tdl"), "--repeat", value)) == 2


def test_where_nothing_failed_there_is_nothing_to_shrink(tmp_path: Path) -> None:
    found = in_process("shrink", str(run(tmp_path / "r")))
    assert status(found) == 1


@pytest.mark.parametrize("target", ["nowhere/x.tdl", "."])
def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(
    target: str, tmp_path: Path
) -> None:
    failed = run(tmp_path / "r")
    found = in_process("shrink", str(failed), "-o", str(tmp_path / target))
    assert status(found) == 1
    assert not (tmp_path / "nowhere").exists()


def test_a_directory_of_runs_is_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "x.tdl").write_text(REDUNDANT, encoding="utf-8")
    found = in_process("shrink", str(tmp_path / "x.tdl"), "--out", str(tmp_path))
    assert status(found) == 1


@pytest.mark.e2e
def test_a_run_is_shrunk_to_the_two_causes_that_it_needs(tmp_path: Path) -> None:
    (tmp_path / "ways.tdl").write_text(REDUNDANT, encoding="utf-8")
    options = ("--pace", "40", "--no-probes")
    tstorm(tmp_path, "run", "ways.tdl", *options, "--out", "failed", code=5)
    done = tstorm(tmp_path, "shrink", "failed", "-o", "small.tdl", "--format", "json")
    found = json.loads(done.stdout)
    failure = {"what": "expectation", "name": "expect exit client 0", "by_end": False}
    assert found["failures"] == [failure]
    assert found["statements"] == {"before": 10, "after": 2}
    assert found["events"] == {"before": 33, "after": 4}
    small = (tmp_path / "small.tdl").read_text()
    assert small == found["text"]
    head, tail = REDUNDANT.partition("at 1s")[0], REDUNDANT[REDUNDANT.index("quit") :]
    ways = "at 6s a--b leave   # one way\nat 7s a--c leave                  # and the other\n"
    assert small == head + ways + tail
    assert "\nagain: tstorm run small.tdl --seed 0 " in done.stderr
    tstorm(tmp_path, *found["again"].split()[1:], "--quiet", code=5)
