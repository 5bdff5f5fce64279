"""Whatever the text: a tree or diagnostics, never anything else."""

from __future__ import annotations

import random

from hypothesis import example, given
from hypothesis import strategies as st

from tdl.codes.catalogue import CODES
from tdl.diagnostics import TdlError
from tdl.parser import parse, parse_partial
from tdl.presentation import render_text
from tdl.text_layout import format_text
from tdl.tokens.lexer import source_lines
from tests.fuzz.fuzz_tdl import mutate, noise


def check(text: str | bytes) -> None:
    partial = parse_partial(text)
    lines = source_lines(text)
    for diagnostic in partial.diagnostics:
        span = diagnostic.span
        assert diagnostic.code in CODES
        assert 1 <= span.line <= span.end_line <= len(lines)
        assert (span.line, span.col) < (span.end_line, span.end_col)
        assert span.col <= len(lines[span.line - 1]) + 1
    assert render_text(partial.diagnostics, "f", text).count("TS0") >= len(partial.diagnostics)
    if not partial.failed:
        once = format_text(text)
        assert format_text(once) == once


@given(st.text())
def test_any_text(text: str) -> None:
    check(text)


@given(st.binary())
@example(b"\r\x80")
def test_any_bytes(data: bytes) -> None:
    check(data)


@given(st.text("abs12 .,;:=-+%[]'\"\\\n#—>µ_ftol", max_size=80))
def test_texts_of_the_languages_own_characters(text: str) -> None:
    check(text)


@given(st.integers(0, 10**6))
def test_mutated_experiments(seed: int) -> None:
    check(mutate(random.Random(seed)))


def test_a_hundred_kilobytes_of_noise_end_in_diagnostics() -> None:
    for kind in range(4):
        try:
            file, _ = parse(noise(random.Random(kind), 100_000, kind))
        except TdlError as error:
            assert error.diagnostics
        else:
            assert file.statements == ()
