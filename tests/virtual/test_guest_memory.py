"""Fresh memory comes in several pages at once to a program that goes through it, to no other."""

from pathlib import Path

import pytest

from tests.virtual.guests import compiled, guest

pytestmark = pytest.mark.virtual

AHEAD = 7  # pages: AHEAD_PAGES of the kernel's tstorm/ahead.c
OTHER = 40  # pages at most for what the program needs besides: printing, reading its state


def test_memory_ahead_is_empty_and_little(kernel: list[str], tmp_path: Path) -> None:
    program = compiled("memory", tmp_path, "-static")
    with guest(kernel, f"{program}; echo ended with $?", tmp_path) as it:
        lines = it.end().splitlines()
    assert lines[1] == "ended with 0"
    forward, backward = map(int, lines[0].split())
    assert 0 <= forward <= AHEAD + OTHER
    assert 0 <= backward <= OTHER
