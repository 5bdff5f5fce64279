"""The commands of the pages that bring files in, typed as they stand there. What would run is
checked instead, with the same files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.process import ROOT
from tests.cli.support import status, tstorm

COMPOSE = "services: {web: {image: nginx}, db: {image: postgres}}\n"
FILES = {
    "From containerlab": ("lab.clab.yml", "storm.tdl"),
    "From Kollaps": ("topology.xml", "storm.tdl"),
    "From Mininet": ("topo.py", "storm.tdl"),
}


def typed(commands: str) -> list[list[str]]:
    """The arguments of each `tstorm …` line. No run has an end that is none of the text's."""
    found = []
    for line in re.findall(r"^ *tstorm (.*)$", commands, re.MULTILINE):
        words = shlex.split(line, comments=True)
        if words[0] == "run":
            at = words.index("--until") if "--until" in words else len(words)
            words = ["check", *words[1:at], *words[at + 2 :]]
        found.append([word for word in words if word != "--programs"])
    return found


def follow(commands: str) -> int:
    arguments = typed(commands)
    for words in arguments:
        done = tstorm(*words)
        assert status(done) == 0, (words, done.output, done.exception)
    return len(arguments)


@pytest.mark.parametrize("title", FILES)
def test_a_section_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str
) -> None:
    page = (ROOT / "docs/import.md").read_text(encoding="utf-8")
    section = page.split(f"## {title}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```\w*\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    for name, text in zip(FILES[title], blocks, strict=False):
        (tmp_path / name).write_text(text)
    assert follow(blocks[len(FILES[title])]) >= 3


def test_the_page_of_compose_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/from-compose.md").read_text(encoding="utf-8")
    page = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"(?:^    .*\n)+", page, re.MULTILINE)
    commands, storm = blocks[:2]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docker-compose.yml").write_text(COMPOSE)
    (tmp_path / "docker-compose.ci.yml").write_text("services: {web: {image: other}}\n")
    (tmp_path / "storm.tdl").write_text(re.sub(r"^    ", "", storm, flags=re.MULTILINE))
    assert follow(commands) == 4
    services = next(block for block in blocks if "x-tstorm" in block)
    (tmp_path / "docker-compose.yml").write_text(re.sub(r"^    ", "", services, flags=re.MULTILINE))
    assert status(tstorm("check", "docker-compose.yml")) == 0
