"""Within the statements that are left: rounds, parts, names, occurrences and intervals go."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from tdl.diagnostics import TdlError
from tstorm.shrink import loops, occurrences, pieces, windows
from tstorm.shrink.failures import Failure
from tstorm.shrink.script import Script
from tstorm.shrink.search import Shrunk, search
from tstorm.shrink.text import Subset
from tstorm.shrink.text_meaning import TextMeaning
from tstorm.shrink.trials import Attempt, Bounds, Trials

WANTED = Failure("expectation", "expect valid")
HEAD = """\
service server img=x replicas=5 tags=all
service other img=x
bridges s dc[0..5] tags=bridge
link server--s latency=1ms
link other--s latency=1ms
link s--dc0 name=first latency=1ms tags=near
link s--dc1 latency=1ms tags=second
for i in 2..5 {
    link s--dc$i latency=1ms
}
link s--dc0 name=beside latency=9ms
"""
TAIL = "at 60s quit\n"
Happening = tuple[int, str, str]


def happening(text: str) -> list[Happening]:
    """All events but those that begin the experiment and end it."""
    events = compile_source(text).events
    return [(one.at_ns, one.kind, one.target) for one in events if one.line and one.target]


def shrunk(text: str, needed: Collection[Happening]) -> tuple[Shrunk, list[Attempt]]:
    """A text fails if all of this happens in it."""

    def run(tried: str) -> Collection[Failure] | None:
        try:
            return {WANTED} if set(needed) <= set(happening(tried)) else set()
        except TdlError:
            return None

    seen: list[Attempt] = []
    trials = Trials(run, {WANTED}, Bounds(1000), lambda: 0.0, seen.append)
    reading = TextMeaning()
    return search(reading.script(text), trials, reading), seen


def left(statements: str, *needed: tuple[str, str, str]) -> str:
    """What is left of them: only what happens at such a time (in s) is needed."""
    text = HEAD + statements + TAIL
    wanted = [
        (at_ns, kind, target)
        for at_ns, kind, target in happening(text)
        if any((f"{at_ns / 1e9:g}", kind, target) == one for one in needed)
    ]
    assert len(wanted) >= len(needed)
    found, _ = shrunk(text, wanted)
    assert found.confirmed
    assert found.text.startswith(HEAD)
    return found.text.removeprefix(HEAD).rpartition("at ")[0]


@pytest.mark.parametrize(
    ("statement", "needed", "result"),
    [
        ("at 5s dc2 leave and dc3 leave and dc4 leave # x", ("5", "bridge_down", "dc3"),
         "at 5s dc3 leave # x"),
        ("at 5s dc2 leave and \\\n    dc3 leave", ("5", "bridge_down", "dc3"), "at 5s dc3 leave"),
        ("at 5s dc2;dc3;dc4 leave", ("5", "bridge_down", "dc4"), "at 5s dc4 leave"),
        ("from 5s to 6s tags=bridge leave", ("5", "bridge_down", "dc4"),
         "from 5s to 6s dc4 leave"),
        ("at 5s dc[1..5] leave", ("5", "bridge_down", "dc4"), "at 5s dc4 leave"),
        ("at 5s tags=near;second leave", ("5", "link_down", "s->dc1"), "at 5s tags=second leave"),
        ("at 5s tags=near;second leave", ("5", "link_down", "first:s->dc0"),
         "at 5s tags=near leave"),
        ("at 5s dc0--s set loss=1%", ("5", "set", "beside:dc0->s"),
         "at 5s beside:dc0--s set loss=1%"),
        ("at 5s first;beside leave", ("5", "link_down", "beside:s->dc0"), "at 5s beside leave"),
        ("at 5s tags=bridge leave", ("5", "bridge_down", "dc4"), "at 5s dc4 leave"),
        ("at 5s crash server", ("5", "crash", "server.2"), "at 5s server.2 crash"),
        ("at 5s s--server set latency=9ms loss=1%", ("5", "set", "s->server.3"),
         "at 5s s--server.3 set latency=9ms"),
        ("from 5s to 9s server disconnect", ("5", "disconnect", "server.4"),
         "from 5s to 5.01s server.4 disconnect"),
        ("at 5s server disconnect for 5s", ("5", "disconnect", "server.4"),
         "at 5s server.4 disconnect for 5s"),
        ("from 10s to 50s first flap 1s", ("24", "link_down", "first:s->dc0"),
         "from 24s to 24.4s first flap 1s"),
    ],
)  # fmt: skip
def test_one_of_many(statement: str, needed: tuple[str, str, str], result: str) -> None:
    assert left(statement + "\n", needed) == result + "\n"


LOOP = """\
for i in 1..9 {   # nine
    # one of them
    at ${i}0s dc0 leave
    at ${i}5s dc0 join
}
"""


def test_rounds_that_follow_each_other_stay_a_loop() -> None:
    needed = ("20", "bridge_down", "dc0"), ("30", "bridge_down", "dc0"), ("25", "bridge_up", "dc0")
    assert left(LOOP, *needed) == LOOP.replace("1..9", "2..3")


def test_a_single_round_is_written_out_without_its_loop() -> None:
    result = "# one of them\nat 20s dc0 leave\nat 25s dc0 join\n"
    assert left(LOOP, ("20", "bridge_down", "dc0"), ("25", "bridge_up", "dc0")) == result


def test_rounds_apart_are_written_out_one_by_one() -> None:
    loop = "for i in 0..4 { \n  at 5${i}s server.$i crash   # round $i\n}\n"
    result = "at 51s server.1 crash   # round 1\nat 54s server.4 crash   # round 4\n"
    assert left(loop, ("51", "crash", "server.1"), ("54", "crash", "server.4")) == result


def test_a_round_that_defines_something_stays_in_its_loop() -> None:
    loop = "for i in 0..4 {\n    let when = 5${i}s\n    at $when server.$i crash\n}\n"
    assert left(loop, ("53", "crash", "server.3")) == loop.replace("0..4", "3..3")


def test_loops_in_loops() -> None:
    loop = """\
