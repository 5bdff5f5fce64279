"""Which events of a plan were drawn between two moments, and where `tstorm why` tells of them."""

from __future__ import annotations

from collections.abc import Iterable

from tstorm.why.decision import Decision
from tstorm.why.decision_search import SURE, Estimate, Jump, Search
from tstorm.why.drawn_events import Planned, decided_in
from tstorm.why.happenings import DRAWN, EVENT, PACKET, Happening

CRASH, CUT, HEAL = (50, "b.0", "crash"), (90, "s", "bridge_down"), (99, "s", "bridge_up")
BEFORE, AFTER = Estimate(0, 30, 8, 2), Estimate(1, 45, 16, 16)


def _branches(at_ns: int, most: int) -> Iterable[frozenset[Planned]]:
    """Until 40 the crash is drawn anew, until 80 the cut; one branch in two draws the same."""
    assert most == SURE
    anew = {CRASH} if at_ns < 40 else set()
    anew |= {CUT} if at_ns < 80 else set()
    yield frozenset({CRASH, CUT, HEAL})
    yield frozenset({CRASH, CUT, HEAL} - anew)


def test_what_branches_before_do_not_have_and_those_after_do() -> None:
    events = frozenset({CRASH, CUT, HEAL})
    said = Happening(50, DRAWN, "b.0 crash", 50)
    assert decided_in(Jump(BEFORE, AFTER), 95, events, _branches) == [said]
    assert decided_in(Jump(AFTER, Estimate(2, 48, 8, 8)), 95, events, _branches) == []
    whole = decided_in(Jump(BEFORE, None), 95, events, _branches)
    assert whole == [said, Happening(90, DRAWN, "s bridge_down", 90)], "to the failure itself"
    assert decided_in(Jump(BEFORE, AFTER), 49, events, _branches) == [], "later than the failure"


def test_it_is_told_first() -> None:
    crash = Happening(50, DRAWN, "b.0 crash", 50)
    around = [Happening(at, PACKET, f"packet {at}", at) for at in (10, 20, 35, 47, 48, 70)]
    found = sorted([*around, Happening(50, EVENT, "b.0 crash", 50)])
    decision = Decision("r", (), 95, Search((), lambda _at, _n: iter(()), 1), found)
    jump = Jump(BEFORE, AFTER)
    plain = [one.at_ns for one in decision.within(jump)]
    assert plain == [20, 35, 47, 48]
    told = Decision("r", (), 95, decision.search, found, drawn={30: [crash]})
    assert [one.at_ns for one in told.within(jump)] == [50, *plain]
