"""Compose files with the structure of well-known ones: the TDL that they become, what is told of
them, and that the TDL is the same experiment as the file itself."""

from __future__ import annotations

import pytest

from compiler.pipeline import Compilation, compile_source
from compiler.sources import SourceFolder
from tdl.diagnostics import Severity
from tests.formats.goldens import COMPOSE, TDL, TOLD

PLAN = ("topology.json", "timeline.jsonl", "snapshots.jsonl", "routes.bin", "expectations.json")


def compiled(text: str, case: str) -> Compilation:
    return compile_source(text, sources=SourceFolder(COMPOSE.folder / case))


def parts(found: Compilation) -> dict[str, bytes]:
    return {name: found.files[name] for name in PLAN}


@pytest.mark.parametrize("case", COMPOSE.cases)
def test_what_a_file_becomes_and_what_is_told(case: str) -> None:
    for name, text in COMPOSE.documents(case).items():
        golden = (COMPOSE.folder / case / name).read_text(encoding="utf-8")
        assert text == golden, "if that is meant: python -m tests.formats.goldens"
    assert all(one.severity is Severity.WARNING for one in COMPOSE.read(case).diagnostics)


@pytest.mark.parametrize("case", COMPOSE.cases)
def test_what_is_imported_is_the_same_experiment(case: str) -> None:
    included = compiled(f'at 5s quit\ninclude "{COMPOSE.file_of(case)}"\n', case)
    imported = compiled(
        f"at 5s quit\n{(COMPOSE.folder / case / TDL).read_text(encoding='utf-8')}", case
    )
    assert parts(included) == parts(imported)


@pytest.mark.parametrize("case", COMPOSE.cases)
def test_what_a_person_would_write_is_the_same(case: str) -> None:
    included = compiled(f'at 5s quit\ninclude "{COMPOSE.file_of(case)}"\n', case)
    by_hand = (COMPOSE.folder / case / "by_hand.tdl").read_text(encoding="utf-8")
    assert by_hand != (COMPOSE.folder / case / TDL).read_text(encoding="utf-8")
    assert parts(included) == parts(compiled("at 5s quit\n" + by_hand, case))


def test_a_plan_has_no_more_of_dotenv_than_what_is_used() -> None:
    found = compiled('include "compose.yaml"\n', "wordpress")
    assert found.plan.params["DB_PASSWORD"] == "pa$$ #1"
    assert not any(b"not-for-plans" in data for data in found.files.values())
    assert set(found.includes) == {"compose.yaml"}


def test_there_are_more_than_twenty() -> None:
    assert len(COMPOSE.cases) > 20
    assert all((COMPOSE.folder / case / TOLD).exists() for case in COMPOSE.cases)
