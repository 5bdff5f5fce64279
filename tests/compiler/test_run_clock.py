"""When planned events happen that were held or skipped by hand (compiler/plan/run_clock.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler import extension
from compiler.extension import NotNowError
from compiler.pipeline import compile_source
from compiler.plan.reader import Plan
from compiler.plan.run_clock import RunClock
from compiler.sources import RecordedFiles

S = 1_000_000_000
TEXT = """\
seed 5
service server replicas=3
service client
bridges s1 s2
link server--s1 latency=1ms
link client--s2 latency=1ms
link s1--s2 latency=10ms
from 6s to 8s s1--s2 flap 1s
at 20s server.0 crash
at 30s quit
"""

Op = tuple[str, int]


class Model:
    """The same with a clock that is followed step by step."""

    def __init__(self, planned: list[int]) -> None:
        self.left = sorted(planned)
        self.done: dict[int, int] = {}
        self.run = self.text = 0
        self.held = False

    def _happen(self, until: int, at: int | None) -> None:
        while self.left and self.left[0] <= until:
            time = self.left.pop(0)
            self.done[time] = self.run + time - self.text if at is None else at

    def wait(self, length: int) -> None:
        if not self.held:
            self._happen(self.text + length, None)
            self.text += length
        self.run += length

    def skip(self, length: int) -> None:
        self._happen(self.text + length, self.run)
        self.text += length


OPS = st.lists(
    st.tuples(st.integers(1, 50), st.sampled_from(["hold", "go", "skip"]), st.integers(1, 40)),
    max_size=8,
)


@given(st.sets(st.integers(0, 400), max_size=30), OPS)
def test_holding_and_skipping_is_what_a_clock_does_step_by_step(
    planned: set[int], ops: list[tuple[int, str, int]]
) -> None:
    model, clock = Model([2 * one for one in planned]), RunClock()
    for number, (pause, word, length) in enumerate(ops, 1):
        model.wait(2 * pause + (model.text + (0 if model.held else 2 * pause)) % 2)
        if not model.held and model.text % 2 == 0:
            model.wait(1)  # never when something is planned
        text, held = clock.text(model.run), clock.held_ns is not None
        assert (text, held) == (model.text, model.held)
        if word == "hold" and not held:
            clock.tell(number, "hold", text, 0)
            model.held = True
        elif word == "go" and held:
            clock.tell(number, "go", model.run, 0)
            model.held = False
        elif word == "skip":
            if held:
                clock.tell(number, "go", model.run, 0)
            clock.tell(number, "skip", text, text + 2 * length)
            if held:
                clock.tell(number, "hold", text + 2 * length, 0)
            model.skip(2 * length)
        if clock.told_ns != model.run:  # nothing was told
            assert (word == "hold") == held and word != "skip"
        if not model.held and clock.told_ns >= 0:
            free_ns = max(clock.free_ns, model.run)
            assert clock.run(clock.text(free_ns)) == free_ns
    if not model.held:
        model.wait(10_000)
    times = sorted(2 * one for one in planned)
    assert [clock.run(one) for one in times] == [model.done.get(one) for one in times]


def seen(plan: Plan) -> list[tuple[float, str, str]]:
    return [
        (e.at_ns / S, e.kind, e.target) for e in plan.events if e.at_ns and "s2->" not in e.target
    ]


@pytest.fixture
def plan() -> Plan:
    return compile_source(TEXT).plan


def test_what_is_held_waits_and_what_is_done_by_hand_does_not(plan: Plan) -> None:
    held = extension.hold(plan, 1, 6500 * S // 1000).plan
    assert seen(held) == [(6, "link_down", "s1->s2")]
    assert held.end_ns > 3600 * S
    acted = extension.extend(held, 2, "server.1 crash\nat +1s server.1 join", 9 * S).plan
    assert seen(acted) == [*seen(held), (9, "crash", "server.1")]
    again = extension.extend(acted, 3, "server.2 crash", 10 * S).plan
    assert seen(again) == [*seen(acted), (10, "crash", "server.2")]
    gone_on = extension.go(again, 4, 12 * S).plan
    assert seen(gone_on) == [
        *seen(again),
        (12.5, "link_up", "s1->s2"),
        (13, "join", "server.1"),
        (25.5, "crash", "server.0"),
        (35.5, "quit", ""),
    ]
    assert gone_on.end_ns == 35.5 * S


def test_what_is_skipped_happens_at_once_and_the_rest_comes_earlier(plan: Plan) -> None:
    skipped = extension.skip(plan, 1, 10 * S, 2 * S).plan
    assert seen(skipped) == [
        (2, "link_down", "s1->s2"),
        (2, "link_up", "s1->s2"),
        (12, "crash", "server.0"),
        (22, "quit", ""),
    ]
    following = extension.skip(skipped, 2, None, 5 * S).plan
    assert seen(following)[2:] == [(5, "crash", "server.0"), (15, "quit", "")]
    later = extension.extend(following, 3, "at 25s server.1 crash", 6 * S).plan  # of the text
    assert seen(later)[3:] == [(10, "crash", "server.1"), (15, "quit", "")]


def test_what_is_held_may_be_skipped_and_is_held_again(plan: Plan) -> None:
    held = extension.hold(plan, 1, 1 * S).plan
    first = extension.skip(held, 2, None, 3 * S).plan
    assert seen(first) == [(3, "link_down", "s1->s2")]
    second = extension.skip(first, 3, 8 * S, 4 * S).plan
    assert seen(second) == [(3, "link_down", "s1->s2"), (4, "link_up", "s1->s2")]
    assert extension.is_held(second)
    assert seen(extension.go(second, 4, 5 * S).plan)[2:] == [
        (17, "crash", "server.0"),
        (27, "quit", ""),
    ]


def test_the_plan_is_what_its_source_gives(plan: Plan) -> None:
    for extended in (
        extension.hold(plan, 1, S).plan,
        extension.go(extension.hold(plan, 1, S).plan, 2, 3 * S).plan,
        extension.skip(plan, 1, 7 * S, S).plan,
    ):
        again = compile_source(extended.source, sources=RecordedFiles(extended)).plan
        assert again.digest == extended.digest


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TEXT + "expect loss server client < 1% from 2s to 4s\n", "expectations name times"),
        (
            TEXT + "expect drivers client\n",
            "`expect drivers client` begins its checks at .*s of the",
        ),
        (TEXT, "not held"),
        (TEXT + "at 10s server.1 restart\nat 11s server.1 restart\n", "joins more than once"),
    ],
)
def test_what_cannot_wait_is_refused(text: str, what: str) -> None:
    plan = compile_source(text).plan
    with pytest.raises(NotNowError, match=what):
        if "not held" in what:
            extension.go(plan, 1, S)
        else:
            extension.skip(plan, 1, 15 * S, S)


def test_expectations_of_the_whole_run_do_not_mind() -> None:
    plan = compile_source(TEXT + "expect valid\nexpect loss server client < 1%\n").plan
    held = extension.hold(plan, 1, S).plan
    gone_on = extension.go(held, 2, 3 * S).plan
    assert {one.to_ns for one in gone_on.expectations} <= {0, gone_on.end_ns}


def test_what_is_over_or_held_already_is_refused(plan: Plan) -> None:
    with pytest.raises(NotNowError, match="over"):
        extension.skip(plan, 1, 2 * S, 3 * S)
    with pytest.raises(NotNowError, match="already"):
        extension.hold(extension.hold(plan, 1, S).plan, 2, 2 * S)
    over = extension.hold(compile_source(TEXT.replace("at 30s quit\n", "")).plan, 1, 25 * S).plan
    with pytest.raises(NotNowError, match="nothing is planned"):
        extension.skip(over, 2, None, 26 * S)
