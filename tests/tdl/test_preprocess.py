"""let, for and ranges of names: what they stand for, where errors are, and their limits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from tdl import ast
from tdl.diagnostics import Diagnostic, TdlError
from tdl.formatter import format_statement
from tdl.parser import parse_partial
from tdl.presentation import render_json, render_sarif, render_text
from tdl.text_layout import format_text
from tests.tdl import trees
from tests.tdl.helpers import codes, found, meaning, one

NETWORK = """\
let wan = "latency=20ms rate=100Mb"
let last = 2
let image = nginx

service pg replicas=3 img=$image:1 exec="sh -c 'echo $wan $HOME \\$last'"
bridges dc[0..2] core
for i in 0..$last {
    link pg.$i--dc$i latency=0.${i}ms
    link dc$i--core $wan
    figure lost_$i = log pg.$i "x ([0-9]+)"
}
from 5s to 10s pg crash 2
for i in 1..2 { for k in 0..1 {
    at ${i}${k}s pg.$k--dc$k set latency=${i}ms
} }
at 30s dc[0..1] leave and core leave
at 40s partition dc[0..1] tags=x[0..1];dc2
at 50s pg.[1..2] disconnect
at 1m quit
"""
UNROLLED = """\
service pg replicas=3 img=nginx:1 exec="sh -c 'echo latency=20ms rate=100Mb $HOME $last'"
bridges dc0 dc1 dc2 core
link pg.0--dc0 latency=0.0ms
link dc0--core latency=20ms rate=100Mb
figure lost_0 = log pg.0 "x ([0-9]+)"
link pg.1--dc1 latency=0.1ms
link dc1--core latency=20ms rate=100Mb
figure lost_1 = log pg.1 "x ([0-9]+)"
link pg.2--dc2 latency=0.2ms
link dc2--core latency=20ms rate=100Mb
figure lost_2 = log pg.2 "x ([0-9]+)"
from 5s to 10s pg crash 2
at 10s pg.0--dc0 set latency=1ms
at 11s pg.1--dc1 set latency=1ms
at 20s pg.0--dc0 set latency=2ms
at 21s pg.1--dc1 set latency=2ms
at 30s dc0;dc1 leave and core leave
at 40s partition dc0 dc1 tags=x0 tags=x1;dc2
at 50s pg.1;pg.2 disconnect
at 1m quit
"""


def test_a_file_means_what_it_would_mean_written_out() -> None:
    assert meaning(NETWORK) == meaning(UNROLLED)
    broken = NETWORK.replace("lost_$i = log", "lost_$i \\\n        = log")
    assert broken != NETWORK and meaning(broken) == meaning(UNROLLED)


def test_the_draws_are_those_of_the_file_written_out() -> None:
    without = {"at 40s", "at 50s", "at 30s"}
    short, long = (
        "".join(line for line in text.splitlines(True) if line[:6] not in without)
        for text in (NETWORK, UNROLLED)
    )
    events, same = (compile_source(text, seed=3).events for text in (short, long))
    told = [(e.at_ns, e.kind, e.target, e.args) for e in events]
    assert told == [(e.at_ns, e.kind, e.target, e.args) for e in same]
    assert "crash" in {e.kind for e in events}


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("bridges a[0..2] b", "bridges a0 a1 a2 b"),
        ("bridges dc[9..10]-edge", "bridges dc9-edge dc10-edge"),
        ("bridges a tags=x[0..1]", "bridges a tags=x0;x1"),
        ("service a tags=y;x[0..1];z", "service a tags=y;x0;x1;z"),
        ("at 5s a[0..1];b leave", "at 5s a0;a1;b leave"),
        ("at 5s tags=x[0..1] leave", "at 5s tags=x0;x1 leave"),
        ("at 5s partition a[0..1];b[0..1]", "at 5s partition a0 a1;b0 b1"),
        ("let n = 3\nbridges a[0..$n]", "bridges a0 a1 a2 a3"),
        ("let all = 'a b'\nbridges $all c", "bridges a b c"),
        ("let t = 5s\nat $t quit", "at 5s quit"),
        ("let l = a--b\nat 5s $l leave", "at 5s a--b leave"),
        ("let p = 80\nservice a port=$p;443", "service a port=80;443"),
        ("let v = x\nservice a env=A:$v;B:'$v$v'", "service a env=A:x;B:'xx'"),
        ('let v = \'"x"\'\nservice a exec="echo $v"', 'service a exec="echo \\"x\\""'),
        ("let v = x\nservice a command=['$v', $v]", "service a command=['x', 'x']"),
        ("let v = x\nservice a exec=“$v”", "service a exec='x'"),
        ("let a = 1\nlet b = x$a\nlet c = '$b!'\nservice a exec=$c", "service a exec='x1!'"),
        ("for i in 1..2 {\nlet n = s$i\nbridge $n\n}", "bridge s1\nbridge s2"),
        ("for i in 7..7 { bridge s$i } # one", "bridge s7"),
        ("for i in 1..8 step 3 { bridge s$i }", "bridge s1\nbridge s4\nbridge s7"),
        ("for c in oslo;paris { bridge $c-x }", "bridge oslo-x\nbridge paris-x"),
        (
            "for s in 'a b';d { bridges $s c }",
            "bridges a b c\nbridges d c",
        ),
        (
            "let some = '9;1..2'\nfor i in $some;4 { bridge s$i }",
            "bridges s9\nbridges s1\nbridge s2\nbridge s4",
        ),
        ("for x in b[0..1];c { bridge $x }", "bridge b0\nbridge b1\nbridge c"),
        (
            "for i < j in 0..2 { link a.$i--a.$j }",
            "link a.0--a.1\nlink a.0--a.2\nlink a.1--a.2",
        ),
        ("for x < y < z in a;b;c {\nbridges $x $y $z\n}", "bridges a b c"),
        ("for i in 1..2 { at ${i*15}s heal }", "at 15s heal\nat 30s heal"),
        ("let n = 3\nbridges a[${n-1}..${2 * (n + 1) - n*n + 5}]", "bridges a2 a3 a4"),
        ("let n = 3\nlet m = ${n*n}\nseed $m", "seed 9"),
        (
            "let i = 2\nservice a exec='f ${i+1} ${i-z} ${z+i} \\${i+1} ${1}'",
            "service a exec='f 3 ${i-z} ${z+i} \\${i+1} ${1}'",
        ),
        (
            "let i = x\nservice a exec='f ${i-1}' env=A:${i+1}",
            "service a exec='f ${i-1}' env=A:${i+1}",
        ),
        ("let step = a\nbridges $step", "bridges a"),
        ("let for = a\nlet in = b\nbridges $for $in let", "bridges a b let"),
    ],
)
def test_what_is_written_and_what_it_stands_for(written: str, plain: str) -> None:
    assert meaning(written) == meaning(plain)


def test_variables_of_a_shell_stay() -> None:
    text = "service a exec=\"sh -c 'echo $HOME $$ ${x} $TSTORM_NAME'\" env=A:$HOME"
    assert one(text).exec == "sh -c 'echo $HOME $$ ${x} $TSTORM_NAME'"
    assert one(text).env == (("A", "$HOME"),)


def test_a_variable_of_a_loop_ends_with_it() -> None:
    assert codes("for i in 0..1 { bridge s$i }\nbridge t$i") == ["TS0141"]
    assert codes("for i in 0..1 { bridge s$i }\nfor i in 0..1 { bridge t$i }") == []


def place(diagnostic: Diagnostic) -> tuple[int, ...]:
    span = diagnostic.span
    return span.line, span.col, span.end_line, span.end_col


def test_an_error_in_a_loop_stands_at_its_line_and_says_in_which_round() -> None:
    (only,) = found("for i in 0..3 {\n  for k in 0..1 {\n    link a.$i--s$k latency=-$i\n  }\n}")
    assert (only.code, place(only)) == ("TS0026", (3, 28, 3, 31))
    assert only.span.note == "$i = 0, $k = 0, and 7 more"
    (only,) = found("for a < b in x;y;z { bridge $a-$b explode=1 }")
    assert only.span.note == "$a = x, $b = y, and 2 more"


def test_an_error_of_the_model_says_the_round_too() -> None:
    text = "service a replicas=2\nbridge s1\nfor i in 0..3 {\n  link a.$i--s1 latency=5\n}\n"
    with pytest.raises(TdlError) as caught:
        compile_source(text)
    (only,) = caught.value.diagnostics
    assert (only.code, place(only)) == ("TS0203", (4, 8, 4, 12))
    assert only.message == "there is no 'a.2': 'a' has 2 instances"
    assert only.span.note == "$i = 2, and 1 more"


def test_events_have_the_line_that_is_written() -> None:
    text = "service a\nbridge s1\nlink a--s1\nfor i in 1..2 {\n\n  at ${i}s a--s1 set loss=$i%\n}\n"
    assert {event.line for event in compile_source(text).events} == {0, 6}


@pytest.mark.parametrize(
    "text",
    [
        "for i in 1..1000000000 { bridge s$i }",
        "for i in 1..9999 {\nfor k in 1..9999 {\nbridge s$i\n}\n}",
        "for i in 1..1000 {\nfor k in 1..1000 {\nfor l in 1..1000 {\n}\n}\n}",
        "let n = 1000000\nfor i in 1..$n {\n}\nfor k in 1..$n {\n}",
        "for i < j in 1..10000 {\n}",
        "for i in 1..1000 {\nfor k < l in 1..100 {\n}\n}",
        "for i in 1..1000000000000 step 2 {\n}",
    ],
)
def test_loops_beyond_all_limits_are_refused_before_their_first_round(text: str) -> None:
    assert codes(text) == ["TS0145"]


def test_sums_have_an_end() -> None:
    assert codes("bridge s${" + "(" * 16 + "1" + ")" * 16 + "}") == []
    assert codes("bridge s${" + "(" * 50_000 + "1}") == ["TS0148"]
    assert codes("bridge s${" + "9*" * 50_000 + "9}") == ["TS0148"]


def test_a_loop_ends_where_the_language_does() -> None:
    assert codes("for i in 1..70000 { service s$i }") == ["TS0031"]


def test_loops_are_not_nested_without_end() -> None:
    text = "".join(f"for i{n} in 0..0 {{\n" for n in range(17)) + "}\n" * 17
    assert codes(text) == ["TS0145"]


# --- the canonical form ---

LAYOUT = """\
let   wan="latency=20ms"  # the far ones
for   i   <j in 0..2;7  step  2{ # each
  link  a.$i--s1   latency=5
bridge  t  tags=x y


  for k in 0..1 { bridges u$i-$k \\
       v$i-$k } # two
}
service a exec="echo  $HOME" cpu=500m
service b exec="echo  $wan" cpu=500m
bridges  c[0..3]
"""
CANONICAL = """\
let wan = "latency=20ms"  # the far ones
for i < j in 0..2;7 step 2 {  # each
    link  a.$i--s1   latency=5
    bridge t tags=x;y

    for k in 0..1 {
        bridges u$i-$k \\
            v$i-$k
    }  # two
}
service a exec="echo  $HOME" cpu=0.5
service b exec="echo  $wan" cpu=500m
bridges  c[0..3]
"""


def test_the_canonical_form_keeps_loops_and_indents_them() -> None:
    assert format_text(LAYOUT) == CANONICAL
    assert format_text(CANONICAL) == CANONICAL


@pytest.mark.parametrize("text", ["let a", "for i {\n}", "}", "for i in 0..3 {\nservce a\n}"])
def test_a_file_with_errors_is_not_formatted(text: str) -> None:
    with pytest.raises(TdlError):
        format_text(text)


_numbers = st.integers(0, 3)


@st.composite
def programs(draw: st.DrawFn, depth: int = 0) -> str:
    """Texts of lets, loops and statements, most of them with a variable."""
    out = []
    for position in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["let", "for", "range", "word", "string"]))
        name = f"v{depth}_{position}"
        space = draw(st.sampled_from(["", " ", "\t", "  \\\n "]))
        if kind == "let":
            out.append(f"let {space}{name} = {draw(trees.name_texts)}\nbridge ${name}-x{space}")
        elif kind == "for" and depth < 2:
            inner = draw(programs(depth + 1))
            first = draw(_numbers)
            head = f"for {space}{name} in {first}..{first + draw(_numbers)} {{"
            out.append(f"{head}\n{inner}bridges x${name} y${name}{space}\n}}  # end")
        elif kind == "range":
            out.append(f"bridges {space}r[0..{draw(_numbers)}]  tags=t # range")
        elif kind == "word":
            out.append(f"at {draw(st.integers(1, 9))}s {space}heal  # word")
        else:
            out.append(f'service {space}s exec="a $v0_0 $v1_0 \\$v0_0 $HOME" cpu=500m')
    return "\n".join(out) + "\n"


@settings(deadline=None, max_examples=60)
@given(st.lists(trees.statements, min_size=1, max_size=3), st.integers(1, 2))
def test_a_statement_in_a_loop_is_the_statement(
    statements: list[ast.Statement], rounds: int
) -> None:
    body = "".join(f"{format_statement(statement)}\n" for statement in statements)
    text = f"for no_such_name in 1..{rounds} {{\n{body}}}\n"
    assert meaning(text) == tuple(statements) * rounds
    formatted = format_text(text)
    assert meaning(formatted) == meaning(text)
    assert format_text(formatted) == formatted


@settings(deadline=None, max_examples=60)
@given(programs())
def test_formatting_never_changes_what_a_file_stands_for(text: str) -> None:
    if found(text):
        return
    formatted = format_text(text)
    assert meaning(formatted) == meaning(text)
    assert format_text(formatted) == formatted


def test_reports_say_the_round() -> None:
    text = "for i in 4..5 {\n  bridge s$i tgs=x\n}\n"
    diagnostics = found(text)
    assert "= note: with $i = 4, and 1 more\n" in render_text(diagnostics, "x.tdl", text)
    (entry,) = json.loads(render_json(diagnostics, "x.tdl"))
    assert entry["note"] == "$i = 4, and 1 more"
    log = json.loads(render_sarif(diagnostics, "x.tdl"))
    assert "; with $i = 4, and 1 more)" in log["runs"][0]["results"][0]["message"]["text"]


@pytest.mark.parametrize(
    "last",
    ["service s exec=x", 'service s exec="echo $a39"', "bridge b$a39", "bridges b[0..1]$a39"],
)
def test_values_in_values_do_not_grow_without_end(last: str) -> None:
    """Twenty-eight lines took half a gigabyte, and each line more doubled it."""
    lines = "".join(f"let a{n} = $a{n - 1}$a{n - 1}\n" for n in range(1, 40))
    found = parse_partial(f"let a0 = x\n{lines}{last}").diagnostics
    assert {d.code for d in found} >= {"TS0157"}
    assert found[0].span.line == 17  # 2 ** 16 characters, and the names
    assert max(len(d.message) for d in found) < 200


def test_many_long_values_have_an_end() -> None:
    lines = "".join(f"let a{n} = $a{n - 1}$a{n - 1}\n" for n in range(1, 16))
    loop = "for i in 0..4999 {\nlet b = $a15\n}\n"
    found = parse_partial(f"let a0 = x\n{lines}{loop}").diagnostics
    assert [(d.code, d.span.line) for d in found] == [("TS0157", 18)]


def test_a_text_that_is_too_long_is_not_left_without_its_values() -> None:
    text = 'let a = x\nservice s exec="${a}' + "y" * 70_000 + '"\n'
    assert [d.code for d in parse_partial(text).diagnostics] == ["TS0157"]
