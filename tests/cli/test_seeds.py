"""`tstorm run --seeds`: one run a seed, and which of them failed is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from runtime.system import procs
from tests.cli.process import begun, tstorm
from tests.cli.support import status
from tests.cli.support import tstorm as in_process
from tests.waiting import wait_until
from tstorm.campaign import jobs as pointjobs
from tstorm.campaign.points import Point, SeedsType
from tstorm.campaign.results import PointResult
from tstorm.campaign.shown import ranges

# The seed reaches the program, which fails with an even one.
ODD_ONLY = """\
service a img=x exec="sh -c 'exit $((1 - TSTORM_SEED % 2))'"
bridge s
link a--s latency=1ms
at 300ms quit
"""


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    (tmp_path / "odd.tdl").write_text(ODD_ONLY, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("text", "seeds"), [("1..3", [1, 2, 3]), ("7..7", [7]), ("0..1", [0, 1])])
def test_a_range_has_both_ends(text: str, seeds: list[int]) -> None:
    assert list(SeedsType().convert(text, None, None)) == seeds


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "3..1", "1..", "..3", "-1..3", "1..x", "1..20000"),
        *("1..99999999999999999999", f"{2**63}..{2**63}", "1.." + "9" * 5000, "\u0661..\u0663"),
    ],
)
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        SeedsType().convert(text, None, None)


@pytest.mark.parametrize(
    ("jobs", "virtual", "shares"),
    [
        (None, True, [[0, 4], [2], [3]]),
        (2, True, [[0, 3], [2, 4]]),
        (6, True, [[0], [2], [3], [4], [0], [2]]),
        (None, False, [[0, 2, 3, 4]]),
        (2, False, [[0, 2, 3, 4], [0, 2, 3, 4]]),
    ],
)
def test_guests_of_several_jobs_have_processors_of_their_own(
    monkeypatch: pytest.MonkeyPatch, jobs: int | None, virtual: bool, shares: list[list[int]]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 2, 3, 4})
    most = 3 if jobs is None else 10
    assert pointjobs.shares(jobs, most, virtual=virtual) == shares


def dies(point: Point) -> PointResult:
    if point.seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if point.seed == 3:
        os._exit(7)
    return PointResult(point, 0, "completed", "valid")


def test_job_that_is_killed_takes_no_other_along() -> None:
    shares = pointjobs.shares(2, 5, virtual=False)
    points = map(Point, range(1, 6))
    ended = {one.point.seed: one for one in pointjobs.carry_out(dies, points, shares)}
    assert [seed for seed, one in sorted(ended.items()) if one.said] == [1, 4, 5]
    assert ended[2].why == "its process was killed by signal 9"
    assert ended[3].why == "its process ended with status 7"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([1], "1"), ([1, 2], "1, 2"), ([1, 2, 3], "1..3"), ([1, 4, 5, 6, 9], "1, 4..6, 9")],
)
def test_seeds_are_told_in_spans(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--seed", "3", "--seeds", "1..2"), "exclude each other"),
        (("--jobs", "2"), "--jobs is for --seeds"),
        (("--seeds", "1..2", "--backend", "k8s"), "--seeds is for runs on this machine"),
        (("--seeds", "1..2", "--keep"), "--keep is for --backend k8s"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    odd: Path, options: tuple[str, ...], words: str
) -> None:
    found = in_process("run", str(odd / "odd.tdl"), *options)
    assert (status(found), words in found.output) == (2, True), found.output


def test_a_directory_that_is_in_use_is_left_alone(odd: Path) -> None:
    found = in_process("run", str(odd / "odd.tdl"), "--seeds", "1..2", "--out", str(odd))
    assert status(found) == 1
    assert [one.name for one in odd.iterdir()] == ["odd.tdl"]


def test_what_does_not_compile_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "bad.tdl").write_text("service a img=x exek=3\n", encoding="utf-8")
    done = tstorm(tmp_path, "run", "bad.tdl", "--seeds", "1..3", "--out", "all", code=1)
    assert done.stderr.count("error TS0012") == 1
    assert not (tmp_path / "all").exists()


ENDLESS = """\
service a img=x exec="sleep 1000"
bridge s
link a--s latency=1ms
at 1000s quit
"""


@contextmanager
def searching(place: Path) -> Iterator[subprocess.Popen[str]]:
    """Two runs that go on, of four."""
    (place / "endless.tdl").write_text(ENDLESS, encoding="utf-8")
    options = ("--seeds", "1..4", "--jobs", "2", "--out", "all")
    with begun(place, "run", "endless.tdl", *options) as process:
        events = [place / f"all/seed-{seed}/events.jsonl" for seed in (1, 2)]
        wait_until(lambda: all(one.exists() and one.stat().st_size for one in events), "a start")
        yield process


def results(place: Path) -> dict[int, str]:
    lines = (place / "all/results.jsonl").read_text().splitlines()
    return {one["seed"]: one["outcome"] for one in map(json.loads, lines)}


def outcomes(place: Path) -> list[str | None]:
    files = sorted(place.glob("all/seed-*/manifest.json"))
    return [json.loads(file.read_text()).get("outcome") for file in files]


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_runs_and_no_other_begins(tmp_path: Path, number: int) -> None:
    with searching(tmp_path) as process:
        process.send_signal(number)
        _out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    *_, rest, last = err.splitlines()
    assert last == "0 of 4 seeds ran; none with failures"
    assert rest == "the rest: tstorm run endless.tdl --seeds 1..4 --out all"
    assert outcomes(tmp_path) == ["interrupted", "interrupted"]


@pytest.mark.e2e
def test_whoever_is_killed_leaves_no_run(tmp_path: Path) -> None:
    with searching(tmp_path) as process:
        below = procs.descendants(process.pid)
        process.kill()
        process.wait(timeout=60)
        wait_until(lambda: not any(map(procs.alive, below)), "the end of its runs")
    assert outcomes(tmp_path) == [None, None]


@pytest.mark.e2e
def test_a_run_that_is_destroyed_is_one_of_them(tmp_path: Path) -> None:
    with searching(tmp_path) as process:
        tstorm(tmp_path, "destroy", "all/seed-1")
        wait_until((tmp_path / "all/seed-3").exists, "the next one")
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "0 of 4 seeds ran; none with failures"


@pytest.mark.e2e
def test_each_seed_has_a_run_and_those_that_failed_are_named(odd: Path) -> None:
    options = ("--seeds", "1..4", "--jobs", "2", "--fail-on-exit", "--out", "all")
    done = tstorm(odd, "run", "odd.tdl", *options, "--format", "json", code=5)
    assert done.stderr.splitlines()[-1] == "4 seeds ran; 2 with failures: 2, 4"
    rows = json.loads(done.stdout)
    assert [(row["seed"], row["code"], row["failed"]) for row in rows] == [
        (1, 0, []),
        (2, 5, ["a.0"]),
        (3, 0, []),
        (4, 5, ["a.0"]),
    ]
    for row in rows:
        manifest = json.loads((odd / row["directory"] / "manifest.json").read_text())
        assert (manifest["seed"], manifest["outcome"]) == (row["seed"], "completed")
    names = ["campaign.json", "results.jsonl", *(f"seed-{n}" for n in range(1, 5))]
    assert sorted(one.name for one in (odd / "all").iterdir()) == names
    assert "seed 2 again: tstorm replay all/seed-2" in done.stderr
    shown = tstorm(odd, "inspect", "all").stdout
    assert "4 seeds ran; 2 with failures: 2, 4" in shown
    assert "seed 4  tstorm replay all/seed-4\n" in shown
    assert "figures differ significantly" in tstorm(odd, "compare", "all", "all", "--check").stdout
    replayed = tstorm(odd, "replay", "all/seed-2", "--quiet", code=5)
    assert "a.0: ended by itself with status 1" in replayed.stderr


@pytest.mark.e2e
def test_what_was_killed_is_carried_out_anew_and_what_was_done_is_left(odd: Path) -> None:
    """More seeds may be added, too; another text may not."""
    options = ("run", "odd.tdl", "--jobs", "1", "--out", "all", "--format", "json", "--seeds")
    with begun(odd, *options, "1..3") as process:
        wait_until((odd / "all/seed-2/manifest.json").exists, "the second run")
        process.kill()
        process.wait(timeout=60)
    assert "outcome" not in json.loads((odd / "all/seed-2/manifest.json").read_text())
    assert results(odd) == {1: "completed"}
    begun_at = (odd / "all/seed-1/manifest.json").stat().st_mtime_ns
    with (odd / "all/results.jsonl").open("a") as file:
        file.write('{"point":"seed-3","se')
    done = tstorm(odd, *options, "1..4")
    assert "1 of 4 points are done already" in done.stderr
    assert [row["seed"] for row in json.loads(done.stdout)] == [1, 2, 3, 4]
    assert (odd / "all/seed-1/manifest.json").stat().st_mtime_ns == begun_at
    assert results(odd) == dict.fromkeys(range(1, 5), "completed")
    (odd / "odd.tdl").write_text(ODD_ONLY.replace("1ms", "2ms"), encoding="utf-8")
    refused = tstorm(odd, *options, "1..4", code=1)
    assert "the experiment: odd.tdl was another text" in refused.stderr


@pytest.mark.e2e
def test_each_value_of_a_parameter_has_a_run_of_each_seed(odd: Path) -> None:
    text = "param far = 1ms\n" + ODD_ONLY.replace("latency=1ms", "latency=$far")
    (odd / "odd.tdl").write_text(text, encoding="utf-8")
    options = ("--seeds", "1..1", "--param", "far=2ms,3ms", "--out", "all", "--format", "json")
    rows = json.loads(tstorm(odd, "run", "odd.tdl", *options).stdout)
    assert [row["params"] for row in rows] == [{"far": "2ms"}, {"far": "3ms"}]
    places = [odd / "all" / f"far={value},seed-1" for value in ("2ms", "3ms")]
    plans = [json.loads((place / "plan/plan.json").read_text()) for place in places]
    assert [plan["params"] for plan in plans] == [{"far": "2ms"}, {"far": "3ms"}]
