"""docs/tour.md: its commands work as written, once tstorm is installed."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.pages.page import Command
from tests.pages.reader import ROOT, Reader

PAGE = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
TOUR = PAGE.partition("\n`tstorm COMMAND --help`")[0]
INSTALL, *LINES = re.findall(r"^    (\S.*)$", TOUR, re.MULTILINE)
MEANWHILE = [line for line in LINES if "# meanwhile, in a second terminal" in line]


def command(line: str) -> Command:
    ends = re.search(r"# .*ends with (\d+):", line)
    return Command(line, code=int(ends[1]) if ends else 0)


def test_what_is_typed_first_installs_the_command() -> None:
    assert INSTALL.startswith("pip install ./tstorm-*.whl ")
    assert len(MEANWHILE) == 4
    assert len(LINES) > 15


@pytest.mark.long
@pytest.mark.e2e
def test_the_commands_of_the_tour(reader: Reader) -> None:
    subprocess.run(
        [*reader.prefix, "cp", "-r", f"{ROOT}/examples", "."],
        cwd=reader.folder,
        env=reader.environment,
        check=True,
    )
    index = LINES.index(MEANWHILE[0])
    for line in LINES[: index - 1]:
        reader.type(command(line))
    reader.type_in_two_terminals(command(LINES[index - 1]), [command(line) for line in MEANWHILE])
    for line in LINES[index + len(MEANWHILE) :]:
        reader.type(command(line))
