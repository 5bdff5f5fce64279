"""Which steps a run takes and when, by start, end and pace; when rejoins are prepared."""

from __future__ import annotations

from itertools import pairwise

import pytest

from compiler.plan.reader import read_plan
from runtime import schedule as tl
from runtime.errors import RunError
from runtime.options import RunOptions
from tests.runtime.support import Compile

S = 1_000_000_000
TEXT = """
service server img=x replicas=2
bridge s1
link server--s1 latency=1
at 10s server.0 crash
at 10s server.0 join
at 20s server.1 leave
at 30s server.1 join
at 40s quit
"""


def timeline(plan_of: Compile, **options: int) -> tl.Schedule:
    return tl.Schedule(read_plan(plan_of(TEXT)), RunOptions(**options))  # type: ignore[arg-type]


def test_the_whole_plan(plan_of: Compile) -> None:
    whole = timeline(plan_of)
    assert [step.due_ns for step in whole.steps] == [0, 10 * S, 20 * S, 30 * S, 40 * S]
    assert whole.steps[0].joins == ("server.0", "server.1")
    assert whole.steps[1].joins == ("server.0",)
    assert (whole.total, whole.folded, whole.end_due_ns) == (7, 0, 40 * S)


def test_pace_divides_due_times(plan_of: Compile) -> None:
    fast = timeline(plan_of, pace=3)
    assert [step.due_ns for step in fast.steps][1:3] == [10 * S // 3, 20 * S // 3]
    assert fast.clock.plan_time(10 * S // 3) == pytest.approx(10 * S, abs=3)


def test_until_includes_events_at_that_time(plan_of: Compile) -> None:
    part = timeline(plan_of, until_ns=20 * S)
    assert [step.due_ns for step in part.steps] == [0, 10 * S, 20 * S]
    assert part.end_due_ns == 20 * S
    assert timeline(plan_of, until_ns=99 * S).end_due_ns == 40 * S


def test_start_at_folds_what_was_before(plan_of: Compile) -> None:
    late = timeline(plan_of, start_at_ns=20 * S)
    assert late.folded == 5
    assert late.steps[0].events == ()
    assert [(step.due_ns, len(step.events)) for step in late.steps] == [
        *((0, 0), (10 * S, 1), (20 * S, 1))
    ]


def test_who_is_paused_or_killed_at_the_start(plan_of: Compile) -> None:
    """server.0 crashes at 10 s, server.1 at 20 s."""
    text = TEXT + "at 5s server pause\nat 15s server.1 resume\nat 16s server.1 pause for 9s\n"
    text += "at 17s server.1 kill\n"
    plan = read_plan(plan_of(text))
    found = {
        at: dict(tl.Schedule(plan, RunOptions(start_at_ns=at * S)).held)
        for at in (0, 5, 10, 15, 16, 17, 20)
    }
    both, one = {"server.0": "pause", "server.1": "pause"}, {"server.1": "pause"}
    killed = {"server.1": "kill"}
    assert found == {0: {}, 5: both, 10: one, 15: {}, 16: one, 17: killed, 20: {}}


def test_only_rejoins_are_prepared_later(plan_of: Compile) -> None:
    whole = timeline(plan_of)
    assert tl.first_incarnations(whole) == ["server.0", "server.1"]
    found = tl.preparations(whole)
    assert [(item.name, item.step) for item in found] == [("server.0", 1), ("server.1", 3)]
    assert [item.begin_ns for item in found] == [7 * S, 27 * S]


def test_a_present_instance_is_prepared_for_its_rejoin(plan_of: Compile) -> None:
    late = timeline(plan_of, start_at_ns=5 * S)
    assert late.present == {"server.0", "server.1"}
    assert tl.first_incarnations(late) == ["server.0", "server.1"]
    assert len(tl.preparations(late)) == 2


def test_many_rejoins_at_once_are_spread_before_it(plan_of: Compile) -> None:
    text = (
        "service server img=x replicas=50\nbridge s1\nlink server--s1 latency=1\n"
        "at 0s server join\nat 60s server crash\nat 70s server join\nat 80s quit\n"
    )
    found = tl.preparations(tl.Schedule(read_plan(plan_of(text)), RunOptions()))
    begins = [item.begin_ns for item in found]
    assert begins == sorted(begins)
    assert begins[-1] == 67 * S
    assert all(b - a == tl.PREPARE_COST_NS for a, b in pairwise(begins))


def test_an_instance_that_never_joins_in_time_is_not_made(plan_of: Compile) -> None:
    text = (
        "service server img=x replicas=2\nbridge s1\nlink server--s1 latency=1\n"
        "at 0s server.0 join\nat 50s server.1 join\nat 60s quit\n"
    )
    plan = read_plan(plan_of(text))
    short = tl.Schedule(plan, RunOptions(until_ns=10 * S))
    assert tl.first_incarnations(short) == ["server.0"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pace": 0}, "pace is 0"),
        ({"datapath": "magic"}, "datapath is 'magic'"),
        ({"start_at_ns": -1}, "start_at_ns is -1"),
        ({"start_at_ns": 5, "until_ns": 4}, "before the start"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, int], words: str) -> None:
    with pytest.raises(RunError, match=words):
        RunOptions(**options)  # type: ignore[arg-type]


def test_a_start_after_the_end_is_refused(plan_of: Compile) -> None:
    assert timeline(plan_of, start_at_ns=40 * S).total == 0
    with pytest.raises(RunError, match="after the experiment's end at 40 s"):
        timeline(plan_of, start_at_ns=40 * S + 1)
