"""How a whole test run is carried out, counted and shown."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import pytest

from scripts import phases, run_tests, slowest
from scripts.phases import PHASES, Lane, Record, beside, make_way

SUITE = """
import pytest, time

@pytest.fixture(scope="module")
def ready():
    time.sleep(0.2)

def test_passes(ready):
    began = time.process_time()
    while time.process_time() < began + 0.1: pass

def test_fails(): assert False
@pytest.mark.skip(reason="not here")
def test_skipped(): pass
"""
CONFTEST = "from tests.setuptimes import pytest_runtest_logstart, pytest_runtest_makereport\n"


def run(record: Record, folder: Path, *words: str) -> None:
    """A suite of a folder of its own, as one of the project's."""
    (folder / "test_it.py").write_text(SUITE)
    (folder / "conftest.py").write_text(CONFTEST)
    options = ["-p", "no:cacheprovider", "-c", "pyproject.toml", "--rootdir", str(folder)]
    with (folder / "said").open("w") as output:
        Lane(record, output).suite("own tests", [*options, str(folder), *words])


def test_a_suite_is_counted_and_kept(tmp_path: Path) -> None:
    place = tmp_path / "kept"
    place.mkdir()
    record = Record(place)
    run(record, tmp_path)
    assert (record.passed, record.failed, record.skipped) == (1, 1, 1)
    [entry] = json.loads((place / PHASES).read_text())
    assert entry["name"] == "own tests"
    assert entry["seconds"] >= 0.2
    assert entry["machine_seconds"] >= entry["processor_seconds"] / 2 > 0
    shown = slowest.main(place)
    file, *tests = [line for line in shown.splitlines() if "test_it.py" in line]
    assert float(file.split()[1]) >= 0.2, "what its set-ups took"
    assert float(file.split()[2]) >= 0.1, "what they took of processors"
    assert file.split()[3] == "3"
    assert "test_passes (own tests)" in tests[0], "the slowest first"


def test_a_suite_that_dies_without_a_report_is_a_failure(tmp_path: Path) -> None:
    record = Record(None)
    run(record, tmp_path, "--no-such-option")
    assert (record.passed, record.failed) == (0, 1)


UNSTEADY = """
from pathlib import Path
import pytest

ALONE = Path(__file__).with_name("alone")

@pytest.mark.parametrize("word", ["a", "b/c[d]"])
def test_wants_a_quiet_machine(word): assert ALONE.exists()
def test_fails(): assert False
@pytest.fixture
def leaves_something():
    yield
    assert ALONE.exists()
def test_is_wrong_at_its_end(leaves_something): pass
def test_is_not_to_be_looked_at_again(): pass
"""


