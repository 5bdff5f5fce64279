"""Every example compiles to exactly what it compiled to before; `make golden` after a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.produce import EXAMPLES, GOLDEN, documents


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_as_recorded(example: Path, tmp_path: Path) -> None:
    for name, text in documents(example, tmp_path).items():
        recorded = GOLDEN / name
        assert recorded.exists(), f"{name} is missing: run `make golden`"
        assert recorded.read_text(encoding="utf-8") == text, f"{name} differs: see `make golden`"


def test_nothing_is_left_of_removed_examples() -> None:
    stems = {example.stem for example in EXAMPLES}
    strays = [path.name for path in GOLDEN.glob("*.json") if path.name.split(".")[0] not in stems]
    assert strays == []
