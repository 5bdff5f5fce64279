"""The plugin in sessions of pytest of their own, with runs that were made by hand (fake.py)."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.testing.fake import text
from tests.testing.test_finished import FAILED, PASSED

pytest_plugins = "pytester"


pytestmark = pytest.mark.usefixtures("fake")


def text_of(**asked: object) -> str:
    """As a word of Python."""
    return repr(text(**asked))


def session(pytester: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=test)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rA", "-W", "error", *arguments)


def test_a_test_runs_an_experiment(pytester: pytest.Pytester) -> None:
    found = session(
        pytester,
        f"""
        def test_it(tstorm, tmp_path):
            run = tstorm.run({text_of(expectations=[PASSED])}, hosts=2).finish()
            assert run.outcome == "completed"
            assert tstorm.seed is None
            run.assert_valid()
            run.assert_expectations()
            assert "--hosts=2" in (run.directory / "words.json").read_text()
            assert run.directory == tmp_path / "tstorm/run"
            assert tstorm.run({text_of()}).directory == tmp_path / "tstorm/run-2"
        """,
    )
    found.assert_outcomes(passed=1)


def test_one_test_for_each_seed(pytester: pytest.Pytester) -> None:
    test = f"""
        def test_it(tstorm):
            run = tstorm.run({text_of()}).finish()
            assert run.seed == tstorm.seed != 4
        def test_own(tstorm):
            assert tstorm.run({text_of()}, seed=7).finish().seed == 7
        def test_other():
            pass
        """
    found = session(pytester, test, "--tstorm-seeds", "3..4")
    found.assert_outcomes(passed=4, failed=1)
    found.stdout.fnmatch_lines(
        [
            "*test_it[[]seed4]*",
            "*the same run: tstorm replay *",
            "*the same test: pytest 'test_it.py::test_it[[]seed4]' --tstorm-seeds 4..4",
        ]
    )
    found.stdout.fnmatch_lines(["PASSED test_it.py::test_other"])


def test_seeds_that_are_none_are_refused(pytester: pytest.Pytester) -> None:
    found = session(pytester, "def test_it(tstorm): pass", "--tstorm-seeds", "4..3")
    assert found.ret == pytest.ExitCode.INTERRUPTED or found.ret == pytest.ExitCode.USAGE_ERROR
    assert "--tstorm-seeds: 4..3 has 0 seeds" in found.stdout.str() + found.stderr.str()


def test_a_failure_says_the_page_and_the_verdict_first(pytester: pytest.Pytester) -> None:
    found = session(
        pytester,
        f"""
        def test_it(tstorm):
            print("noise")
            run = tstorm.run({text_of(verdict="degraded", expectations=[FAILED])}).finish()
            run.assert_expectations()
        """,
    )
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        [
            "*ExpectationsError: 1 of 1 expectations did not pass; verdict: DEGRADED: *",
            "*- tstorm: DEGRADED -*",
            "page: file:///*/tstorm/run/report.html",
            "verdict: DEGRADED: the machine was slow",
            "The run is DEGRADED, not VALID: what failed may come from this machine*",
            "outcome: completed",
            "expectations: 1 of 1 did not pass",
            "  exp.tdl:9: expect rtt a b < 60ms: failed: 90ms at 5s",
            "*Captured stdout call*",
            "*= pages of tests that failed =*",
            "*::test_it: file:///*/tstorm/run/report.html",
        ]
    )
    assert "experiment.py" not in found.stdout.str()


def test_a_valid_run_is_told_without_a_doubt(pytester: pytest.Pytester) -> None:
    test = f"def test_it(tstorm):\n    tstorm.run({text_of()}).finish()\n    assert 0\n"
    found = session(pytester, test)
    found.stdout.fnmatch_lines(["*- tstorm: VALID -*", "page: *", "verdict: VALID: *"])
    assert "not VALID" not in found.stdout.str()


@pytest.mark.parametrize("mark", ["", "valid", "degraded"])
def test_a_run_that_is_not_to_be_trusted_fails(pytester: pytest.Pytester, mark: str) -> None:
    """Whatever the test says of it."""
    word = repr(mark) if mark else ""
    found = session(
        pytester,
        f"""
        import pytest
        @pytest.mark.tstorm_require({word})
        def test_good(tstorm):
            tstorm.run({text_of(verdict="degraded")}).finish()
        @pytest.mark.tstorm_require({word})
        def test_bad(tstorm):
            tstorm.run({text_of(verdict="degraded")}).finish()
            assert not "the system is wrong"
        """,
        "--strict-markers",
    )
    if mark == "degraded":
        found.assert_outcomes(passed=1, failed=1)
        found.stdout.fnmatch_lines(["FAILED *::test_bad - AssertionError*"])
        return
    found.assert_outcomes(failed=2)
    lines = [
        "*NotTrustedError: not to be trusted: DEGRADED: the machine was slow",
        "*required: valid",
    ]
    found.stdout.fnmatch_lines([*lines, "*page: */report.html"])
    found.stdout.fnmatch_lines(["*the test failed in it: AssertionError: *"])
    assert len(re.findall("^FAILED .*NotTrusted", found.stdout.str(), re.MULTILINE)) == 2


def test_a_run_without_results_is_not_to_be_trusted(pytester: pytest.Pytester) -> None:
    test = f"""
        import pytest
        @pytest.mark.tstorm_require
        def test_it(tstorm):
            tstorm.run({text_of(open=True)}).kill()
        """
    found = session(pytester, test)
    found.assert_outcomes(failed=1)
    lines = ["*NotTrustedError: not to be trusted: UNKNOWN: there are no results: *has not ended"]
    found.stdout.fnmatch_lines([*lines, "*required: valid", "*run: */tstorm/run"])


def test_the_ini_file_requires_it_of_all(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntstorm_require = valid\n")
    test = f"""
        import pytest
        def test_it(tstorm):
            tstorm.run({text_of(verdict="unknown")}).finish()
        @pytest.mark.tstorm_require("")
        def test_other(tstorm):
            tstorm.run({text_of(verdict="unknown")}).finish()
        """
    found = session(pytester, test)
    found.assert_outcomes(failed=1, passed=1)


def test_a_verdict_that_there_is_not_is_refused(pytester: pytest.Pytester) -> None:
    test = "import pytest\n@pytest.mark.tstorm_require('good')\ndef test_it(tstorm): pass\n"
    found = session(pytester, test)
    found.assert_outcomes(errors=1)
    found.stdout.fnmatch_lines(["*tstorm_require is 'good': say degraded or valid*"])


def test_runs_that_a_test_leaves_open_are_ended(pytester: pytest.Pytester) -> None:
    found = session(
        pytester,
        f"""
        from tstorm.testing import Run
        began = []
        def test_it(tstorm):
            began.append(tstorm.run({text_of(open=True)}))
            assert began[0].is_running
        def test_after():
            assert began[0].exit_code == 0
            assert Run(began[0].directory).outcome == "interrupted"
        def test_failing(tstorm):
            tstorm.run({text_of(open=True)})
            assert 0
        """,
    )
    found.assert_outcomes(passed=2, failed=1)
    found.stdout.fnmatch_lines(["*- tstorm: VALID -*", "outcome: interrupted"])


def test_a_run_that_does_not_begin_says_why(pytester: pytest.Pytester) -> None:
    test = f"def test_it(tstorm):\n    tstorm.run({text_of(fails=3)})\n"
    found = session(pytester, test)
    found.stdout.fnmatch_lines(
        ["*StartError: the experiment does not begin (3):", "*error: the fake was to fail"]
    )


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [((), ["bad"]), (("--tstorm-keep", "all"), ["bad", "good"])],
)
def test_artefacts(pytester: pytest.Pytester, arguments: tuple[str, ...], kept: list[str]) -> None:
    """Of a second session beside those of the first."""
    test = f"""
        def test_good(tstorm):
            tstorm.run({text_of()}).finish()
        def test_bad(tstorm):
            tstorm.run({text_of()}).finish()
            assert 0
        def test_none(tstorm):
            pass
        """
    for end in ("", "-2"):
        session(pytester, test, "--tstorm-artifacts", "kept", *arguments)
        folder = pytester.path / "kept"
        for name in kept:
            page = folder / f"test_it.py-test_{name}{end}" / "run/report.html"
            assert page.read_text() == "the page"
    assert len(list(folder.iterdir())) == 2 * len(kept)


def test_nothing_is_imported_for_who_does_not_use_it() -> None:
    """In a process of its own: this one has everything."""
    code = (
        "import sys, tstorm.testing.plugin, tstorm.testing\n"
        "print([n for n in sys.modules if n.split('.')[0] in ('tdl','compiler','runtime','click')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_all_that_is_promised_is_there() -> None:
    from tstorm import testing

    assert [name for name in testing.__all__ if not hasattr(testing, name)] == []
    with pytest.raises(AttributeError, match="nothing"):
        _ = testing.nothing