def look_again(tmp_path: Path, suite: str) -> tuple[Record, str]:
    """A suite of the current folder, and what it says of a second look when nothing else runs."""
    record = Record(None)
    Path("test_it.py").write_text(suite)
    with (tmp_path / "said").open("w+") as output:
        options = ["-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path)]
        Lane(record, output).suite("own tests", [*options, "test_it.py"])
        (tmp_path / "alone").touch()
        output.seek(0)
        output.truncate()
        record.look_again(Lane(Record(None), output))
        output.seek(0)
        return record, output.read()


def test_what_fails_only_beside_others_has_passed_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(phases, "ROOT", tmp_path)
    record, said = look_again(tmp_path, UNSTEADY)
    assert (record.passed, record.failed, record.skipped) == (4, 1, 0)
    names = ("is_wrong_at_its_end", "wants_a_quiet_machine[a]", "wants_a_quiet_machine[b/c[d]]")
    whole = ", ".join(f"test_it.py::test_{name}" for name in names)
    assert record.closing().endswith(f"s; PASSED ONLY ALONE: {whole}")
    assert "== own tests, once more\n" in said
    assert "1 failed, 3 passed" in said


def test_many_failures_get_no_second_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(phases, "ROOT", tmp_path)
    monkeypatch.setattr(phases, "DOUBTFUL", 3)
    record, said = look_again(tmp_path, UNSTEADY)
    assert (record.passed, record.failed, said) == (1, 4, "")


def test_an_empty_selection_is_none(tmp_path: Path) -> None:
    record = Record(None)
    run(record, tmp_path, "-k", "nothing")
    assert (record.passed, record.failed, record.skipped) == (0, 0, 0)


def test_steps_count_as_one_test_each(tmp_path: Path) -> None:
    record = Record(None)
    with (tmp_path / "said").open("w+") as output:
        lane = Lane(record, output)
        lane.step("good", [sys.executable, "-c", ""])
        lane.step("bad", [sys.executable, "-c", "raise SystemExit(3)"])
        lane.step("not here", [sys.executable, "-c", "raise SystemExit(3)"], cannot=3)
        lane.skip("absent", "nobody has it")
        lane.skip("wanted", "nobody has it", fails=True)
        output.seek(0)
        said = output.read()
    assert (record.passed, record.failed, record.skipped) == (1, 2, 2)
    assert "FAILED: bad\n" in said
    assert "== wanted: FAILED: nobody has it\n" in said


def test_what_a_lane_beside_says_comes_whole_at_the_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    record, first = Record(None), threading.Event()

    def other(lane: Lane) -> None:
        lane.step("other", [sys.executable, "-c", "print('from the other')"])
        first.set()

    with beside(record, other):
        assert first.wait(60)
        print("from the first", flush=True)
    out = capfd.readouterr().out
    assert out.index("from the first") < out.index("from the other")
    assert record.passed == 1


def test_a_failure_of_either_lane_ends_both() -> None:
    record = Record(None)

    def broken(lane: Lane) -> None:
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"), beside(record, broken):
        pass
    begun, over = threading.Event(), threading.Event()

    def long(lane: Lane) -> None:
        begun.set()
        over.wait(60)
        lane.step("another", [sys.executable, "-c", ""])

    def stops() -> None:
        with beside(record, long):
            begun.wait(60)
            over.set() if record.stopped else threading.Timer(0.1, over.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stops()
    assert record.passed == 0, "no phase begins after the end was asked for"


def test_a_phase_that_does_not_fit_is_named_in_the_last_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that are short enough are carried out nevertheless."""
    carried = []
    for name in ("checks", "cluster", "end_to_end", "virtual", "netem", "ordinary", "alone"):
        monkeypatch.setattr(run_tests, name, lambda lane, *more, name=name: carried.append(name))
    monkeypatch.setattr(run_tests, "make_way", lambda: None)
    monkeypatch.setattr(run_tests, "why_no_cluster", lambda: "")
    monkeypatch.setattr(Lane, "step", lambda lane, name, argv: None)
    monkeypatch.setattr(Lane, "suite", lambda lane, name, words: None)
    monkeypatch.setenv("TSTORM_TEST_MINUTES", "11")
    monkeypatch.delenv("TSTORM_TEST_KERNEL", raising=False)
    record = Record(None)
    run_tests.everything(record)
    assert {*carried} - {"netem", "ordinary"} == {"checks", "cluster", "alone"}
    assert record.skipped == 2
    assert {*record.left_out} == {"end to end", "virtual"}
    assert "0 passed, 0 failed, 2 skipped in 0m00s; LEFT OUT: " in record.closing()


def test_a_slow_machine_leaves_more_out() -> None:
    """What took twice the time makes the rest take twice the time."""
    record = Record(None)
    lane, pace = Lane(record), run_tests.Pace(20.0)

    def slow(lane: Lane) -> None:
        record.began_s -= 10 * 60

    carried: list[str] = []
    pace.carry_out(
        lane,
        run_tests.Part("first", 5.0, slow),
        run_tests.Part("long", 5.5, lambda lane: carried.append("long")),
        run_tests.Part("short", 4.0, lambda lane: carried.append("short")),
    )
    assert (carried, record.left_out) == (["short"], ["long"])


def test_files_of_a_phase_are_found_by_all_of_its_marks() -> None:
    both = run_tests.marked("alone", "ordinary")
    assert both
    assert set(both) == set(run_tests.marked("alone")) & set(run_tests.marked("ordinary"))
    assert str(Path(__file__)) not in run_tests.marked("no_such_mark")


def test_what_is_out_of_the_way_has_half_of_the_processors(tmp_path: Path) -> None:
    """And only that: neither whoever started it nor what runs beside it."""
    record, here = Record(None), sorted(os.sched_getaffinity(0))
    asked = "import os; print(sorted(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0))"
    told = tmp_path / "told"

    def other(lane: Lane) -> None:
        make_way()
        with told.open("w") as output:
            Lane(lane.record, output).step("other", [sys.executable, "-c", asked])

    before = os.getpriority(os.PRIO_PROCESS, 0)
    with beside(record, other):
        pass
    assert f"{here[len(here) // 2 :]} 19\n" in told.read_text()
    assert sorted(os.sched_getaffinity(0)) == here
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
