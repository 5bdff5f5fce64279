"""`expect` statements in a plan: whose, when, and that they change nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.analysis.topology_diff import compare_topologies
from compiler.pipeline import UnknownParamError, compile_source
from compiler.plan import format as form
from compiler.plan.format import PlanError
from compiler.plan.parts.expectations import PlannedExpectation
from compiler.plan.parts.figures import PlannedFigure
from compiler.plan.parts.figures import from_json as read_figures
from compiler.plan.parts.figures import to_json as figure_records
from compiler.plan.reader import decode
from compiler.plan.storage.delivery import complete
from tdl.diagnostics import TdlError
from tdl.tokens.words import TEST_TEMPLATES
from tests.compiler.files import files
from tests.plan.test_bundle import digest

NET = """\
service server exec=x replicas=3
service client exec=x
service late
bridge s1
link server--s1
link client--s1
link late--s1
at 2s server.1 crash
at 5s late join
at 9s quit
"""
SAME = (form.ATTACHED, form.ROUTES, form.SNAPSHOTS, form.TIMELINE, form.TOPOLOGY)


def expectations(*lines: str) -> tuple[PlannedExpectation, ...]:
    plan = compile_source(NET + "".join(f"{line}\n" for line in lines)).plan
    plan.verify()
    return plan.expectations


def figures(*lines: str) -> tuple[PlannedFigure, ...]:
    plan = compile_source(NET + "".join(f"{line}\n" for line in lines)).plan
    plan.verify()
    return plan.figures


def test_figures_say_whose_and_where_and_change_nothing_else() -> None:
    lost, p99 = figures(
        'figure lost = log server.1;client "lost ([0-9]+)"',
        "figure p99 = json client 'out/r.json' 'ms.p99'",
    )
    assert lost == PlannedFigure(
        name="lost",
        text='figure lost = log server.1;client "lost ([0-9]+)"',
        line=11,
        file="",
        nodes=(1, 3),
        pattern="lost ([0-9]+)",
    )
    assert (p99.nodes, p99.path, p99.key) == ((3,), "out/r.json", "ms.p99")
    plain = compile_source(NET).plan
    told = compile_source(NET + 'figure n = log * "n ([0-9]+)"\n').plan
    assert [told.raw(name) == plain.raw(name) for name in SAME] == [True] * len(SAME)


def test_a_figure_that_only_one_plan_has_is_a_difference() -> None:
    plain = compile_source(NET).plan
    told = compile_source(NET + 'figure n = log client "n ([0-9]+)"\n').plan
    (found,) = compare_topologies(plain, told)
    assert (found.kind, found.a, found.b) == ("figure", None, 'figure n = log client "n ([0-9]+)"')


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (['figure n = log nobody "([0-9])"'], "TS0406"),
        (['figure n = log late "([0-9])"'], "TS0408"),
        (['figure n = log client "([0-9])"', 'figure n = log server "([0-9])"'], "TS0412"),
    ],
)
def test_figures_of_nobody_and_two_of_one_name(lines: list[str], code: str) -> None:
    with pytest.raises(TdlError) as caught:
        figures(*lines)
    assert [(one.code, one.span.line) for one in caught.value.diagnostics] == [
        (code, 10 + len(lines))
    ]


@pytest.mark.parametrize(
    "spoilt",
    [
        {"name": ""},
        {"nodes": []},
        {"nodes": [3, 1]},
        {"nodes": [99]},
        {"pattern": "n"},
        {"pattern": "("},
        {"pattern": "", "path": "../x", "key": "n"},
        {"pattern": "", "path": "/x", "key": "n"},
        {"pattern": "", "path": "x"},
        {"path": "x", "key": "n"},
        {"key": "n" * 1001},
        {"more": 1},
    ],
)
def test_a_plan_of_somebody_elses_with_another_figure_is_refused(
    spoilt: dict[str, object],
) -> None:
    (good,) = figure_records(figures('figure n = log client "n ([0-9]+)"'))
    assert read_figures([good], 5)
    with pytest.raises(PlanError, match="figure"):
        read_figures([{**good, **spoilt}], 5)
    with pytest.raises(PlanError, match="another has"):
        read_figures([good, good], 5)


def one(line: str) -> PlannedExpectation:
    (found,) = expectations(line)
    return found


def test_all_that_a_measure_says() -> None:
    found = one("expect rtt p99 client server.0 < 60ms at 2s within 3s")
    assert found == PlannedExpectation(
        text="expect rtt p99 client server.0 < 60ms within 3s after 2s",
        kind="rtt",
        line=11,
        pairs=((3, 0),),
        op="<",
        value=60_000_000,
        statistic="p99",
        from_ns=2_000_000_000,
        to_ns=5_000_000_000,
        eventually=True,
    )


@pytest.mark.parametrize(
    ("line", "pairs"),
    [
        ("expect loss client server < 1%", ((3, 0), (3, 1), (3, 2))),
        ("expect loss client server < 1% from 2s", ((3, 0), (3, 2))),  # one has crashed
        ("expect unreachable client server from 2s", ((3, 0), (3, 1), (3, 2))),
        ("expect loss server.0;server.2 server.0;server.2 < 1%", ((0, 2), (2, 0))),
        ("expect loss late server < 1% to 5s", ((4, 0), (4, 2))),
        ("expect loss * client < 1%", ((0, 3), (1, 3), (2, 3), (4, 3))),
    ],
)
def test_pairs_are_those_that_are_there_together(
    line: str, pairs: tuple[tuple[int, int], ...]
) -> None:
    assert one(line).pairs == pairs


@pytest.mark.parametrize(
    ("line", "nodes", "span", "eventually"),
    [
        ('expect log * "x"', (0, 1, 2, 3), (0, 9), True),
        ('expect log server "x" from 3s', (0, 2), (3, 9), True),
        ('expect no log server.1 "x" within 1s after 1s', (1,), (1, 2), False),
        ("expect exit server 3", (0, 1, 2), (0, 9), False),
        ('expect run "a b" ok', (0,), (0, 9), True),
        ('expect run "a b" ok on late at 5s', (4,), (5, 5), False),
        ('expect run "a b" ok on server.1 within 1s after 1s', (1,), (1, 2), True),
        ("expect valid", (), (0, 9), False),
    ],
)
def test_instances_and_times(
    line: str, nodes: tuple[int, ...], span: tuple[int, int], eventually: bool
) -> None:
    found = one(line)
    assert found.nodes == nodes
    assert (found.from_ns, found.to_ns) == tuple(second * 10**9 for second in span)
    assert found.eventually == eventually


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("expect rtt client sever < 5ms", "TS0406", "did you mean 'server'?"),
        ("expect rtt client s1 < 5ms", "TS0406", "is a bridge"),
        ("expect rtt client server.3 < 5ms", "TS0406", "the last is server.2"),
        ('expect log late "x"', "TS0408", "has no program"),
        ("expect rtt client server.1 < 5ms from 2s", "TS0407", "no two of them"),
        ("expect rtt client client < 5ms", "TS0407", "no path to itself"),
        ('expect run "x" ok on late at 1s', "TS0407", "none of them"),
        ("expect loss client server < 1% from 9s", "TS0404", "ends at 9s"),
        ("expect loss client server < 1% within 5s after 5s", "TS0404", "at 10s quit"),
        ("expect drivers client from 1s to 9s", "TS0404", "no time is left for checks"),
        ("expect drivers client to 4s", "TS0415", "the last event is at 5s: write to 5s or later"),
        ("expect drivers nobody", "TS0406", "no service"),
    ],
)
def test_what_can_never_hold_is_an_error(line: str, code: str, said: str) -> None:
    with pytest.raises(TdlError) as caught:
        expectations(line)
    (found,) = caught.value.diagnostics
    assert (found.code, found.span.line) == (code, 11)
    assert said in f"{found.message} {found.hint}"
    assert found.span.col > 1


def test_drivers_have_a_folder_and_the_time_until_faults_are_over() -> None:
    found = expectations(
        "expect drivers client",
        'expect drivers server.1;client "test" from 1s to 6s',
        "expect drivers late from 6s",
    )
    assert [one.argv for one in found] == [(TEST_TEMPLATES,), ("test",), (TEST_TEMPLATES,)]
    assert [one.nodes for one in found] == [(3,), (1, 3), (4,)]
    times = [(one.from_ns / 1e9, one.to_ns / 1e9) for one in found]
    assert times == [(0, 7), (1, 6), (6, 7.5)], "else until halfway from the last event to the end"
    assert not any(one.eventually for one in found)


def test_too_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.expect.compile_expectations.MAX_PAIRS", 4)
    line = "expect loss client server < 1%"
    with pytest.raises(TdlError) as caught:
        expectations(line, line)
    assert [(found.code, found.span.line) for found in caught.value.diagnostics] == [("TS0409", 12)]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=files(), lines=st.lists(st.sampled_from(["valid", 'run "x" ok', 'no log * "x"'])))
def test_expectations_change_nothing_else(text: str, lines: list[str]) -> None:
    try:
        before = compile_source(text).files
        more = "".join(f"expect {line}\n" for line in lines)
        after = compile_source(f"{text.rstrip()}\n{more}").files
    except TdlError:
        return  # the file has errors, or nothing in it runs a program
    assert [before[name] for name in SAME] == [after[name] for name in SAME]


def test_other_statements_draw_the_same() -> None:
    drawn = NET.replace("server.1 crash", "server crash 1")
    plain, more = compile_source(drawn).files, compile_source(drawn + "expect valid\n").files
    assert [plain[name] for name in SAME] == [more[name] for name in SAME]
    assert digest(dict(plain)) != digest(dict(more))


def test_a_slim_plan_has_them_too() -> None:
    whole = dict(compile_source(NET + "expect valid\n").files)
    slim = {name: data for name, data in whole.items() if name not in form.REBUILT}
    assert complete(slim) == whole


def test_a_param_is_recorded_and_may_not_be_unknown() -> None:
    text = "param n = 2\nservice a replicas=$n\nbridge s\nlink a--s\n"
    plan = compile_source(text, params={"n": "3"}).plan
    assert (plan.params, plan.topology.services[0].replicas) == ({"n": "3"}, 3)
    assert compile_source(text).plan.params == {"n": "2"}
    with pytest.raises(UnknownParamError) as caught:
        compile_source(text, params={"m": "3"})
    assert (caught.value.name, caught.value.known) == ("m", ("n",))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pairs": []}, "pairs or nodes"),
        ({"pairs": [[3, 3]]}, "pairs of one node"),
        ({"pairs": [[3, 2], [3, 0]]}, "not ascending"),
        ({"pairs": [[3, 99]]}, "pairs must be an integer"),
        ({"op": ""}, "a bound that it cannot have"),
        ({"op": "=="}, "op must be one of"),
        ({"argv": ["x"]}, "a command"),
        ({"pattern": "x"}, "a pattern"),
        ({"kind": "log", "pairs": [], "nodes": [0], "op": "", "statistic": "", "value": 0,
          "pattern": "("}, "a pattern"),
        ({"kind": "drivers", "pairs": [], "nodes": [0], "op": "", "statistic": "", "value": 0,
          "argv": ["a", "b"]}, "a command"),
        ({"to_ns": 10**11}, "not within the plan"),
        ({"more": 1}, "unknown field"),
    ],
)  # fmt: skip
def test_readers_take_nothing_else(change: dict[str, object], said: str) -> None:
    plan = dict(compile_source(NET + "expect rtt client server.0 < 5ms\n").files)
    (record,) = json.loads(plan[form.EXPECTATIONS])
    with pytest.raises(PlanError, match=said) as caught:
        _ = decode(_with(plan, form.canonical([{**record, **change}]))).expectations
    assert caught.value.file == form.EXPECTATIONS


def _with(plan: dict[str, bytes], data: bytes) -> dict[str, bytes]:
    """The plan with other expectations, and a header that goes with them."""
    import hashlib

    header = json.loads(plan[form.HEADER])
    header["files"][form.EXPECTATIONS] = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
    }
    return {**plan, form.EXPECTATIONS: data, form.HEADER: form.canonical(header)}
