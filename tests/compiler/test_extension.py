"""What is done to a running experiment, as a longer plan (compiler/extension.py)."""

from __future__ import annotations

import pytest

from compiler.extension import NotNowError, TimedText, extend, is_held, is_moved
from compiler.origin import explain_event
from compiler.pipeline import compile_source
from compiler.plan.reader import Plan
from tdl.diagnostics import Diagnostic, TdlError

S = 1_000_000_000
TEXT = """\
seed 5
service server replicas=3
service client
bridges s1 s2
link server--s1 latency=1ms
link client--s2 latency=1ms
link s1--s2 latency=10ms
at 4s s1--s2 set latency=11ms
at 20s server.0 crash
at 30s quit
"""


@pytest.fixture
def plan() -> Plan:
    return compile_source(TEXT).plan


def events(plan: Plan, number: int) -> list[tuple[int, str, str]]:
    """Of an action."""
    return [(e.at_ns, e.kind, e.target) for e in plan.events if e.file == f"do@{number}"]


def refused(plan: Plan, text: str, now_ns: int, number: int = 1) -> tuple[Diagnostic, ...]:
    with pytest.raises(TdlError) as caught:
        extend(plan, number, text, now_ns)
    return caught.value.diagnostics


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("a leave # x\x0cb leave", "at 7s a leave # x\x0cb leave\n"),
        ("a leave # x\u2028b leave", "at 7s a leave # x\u2028b leave\n"),
        ("a leave # x \\\nb leave\r\n", "at 7s a leave # x \\\nat 7s b leave\n"),
        ("a leave\rb leave", "at 7s a leave\nat 7s b leave\n"),
        ("a set \\\n  loss=1%\nb leave", "at 7s a set \\\n  loss=1%\nat 7s b leave\n"),
        ("for i in 0..1 { s.$i leave }", "for i in 0..1 { at 7s s.$i leave }\n"),
        ("for i in 0..1 { at +1s s.$i leave }", "for i in 0..1 { at 8s s.$i leave }\n"),
    ],
)
def test_a_line_is_what_the_language_takes_for_one(given: str, written: str) -> None:
    """What is a comment there is none of the action's statements."""
    assert TimedText(given, 7 * S).text == written


@pytest.mark.parametrize("text", ["", "\n \n", "# nothing\n  # at all"])
def test_an_action_does_something(plan: Plan, text: str) -> None:
    with pytest.raises(NotNowError, match="does nothing"):
        extend(plan, 1, text, 5 * S)


def test_a_comment_does_not_hold_the_run(plan: Plan) -> None:
    """Words for the run's clock are the driver's own."""
    text = f"s1--s2 leave\n#: hold {9 * S}\n#: now 1\n#: skip 1 {20 * S}"
    found = extend(plan, 1, text, 5 * S).plan
    assert not is_held(found)
    assert not is_moved(found)
    assert found.end_ns == plan.end_ns
    assert events(found, 1)[0] == (5 * S, "link_down", "s1->s2")


def test_times_count_from_the_moment_and_may_be_left_out() -> None:
    text = "server crash 1\nat now heal\n  from now to +10s a--b flap 1s\nat +1m30s a leave\n"
    text += "at 40s a leave\n# a comment\n\nfor i in 0..1 {\n  s.$i crash\n}\nat +soon a leave"
    assert TimedText(text, 7 * S).text.splitlines() == [
        "at 7s server crash 1",
        "at 7s heal",
        "  from 7s to 17s a--b flap 1s",
        "at 1m37s a leave",
        "at 40s a leave",
        "# a comment",
        "",
        "for i in 0..1 {",
        "  at 7s s.$i crash",
        "}",
        "at +soon a leave",
    ]


def test_places_are_those_of_the_text_as_it_was_given() -> None:
    timed = TimedText("server crash 1\nfrom now to +10s a--b flap 1s", 3661 * S)
    assert timed.text == "at 1h1m1s server crash 1\nfrom 1h1m1s to 1h1m11s a--b flap 1s\n"
    for line, given in enumerate(("server crash 1", "from now to +10s a--b flap 1s"), 1):
        written = timed.text.splitlines()[line - 1]
        for word in given.split():
            if word in ("server", "crash", "from", "to", "a--b", "flap"):
                at = timed.place(line, written.index(word) + 1)
                assert at == (line, given.index(word) + 1), word
    assert timed.place(2, timed.text.splitlines()[1].index("1h1m11s") + 3) == (2, 13)  # `+10s`


