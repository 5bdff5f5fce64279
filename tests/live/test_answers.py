"""What is said of an action that was taken, also where it has no events of its own."""

from __future__ import annotations

from typing import Any

import pytest

from compiler import extension
from compiler.pipeline import compile_source
from tstorm.live.answers import told_lines
from tstorm.live.steer import Done, others

S = 10**9
PLAN = compile_source(
    "service a img=x replicas=2\nservice b img=x\nlink a--b latency=1ms\n"
    "at 4s b leave\nat 5s b join\nat 9s quit\n"
).plan


def said(plan: Any, longer: Any, number: int = 1) -> list[str]:
    own = [e for e in longer.events if e.file == f"do@{number}"]
    first = [{"at_ns": e.at_ns, "kind": e.kind, "target": e.target} for e in own]
    told = {"action": number, "planned_ns": S, "events": len(own), "first": first}
    more = {"others": others(plan, longer, number), "held": extension.is_held(longer)}
    happening = extension.is_held(plan) and extension.is_held(longer)
    return list(told_lines(Done({**told, **more}, (), f"do@{number}", happening)))


def test_an_action_with_events_says_which() -> None:
    longer = extension.extend(PLAN, 1, "a.1 crash", S).plan
    assert others(PLAN, longer, 1) == 0
    assert said(PLAN, longer) == ["action 1 from 1s on, 1 event", "  1s crash a.1"]


def test_one_that_the_run_has_already_says_so() -> None:
    longer = extension.extend(PLAN, 1, "a--b set latency=1ms", S).plan
    assert said(PLAN, longer)[1:] == ["  nothing is otherwise: the run has it so already"]


def test_what_waits_and_what_moves_is_counted() -> None:
    held = extension.hold(PLAN, 1, S).plan
    assert said(PLAN, held)[1:] == ["  3 planned events wait from then on"]
    later = extension.extend(held, 2, "at +1s a.1 crash", 2 * S).plan
    assert said(held, later, 2)[1:] == [
        "  planned events are held: what it does later waits, too, until `tstorm go`"
    ]
    gone = extension.go(later, 3, 3 * S).plan
    assert others(later, gone, 3) == 4, "with the crash"
    skipped = extension.skip(PLAN, 1, None, S).plan
    assert said(PLAN, skipped)[1:] == ["  3 planned events are otherwise from then on"]


def test_what_is_skipped_to_while_the_rest_waits_happens() -> None:
    held = extension.hold(PLAN, 1, S).plan
    one = extension.skip(held, 2, None, 2 * S).plan
    assert said(held, one, 2)[1:] == ["  1 planned event happens then"]
    rest = extension.skip(one, 3, 9 * S, 3 * S).plan
    assert said(one, rest, 3)[1:] == ["  2 planned events happen then"]


@pytest.mark.parametrize(("count", "words"), [(1, "event is"), (2, "events are")])
def test_events_of_others_that_change_are_told(count: int, words: str) -> None:
    told = {"action": 1, "planned_ns": S, "events": 0, "first": [], "others": count, "held": False}
    said = list(told_lines(Done(told, (), "do@1")))
    assert said[1] == f"  {count} planned {words} otherwise from then on"
