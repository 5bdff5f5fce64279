"""Links that follow traces: what is read, what a plan has of it, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.analysis.plan_diff import compare_plans
from compiler.origin import explain_event
from compiler.pipeline import Compilation, compile_source, write
from compiler.plan.format import PlanError
from compiler.plan.parts.traces import Opportunities, Rows, TraceRow, of_plan
from compiler.plan.reader import decode, read_plan
from compiler.sources import RecordedFiles, SourceFolder
from compiler.trace_files import BadTrace, parse
from tdl.diagnostics import TdlError
from tdl.text_layout import format_text

NETWORK = "service a\nservice b\nbridge s\nlink b--s latency=1ms\n"
MBIT = 10**6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lte.up").write_text("1\n1\n4\n10\n")
    (tmp_path / "wifi.csv").write_text("time,rate,delay\n0,2Mb,10ms\n0.5,0,30ms\n1,4Mb,10ms\n")
    return tmp_path


def compiled(folder: Path, text: str) -> Compilation:
    return compile_source(NETWORK + text, sources=SourceFolder(folder))


def errors(folder: Path, text: str) -> list[tuple[str, int, str]]:
    with pytest.raises(TdlError) as caught:
        compiled(folder, text)
    found = caught.value.diagnostics
    return [(one.code, one.span.line, one.message) for one in found]


def test_a_link_has_its_trace_and_the_mean(folder: Path) -> None:
    found = compiled(folder, "link a--s latency=5ms trace=lte.up\nat 5s quit")
    there, back = found.topology.links[2:4]
    assert there.state.trace == back.state.trace == 1
    assert there.state.rate_bps == 4 * 12_000 * 100
    [trace] = found.topology.traces
    assert (trace.name, trace.begin_ns, trace.holds) == ("lte.up", 0, False)
    content = found.plan.attached.traces[trace.digest]
    assert content == b"opportunities 10\n1x2 3 6\n"


def test_files_are_beside_the_text_that_names_them(folder: Path) -> None:
    """In an included file of another folder, and as seen from it."""
    (folder / "net").mkdir()
    (folder / "net/rtt.txt").write_text("40ms\n44ms\n52ms\n")
    text = "link a--s trace=../lte.up\nservice c\nlink c--s dist=rtt.txt\n"
    (folder / "net/lines.tdl").write_text(text)
    found = compiled(folder, 'include "net/lines.tdl"\nat 5s quit')
    assert [one.name for one in found.topology.traces] == ["lte.up"]
    assert [one.name for one in found.topology.delays] == ["net/rtt.txt"]
    (folder / "net/lines.tdl").write_text("mobility lte.up\n")
    ((code, line, message),) = errors(folder, 'include "net/lines.tdl"\nat 5s quit')
    assert (code, line, message) == ("TS0190", 1, "there is no file 'net/lte.up'")


def test_a_file_that_changes_later_changes_nothing(folder: Path, tmp_path: Path) -> None:
    found = compiled(folder, "link a--s trace=lte.up\nat 5s quit")
    digest = write(found, tmp_path / "x.plan")
    (folder / "lte.up").unlink()
    plan = read_plan(tmp_path / "x.plan")
    assert plan.digest == digest
    again = compile_source(plan.source, sources=RecordedFiles(plan))
    assert again.files == found.files
    _, content = of_plan(plan).content(1)
    assert isinstance(content, Opportunities)
    assert list(content.at_ms) == [1, 4, 10]


def test_each_content_is_there_once(folder: Path) -> None:
    (folder / "same").write_text("1\r\n1\r\n4\r\n10\r\n")
    text = "link a--s trace-up=lte.up trace-down=same\nat 2s a--s set trace=lte.up\nat 5s quit"
    found = compiled(folder, text)
    assert [(one.name, one.begin_ns) for one in found.topology.traces] == [
        ("lte.up", 0),
        ("same", 0),
        ("lte.up", 2 * 10**9),
    ]
    assert len(found.plan.attached.traces) == 1


def test_set_begins_ends_and_restores(folder: Path) -> None:
    text = (
        "link a--s latency=2ms rate=9Mb\n"
        "from 1s to 3s a->s set trace=lte.up\n"
        "at 2s a->s set latency=4ms\n"
        "at 4s a->s set trace=lte.up\nat 5s a->s set trace=none rate=1Mb\nat 6s quit"
    )
    found = compiled(folder, text)
    seen = [(e.at_ns // 10**9, dict(e.args)) for e in found.events if e.kind == "set"]
    follows = {"rate_bps": 4_800_000, "trace": 1}
    queue = [args.pop("queue_bytes", None) for _, args in seen]
    assert seen == [
        (1, follows),
        (2, {"delay_ns": 4_000_000}),
        (3, {"rate_bps": 9 * MBIT, "trace": 0}),
        (4, {**follows, "trace": 2}),
        (5, {"rate_bps": MBIT, "trace": 0}),
    ]
    assert queue == [30_000, None, 56_250, 30_000, None]  # a default queue follows the mean


def test_csv_gives_what_it_has(folder: Path) -> None:
    found = compiled(folder, "link a--s loss=1% trace=wifi.csv trace-end=hold\nat 5s quit")
    state = found.topology.links[2].state
    assert (state.rate_bps, state.delay_ns) == (2 * MBIT, 50_000_000 // 3)
    assert state.loss_ppb == 10**7
    [trace] = found.topology.traces
    assert trace.holds
    _, content = of_plan(found.plan).content(1)
    assert isinstance(content, Rows)
    assert content.period_ns == 1_500_000_000
    assert content.bits(0, 10**9) == MBIT
    assert content.bits(10**9, 3 * 10**9, holds=True) == 8 * MBIT
    assert content.bits(10**9, 3 * 10**9) == 5 * MBIT
    assert content.when(250_000_000, 125_000) == 1_125_000_000
    ranges = content.ranges(0, 2 * 10**9, holds=True)
    assert [tuple(one) for one in ranges] == [
        (2_500_000, 0, 4 * MBIT),
        (15_000_000, 10_000_000, 30_000_000),
    ]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9 * MBIT)), min_size=1, max_size=4),
    st.integers(0, 60),
    st.integers(1, 60),
    st.booleans(),
)
def test_a_stretch_has_what_its_instants_have(
    steps: list[tuple[int, int]], begin: int, length: int, holds: bool
) -> None:
    starts = [sum(span for span, _ in steps[:at]) for at in range(len(steps))]
    rows = [TraceRow(at, (rate,)) for at, (_, rate) in zip(starts, steps, strict=True)]
    trace = Rows(("rate_bps",), sum(span for span, _ in steps), rows)
    end = begin + length
    rates = [trace.at(at, holds=holds)["rate_bps"] for at in range(begin, end)]
    assert trace.bits(begin, end, holds=holds) == sum(rates) // 10**9
    [found] = trace.ranges(begin, end, holds=holds)
    assert tuple(found) == (sum(rates) // length, min(rates), max(rates))


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"", "TS0172", "'x' is empty"),
        (b"\xef\xbb\xbf", "TS0172", "line 1 of 'x' has no column 'time' at first"),
        (b"3\n2\n", "TS0172", "line 2 of 'x' is earlier than the line before it"),
        (b"3\nsecret\n", "TS0172", "line 2 of 'x' is not a whole number of ms"),
        (b"3\n-4\n", "TS0172", "line 2 of 'x' is negative"),
        (b"3\n\n5\n", "TS0172", "line 2 of 'x' is empty"),
        (b"1.5\n", "TS0172", "line 1 of 'x' is not a whole number of ms"),
        (b"9999999999\n", "TS0172", "line 1 of 'x' is beyond 4,294,967,295 ms"),
        (
            b"0\n0\n",
            "TS0173",
            "'x' has deliveries at 0 ms only: its last line is how long it lasts",
        ),
        (b"\xff\xfe", "TS0172", "'x' is neither lines of numbers nor CSV"),
        (b"rate\n1Mb\n", "TS0172", "line 1 of 'x' has no column 'time' at first"),
        (b"time,colour\n0,1\n", "TS0172", "line 1 of 'x' has no properties of a link in column 2"),
        (b"time,jitter\n0,1\n", "TS0172", "line 1 of 'x' has a jitter and no delay"),
        (b"time,rate\n", "TS0172", "'x' has a header and no rows"),
        (b"time,rate\n1,5Mb\n", "TS0172", "line 2 of 'x' does not begin at 0"),
        (b"time,rate\n0,5Mb\n0,6Mb\n", "TS0172", "line 3 of 'x' is not later than the row before"),
        (b"time,rate\n0,-5\n", "TS0172", "line 2 of 'x' has no value in column 2, which is a rate"),
        (b"time,rate\n0\n", "TS0172", "line 2 of 'x' has 1 columns instead of 2"),
        (b"time,delay,jitter\n0,1,2\n", "TS0172", "line 2 of 'x' has a jitter above its delay"),
        (b"time,rate\n0,0\n1s,0\n", "TS0173", "'x' has a rate of 0 in all rows"),
    ],
)
def test_what_is_no_trace(folder: Path, content: bytes, code: str, said: str) -> None:
    (folder / "x").write_bytes(content)
    [(found, line, message)] = errors(folder, "link a--s trace=x")
    assert (found, line) == (code, 5)
    assert message.startswith(said)
    assert "secret" not in message


def test_what_cannot_be_read(folder: Path) -> None:
    (folder / "large").touch()
    os.truncate(folder / "large", 1 << 31)
    os.mkfifo(folder / "pipe")
    for name, code, said in (
        ("missing", "TS0171", "there is no file 'missing'"),
        (".//x/..", "TS0171", "there is no file './/x/..'"),
        ("large", "TS0176", "'large' has 2,147,483,648 bytes, more than 256 MiB"),
        ("pipe", "TS0171", "'pipe' cannot be read: it is no file on a disk"),
        (str(folder), "TS0171", f"{str(folder)!r} is a folder"),
    ):
        [(found, line, message)] = errors(folder, f'link a--s trace="{name}"')
        assert (found, line, message) == (code, 5, said)


def test_a_file_that_is_written_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fstat(number: int) -> os.stat_result:
        with (folder / "lte.up").open("a") as stream:
            stream.write("20\n")
        return real(number)

    real = os.fstat
    monkeypatch.setattr(os, "fstat", fstat)
    [(code, _, message)] = errors(folder, "link a--s trace=lte.up")
    assert (code, message) == ("TS0171", "'lte.up' was changed while it was read")


@pytest.mark.parametrize(
    ("text", "code", "line", "said"),
    [
        ("link a--s trace=lte.up rate=5Mb", "TS0174", 5, "has the rate of this link"),
        ("link a--s trace=wifi.csv latency=5ms", "TS0174", 5, "has the latency of this link"),
        ("link a--s trace=lte.up trace-up=lte.up", "TS0013", 5, "trace-up is one too many"),
        ("link a--s trace=lte.up trace-end=hold", "TS0175", 5, "has deliveries, and no last"),
        ("link a--s rate=5Mb trace-end=loop", "TS0175", 5, "there is none"),
        ("link a--s trace=lte.up trace-end=stop", "TS0175", 5, "no trace ends with 'stop'"),
        ("link a->s trace-down=lte.up\nlink s->a", "TS0119", 5, "leaves out"),
        ("link a--s trace=lte.up\nat 1s a--s set rate=5Mb", "TS0237", 6, "that of the trace"),
        ("link a--s trace=lte.up\nat 1s a--s set up=50%", "TS0237", 6, "that of the trace"),
        (
            "link a--s trace=lte.up\nfrom 1s to 2s a--s ramp rate=5Mb",
            "TS0237",
            6,
            "that of the trace 'lte.up', which it follows",
        ),
        ("link a--s\nfrom 1s to 2s a--s ramp trace=lte.up", "TS0214", 6, "no values"),
        ("link a--s\nat 1s a--s set trace+=lte.up", "TS0214", 6, "no meaning"),
        ("link a--s trace=lte.up\nat 1s a--s background 1Mb", "TS0238", 6, "follows a trace"),
        (
            "link a--s rate=9Mb\nat 1s a--s background 1Mb\nat 2s a--s set trace=lte.up",
            "TS0238",
            7,
            "of background are taken",
        ),
        ("link a--s\nat 1s a--s set trace-end=loop", "TS0175", 6, "none is set"),
    ],
)
def test_what_contradicts(folder: Path, text: str, code: str, line: int, said: str) -> None:
    [(found, where, message)] = errors(folder, text)
    assert (found, where) == (code, line)
    assert said in message


def test_a_text_without_a_folder_has_no_traces() -> None:
    with pytest.raises(TdlError) as caught:
        compile_source(NETWORK + "link a--s trace=lte.up")
    assert [one.code for one in caught.value.diagnostics] == ["TS0171"]


def test_an_hour_is_no_event(folder: Path) -> None:
    (folder / "hour").write_text("".join(f"{ms}\n" for ms in range(1, 3_600_001) if ms % 7))
    found = compiled(folder, "link a--s trace=hour\nat 1h quit")
    assert len(found.events) == 3
    assert len(found.files["files.tar"]) < 8 << 20


@pytest.mark.parametrize(
    "line",
    [
        "link a--s latency=5ms trace=lte.up",
        "link a--s latency=5ms down=unlimited trace-up=lte.up",
        "link a--s down=5Mb trace-up=lte.up",
        "link a--s trace-up=lte.up trace-down=wifi.csv trace-end=hold",
        "link a->s latency=5ms trace=lte.up",
        'link a--s trace="none"',
        "at 5s a--s set trace=wifi.csv trace-end=hold",
        "at 5s a--s set trace=none up=5Mb",
        'at 5s a--s set trace-up="a b.trace"',
    ],
)
def test_one_spelling(line: str) -> None:
    assert format_text(line + "\n") == line + "\n"


def test_explaining_an_event_needs_no_file(folder: Path) -> None:
    found = compiled(folder, "link a--s rate=9Mb\nat 1s a--s set trace=lte.up\nat 2s quit")
    (folder / "lte.up").unlink()
    story = explain_event(found.plan, 2)
    assert story.origin.step is not None
    assert story.origin.step.statement.span.line == 6


def test_a_difference_is_of_content_not_of_numbers(folder: Path) -> None:
    text = "link a--s trace=lte.up\nat 5s quit"
    one = compiled(folder, text).plan
    two = compiled(folder, "link a--s trace=lte.up\nat 6s s--b set trace=lte.up\nat 5s quit").plan
    assert compare_plans(one, two).topology == ()
    (folder / "lte.up").write_text("1\n2\n4\n10\n")
    names = {(d.name, d.field) for d in compare_plans(one, compiled(folder, text).plan).topology}
    assert names == {("a.0->s", "trace"), ("s->a.0", "trace")}


def test_a_damaged_plan_is_refused(folder: Path) -> None:
    files = dict(compiled(folder, "link a--s trace=lte.up\nat 5s quit").files)
    for before, after in (
        (b'"trace":1', b'"trace":2'),
        (b'"rate_bps":4800000,"seed"', b'"rate_bps":4800001,"seed"'),
        (b'"hold":0', b'"hold":2'),
        (b'"means":{"rate_bps":4800000}', b'"means":{}'),
    ):
        changed = files["topology.json"].replace(before, after)
        assert changed != files["topology.json"]
        with pytest.raises(PlanError):
            _ = decode(_sealed({**files, "topology.json": changed})).verify()


def _sealed(files: dict[str, bytes]) -> dict[str, bytes]:
    import hashlib
    import json

    header = json.loads(files["plan.json"])
    data = files["topology.json"]
    found = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    header["files"]["topology.json"] = found
    text = json.dumps(header, sort_keys=True, separators=(",", ":")) + "\n"
    return {**files, "plan.json": text.encode()}


_WORDS = (
    "time",
    "rate",
    "delay",
    "jitter",
    "loss",
    "0",
    "0.5",
    "1s",
    "5Mb",
    "1%",
    "",
    "-1",
    '"',
    "9" * 30,
)
_TABLES = st.lists(st.lists(st.sampled_from(_WORDS), max_size=4).map(",".join), max_size=6)


@given(st.binary(max_size=200) | _TABLES.map(lambda rows: "\n".join(("time,rate", *rows)).encode()))
def test_whatever_stands_in_a_file(data: bytes) -> None:
    try:
        parse(data)
    except BadTrace as bad:
        assert bad.why


def test_a_parser_says_the_line_of_csv() -> None:
    with pytest.raises(BadTrace) as caught:
        parse(b'time,rate\n0,1Mb\n1,"2Mb\n')
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("expected", "warned"),
    [
        ("throughput a b > 1.9Mb from 0s to 400ms", False),  # the mean of the whole is 2 Mb/s
        ("throughput a b > 2.1Mb from 0s to 400ms", True),
        ("throughput a b > 3.9Mb from 1s to 1400ms", False),
        ("throughput a b > 3.9Mb within 2s", False),  # once
        ("throughput a b > 3.9Mb from 0s to 3s", True),
        ("rtt a b < 30ms from 0s to 400ms", False),
        ("rtt a b < 50ms from 510ms to 900ms", True),
    ],
)
def test_what_is_expected_is_held_against_the_trace(
    folder: Path, expected: str, warned: bool
) -> None:
    found = compiled(folder, f"link a--s trace=wifi.csv\nat 5s quit\nexpect {expected}")
    assert any(one.code == "TS0950" for one in found.diagnostics) == warned


def test_the_mean_is_of_one_round_also_with_a_delivery_at_its_beginning(folder: Path) -> None:
    """One at 0 ms and one at 10 ms: two in each 10 ms."""
    (folder / "from.0").write_text("0\n10\n")
    found = compiled(folder, "link a--s trace=from.0\nat 5s quit")
    assert found.topology.links[2].state.rate_bps == 2 * 12_000 * 100
