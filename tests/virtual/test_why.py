"""`tstorm why` finds the draw that decided."""

import json
from pathlib import Path

import pytest

from runtime.options import decode
from runtime.rundir import rundir
from tests.cli.process import tstorm
from tstorm.why.branches import BranchRunner
from tstorm.why.drawn_events import planned

pytestmark = pytest.mark.virtual

# A program draws a coin at 1 s, and fails half a second later by it.
COIN = """\
service one exec="sh coin.sh" files=coin.sh expect=success
bridge s
link one--s latency=1ms
from 1200ms to 1900ms s leave for 10ms
at 2s quit
"""
SCRIPT = """\
sleep 1
coin=$(($(od -An -N1 -tu1 /dev/urandom) % 2))
echo drawn
sleep 0.5
exit $((3 * coin))
"""
MS = 1_000_000
BRANCHES = 14  # each takes more than a second; tests/trials has enough of them for the moment


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the wrong coin."""
    place = tmp_path_factory.mktemp("why")
    (place / "coin.tdl").write_text(COIN)
    (place / "coin.sh").write_text(SCRIPT)
    words = ("--time", "virtual", "--no-probes", "--quiet")
    for seed in range(40):
        out = f"seed-{seed}"
        ran = tstorm(place, "run", "coin.tdl", "--seed", str(seed), *words, "--out", out, code=None)
        if ran.returncode == 5:
            return place / out
        assert ran.returncode == 0, ran.stderr
    raise AssertionError("forty seeds, and never that coin")


def test_the_interval_that_decided_narrows_round_the_coin(failed: Path) -> None:
    why = ("why", failed.name, "--branches", str(BRANCHES), "--format", "json")
    ended = tstorm(failed.parent, *why)
    said = json.loads(ended.stdout)
    assert (said["decided_by_plan"], said["branches"]) == (False, BRANCHES)
    assert "branches from 0.000000001 s: " in ended.stderr
    first, *_ = said["course"]
    assert first["runs"] - first["fails"] > 0
    last = said["jumps"][-1]
    assert last["before"]["at_ns"] <= 1010 * MS
    assert any(one["words"] == "one.0: drawn" for one in last["happenings"])
    assert not any(one["what"] == "drawn" for one in last["happenings"]), "nor was the leave later"


def test_what_a_plan_has_drawn_stays_from_ten_milliseconds_before(failed: Path) -> None:
    run = rundir.recorded(str(failed))
    options = decode(run.manifest()["options"], "options")
    runner = BranchRunner(str(failed), options, "x", {}, 1)
    mine = planned(rundir.plan_in(run).events)
    down = min(one for one in mine if one[2] == "bridge_down")
    assert all(down in one for one in runner.planned(down[0] - 9 * MS, 3))
    assert not any(down in one for one in runner.planned(down[0] - 11 * MS, 3))


def test_what_has_not_failed_or_does_not_repeat_is_refused(failed: Path) -> None:
    place = failed.parent
    (place / "well.tdl").write_text(
        "service a exec=true expect=success\nbridge s\nlink a--s latency=1ms\nat 1s quit\n"
    )
    tstorm(place, "run", "well.tdl", "--time", "virtual", "--quiet", "--out", "well")
    assert "nothing failed in well" in tstorm(place, "why", "well", code=1).stderr
    tstorm(place, "run", "well.tdl", "--quiet", "--out", "real")
    assert "is not the same when" in tstorm(place, "why", "real", code=1).stderr
    assert tstorm(place, "why", "nowhere", code=None).returncode in (1, 2)
