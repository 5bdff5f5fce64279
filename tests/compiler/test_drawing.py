"""What a statement draws of itself: as if the moment, the length and the targets were written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.draws import Stream, statement_key
from compiler.pipeline import compile_source
from compiler.plan.types import Event
from tdl import quantities
from tdl.diagnostics import TdlError
from tdl.formatter import format_statement
from tdl.parser import parse_partial

NET = """\
service a replicas=5 tags=place
service b replicas=2
bridges s1 s2 s3
link a--s1 latency=5 up=10Mb down=20Mb tags=wan
link b--s2 latency=5 rate=5Mb
link s1--s2 latency=10 jitter=2 rate=100Mb tags=core
link s2--s3 latency=10 rate=100Mb tags=core
"""
LASTING = (
    "partition a;b",
    "partition a->b only=udp",
    "a disconnect",
    "a.1 pause",
    "s1--s2 leave",
    "s1--s2 leave only=tcp",
    "s1--s2 reject",
    "a--s1 set latency+=3ms",
    "s2->s3 set loss=1%",
    "b set clock=+5s drift=7ppm",
    "b set disk=slow:20ms",
    "a--s1 ramp latency=50ms every 100ms",
    "tags=core background 1Mb",
    "s2--s3 flap 70ms",
)
SECOND = 10**9


def happened(text: str, seed: int = 3) -> list[tuple[int, str, str, object]]:
    found: tuple[Event, ...] = compile_source(NET + text, filename="t.tdl", seed=seed).events
    return [(e.at_ns, e.kind, e.target, dict(e.args)) for e in found if e.line]


def stream(text: str, label: str, seed: int = 3) -> Stream:
    """Of a statement, as docs/draws.md has it."""
    [statement] = parse_partial(text).file.statements
    return Stream(statement_key(seed, format_statement(statement), 0), label)


@given(
    st.sampled_from(LASTING),
    st.integers(0, 5),
    st.integers(1, 9),
    st.integers(1, 3000),
    st.integers(0, 2000),
    st.integers(0, 9),
)
def test_a_drawn_moment_and_length_are_an_interval(
    words: str, first: int, wide: int, shortest: int, more: int, seed: int
) -> None:
    drawn = f"from {first}s to {first + wide}s {words} for {shortest}ms..{shortest + more}ms"
    at_ns = first * SECOND + stream(drawn, "when", seed).below(wide * SECOND)
    spread = more * 1_000_000 + 1
    end_ns = at_ns + shortest * 1_000_000 + stream(drawn, "length", seed).below(spread)
    interval = f"from {quantities.time(at_ns)} to {quantities.time(end_ns)}"
    assert happened(drawn, seed) == happened(f"{interval} {words}", seed)


@pytest.mark.parametrize("words", LASTING)
def test_for_a_time_is_an_interval(words: str) -> None:
    assert happened(f"at 2s {words} for 1500ms") == happened(f"from 2s to 3500ms {words}")


@pytest.mark.parametrize(
    "words",
    [
        "s1--s2 set loss=1%",
        "b set clock=-1s",
        "b set disk=full",
        "a disconnect",
        "a.2 pause",
        "partition a;b",
    ],
)
def test_sometime_is_a_moment(words: str) -> None:
    drawn = f"from 2s to 9s {words} sometime"
    at_ns = 2 * SECOND + stream(drawn, "when").below(7 * SECOND)
    assert happened(drawn) == happened(f"at {quantities.time(at_ns)} {words}")


def test_so_many_of_the_links() -> None:
    text = "at 2s 2 of tags=wan set latency=9ms for 1s"
    first, second = sorted(stream(text, "which").sample(5, lambda _: True, 2))
    plain = f"from 2s to 3s a.{first}--s1;a.{second}--s1 set latency=9ms"
    assert sorted(map(str, happened(text))) == sorted(map(str, happened(plain)))


def test_so_many_of_a_group_are_cut_from_the_others() -> None:
    text = "at 2s partition 3 of tags=place for 1s"
    some = sorted(stream(text, "which").sample(5, lambda _: True, 3))
    others = [node for node in range(5) if node not in some]
    groups = ";".join(" ".join(f"a.{node}" for node in side) for side in (some, others))
    assert happened(text) == happened(f"from 2s to 3s partition {groups}")


def test_a_count_in_front_is_one_behind() -> None:
    assert happened("at 2s 3 of a crash") == happened("at 2s a crash 3")


def test_a_restart_may_have_both_drawn() -> None:
    found = happened("from 2s to 9s a restart 1 after 1s..2s")
    assert [kind for _, kind, *_ in found] == ["crash", "join"]
    assert SECOND <= found[1][0] - found[0][0] <= 2 * SECOND
    assert 2 * SECOND <= found[0][0] < 9 * SECOND


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("at 2s 9 of tags=wan set loss=1%", "TS0302", "there are 5"),
        ("at 2s partition 5 of tags=place", "TS0302", "nobody is left"),
        ("at 2s a leave for 2s", "TS0221", "of links and bridges"),
        ("from 2s to 3s tags=place leave for 2s", "TS0221", "restart after"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(text: str, code: str, words: str) -> None:
    with pytest.raises(TdlError) as caught:
        happened(text)
    [problem] = [one for one in caught.value.diagnostics if one.severity.value == "error"]
    assert problem.code == code
    assert words in f"{problem.message} {problem.hint}"


def test_a_heal_ends_an_interval_of_a_partition() -> None:
    text = "from 2s to 9s partition a;b\nat 5s heal"
    found = compile_source(NET + text, filename="t.tdl")
    assert [e.at_ns for e in found.events if e.kind == "link_up"] == [5 * SECOND] * 2
    assert "TS0912" in [one.code for one in found.diagnostics]


def test_a_power_failure_has_a_seed_for_each_disk() -> None:
    text = "at 2s a.1;a.3 crash power"
    seeds = [args for _, kind, _, args in happened(text) if kind == "crash"]
    one, other = (f"at 2s {name} crash power" for name in ("a.1", "a.3"))
    most = 2**63 - 1
    assert seeds == [{"power_seed": stream(each, "power").below(most)} for each in (one, other)]
    several = "at 2s a crash 2 power"
    power = stream(several, "power")
    found = [args for *_, args in happened(several)]
    assert found == [{"power_seed": power.below(most)} for _ in range(2)]


def test_errors_of_disks_have_a_seed_for_each() -> None:
    text = "from 2s to 3s a.1;b set disk=error:5%"
    one, other = (f"from 2s to 3s {name} set disk=error:5%" for name in ("a.1", "b"))
    seeds = [stream(one, "disk").below(2**63 - 1)]
    of_b = stream(other, "disk")
    seeds += [of_b.below(2**63 - 1) for _ in range(2)]
    found = happened(text)
    assert [target for *_, target, _ in found] == ["a.1", "b.0", "b.1"] * 2
    assert [args for *_, args in found] == [
        *({"disk_seed": seed, "error_ppb": 50_000_000, "fault": "error"} for seed in seeds),
        *[{"fault": "ok"}] * 3,
    ]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("at 2s power crash", [None]),
        ("at 2s crash power", [None]),
        ("at 2s crash power power", ["power_seed"]),
        ("at 2s power crash power", ["power_seed"]),
        ("at 2s tags=power crash power", ["power_seed"]),
        ("at 2s crash tags=power", [None]),
        ("at 2s crash b power", ["power_seed"] * 2),
        ("at 2s b crash and power crash power", [None, None, "power_seed"]),
    ],
)
def test_power_is_a_name_too(text: str, kinds: list[str | None]) -> None:
    source = f"{NET}service power tags=power\nlink power--s1\n{text}\n"
    events = compile_source(source, filename="t.tdl").events
    assert [next(iter(e.args), None) for e in events if e.kind == "crash"] == kinds