def test_an_action_sees_what_is_there_and_what_is_planned_goes_on(plan: Plan) -> None:
    longer = extend(plan, 1, "s1--s2 set latency=50ms\nserver.1 crash", 3 * S).plan
    assert events(longer, 1) == [
        (3 * S, "set", "s1->s2"),
        (3 * S, "set", "s2->s1"),
        (3 * S, "crash", "server.1"),
    ]
    link = [link.name for link in longer.topology.links].index("s1->s2")
    delays = [longer.folded_at(t * S).links[link].delay_ns for t in (2, 3, 4)]
    assert delays == [10_000_000, 50_000_000, 11_000_000]
    assert longer.topology == plan.topology
    again = extend(longer, 2, "server join 1", 6 * S).plan
    assert events(again, 2) == [(6 * S, "join", "server.1")]
    assert [e for e in again.events if e.at_ns < 3 * S] == [e for e in plan.events if not e.at_ns]


def test_draws_are_those_of_the_number_whenever_it_is() -> None:
    text = TEXT.replace("at 20s server.0 crash\n", "")
    plan = compile_source(text).plan

    def crashed(number: int, now_ns: int) -> str:
        return events(extend(plan, number, "server crash 1", now_ns).plan, number)[0][2]

    drawn = [{crashed(number, t * S) for t in range(1, 19)} for number in range(1, 9)]
    assert all(len(one) == 1 for one in drawn)
    assert len(set.union(*drawn)) > 1
    other = compile_source(text, seed=6).plan
    first = [crashed(number, S) for number in range(1, 9)]
    assert first != [
        events(extend(other, n, "server crash 1", S).plan, n)[0][2] for n in range(1, 9)
    ]


def test_where_its_event_comes_from_is_explained(plan: Plan) -> None:
    longer = extend(plan, 1, "server crash 1", 3 * S).plan
    seq = next(e.seq for e in longer.events if e.kind == "crash")
    story = explain_event(longer, seq)
    assert story.origin.identity is not None
    assert story.origin.identity.text == "do 1"


@pytest.mark.parametrize(
    ("text", "code", "col", "end_col"),
    [
        ("server crsh 1", "TS0018", 8, 12),
        ("at now servr crash", "TS0201", 8, 13),
        ("at +1s server crash 4", "TS0302", 1, 22),
        ("at 2s server crash 1", "TS0321", 1, 21),
        ("service other", "TS0320", 1, 14),
        ("routing hops", "TS0320", 1, 13),
        ("server join 1", "TS0303", 1, 14),
        ("at +60s server crash 1", "TS0904", 1, 23),
        ("quit", "TS0305", 1, 5),
        ("s1--s2 set trace=tr.csv", "TS0320", 18, 24),
        ('at +1s s1--s2 set dist="d.csv"', "TS0320", 24, 31),
        ('at 5s when log server "x" { it crash }', "TS0320", 7, 11),
        ('for i in 1..2 { from now to +5s when log server "x" { it crash } }', "TS0320", 33, 37),
    ],
)
def test_what_is_wrong_is_said_at_its_place(
    plan: Plan, text: str, code: str, col: int, end_col: int
) -> None:
    (found,) = refused(plan, text, 3 * S)
    assert (found.code, found.span.file) == (code, "do@1")
    assert (found.span.line, found.span.col, found.span.end_col) == (1, col, end_col)


def test_what_a_planned_statement_needs_is_not_taken_from_it(plan: Plan) -> None:
    (found,) = refused(plan, "server.0 leave", 3 * S)
    assert (found.span.file, found.span.line) == ("", 9)


def test_all_of_it_or_nothing(plan: Plan) -> None:
    (found,) = refused(plan, "s1--s2 set latency=50ms\nserver.1 crash\nserver.1 crash", 3 * S)
    assert (found.span.file, found.span.line) == ("do@1", 3)


def test_no_more_instances_than_there_are() -> None:
    grows = compile_source(TEXT.replace("service server replicas=3", "service server")).plan
    (found,) = refused(grows, "server join 2", 3 * S)
    assert (found.code, found.span.file) == ("TS0302", "do@1")


