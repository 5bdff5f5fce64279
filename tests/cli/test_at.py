"""What `tstorm at` refuses, before it carries anything out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.runtime import recorded
from tstorm.commands import at
from tstorm.exit_codes import CommandError


def refused(*words: str) -> str:
    result = CliRunner().invoke(at.command, words)
    if isinstance(result.exception, CommandError):
        return result.exception.message
    assert result.exit_code == 2
    return result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name an INSTANCE to look into, or give --packets"),
        (("a.0", "--packets", "1ms"), "--packets tells of all instances: leave a.0 out"),
        (("--packets", "1ms", "--go", "1s"), "--go is for a command in an INSTANCE"),
        (("--packets", "1ms"), "has not kept its packets"),
        (("a.0", "--", "true"), "is not the same when it is carried out again"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    run = recorded.make(tmp_path / "run")
    assert said in refused(str(run), "500ms", *words)


def test_a_moment_outside_of_the_run_is_refused(tmp_path: Path) -> None:
    run = recorded.make(tmp_path / "run")
    assert "the run goes from 0s to 1s: 2s is not in it" in refused(
        str(run), "2s", "--packets", "1ms"
    )
    manifest = json.loads((run / "manifest.json").read_bytes())
    manifest["options"]["time"] = "virtual"
    manifest["start_monotonic_ns"] = 10**10
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert "2s is not in it" in refused(str(run), "2s", "a.0", "--", "true")
