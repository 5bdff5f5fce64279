"""docs/index.md: every page is in one of its four parts; links of these pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages.page import links
from tests.pages.reader import ROOT

DOCS = ROOT / "docs"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^- \[([^]]+)\]\(([^)]+)\): ", re.MULTILINE)
NEW = [
    *(DOCS / name for name in ("index.md", "tutorial.md", "language-tour.md")),
    *sorted((DOCS / "howto").glob("*.md")),
]


def part(name: str) -> list[str]:
    """The pages under one heading."""
    text = INDEX.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    return [target for _, target in ENTRY.findall(text)]


def test_every_page_has_one_place() -> None:
    found = [target for _, target in ENTRY.findall(INDEX)]
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}
    assert sorted(found) == sorted(pages)


def test_there_are_four_parts() -> None:
    headings = re.findall(r"^## (.*)", INDEX, re.MULTILINE)
    assert headings == ["Tutorial", "How-to", "Reference", "Design"]
    assert part("Tutorial") == ["tutorial.md", "language-tour.md"]
    assert all(target.startswith("howto/") for target in part("How-to"))
    assert "tdl.md" in part("Reference")
    assert "design.md" in part("Design")


def test_a_link_is_called_what_it_is() -> None:
    assert [(name, target) for name, target in ENTRY.findall(INDEX) if name != target] == []


@pytest.mark.parametrize("page", NEW, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    found = links(page.read_text(encoding="utf-8"))
    assert found
    assert [target for target in found if not (page.parent / target).exists()] == []