@pytest.mark.parametrize(
    ("text", "code", "words", "hint"),
    [
        (
            "client join 1",
            "TS0302",
            "'client' has 1 instance, which is joined, and a running experiment gets no more",
            "declare `service client replicas=2` in the text, with "
            "`at 0s client join 2` and `at 0s client.1 leave`",
        ),
        (
            "client join 2",
            "TS0302",
            "'client' has 1 instance, which is joined",
            "declare `service client replicas=3` in the text, with "
            "`at 0s client join 3` and `for i in 1..2 {",
        ),
        (
            "server join",
            "TS0302",
            "'server' has 3 instances, all joined, and a running experiment gets no more",
            "declare `service server replicas=4` in the text, with "
            "`at 0s server join 4` and `at 0s server.3 leave`",
        ),
        (
            "server join 2",
            "TS0303",
            "3 of 3 'server' instances are joined at 3s; 2 more are asked for",
            "declare `service server replicas=5` in the text, with "
            "`at 0s server join 5` and `for i in 3..4 {",
        ),
        (
            "server.3 join",
            "TS0203",
            "'server' has 3 instances",
            "replicas=4` in the text, with `at 0s server join 4` and `at 0s server.3 leave`",
        ),
        ('when log server "x" { it crash }', "TS0320", "it cannot wait", "into the text"),
        ('when log server "x" {\n  it crash\n}', "TS0320", "it cannot wait", "into the text"),
        ('at 5s when log server "x" {\n  it crash\n}', "TS0320", "it cannot wait", "into the text"),
        ("when log", "TS0320", "it cannot wait", "into the text"),
        ('now when log server "x" { it crash }', "TS0320", "it cannot wait", "into the text"),
        ('+5s when log server "x" {\n  it crash\n}', "TS0320", "it cannot wait", "into the text"),
        (
            "for i in 0..1 { now when exit server.$i { it join } }",
            "TS0320",
            "it cannot",
            "into the",
        ),
        ("s1--s2 set trace=tr.csv", "TS0320", "the plan has no 'tr.csv'", "name it in the text"),
        ('include "x.tdl"', "TS0151", "the plan has no 'x.tdl'", "the files that its text names"),
        (
            "at +60s server crash 1",
            "TS0904",
            "quits at 30s; this statement would come after that: all of it is refused",
            "before the quit",
        ),
        ("from +5s to +60s s1--s2 flap 9s", "TS0904", "the rest of this statement would", "move"),
        ("expect rtt client server < 5ms", "TS0320", "it declares and expects nothing", "and run"),
        ("at now expect rtt client server < 5ms", "TS0320", "and expects nothing", "and run"),
        ("+5s expect exit server 0", "TS0320", "it declares and expects nothing", "and run"),
        ("expect rtt client server < 5ms from now to +5s", "TS0320", "and expects nothing", "run"),
        (
            'expect log server "x" within +5s',
            "TS0320",
            "it declares and expects nothing",
            "and run",
        ),
        ("for i in 0..1 { at now expect exit server.$i 0 }", "TS0320", "and expects", "and run"),
        (
            "at now link client--s1 latency=2",
            "TS0320",
            "it declares and expects nothing",
            "and run",
        ),
        ("now server crash 1", "TS0009", "a time without its `at`", "write `at now …`"),
        ("+5s server crash 1", "TS0009", "a time without its `at`", "write `at +5s …`"),
        ("5s server crash 1", "TS0009", "a time without its `at`", "write `at 5s …`"),
        ("now to +5s server crash 1", "TS0009", "its `from`", "write `from now to +5s …`"),
        ("now quit", "TS0009", "a time without its `at`", "write `at now …`"),
    ],
)
def test_what_belongs_into_the_text_is_said_to(
    plan: Plan, text: str, code: str, words: str, hint: str | None
) -> None:
    (found,) = refused(plan, text, 3 * S)
    assert (found.code, found.span.line, found.span.file) == (code, 1, "do@1")
    assert words in found.message
    assert hint is None or hint in (found.hint or "")


@pytest.mark.parametrize(
    ("own", "instead", "begin"),
    [
        ("at 0s server join 2\n", " (instead of its joins then)", 2),
        ("at 2s server join 2\n", "", 0),
    ],
)
def test_what_a_refused_join_is_told_lets_it_be_done(own: str, instead: str, begin: int) -> None:
    text = TEXT.replace("at 4s", f"{own}at 4s")
    (found,) = refused(compile_source(text).plan, "server join 3", 3 * S)
    leave = f"for i in {begin}..4 {{ at 0s server.$i leave }}"
    assert found.hint == (
        "declare `service server replicas=5` in the text, with "
        f"`at 0s server join 5`{instead} and `{leave}`: {begin} begin, as now; run that"
    )
    text = text.replace("replicas=3", "replicas=5").replace(own if instead else "", "")
    followed = compile_source(text.replace("at 4s", f"at 0s server join 5\n{leave}\nat 4s", 1)).plan
    longer = extend(followed, 1, "server join 3", 3 * S).plan
    joined = [target for _, kind, target in events(longer, 1) if kind == "join"]
    assert len(joined) == 3
    assert {e.target for e in followed.events if e.kind == "join"}.issuperset(joined)


