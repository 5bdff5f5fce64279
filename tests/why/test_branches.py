"""What a branch says that could not be carried out."""

from pathlib import Path
from typing import Any

import pytest

from runtime.errors import RunError
from runtime.options import VIRTUAL, RunOptions
from tstorm.exit_codes import CommandError
from tstorm.loading import plan_to_run
from tstorm.why import branches
from tstorm.why.branches import Branch, BranchRunner

VIRTUAL_RUN = RunOptions(time=VIRTUAL)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (CommandError(), "it does not compile"),  # diagnostics have said all
        (CommandError("error: no file\nhint: look"), "no file (look)"),
        (RunError("other instances join"), "other instances join"),
    ],
)
def test_one_that_is_not_possible_is_not_one_that_passes(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def again(*_words: Any) -> None:
        raise error

    monkeypatch.setattr(branches, "again", again)
    runner = BranchRunner("run", VIRTUAL_RUN, "digest", [], 1)
    end = runner._one(Branch(5, 0))
    assert end.impossible == said


@pytest.mark.parametrize("reseeds", [None, {"1000000000": 7}])
def test_a_branch_says_nothing_of_what_its_text_had_warnings_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reseeds: dict[str, int] | None
) -> None:
    text = "service a\nbridge s\nlink a--s\nfrom 1s to 4s a--s flap 1s\nat 2s quit\n"
    (tmp_path / "x.tdl").write_text(text, encoding="utf-8")
    source = str(tmp_path / "x.tdl")
    plan_to_run(source, None)
    assert "TS0904" in capsys.readouterr().err
    assert branches.again(source, reseeds).plan.end_ns == 2 * 10**9
    assert capsys.readouterr().err == ""
