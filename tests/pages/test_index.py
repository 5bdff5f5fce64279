"""docs/index.md: every page is in one of its four parts. Links of all pages lead somewhere, and the
files that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages.page import links
from tests.pages.reader import ROOT

DOCS = ROOT / "docs"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^- \[([^]]+)\]\(([^)]+)\): ", re.MULTILINE)
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FOLDERS = "bench|compiler|docs|examples|manifests|runtime|scripts|tcal_c|tdl|tests|tstorm"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*[\w/])`")
DELETED = {"bench/tcal_queue.py", "bench/virtual_time.sh"}  # docs/tcal.md names their commit


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    found = links(page.read_text(encoding="utf-8"))
    assert [target for target in found if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_a_heading_find_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, wanted in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
        other = page.parent / target if target else page
        headings = re.findall(r"^#+ (.*)", other.read_text(encoding="utf-8"), re.MULTILINE)
        assert wanted in {re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = set(NAMED.findall(page.read_text(encoding="utf-8"))) - DELETED
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_there_is_something_to_find() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(len(links(text)) for text in texts) > 100
    assert sum(len(NAMED.findall(text)) for text in texts) > 30
