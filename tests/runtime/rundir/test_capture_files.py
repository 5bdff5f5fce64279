"""What files of packets are called, what pktd is told of them, and what is said of their gaps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source
from compiler.plan.types import Topology
from runtime.backend.onehost import captures
from runtime.launch.run_result import RunResult
from runtime.options import COMPLETED
from tstorm.text.ending_text import _doubts

TEXT = (
    "service server img=x\nservice client img=x replicas=2\nbridge s1\n"
    "link server--s1 latency=1\nlink client--s1 latency=1\nat 1s quit\n"
)


def test_a_file_for_each_link_with_both_directions() -> None:
    topology = compile_source(TEXT).plan.topology
    assert list(captures.lines(topology)) == [
        "capture server.0--s1.pcapng 0=server.0->s1 1=s1->server.0",
        "capture client.0--s1.pcapng 2=client.0->s1 3=s1->client.0",
        "capture client.1--s1.pcapng 4=client.1->s1 5=s1->client.1",
    ]


PARTS = """node sat replicas=2 {
    service gw replicas=2
}
service q interfaces
service web
bridges s t
link sat.gw--s
link q--s latency=1
link q--t
link s--t
link web--t name=fast
link web--t name=slow latency=1
at 1s quit
"""


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("q->s", ["q.0->s"]),
        ("q->t", ["q.0->t"]),  # its second interface
        ("q.0->t", ["q.0->t"]),
        ("web->t", ["fast:web.0->t", "slow:web.0->t"]),
        ("slow:web->t", ["slow:web.0->t"]),
        ("sat.gw->s", ["sat.0.gw.0->s", "sat.0.gw.1->s", "sat.1.gw.0->s", "sat.1.gw.1->s"]),
        ("sat.1.gw->s", ["sat.1.gw.0->s", "sat.1.gw.1->s"]),
        ("sat.gw.1->s", ["sat.0.gw.1->s", "sat.1.gw.1->s"]),
    ],
)
def test_a_link_has_the_ends_that_the_text_names(link: str, found: list[str]) -> None:
    places = captures.at_link(compile_source(PARTS).plan.topology, link)
    assert [one.interface for one in places if not one.offered] == found


def topology(*ends: tuple[str, str]) -> Topology:
    """Links between nodes of any names, as only an edited plan has them."""
    names = sorted({name for both in ends for name in both})
    plan = compile_source(TEXT).plan.topology
    nodes = [_as(plan.nodes[0], name=name) for name in names]
    links = [
        _as(plan.links[0], name=f"{a}->{b}", src=names.index(a), dst=names.index(b))
        for one, other in ends
        for a, b in ((one, other), (other, one))
    ]
    return _as(plan, nodes=tuple(nodes), links=tuple(links))


def _as(record: Any, **changes: Any) -> Any:
    fields = {name: getattr(record, name) for name in record.__match_args__}
    return type(record)(**{**fields, **changes})


@pytest.mark.parametrize(
    "ends",
    [
        [("../../etc/passwd", "s1")],
        [("a/b", "c"), ("a_b", "c")],
        [("A", "s"), ("a", "s")],
        [("", ""), (".", ".")],
        [("x" * 300, "y"), ("x" * 300, "z")],
        [("a b\n\x1b", "ä")],
    ],
)
def test_names_are_safe_and_each_is_another(ends: list[tuple[str, str]]) -> None:
    names = captures.file_names(topology(*ends))
    assert len({name.lower() for name in names}) == len(ends)
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,250}\.pcapng", name), name
    for line in captures.lines(topology(*ends)):
        assert line.isascii() and line.isprintable() and len(line.split(" ")) == 4


def test_a_link_that_has_a_name_has_its_files_by_it() -> None:
    text = "service a\nbridge s\nlink a--s name=fast\nlink a--s name=slow\n"
    found = compile_source(text).topology
    assert captures.file_names(found) == ["fast_a.0--s.pcapng", "slow_a.0--s.pcapng"]
    first, _ = captures.lines(found)
    assert first == "capture fast_a.0--s.pcapng 0=fast:a.0->s 1=fast:s->a.0"


def told(**counts: int) -> list[str]:
    verdict = {"reasons": [], "too_late": False}
    summary = {"verdict": verdict, "exits": [], "captures": counts}
    result = RunResult(COMPLETED, "x", Path("x"), summary=summary)
    return list(_doubts(result, quiet=True))


def test_files_that_are_not_whole_are_told_first() -> None:
    assert told(written=9, lost=0, unwritten=0, errno=0) == []
    assert told(written=9, lost=1200, unwritten=0, errno=0) == [
        "warning: packets/ lacks 1,200 packets: they came faster than they could be written"
    ]
    assert told(written=9, lost=0, unwritten=7, errno=28) == [
        "warning: packets/ lacks 7 packets: No space left on device"
    ]
