"""`tstorm shrink`: what it refuses, and one experiment that is shrunk with real runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.cli.support import status
from tests.cli.support import tstorm as in_process
from tests.comparing.made import run

# The client fails once the network of the server is gone; one that is only slow is no reason.
CUT = """\
service client img=x exec="sh -c 'sleep 0.6; tprobe rtt server.0 --count 1'" expect=success
service server img=x exec="tprobe serve"
bridge s
link client--s latency=1ms
link server--s latency=1ms
at 100ms client--s set latency=3ms   # not needed
at 200ms server--s leave             # this is it
at 300ms client--s set loss=0.1%
at 3s quit
"""


@pytest.mark.parametrize("value", ["0", "3/2", "x", "1/0", "101", "1/", "-1"])
def test_wrong_repeats_are_refused(value: str, tmp_path: Path) -> None:
    (tmp_path / "x.tdl").write_text(CUT, encoding="utf-8")
    assert status(in_process("shrink", str(tmp_path / "x.tdl"), "--repeat", value)) == 2


def test_where_nothing_failed_there_is_nothing_to_shrink(tmp_path: Path) -> None:
    found = in_process("shrink", str(run(tmp_path / "r")))
    assert status(found) == 1


@pytest.mark.e2e
@pytest.mark.once
def test_a_run_is_shrunk_to_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "cut.tdl").write_text(CUT, encoding="utf-8")
    tstorm(tmp_path, "run", "cut.tdl", "--no-probes", "--out", "failed", code=5)
    done = tstorm(tmp_path, "shrink", "failed", "-o", "small.tdl", "--format", "json")
    found = json.loads(done.stdout)
    assert found["failures"] == [{"what": "program", "name": "client.0"}]
    assert found["statements"] == {"before": 3, "after": 1}
    small = (tmp_path / "small.tdl").read_text()
    assert small == found["text"]
    first = next(line for line in small.splitlines() if line.startswith("at "))
    assert first.startswith("at 200ms server--s leave")
    assert "\nagain: tstorm run small.tdl --seed 0 --no-probes\n" in done.stderr
    tstorm(tmp_path, *found["again"].split()[1:], "--quiet", code=5)