def test_words_that_begin_statements_may_be_names_of_services() -> None:
    plan = compile_source(TEXT.replace("client", "when")).plan
    assert events(extend(plan, 1, "when crash", 3 * S).plan, 1) == [(3 * S, "crash", "when.0")]
    plan = compile_source(TEXT.replace("client", "now")).plan
    assert events(extend(plan, 1, "now crash", 3 * S).plan, 1) == [(3 * S, "crash", "now.0")]
    assert events(extend(plan, 1, "at now now--s2 leave", 3 * S).plan, 1)
    plan = compile_source(TEXT.replace("client", "expect")).plan
    assert events(extend(plan, 1, "at now expect crash", 3 * S).plan, 1)
    plan = compile_source(TEXT.replace("client", "when")).plan
    for text in ("at 5s when crash", "at +1s when.0 crash", "at 5s when--s2 leave"):
        assert events(extend(plan, 1, text, 3 * S).plan, 1), text


def test_lines_behind_the_block_of_a_refused_statement_are_actions() -> None:
    text = 'when log a "}" {\n  it crash  # {\n}\na leave'
    assert TimedText(text, 7 * S).text.splitlines()[1:] == ["  it crash  # {", "}", "at 7s a leave"]


PLACES = """\
service s replicas=5 tags=west
service t replicas=2 tags=west
bridge b
link s--b latency=1ms
link t--b latency=1ms
at 0s s join 2
at 4s s.0 leave
at 40s t.1 leave
at 60s quit
"""


@pytest.mark.parametrize(
    ("more", "action", "joined"),
    [
        ("", "s join 1", ["s.0"]),
        ("", "west join 1", ["s.0"]),
        ("", "s join 50%", ["s.0"]),
        ("", "from now to +5s s join 1", ["s.0"]),
        ("", "s join 1\ns.0 leave\ns join 1", ["s.0", "s.0"]),
        ("at 1s s.3 join\nat 2s s.3 leave\n", "s join 2", ["s.0", "s.3"]),
        ("at 50s s.4 join\n", "s join 1\nat +5s s.4 leave", ["s.4"]),
        ("at 50s s join 1\n", "s join 2\nat +5s s.2 leave", ["s.0", "s.2"]),
        ("", "s join", ["s.0", "s.2", "s.3", "s.4"]),  # nothing is drawn: the run says who cannot
        ("", "s.2 join", ["s.2"]),
    ],
)
def test_a_join_draws_who_has_a_place_in_the_run(more: str, action: str, joined: list[str]) -> None:
    plan = compile_source(PLACES + more).plan
    longer = extend(plan, 1, action, 10 * S).plan
    assert [name for _, kind, name in events(longer, 1) if kind == "join"] == joined
    again = extend(longer, 2, "t.0 leave", 20 * S).plan
    assert events(again, 1) == events(longer, 1)


@pytest.mark.parametrize(
    ("action", "words", "hint"),
    [
        (
            "s join 2",
            "only 1 of the 's' instances that are absent at 2s can join: the others are never there"
            " in the text, so nothing was made for them in this run; 2 are asked for",
            "declare `service s replicas=5` in the text, with `at 0s s join 5` (instead of its"
            " joins then) and `for i in 2..4 { at 0s s.$i leave }`: 2 begin, as now; run that",
        ),
        (
            "s.0 join\nwest join 1",
            "none of the elements with the tag 'west' that are absent at 2s can join: they are"
            " never there in the text, so nothing was made for them in this run",
            "have it begin and leave in the text (`at 0s s.2 join`, `at 0s s.2 leave`), and run"
            " that",
        ),
    ],
)
def test_a_join_that_finds_nobody_with_a_place_is_refused(
    action: str, words: str, hint: str
) -> None:
    plan = compile_source(PLACES.replace("at 4s", "at 1s")).plan
    (found,) = refused(plan, action, 2 * S)
    assert (found.code, found.message, found.hint) == ("TS0302", words, hint)
