"""Storms: drawn within their bounds, and written as statements that compile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.expect.storm_space import StormSpace
from compiler.pipeline import compile_source
from tdl.diagnostics import TdlError
from tdl.tokens.words import HUNT_DISKS
from tstorm.hunt import storms
from tstorm.hunt.storms import Drawing, Fault, NoStormError, Storm, generator

SECOND = 10**9
EXPERIMENT = (
    "service db replicas=3\nservice client\nbridge s1\nlink db--s1 latency=1ms jitter=1ms\n"
    "link client--s1 latency=1ms\nat 20s quit\n"
)
BOUNDS = (
    "hunt { partition any 2; crash db.*; crash db 2 power; kill db; pause any 3\n"
    "disconnect client; latency 0..200ms\n"
    "loss 0..20% db.0; duplicate 1%..5%; corrupt 0..1%; clock ±1s db.*; drift ±200ppm\n"
    "at most 5; lasting 50ms..8s; quiet 2s at the start; quiet 5s at the end }\n"
)


def space() -> StormSpace:
    found = compile_source(EXPERIMENT + BOUNDS).hunt
    assert found is not None
    return found


def drawn(number: int) -> Storm:
    return Drawing(space(), generator(7, number)).storm(number)


def text(storm: Storm) -> str:
    return storms.text(EXPERIMENT, storm.faults, space().instances)


def check(storm: Storm) -> None:
    """Within the bounds."""
    bounds = space()
    assert 1 <= len(storm.faults) <= bounds.most
    kinds = {one.word: one for one in bounds.kinds}
    for one in storm.faults:
        assert bounds.begin_ns <= one.begin_ns < one.end_ns <= bounds.end_ns
        assert bounds.shortest_ns <= one.end_ns - one.begin_ns <= bounds.longest_ns
        kind = kinds[one.word]
        assert set(one.targets) <= set(kind.targets)
        assert 1 <= len(one.targets) <= kind.count
        assert kind.low <= one.value <= kind.high


def test_storms_are_within_their_bounds_and_are_experiments_mostly() -> None:
    found = [drawn(number) for number in range(60)]
    refused = 0
    for one in found:
        check(one)
        try:
            compile_source(text(one), doubts=False)
        except TdlError:
            refused += 1
    assert refused < 20
    assert {fault.word for one in found for fault in one.faults} == {
        one.word for one in space().kinds
    }
    assert {len(one.faults) for one in found} == {1, 2, 3, 4, 5}


def test_a_disk_is_told_with_what_it_does() -> None:
    found = [Fault(1, 2, "disk", ("a.0",), number) for number in (1, 2)]
    assert [one.kind for one in found] == [f"disk={what}" for what in HUNT_DISKS[:2]]
    assert Fault(1, 2, "kill", ("a.0",)).kind == "kill"


def test_the_same_key_draws_the_same() -> None:
    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


def test_one_that_is_no_experiment_is_drawn_again() -> None:
    first, second = (Drawing(space(), generator(7, 3, attempt)).storm(3) for attempt in (0, 1))
    refused = {first: "db.0 has left already"}
    assert storms.drawn(space(), 7, 3, lambda storm: "") == first
    assert storms.drawn(space(), 7, 3, lambda storm: refused.get(storm, "")) == second


def test_bounds_without_an_experiment_say_why() -> None:
    with pytest.raises(NoStormError, match="has left already"):
        storms.drawn(space(), 7, 3, lambda _storm: "a.0 has left already")


@pytest.mark.parametrize(
    ("fault", "lines"),
    [
        (
            Fault(SECOND, 3 * SECOND, "partition", ("db.0", "db.2")),
            ["from 1s to 3s partition db.0 db.2;db.1 client.0"],
        ),
        (
            Fault(SECOND, 3 * SECOND, "crash", ("db.0", "db.2")),
            ["at 1s db.0;db.2 restart after 2s"],
        ),
        (Fault(SECOND, 3 * SECOND, "kill", ("db.0",)), ["at 1s db.0 kill", "at 3s db.0 join"]),
        (
            Fault(SECOND, 3 * SECOND, "crash power", ("db.0", "db.1")),
            ["at 1s db.0;db.1 crash power", "at 3s db.0;db.1 join"],
        ),
        (Fault(SECOND, 3 * SECOND, "pause", ("db.0",)), ["from 1s to 3s db.0 pause"]),
        (
            Fault(SECOND, 3 * SECOND, "latency", ("db.0--s1",), 12_300_000),
            ["from 1s to 3s db.0--s1 set latency+=12.3ms"],
        ),
        (
            Fault(SECOND, 3 * SECOND, "loss", ("db.0--s1",), 123_000_000),
            ["from 1s to 3s db.0--s1 set loss=12.3%"],
        ),
        (
            Fault(SECOND, 3 * SECOND, "clock", ("db.0",), -300_000_000),
            ["from 1s to 3s db.0 set clock=-300ms"],
        ),
        (
            Fault(SECOND, 3 * SECOND, "disk", ("db.0", "db.1"), 2),
            ["from 1s to 3s db.0;db.1 set disk=slow:20ms"],
        ),
        (
            Fault(SECOND, 3 * SECOND, "drift", ("db.0",), 120_000),
            ["from 1s to 3s db.0 set drift=120ppm"],
        ),
    ],
)
def test_a_fault_is_statements(fault: Fault, lines: list[str]) -> None:
    storm = Storm(0, 1, (fault,))
    assert text(storm) == "\n".join([EXPERIMENT + storms.HEAD, *lines]) + "\n"
    compile_source(text(storm), doubts=False)


def test_statements_of_several_faults_stand_by_their_moments() -> None:
    early = Fault(SECOND, 9 * SECOND, "kill", ("db.0",))
    late = Fault(2 * SECOND, 3 * SECOND, "pause", ("db.1",))
    written = text(Storm(0, 1, (late, early))).removeprefix(EXPERIMENT).splitlines()
    assert written[1:] == ["at 1s db.0 kill", "from 2s to 3s db.1 pause", "at 9s db.0 join"]
    assert text(Storm(0, 1, ())) == EXPERIMENT


def test_storms_know_their_kinds() -> None:
    one = Fault(SECOND, 2 * SECOND, "pause", ("db.1",))
    assert Storm(0, 1, (one, replace(one, word="crash"), one)).kinds == ("crash", "pause")


@pytest.mark.parametrize(
    "bounds", [BOUNDS, "hunt {\n  crash db\n}\n", "hunt { crash db }  # why\n"]
)
def test_the_bounds_are_no_part_of_a_storm(bounds: str) -> None:
    base = storms.without_hunt(f"{EXPERIMENT}{bounds}expect exit client 0\n")
    assert base == f"{EXPERIMENT}expect exit client 0\n"
