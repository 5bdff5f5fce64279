"""The catalogue of codes, its page, and its examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compiler.feasibility.warnings import ANY, Machines
from compiler.pipeline import compile_source
from tdl.codes.catalogue import ALL, CODES, markdown
from tdl.diagnostics import TdlError

ROOT = Path(__file__).parents[2]
WITH_EXAMPLES = sorted(code for code, entry in CODES.items() if entry.example)
# What an example cannot show in a few lines.
WITHOUT_EXAMPLES = {
    *(
        "TS0001",
        "TS0029",
        "TS0030",
        "TS0031",
        "TS0032",
        "TS0035",
        "TS0134",
        "TS0169",
        "TS0172",
        "TS0173",
        "TS0174",
        "TS0176",
        "TS0320",
        "TS0321",
        "TS0630",
        "TS0631",
        "TS0633",
        "TS0322",
        "TS0323",
        "TS0324",
        "TS0179",
        "TS0180",
        "TS0181",
        "TS0237",
        "TS0238",
        "TS0135",
        "TS0309",
        "TS0191",
        "TS0192",
        "TS0193",
        "TS0195",
        "TS0196",
        "TS0980",
        "TS0981",
        "TS0982",
        "TS0152",
        "TS0153",
        "TS0156",
        "TS0409",
        "TS0940",
    ),
    # Of files of other tools: tests/formats.
    *(f"TS050{number}" for number in range(9)),
    *("TS0970", "TS0971", "TS0972", "TS0973"),
}
# As the explanation says: `--budget 1Gb`, `--underlay 500us`, and what is rendered.
MACHINES = Machines(budget_bps=1_000_000_000, underlay_ns=500_000, kubernetes=True)
WITH_MACHINES = {"TS0916", "TS0917", "TS0920", "TS0922"}


def used_codes() -> set[str]:
    found: set[str] = set()
    for folder in ("tdl", "compiler"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.parent.name != "codes":
                found |= set(re.findall(r'"(TS\d{4})"', path.read_text(encoding="utf-8")))
    return found


def test_the_page_is_current() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert page == markdown(), "run: python -m tdl.codes.catalogue > docs/errors.md"


def test_every_code_in_the_sources_is_registered() -> None:
    assert used_codes() - set(CODES) == set()


def test_every_registered_code_is_used() -> None:
    assert set(CODES) - used_codes() == set()


def test_no_code_means_two_things() -> None:
    assert sorted(code.code for code in ALL) == sorted(CODES)


def test_entries_are_complete() -> None:
    for code, entry in CODES.items():
        assert code == entry.code
        assert re.fullmatch(r"TS0[012345679]\d\d", code)
        assert entry.title
        assert not entry.title.endswith(".")
        assert entry.explanation.endswith("`:" if code in WITH_MACHINES else ".")
        assert bool(entry.example) == (code not in WITHOUT_EXAMPLES)


@pytest.mark.parametrize("code", WITH_EXAMPLES)
def test_the_example_shows_its_code(code: str) -> None:
    machines = MACHINES if code in WITH_MACHINES else ANY
    try:
        found = compile_source(CODES[code].example, machines=machines).diagnostics
    except TdlError as error:
        found = error.diagnostics
    assert code in {d.code for d in found}
    severities = {d.severity.value for d in found if d.code == code}
    assert severities == {"warning" if code.startswith("TS09") else "error"}
