"""What README.md and the tour claim: the example is the one in examples/, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tstorm.cli import COMMANDS, cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_is_the_quickstart() -> None:
    (block,) = re.findall(r"```tdl\n(.*?)```", README, re.DOTALL)
    assert block == (ROOT / "examples" / "quickstart.tdl").read_text(encoding="utf-8")
    assert len(block.splitlines()) == 12


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_every_command_of_the_tour_exists() -> None:
    tour = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^    tstorm (\w+)", README + tour, re.MULTILINE))
    assert len(told) > 20
    assert told <= set(COMMANDS)


@pytest.mark.parametrize(("at", "rtt_ns"), [("0s", 32_000_000), ("6s", 92_000_000), ("21s", None)])
def test_the_numbers_of_the_story(at: str, rtt_ns: int | None) -> None:
    import json

    example = str(ROOT / "examples" / "quickstart.tdl")
    arguments = ["paths", example, "--at", at, "--from", "client", "--to", "server"]
    result = CliRunner().invoke(cli, [*arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    assert {path["rtt_ns"] for path in json.loads(result.stdout)} == {rtt_ns}
