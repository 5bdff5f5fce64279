"""A path that is a loop of symbolic links is an error with a message for every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from compiler.plan.format import PlanError
from runtime.errors import RunError
from tstorm.cli import cli
from tstorm.exit_codes import CommandError

SOURCE = "service a img=x\nbridge s\nlink a--s latency=1ms\n"


@pytest.mark.parametrize(
    "command",
    [
        "compile SOURCE -o LOOP",
        "run SOURCE --out LOOP",
        "exec LOOP a.0 -- ls",
        "inspect LOOP",
        "events LOOP",
        "replay LOOP",
        "fmt LOOP",
    ],
)
def test_a_loop_of_links(tmp_path: Path, command: str) -> None:
    (tmp_path / "a.tdl").write_text(SOURCE)
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    named = command.replace("SOURCE", str(tmp_path / "a.tdl")).replace("LOOP", str(loop))
    result = CliRunner().invoke(cli, named.split())
    assert result.exit_code != 0
    assert isinstance(result.exception, SystemExit | CommandError | PlanError | RunError)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tdl", "loop"]
