"""Every error and warning of the model and the timeline, on the line that is guilty."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from tdl.codes.catalogue import CODES
from tdl.diagnostics import TdlError
from tests.compiler.cases import Case, diagnose, load

FILES = sorted((Path(__file__).parent / "diagnostics").glob("*.tdl"))
CASES = [case for path in FILES for case in load(path)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_diagnostics_stand_on_the_guilty_line(case: Case) -> None:
    found = diagnose(case.text)
    assert [(d.span.line, d.code) for d in found] == [
        (line, code) for line, code, _ in case.expected
    ]
    for diagnostic, (_, _, text) in zip(found, case.expected, strict=True):
        assert text in f"{diagnostic.message} {diagnostic.hint}", diagnostic
        assert diagnostic.code in CODES


def test_all_errors_are_reported_at_once_and_in_order() -> None:
    text = """\
service server replicas=2
bridge s1
link server--s1
at 2s sever leave
at 1s s2--s1 leave
at 3s server--s1 set latency-=5
service server
"""
    with pytest.raises(TdlError) as caught:
        compile_source(text, filename="x.tdl")
    found = [(d.code, d.span.line) for d in caught.value.diagnostics]
    assert found == [("TS0201", 4), ("TS0201", 5), ("TS0101", 7)]


def test_warnings_come_with_the_compilation() -> None:
    text = "service a tags=x\nbridge s1\nlink a--s1\nat 5s tags=y leave\n"
    compilation = compile_source(text, filename="x.tdl")
    assert [d.code for d in compilation.diagnostics] == ["TS0901"]
    assert [e.target for e in compilation.events] == ["a.0"]
