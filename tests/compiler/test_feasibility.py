"""Every warning about what is legal and will not work, on the line that is guilty.

Files as in test_diagnostics.py; a line that is expected to have one warning may say several things
about it. The name of a file tells what machines it is compiled for.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from compiler.feasibility.warnings import ANY, Machines
from compiler.pipeline import compile_source
from tdl.codes.catalogue import CODES
from tdl.diagnostics import TdlError
from tests.compiler.cases import Case, load
from tests.compiler.files import files
from tests.plan.networks import SECOND

FILES = sorted((Path(__file__).parent / "feasibility").glob("*.tdl"))
CASES = [case for path in FILES for case in load(path)]
MACHINES = {
    "budget": Machines(budget_bps=1_000_000_000),
    "underlay": Machines(underlay_ns=500_000),
    "rejoins": Machines(kubernetes=True),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_warnings_stand_on_the_guilty_line(case: Case) -> None:
    machines = MACHINES.get(case.name.partition("-")[0], ANY)
    found = compile_source(case.text, machines=machines).diagnostics
    places = [(d.span.line, d.code) for d in found]
    assert places == sorted(set(places)), "one of a kind for each line"
    assert places == sorted({(line, code) for line, code, _ in case.expected})
    said = {(d.span.line, d.code): f"{d.message} {d.hint}" for d in found}
    for line, code, text in case.expected:
        assert text in said[line, code]
    assert all(d.severity.value == "warning" for d in found)


def test_machines_do_not_change_the_plan() -> None:
    text = (FILES[0].parent / "budget.tdl").read_text().partition("\n---\n")[0]
    plain = compile_source(text)
    machines = Machines(budget_bps=1, underlay_ns=SECOND, pace=100, kubernetes=True)
    asked = compile_source(text, machines=machines)
    assert len(asked.diagnostics) > len(plain.diagnostics)
    assert asked.files == plain.files


@settings(max_examples=100, deadline=None)
@given(files())
def test_any_file_gets_warnings_in_it_and_no_more(text: str) -> None:
    machines = Machines(100_000_000, underlay_ns=SECOND // 100, pace=1000, kubernetes=True)
    try:
        found = compile_source(text, machines=machines).diagnostics
    except TdlError:
        return  # wrong in another way, which others test
    lines = text.count("\n") + 1
    for diagnostic in found:
        assert diagnostic.code in CODES
        assert diagnostic.severity.value == "warning"
        assert 1 <= diagnostic.span.line <= lines


def test_a_faster_timeline_needs_longer_gaps() -> None:
    text = "service a\nbridge s1\nlink a--s1\nfrom 1s to 2s a--s1 flap 50ms\n"
    assert compile_source(text, machines=Machines(pace=50)).diagnostics == ()
    (only,) = compile_source(text, machines=Machines(pace=60)).diagnostics
    assert (only.code, only.span.line) == ("TS0915", 4)
    assert "50ms (833.333us at pace 60)" in only.message
    assert only.hint == "a period of 60ms or more can be applied"


def test_too_many_are_counted() -> None:
    lines = ["service a replicas=14", "bridge s1", "link a--s1"]
    lines += [f"at {number + 1}s a.{number}--s1 leave" for number in range(12)]
    found = compile_source("\n".join(lines) + "\n").diagnostics
    assert [d.code for d in found] == ["TS0914"] * 11
    assert found[-1].message == "2 more instances have no path to others at the end"
    assert "mend the 10" in str(found[-1].hint)
