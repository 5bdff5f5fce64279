"""docs/*.png are photographs of pages: of VALID runs of the experiments as they are now."""

from __future__ import annotations

import re

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngImageFile

from scripts.picture import DOCS, PICTURES, PLAN, SCALE, VERDICT, WIDTH, Shot, digest
from tests.pages.reader import ROOT

MOST_BYTES = 250_000  # a page of GitHub shows them at once
SHOWN = re.compile(r"!\[[^]]+\]\(((?:docs/)?\w+\.png)\)")


def test_the_pictures_of_the_documents_are_those_of_the_script() -> None:
    names = ("tutorial.md", "live.md", "nodes.md")
    pages = (ROOT / "README.md", *(DOCS / name for name in names))
    shown = {page.parent / name for page in pages for name in SHOWN.findall(page.read_text())}
    assert shown == {DOCS / name for name in PICTURES} == set(DOCS.glob("*.png"))


@pytest.mark.parametrize(("name", "shot"), PICTURES.items())
def test_it_is_of_a_valid_run_of_the_experiment_as_it_is_now(name: str, shot: Shot) -> None:
    path = DOCS / name
    assert path.stat().st_size <= MOST_BYTES
    with Image.open(path) as picture:
        assert isinstance(picture, PngImageFile)
        assert picture.text[VERDICT] == "valid"
        assert picture.text[PLAN] == digest(shot), f"make it again: scripts/picture.py, {name}"
        assert picture.width == WIDTH * SCALE
        assert picture.height > picture.width / 2
