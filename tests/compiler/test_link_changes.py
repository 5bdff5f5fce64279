"""Changes of links by the addresses at their ends (compiler/link_changes.py)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.extension import extend
from compiler.link_changes import ChangeError, LinkChanges, ids, read
from compiler.pipeline import compile_source

S = 1_000_000_000
PLAN = compile_source(
    """\
service a replicas=2
service b
bridge s1
link a--b latency=1ms up=10Mb symmetric
service c
service d
link c--s1 latency=1ms
link d--s1 latency=2ms
service e
bridge s2
link e--s2 latency=1ms
link s1--s2 latency=4ms
at 2s a.0->b set rate=1Mb latency=9ms
at 100s quit
"""
).plan
Done = list[tuple[int, str, str, dict[str, int | str]]]


def done(line: str, now_ns: int = 5 * S) -> Done:
    changes = read(line)
    meaning = LinkChanges(PLAN, now_ns)
    text = meaning.text(changes, meaning.links(changes))
    found = extend(PLAN, 1, text, now_ns)
    own = [one for one in found.events if one.file == "do@1"]
    return [(one.at_ns, one.kind, one.target, dict(one.args)) for one in own]


def address(name: str) -> str:
    return next(one.ipv4 for one in PLAN.topology.nodes if one.name == name)


@pytest.mark.parametrize("by_address", [False, True])
def test_only_what_is_stated_is_changed(by_address: bool) -> None:
    src = address("a.1") if by_address else "a.1"
    line = {"src": src, "dst": "b.0", "delay_ns": 8_000_001, "loss_ppb": 1, "jitter_ns": 7}
    args = {"delay_ns": 8_000_001, "jitter_ns": 7, "loss_ppb": 1}
    assert done(json.dumps(line)) == [(5 * S, "set", "a.1->b.0", args)]


def test_a_list_is_one_moment() -> None:
    line = """[{"src": "a.0", "dst": "b.0", "up": 0, "both": true},
               {"src": "b.0", "dst": "a.1", "rate_bps": 5000000, "queue_bytes": 3001}]"""
    assert done(line) == [
        (5 * S, "link_down", "a.0->b.0", {}),
        (5 * S, "link_down", "b.0->a.0", {}),
        (5 * S, "set", "b.0->a.1", {"rate_bps": 5_000_000, "queue_bytes": 3001}),
    ]


def test_reset_gives_what_the_text_declares() -> None:
    ((at_ns, kind, target, args),) = done('{"src": "a.0", "dst": "b.0", "reset": 1}')
    assert (at_ns, kind, target) == (5 * S, "set", "a.0->b.0")
    assert (args["rate_bps"], args["delay_ns"]) == (10_000_000, 1_000_000)


def test_later_is_a_time_of_the_experiment() -> None:
    line = '{"src": "a.0", "dst": "b.0", "delay_ns": 5, "at_ns": 20000000000}'
    assert [one[0] for one in done(line)] == [20 * S]


@pytest.mark.parametrize(
    ("line", "code", "number", "said"),
    [
        ("{", "TS0322", 0, "not JSON"),
        ("[]", "TS0322", 0, "1 to 10,000"),
        (
            '[{"src": "a.0", "dst": "b.0", "up": 1, "both": 1},'
            ' {"src": "b.0", "dst": "a.0", "delay_ns": 5}]',
            "TS0322",
            1,
            "b.0->a.0 is changed twice",
        ),
        ('{"src": "a.0", "dst": "b.0", "delay_ns": 1, "delay_ns": 2}', "TS0322", 0, "twice"),
        ('{"src": "a.0", "dst": "b.0", "up": 1, "id": NaN}', "TS0322", 0, "no NaN"),
        ('{"src": "a.0", "dst": "b.0", "up": 1, "id": 1e999}', "TS0322", 0, "id is a text"),
        ('{"src": "a.0", "dst": "b.0", "up": 1, "id": [[]]}', "TS0322", 0, "id is a text"),
        ('{"src": "a.0", "dst": "b.0", "delay_ns": -1}', "TS0322", 0, "from 0 on"),
        ('{"src": "a.0", "dst": "b.0", "delay_ns": 1e400}', "TS0322", 0, "whole number"),
        ('[{"src": "a.0", "dst": "b.0", "up": 1}, 3]', "TS0322", 1, "an object"),
        ('{"src": "a.0", "dst": "b.0", "delay": 1}', "TS0322", 0, "'delay_ns'"),
        ('{"src": "a.0", "dst": "b.0", "delay_ns": 1.5}', "TS0322", 0, "whole number"),
        ('{"src": "a.0", "dst": "b.0", "delay_ns": true}', "TS0322", 0, "whole number"),
        ('{"src": "a.0", "dst": "b.0", "up": 2}', "TS0322", 0, "0 or 1"),
        ('{"src": "a.0", "dst": "b.0", "loss_ppb": 1000000001}', "TS0322", 0, "at most"),
        ('{"src": "a.0", "dst": "b.0"}', "TS0322", 0, "nothing is changed"),
        ('{"src": "a.0", "dst": "b.0", "up": 1, "reset": 1}', "TS0322", 0, "alone"),
        ('{"src": "a.0", "up": 1}', "TS0322", 0, "dst is missing"),
        ('{"src": "a.0", "dst": "bb.0", "up": 1}', "TS0323", 0, "'b.0'"),
        ('{"src": "a.0", "dst": "10.9.9.9", "up": 1}', "TS0323", 0, "10.9.9.9"),
        ('{"src": "a.0", "dst": "c.0", "up": 1}', "TS0324", 0, "no path"),
        ('{"src": "c.0", "dst": "e.0", "up": 1}', "TS0324", 0, "c.0->s1, s1->s2, s2->e.0"),
    ],
)
def test_what_is_wrong_is_said_of_the_guilty(line: str, code: str, number: int, said: str) -> None:
    with pytest.raises(ChangeError) as caught:
        done(line)
    assert (caught.value.code, caught.value.number) == (code, number)
    assert said in str(caught.value)


def test_the_one_link_of_a_path_that_carries_no_other_pair_is_meant() -> None:
    """Bridges in a triangle, an instance at each."""
    ends = "".join(f"service {name}\nlink {name}--s{name} latency=1ms\n" for name in "xyz")
    sides = "".join(f"link s{pair[0]}--s{pair[1]} latency=4ms\n" for pair in ("xy", "yz", "xz"))
    plan = compile_source(f"bridges sx sy sz\n{ends}{sides}at 1s sx--sz leave\nat 9s quit\n").plan
    changes = read('{"src": "x.0", "dst": "z.0", "delay_ns": 1, "both": 1}')
    ((there, back),) = LinkChanges(plan, 0).links(changes)
    assert (there.name, back.name) == ("sx->sz", "sz->sx")
    with pytest.raises(ChangeError) as caught:  # by way of sy, as others
        LinkChanges(plan, 2 * S).links(changes)
    assert "x.0->sx, sx->sy, sy->sz, sz->z.0" in str(caught.value)


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_no_line_breaks_the_reader(line: str) -> None:
    assert ids(line)
    try:
        read(line)
    except ChangeError as error:
        assert error.code == "TS0322"
