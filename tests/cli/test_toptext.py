"""What one frame of `tstorm top` shows."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tstorm.text.toptext import frame

SECOND = 10**9


def link(name: str, number: int, *, drops: int = 0) -> dict[str, Any]:
    counted = {"bytes": number, "out_bytes": number // 2, "drop_loss": drops, "drop_queue": 0}
    return {"link": name, **counted, "drop_down": 0, "backlog_bytes": 1500}


def pair(src: str, number: int) -> dict[str, Any]:
    counted = {"offered_bytes": number, "delivered_bytes": number, "drop_loss": 0, "drop_queue": 0}
    return {"src": src, "dst": "b.0", **counted, "drop_down": 0}


def instance(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "state": "up", "paused": False, **more}


def state(counted_s: float, links: list[Any], pairs: list[Any], **more: Any) -> dict[str, Any]:
    found = {
        "run_id": "r",
        "at_ns": 12_345_678_901,
        "end_ns": 60 * SECOND,
        "applied": 3,
        "total": 9,
    }
    events = [{"at_ns": 20 * SECOND, "kind": "crash", "target": "a.0"}]
    found |= {"next_events": events, "instances": [instance("a.0"), instance("b.0")]}
    return {**found, "counted_ns": counted_s * SECOND, "links": links, "pairs": pairs, **more}


def test_rates_are_the_growth_by_the_time_of_the_counters() -> None:
    before = state(1.0, [link("a->s", 1_000), link("s->b", 0)], [pair("a.0", 500)])
    now = state(3.0, [link("s->b", 100), link("a->s", 251_000, drops=5)], [pair("a.0", 500)])
    assert frame(before, now, 100, 40) == [
        "r  12.3s of 1m  3/9 events  2/2 instances up",
        "next: 20s crash a.0",
        "",
        "LINK   IN/s   OUT/s  LOST/s  FULL/s  CUT/s  WAITING",
        "a->s   1 Mb  500 Kb     2.5       0      0    1,500",
        "s->b  400 b   200 b       0       0      0    1,500",
        "",
        "PAIR       SENT/s  GOT/s  LOST/s  FULL/s  CUT/s",
        "a.0 > b.0     0 b    0 b       0       0      0",
    ]


def test_without_a_look_before_there_are_no_rates() -> None:
    now = state(3.0, [link("a->s", 1)], [])
    assert frame(None, now, 100, 40)[-1].split() == ["a->s", *"-----", "1,500"]
    assert frame(now, now, 100, 40)[-1].split() == ["a->s", *"-----", "1,500"]


def test_programs_that_do_not_run_are_named_and_counted() -> None:
    ended = [instance(f"p.{n}", state="done", exit_status=n) for n in range(1, 5)]
    more = [instance("q.0", state="failed", start_error="no such file"), instance("r.0")]
    now = state(1.0, [], [], instances=[*ended, *more, instance("s.0", paused=True)])
    assert frame(None, now, 80, 24)[2:] == [
        *(f"p.{n} ended with {n}" for n in (1, 2, 3)),
        "… and 3 more that do not run",
    ]


@given(
    names=st.lists(st.text("abc-.>", min_size=1, max_size=60), max_size=40, unique=True),
    width=st.integers(20, 200),
    height=st.integers(3, 60),
)
def test_it_fits_and_what_does_not_is_counted(names: list[str], width: int, height: int) -> None:
    before = state(1.0, [link(name, 0) for name in names], [pair(name, 0) for name in names])
    grown = [link(name, 100 * n) for n, name in enumerate(names)]
    now = state(2.0, grown, [pair(name, 10 * n) for n, name in enumerate(names)])
    lines = frame(before, now, width, height)
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    if names and "" in lines:
        table = lines[lines.index("") + 1 :]
        table = table[1 : table.index("")] if "" in table else table[1:]
        told = int(table[-1].split()[2]) if table[-1].startswith("… and") else 0
        assert len(table) - bool(told) + told == len(names)
