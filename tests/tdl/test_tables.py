"""The generated parse tables belong to the grammar."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tdl
from tdl import tables
from tdl._tables import RULES, STATES
from tdl.dynamic import Actions

FOLDER = Path(tdl.__file__).parent


def test_the_tables_are_current() -> None:
    pytest.importorskip("lark")
    current = (FOLDER / "_tables.py").read_text(encoding="utf-8")
    assert current == tables.source(), "run: python -m tdl.tables > tdl/_tables.py"


def test_every_rule_has_its_action() -> None:
    for _made, action, _length in RULES:
        assert callable(getattr(Actions, action))


def test_every_step_leads_to_a_state_or_a_rule() -> None:
    for row in STATES:
        for target in row.values():
            assert -len(RULES) <= target < len(STATES)


def test_parsing_needs_no_parser_generator() -> None:
    """Importing lark and building its tables would cost more than compiling most files."""
    program = (
        "import sys; sys.modules['lark'] = None; from tdl.formatter import format_text;"
        " print(format_text('bridges a  b'), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=FOLDER.parent,
    )
    assert done.stdout == "bridges a b\n"
