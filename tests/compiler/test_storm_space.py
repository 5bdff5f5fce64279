"""The space of storms that a `hunt` bounds, and bounds with which there is none."""

from __future__ import annotations

import pytest

from compiler.expect.storm_space import FaultKind, StormSpace
from compiler.pipeline import compile_source
from tdl.diagnostics import TdlError

NET = (
    "service db replicas=2\nservice client\nbridges s1 s2\nlink db--s1 name=fast latency=1ms\n"
    "link db--s1 name=slow latency=9ms\nlink client--s2\nlink s1--s2 latency=1ms\nat 20s quit\n"
)


def space(bounds: str) -> StormSpace:
    found = compile_source(f"{NET}hunt {{\n{bounds}\n}}\n").hunt
    assert found is not None
    return found


def refusal(bounds: str) -> str:
    with pytest.raises(TdlError) as error:
        space(bounds)
    (found,) = error.value.diagnostics
    return f"{found.code}: {found.message}"


def test_names_stand_for_instances_and_for_links_at_them() -> None:
    found = space(
        "partition any 2; crash db.*; crash any 2 power\n"
        "latency 10ms..0.2s client; clock ±1s db.1; disk db 2"
    )
    assert found.instances == ("db.0", "db.1", "client.0")
    assert found.kinds == (
        FaultKind("partition", found.instances, 2),
        FaultKind("crash", ("db.0", "db.1")),
        FaultKind("crash power", found.instances, 2),
        FaultKind("latency", ("client.0--s2",), low=10_000_000, high=200_000_000),
        FaultKind("clock", ("db.1",), low=-1_000_000_000, high=1_000_000_000),
        FaultKind("disk", ("db.0", "db.1"), 2, low=1, high=3),
    )
    everywhere = space("loss 0..5%").kinds[0]
    assert everywhere.targets == (
        *("fast:db.0--s1", "fast:db.1--s1", "slow:db.0--s1", "slow:db.1--s1"),
        *("client.0--s2", "s1--s2"),
    )
    assert (everywhere.low, everywhere.high) == (0, 50_000_000)


def test_limits_are_what_is_said_or_fits() -> None:
    usual = space("crash db")
    assert (usual.most, usual.begin_ns, usual.end_ns) == (4, 0, 20 * 10**9)
    assert (usual.shortest_ns, usual.longest_ns) == (10**8, 10 * 10**9)
    said = space(
        "crash db\nat most 7; lasting 50ms..99s\nquiet 2s at the start; quiet 3s at the end"
    )
    assert (said.most, said.begin_ns, said.end_ns) == (7, 2 * 10**9, 17 * 10**9)
    assert (said.shortest_ns, said.longest_ns) == (50_000_000, 15 * 10**9)


def test_a_plan_has_nothing_of_it() -> None:
    with_it, without = (compile_source(NET + more) for more in ("hunt { crash db }\n", ""))
    assert without.hunt is None
    assert with_it.events == without.events
    assert with_it.topology == without.topology


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ("at most 3", "TS0341: these bounds have limits, and nothing that happens"),
        ("crash db 3", "TS0341: 3 are to fail at a time, of 2"),
        ("crash db 0", "TS0341: nobody fails with 0"),
        ("partition any 3", "TS0341: with 3 of 3 cut off nobody is on the other side"),
        ("crash db\nat most 0", "TS0341: storms without a fault are the run itself"),
        ("crash db\nat most 1\nat most 2", "TS0341: this is said already, on line 11"),
        ("clock ±0s", "TS0341: a clock that is off by nothing is right"),
        ("loss 0..0%", "TS0341: a loss of nothing changes nothing"),
        ("crash nobody", "TS0406: there is no service 'nobody'"),
        (
            "crash db\nquiet 20s at the end",
            "TS0341: no fault fits: the experiment ends at 20s, of which 20s are quiet",
        ),
        (
            "crash db\nlasting 30s..40s",
            "TS0341: no fault fits: the experiment ends at 20s, and each lasts 30s or more",
        ),
        ("crash db\n}\nhunt { crash db", "TS0341: there is a hunt already, on line 9"),
    ],
)
def test_bounds_that_contradict_say_so(bounds: str, said: str) -> None:
    assert refusal(bounds) == said
