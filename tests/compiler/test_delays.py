"""Jitters with measured distributions: what is read, what a plan has of it, what is refused."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.analysis.plan_diff import compare_plans
from compiler.delay_files import parse
from compiler.origin import explain_event
from compiler.pipeline import Compilation, compile_source, write
from compiler.plan.format import PlanError
from compiler.plan.parts.delay_tables import ONE, PARTS, DelayTable, decode, measured, slowed
from compiler.plan.reader import read_plan
from compiler.plan.rules.datapath_fit import of_links
from compiler.plan.rules.property_limits import HOP_EXACT
from compiler.sources import RecordedFiles, SourceFolder
from compiler.trace_files import BadTrace
from tdl.diagnostics import TdlError
from tdl.text_layout import format_text

NETWORK = "service a\nservice b\nbridge s\nlink b--s latency=1ms\n"
MS = 10**6
DELAYS = [10.0, 10.5, 11.0, 12.5, 30.0]  # ms; mean 14.8
DEVIATION_NS = round(math.sqrt(sum((x - 14.8) ** 2 for x in DELAYS) / 5) * MS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rtt.txt").write_text("# measured\n" + "".join(f"{x}\n" for x in DELAYS))
    (tmp_path / "shape.dist").write_text("# netem\n -8192 -4096 0\n 0 4096 8192\n")
    return tmp_path


def compiled(folder: Path, text: str) -> Compilation:
    return compile_source(NETWORK + text + "at 9s quit\n", sources=SourceFolder(folder))


def errors(folder: Path, text: str) -> list[tuple[str, int, str]]:
    with pytest.raises(TdlError) as caught:
        compiled(folder, text)
    return [(one.code, one.span.line, one.message) for one in caught.value.diagnostics]


# --- what a link has ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "delay_ns", "jitter_ns"),
    [
        ("", 14_800_000, DEVIATION_NS),
        ("latency=50ms", 50 * MS, DEVIATION_NS),
        ("jitter=3ms", 14_800_000, 3 * MS),
        ("latency=50ms jitter=3ms", 50 * MS, 3 * MS),
    ],
)
def test_what_is_not_stated_is_the_files(
    folder: Path, stated: str, delay_ns: int, jitter_ns: int
) -> None:
    found = compiled(folder, f"link a--s dist=rtt.txt {stated}\n")
    [planned] = found.topology.delays
    for link in found.topology.links[2:4]:
        assert (link.state.delay_ns, link.state.jitter_ns) == (delay_ns, jitter_ns)
        assert link.state.distribution.startswith(f"measured-{planned.digest[:16]}-")
    content = decode(found.plan.attached.delays[planned.digest])
    assert planned.name == "rtt.txt"
    assert content.name == found.topology.links[2].state.distribution


def test_a_file_that_changes_later_changes_nothing(folder: Path, tmp_path: Path) -> None:
    found = compiled(folder, "link a--s dist=rtt.txt\nat 5s a--s set dist=shape.dist jitter=2\n")
    digest = write(found, tmp_path / "x.plan")
    (folder / "rtt.txt").unlink()
    plan = read_plan(tmp_path / "x.plan")
    assert plan.digest == digest
    assert compile_source(plan.source, sources=RecordedFiles(plan)).files == found.files
    event = next(event for event in plan.events if event.kind == "set")
    assert explain_event(plan, event.seq).event == event


def test_the_same_delays_are_there_once(folder: Path) -> None:
    again = [f"{x * 1000:g} us\r" for x in reversed(DELAYS)]
    (folder / "same.csv").write_text("n,Delay\n" + "".join(f"1,{x}\n" for x in again))
    found = compiled(folder, "link a->s dist=rtt.txt\nlink s->a dist=same.csv\n")
    assert [one.name for one in found.topology.delays] == ["rtt.txt", "same.csv"]
    assert len(found.plan.attached.delays) == 1
    assert len({link.state.distribution for link in found.topology.links[2:]}) == 1


def test_set_changes_the_shape_and_an_interval_ends_it(folder: Path) -> None:
    text = "link a--s latency=20 jitter=2\nfrom 1s to 3s a->s set dist=rtt.txt\n"
    found = compiled(folder, text)
    one, other = (dict(event.args) for event in found.events if event.kind == "set")
    assert measured(str(one["distribution"])) is not None
    assert other == {"distribution": "normal"}
    assert one.keys() == {"distribution"}


def test_names_with_and_without_quotes_are_formatted_as_they_were(folder: Path) -> None:
    (folder / "normal").write_text("1\n2\n")
    text = NETWORK + 'link a--s dist="normal"\nat 1s a--s set dist="my delays.txt" jitter=1ms\n'
    assert format_text(text) == text
    assert len(compiled(folder, 'link a--s dist="normal"\n').topology.delays) == 1
    assert not compiled(folder, "link a--s latency=1 dist=normal\n").topology.delays


def test_a_path_draws_from_delays_as_a_link_does(folder: Path) -> None:
    text = "service a\nservice b\npath a--b abw=9Mb rtt=40ms jitter=2ms dist=rtt.txt\nat 9s quit\n"
    found = compile_source(text, sources=SourceFolder(folder))
    state = found.topology.links[0].state
    assert (state.delay_ns, state.jitter_ns) == (20 * MS, 2 * MS)
    assert measured(state.distribution) is not None


def test_other_delays_are_a_difference(folder: Path) -> None:
    plans = [compiled(folder, "link a--s latency=20 jitter=2 dist=rtt.txt\n").plan]
    (folder / "rtt.txt").write_text("1\n2\n3\n")
    plans.append(compiled(folder, "link a--s latency=20 jitter=2 dist=rtt.txt\n").plan)
    assert compare_plans(plans[0], plans[0]).topology == ()
    names = {(d.name, d.field) for d in compare_plans(*plans).topology}
    assert names == {("a.0->s", "distribution"), ("s->a.0", "distribution")}


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "line", "why"),
    [
        (b"", 0, "no delays"),
        (b"# nothing\n\n", 0, "no delays"),
        (b"10\n", 0, "one delay alone"),
        (b"10\n10.0\n10000us\n", 0, "one delay alone"),
        (b"# x\n10\n-3\n", 3, "negative"),
        (b"10\nnan\n", 2, "is no delay"),
        (b"10\ninf\n", 2, "is no delay"),
        (b"10\n1e400\n", 2, "is no delay"),
        (b"10\n3 parsecs\n", 2, "is no delay"),
        (b"10\n2000h\n", 2, "is no delay"),
        (b"10\n90000s\n", 2, "more than one day"),
        (b"\x00\x01\xff\xfe", 0, "no text"),
        (b"1\n2\0\n", 0, "no text"),
        (b"time,rate\n1,2\n", 1, "no header"),
        (b"delay,latency\n1,2\n", 1, "no header"),
        (b"x,delay\n", 0, "a header and no delays"),
        (b"x,delay\n1\n", 2, "no column 2"),
        (b"x,delay\n1,-2\n", 2, "negative"),
        (b'x,delay\n1,"2\n', 2, "not CSV"),
        (b"1 2 3\n4 x\n", 2, "something else"),
        (b"1 2 3\n4 32768\n", 2, "something else"),
    ],
)
def test_bad_files(data: bytes, line: int, why: str) -> None:
    with pytest.raises(BadTrace) as caught:
        parse(data)
    assert (caught.value.line, caught.value.code) == (line, "TS0179")
    assert why in caught.value.why


def test_too_many_delays_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.delay_files.MOST_DELAYS", 4)
    assert parse(b"1\n2\n3\n4\n").points
    for data in (b"1\n2\n3\n4\n5\n", b"1 2 3\n4 5\n", b"delay\n1\n2\n3\n4\n5\n"):
        with pytest.raises(BadTrace, match="more than 4 delays") as caught:
            parse(data)
        assert caught.value.code == "TS0180"


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("link a--s dist=nothing.txt", "TS0178", "no file 'nothing.txt'"),
        ("link a--s dist=./", "TS0125", "names no file"),
        ("link a--s dist=bad.txt", "TS0179", "line 2 of 'bad.txt' is no delay"),
        ("link a--s dist=shape.dist", "TS0181", "this link has no jitter"),
        ("link a--s latency=2 dist=rtt.txt", "TS0105", "of 'rtt.txt' is greater than the latency"),
        ("link a--s jitter=20 dist=rtt.txt", "TS0105", "20ms is greater than the latency"),
        ("link a--s latency=2 jitter=3 dist=rtt.txt", "TS0105", "greater than the latency"),
        ("link a--s latency=2\nat 1s a--s set dist=rtt.txt", "TS0181", "it has none"),
        ("link a--s latency=2\nat 1s a--s set dist=bad.txt jitter=1", "TS0179", "line 2"),
        ("link a--s latency=2\nat 1s a--s set dist+=rtt.txt", "TS0214", "no meaning"),
    ],
)
def test_errors_stand_where_the_file_is_named(folder: Path, text: str, code: str, why: str) -> None:
    (folder / "bad.txt").write_text("1\nx\n")
    [(found, line, message)] = errors(folder, text + "\n")
    assert (found, line) == (code, 5 + text.count("\n"))
    assert why in message


def test_only_one_machine_draws_from_delays(folder: Path) -> None:
    declared = compiled(folder, "link a--s dist=rtt.txt\n").plan
    later = compiled(folder, "link a--s latency=9 jitter=1\nat 3s a--s set dist=rtt.txt\n").plan
    for plan in (declared, later):
        assert of_links(plan, HOP_EXACT) is None
    for datapath in ("user", "kernel"):
        found = of_links(declared, datapath)
        assert found is not None
        assert str(found) == "the measured distribution of link a.0->s is not possible"
        found = of_links(later, datapath)
        assert found is not None
        assert (found.line, found.at_ns) == (6, 3 * 10**9)
    known = compiled(folder, "link a--s latency=9 jitter=1 dist=pareto\n").plan
    assert of_links(known, "user") is None


# --- the table ------------------------------------------------------------------------------------


def _moments(table: DelayTable) -> tuple[float, float]:
    both = [(a / ONE, b / ONE) for a, b in pairwise(table.points)]
    mean = math.fsum((a + b) / 2 for a, b in both) / PARTS
    return mean, math.fsum((a * a + a * b + b * b) / 3 for a, b in both) / PARTS - mean * mean


def _text(delays: list[int]) -> bytes:
    return "".join(f"{ns / MS:.6f}\n" for ns in delays).encode()


@given(st.lists(st.integers(0, 86_400 * 10**9), min_size=2, max_size=60))
def test_any_delays_become_a_table_or_an_error(delays: list[int]) -> None:
    if len(set(delays)) == 1:
        with pytest.raises(BadTrace):
            parse(_text(delays))
        return
    table = parse(_text(delays))
    mean, variance = _moments(table)
    assert mean == pytest.approx(0, abs=1e-4)
    assert variance == pytest.approx(1, abs=1e-3)
    assert table.mean_ns == pytest.approx(sum(delays) / len(delays), abs=1)
    assert decode(table.data) == table
    found = measured(table.name)
    assert found is not None
    assert found.early >= -table.points[0] / ONE
    behind = slowed(table.points)
    widths = [b - a for a, b in pairwise(behind)]
    assert all(w >= b - a for w, (a, b) in zip(widths, pairwise(table.points), strict=True))
    grows = [w * (2 * i + 1) for i, w in enumerate(widths)]
    assert all(b >= a - 2 * PARTS for a, b in pairwise(grows))  # widths are whole


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode()))
def test_whatever_stands_in_a_file(data: bytes) -> None:
    try:
        assert len(parse(data).points) == PARTS + 1
    except BadTrace as bad:
        assert bad.why


def _share_below(points: Sequence[int], at: float) -> float:
    """Of all delays."""
    if at < points[0]:
        return 0.0
    i = bisect_right(points, at) - 1
    if i == PARTS:
        return 1.0
    return (i + (at - points[i]) / (points[i + 1] - points[i])) / PARTS


@pytest.mark.parametrize("kind", ["smooth", "rounded", "two modes", "outliers"])
def test_no_share_of_delays_is_off_by_more_than_promised(kind: str) -> None:
    """docs/tdl.md: 1/256, where a place may be off by 1 % of the deviation."""
    draws = random.Random(3)
    drawn: Callable[[], float] = {
        "smooth": lambda: 20 + draws.lognormvariate(1, 0.5),
        "rounded": lambda: round(20 + draws.lognormvariate(1, 0.5), 1),
        "two modes": lambda: draws.choice([10, 14, 14]) + draws.random(),
        "outliers": lambda: 10 + draws.random() + 300 * (draws.random() < 0.002),
    }[kind]
    delays = sorted(round(drawn() * MS) for _ in range(20_000))
    table = parse(_text(delays))
    slack = 0.01 * table.deviation_ns
    for i in range(1, 400):
        at = delays[0] + (delays[-1] - delays[0]) * (i / 400) ** 3
        low, high = (
            _share_below(table.points, (at + by - table.mean_ns) / table.deviation_ns * ONE)
            for by in (-slack, slack)
        )
        share = bisect_right(delays, at) / len(delays)
        assert low - 1 / 256 - 1 / PARTS <= share <= high + 1 / 256 + 1 / PARTS


def test_netems_tables_have_a_shape_alone(folder: Path) -> None:
    table = parse((folder / "shape.dist").read_bytes())
    assert (table.mean_ns, table.deviation_ns) == (0, 0)
    found = compiled(folder, "link a--s latency=9ms jitter=1ms dist=shape.dist\n")
    state = found.topology.links[2].state
    assert (state.delay_ns, state.jitter_ns) == (9 * MS, MS)
    same = parse(b"1ms\n2ms\n3ms\n3ms\n4ms\n5ms\n")
    assert table.points == same.points


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-3],
        lambda data: data.replace(b"delays", b"delay "),
        lambda data: data + b"1\n",
        lambda data: data.replace(b"\n", b"\n\n", 1),
        lambda data: b"delays 1 1\n" + b"0 " * PARTS + b"0\n",
        lambda data: data.replace(b" ", b" -", 1),
    ],
)
def test_a_plan_with_other_words_is_refused(change: object) -> None:
    table = parse(_text([1, 2, 3, 50]))
    assert callable(change)
    with pytest.raises(PlanError):
        decode(change(table.data))