for i in 1..3 {
    for j in 1..4 {
        at ${i}${j}s dc$j leave
        at ${i}${j}.5s dc$j join
    }
}
"""
    needed = ("23", "bridge_down", "dc3")
    assert left(loop, needed) == "at 23s dc3 leave\nat 23.5s dc3 join\n"


def test_a_loop_of_declarations_is_left_alone() -> None:
    loop = "bridges x[1..4]\nfor i in 1..4 {\nlink s--x$i latency=1ms\nat 5s x$i leave\n}\n"
    found, _ = shrunk(HEAD + loop + TAIL, {(5 * 10**9, "bridge_down", "x3")})
    assert found.text.startswith(HEAD + loop)


def test_a_loop_of_which_nothing_is_left_goes_whole() -> None:
    assert left(LOOP + "at 58s dc1 leave\n", ("58", "bridge_down", "dc1")) == "at 58s dc1 leave\n"


def test_what_was_drawn_in_an_interval_is_written_out() -> None:
    statement = "from 10s to 50s server churn 6 replace 100%\nfrom 1s to 9s server disconnect 2\n"
    text = HEAD + statement + TAIL
    events = happening(text)
    fourth = [one for one in events if one[1] == "crash"][3]
    cut = next(one for one in events if one[1] == "disconnect")
    found, _ = shrunk(text, {fourth, cut})
    first, second, _ = found.text.removeprefix(HEAD).splitlines()
    assert first.endswith(f" {fourth[2]} restart")
    assert second == f"from 1s to 1.1s {cut[2]} disconnect"


def test_instances_that_join_one_by_one_are_not_mistaken_for_others() -> None:
    """Written out they would be there from the beginning: another experiment."""
    statement = "from 10s to 50s server join 4\nat 55s server leave\n"
    found, _ = shrunk(HEAD + statement + TAIL, set(happening(HEAD + statement + TAIL)[:1]))
    assert "from 10s to 50s server join 4" in found.text


def test_what_is_needed_as_a_whole_stays_as_it_was_written() -> None:
    text = HEAD + "at 5s   dc[0..1]   leave and dc2;dc3 leave\n" + TAIL
    found, seen = shrunk(text, happening(text))
    assert found.text.startswith(text.removesuffix(TAIL))
    assert len({one.text for one in seen}) == len(seen)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_they_like(newline: str) -> None:
    text = "\ufeff" + (HEAD + LOOP + "at 58s dc1;dc2 leave\n" + TAIL).replace("\n", newline)
    found, _ = shrunk(
        text, {(58 * 10**9, "bridge_down", "dc2"), (20 * 10**9, "bridge_down", "dc0")}
    )
    kept = found.text.removeprefix("\ufeff" + HEAD.replace("\n", newline)).split(newline)
    lines = ["# one of them", "at 20s dc0 leave", "at 25s dc0 join", "at 58s dc2 leave"]
    assert kept[:4] == lines
    assert len(kept) == 6


STATEMENTS = (
    "at 5s dc0;dc1;dc2 leave",
    "at 6s dc[3..5] leave and s--dc1 set latency=9ms jitter=1ms",
    "from 7s to 40s server churn 3 replace 50%",
    "from 8s to 12s s--dc0 flap 700ms",
    "at 9s server--s set loss=1% up=5Mb symmetric",
    "for i in 13..18 {\n    at ${i}s dc0--s set latency=${i}ms\n}",
    "from 20s to 30s other disconnect",
    "at 21s tags=first;second set latency+=3ms",
    "at 22s server pause 2 for 3s",
    "at 45s server.1--s leave",
)


@settings(max_examples=15)
@given(st.data())
def test_whatever_is_needed_is_left(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=4, unique=True))
    text = HEAD + "".join(f"{one}\n" for one in chosen) + TAIL
    events = happening(text)
    needed = data.draw(st.lists(st.sampled_from(events), min_size=1, max_size=3))
    found, seen = shrunk(text, needed)
    assert set(needed) <= set(happening(found.text))
    assert len(happening(found.text)) <= len(events)
    finer = [one for one in seen if not one.what.endswith("statements")]
    assert all(one.runs for one in finer), "what does not compile costs no attempt"


@settings(max_examples=25)
@given(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=5, unique=True))
def test_a_choice_of_everything_is_the_same_timeline(chosen: list[str]) -> None:
    text = HEAD + "".join(f"{one}\n" for one in chosen) + TAIL
    reading = TextMeaning()
    script = reading.script(text)
    for choice in every_choice(script, reading):
        assert choice.possible()
        whole = choice.text(range(choice.count))
        assert whole is not None
        assert happening(whole) == happening(text), choice.what
    for window in windows.windows(script, reading):
        same = window.text(window.start_ns, window.end_ns)
        assert same is not None
        assert happening(same) == happening(text)


def every_choice(script: Script, reading: TextMeaning) -> list[Subset]:
    finds = (loops.rounds, pieces.clauses, pieces.names, pieces.properties)
    found = [choice for find in finds for choice in find(script)]
    return [*found, *occurrences.occurrences(script, reading)]
