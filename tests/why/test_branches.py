"""What a branch says that could not be carried out."""

from typing import Any

import pytest

from runtime.errors import RunError
from runtime.options import VIRTUAL, RunOptions
from tstorm.exit_codes import CommandError
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
    runner = BranchRunner("run", VIRTUAL_RUN, "digest", [], 1, set())
    end = runner._one(Branch(5, 0))
    assert end.impossible == said
