"""`tstorm predict`: table, JSON and picture; and what is wrong with a list of flows, by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.support import status, tstorm
from tstorm.predicting import flow_list, flow_statements

TDL = """\
service c img=x replicas=2
service d img=x
bridges s
link c--s latency=1ms rate=10Mb
link d--s latency=4ms rate=10Mb
at 5s d crash
at 7s d join
at 10s quit
"""
FLOWS = "from,to,start,end,rate,weight\nc.0,d,,,,3\nc.1,d.0,2,8s,,\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tdl").write_text(TDL, encoding="utf-8")
    (tmp_path / "f.csv").write_text(FLOWS, encoding="utf-8")
    return tmp_path


def said(*arguments: str) -> str:
    result = tstorm("predict", "a.tdl", "--flows", "f.csv", *arguments)
    assert status(result) == 0, result.stderr
    return result.stdout


def test_a_table_begins_with_what_it_does_not_tell() -> None:
    lines = said().splitlines()
    assert lines[0].startswith("# fluid rates, not a measurement")
    assert lines[1].startswith("# not in it: TCP's start")
    assert lines[2].split()[:4] == ["LINE", "FROM", "TO", "SINCE"]
    assert [line.split(maxsplit=6) for line in lines[3:7]] == [
        ["2", "c.0", "d.0", "0s", "2s", "10Mb", "c.0->s"],
        ["2", "c.0", "d.0", "2s", "5s", "7.5Mb", "s->d.0"],
        ["2", "c.0", "d.0", "5s", "7s", "0b", "no path"],
        ["2", "c.0", "d.0", "7s", "8s", "7.5Mb", "s->d.0"],
    ]


def test_json_has_the_same_and_what_goes_through() -> None:
    found = json.loads(said("--format", "json"))
    assert found["assumes"][0].startswith("fluid rates, not a measurement")
    first, second = found["flows"]
    assert [one["rate_bps"] for one in second["stretches"]] == [2_500_000, 0, 2_500_000]
    assert second["bytes"] == (3 + 1) * 2_500_000 // 8
    assert (first["weight"], first["demand_bps"], first["end_ns"]) == (3, None, 10**10)


def test_a_picture_has_the_same_bytes_each_time(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("1.svg", "2.svg"):
        said("-o", name)
    assert (folder / "1.svg").read_bytes() == (folder / "2.svg").read_bytes()
    result = tstorm("predict", "a.tdl", "--flows", "f.csv", "-o", "x.pdf")
    assert status(result) == 2


def test_bom_order_of_columns_and_rows_and_ends_of_lines_do_not_matter(folder: Path) -> None:
    before = said("--format", "json")
    rows = "to,FROM,weight,end,start\r\n\r\nd.0,c.1,,8s,2s\r\n d , c.0 ,3,,\r\n"
    (folder / "f.csv").write_bytes(b"\xef\xbb\xbf" + rows.encode())
    found = json.loads(said("--format", "json"))["flows"]
    for flow in found:
        del flow["line"]
    wanted = json.loads(before)["flows"]
    for flow in wanted:
        del flow["line"]
    assert found == wanted[::-1]


HEADER = "from,to,start,end,rate,weight,flow\n"


@pytest.mark.parametrize(
    ("rows", "line", "message", "hint"),
    [
        ("c.0,dd,,,,,", 2, "to: no service or instance 'dd'", "Did you mean 'd'?"),
        ("c,d,,,,,", 2, "from: service 'c' has 2 instances; name one", ""),
        ("c.0,s,,,,,", 2, "to: 's' is a bridge; paths lead from instance to instance", ""),
        ("\nc.0,c.0,,,,,", 3, "'c.0' has no path to itself", "does not leave it"),
        (",d,,,,,", 2, "'from' is empty", "name an instance"),
        ("c.0,d,5s,3s,,,", 2, "end at 3s is not after its start at 5s", "a time, not a length"),
        ("c.0,d,5s,5s,,,", 2, "end at 5s is not after its start at 5s", ""),
        ("c.0,d,10s,12s,,,", 2, "starts at 10s, when all is over", "ends at 10s"),
        ("c.0,d,-1s,,,,", 2, "start: -1s is negative", ""),
        ("c.0,d,0s,later,,,", 2, "end: 'later' is not a number", "such as 2.5s"),
        ("c.0,d,,,-4Mb,,", 2, "rate: -4Mb is negative", ""),
        ("c.0,d,,,4,,", 2, "rate: the rate 4 has no unit", "write 4Mb"),
        ("c.0,d,,,0,,", 2, "rate: a flow of 0 b/s sends nothing", "leave it empty"),
        ("c.0,d,,,,0,", 2, "weight: '0' is no weight", "from 1 to 1000"),
        ("c.0,d,,,,-2,", 2, "weight: '-2' is no weight", ""),
        ("c.0,d,,,,,80", 2, "", ""),
        ("c.0,d,,,,,tcp:80", 2, "flow: 'tcp:80' is none", "a flow is tcp:PORT>PORT"),
        ("c.0,d,,,,,\nc.0,d.0,0s,,,1,", 3, "the flow of line 2 once more", "weight=2"),
        ("c.0,d,,", 2, "has 4 columns instead of 7", "the columns are from,to,start"),
        ('c.0,"d,,,,,', 2, "this is not CSV", ""),
        ("c.0,d,\x1b[2J,,,,", 2, r"start: '\x1b[2J' is not a number", ""),
    ],
)
def test_a_row_that_is_wrong_is_named(
    folder: Path, rows: str, line: int, message: str, hint: str
) -> None:
    (folder / "f.csv").write_text(HEADER + rows + "\n", encoding="utf-8")
    result = tstorm("predict", "a.tdl", "--flows", "f.csv")
    if not message:  # the number of a protocol is a flow
        assert status(result) == 0
        return
    error = str(result.exception)
    assert status(result) == 1
    assert error.startswith(f"error: f.csv:{line}: ")
    assert message in error
    assert hint in error
    assert "\x1b" not in error
    assert not result.stdout


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("from,too\n", "there is no column 'too'", "did you mean 'to'?"),
        ("from,to,to\n", "column 'to' is there twice", "from,to,start"),
        ("from,start\n", "column 'to' is missing", "from,to,start"),
        ("from;to;start\n", "columns are separated by commas", "from,to,start"),
        ("from,to\n", "there is no flow in the list", "from,to,start"),
        ("", "there is no flow in the list", "from,to,start"),
    ],
)
def test_a_head_that_is_wrong_is_named(folder: Path, text: str, message: str, hint: str) -> None:
    (folder / "f.csv").write_text(text, encoding="utf-8")
    error = str(tstorm("predict", "a.tdl", "--flows", "f.csv").exception)
    assert error.startswith(f"error: f.csv:1: {message}")
    assert hint in error


def test_all_errors_come_together_up_to_a_number(folder: Path) -> None:
    (folder / "f.csv").write_text("from,to\n" + "c.0,no\n" * 30, encoding="utf-8")
    error = str(tstorm("predict", "a.tdl", "--flows", "f.csv").exception)
    assert error.count("no service or instance 'no'") == 20
    assert "and 10 more errors in f.csv" in error


def test_files_that_are_none_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "f.csv").write_bytes(b"from,to\nc.0,d\nc.1,\xff\n")
    assert "f.csv:3: this is not UTF-8" in str(
        tstorm("predict", "a.tdl", "--flows", "f.csv").exception
    )
    assert "error: reading no.csv: No such file" in str(
        tstorm("predict", "a.tdl", "--flows", "no.csv").exception
    )
    monkeypatch.setattr(flow_list, "MAX_FLOWS", 1)
    (folder / "f.csv").write_text(FLOWS, encoding="utf-8")
    assert "f.csv:3: a list has at most 1 flows" in str(
        tstorm("predict", "a.tdl", "--flows", "f.csv").exception
    )
    monkeypatch.setattr(flow_list, "MAX_BYTES", 0)
    assert "f.csv has more than 0 MiB" in str(
        tstorm("predict", "a.tdl", "--flows", "f.csv").exception
    )


def test_a_pair_that_never_has_a_path_is_an_error(folder: Path) -> None:
    (folder / "a.tdl").write_text(TDL.replace("s\n", "s u\n", 1).replace("d--s", "d--u"))
    result = tstorm("predict", "a.tdl", "--flows", "f.csv")
    assert status(result) == 1
    error = str(result.exception)
    assert "f.csv:2: there is no path from c.0 to d.0 at any time" in error
    assert "f.csv:3: " in error
    assert "tstorm explain … --from c.0 --to d.0" in error


def test_ports_choose_one_of_several_equal_paths(folder: Path) -> None:
    links = "".join(
        f"link s--m{i} latency=1ms\nlink m{i}--t latency=1ms rate={10 * (i + 1)}Mb\n"
        for i in (0, 1)
    )
    text = "routing ecmp\nservice a\nservice b\nbridges s m0 m1 t\nlink a--s\nlink b--t\n"
    (folder / "a.tdl").write_text(f"{text}{links}at 5s quit\n")
    rows = [f"a,b,tcp:{port}>80" for port in range(5001, 5009)]
    (folder / "f.csv").write_text("\n".join(["from,to,flow", *rows, ""]))
    found = json.loads(said("--format", "json"))["flows"]
    assert {flow["stretches"][0]["at"] for flow in found} == {"m0->t", "m1->t"}
    assert sum(flow["stretches"][0]["rate_bps"] for flow in found) == pytest.approx(30e6, abs=8)
    (folder / "f.csv").write_text("from,to\na,b\n")
    assert "# 1 flows have several equal paths" in said()


# As FLOWS, with the same lines.
STATEMENTS = """\
param all = 10Tb
at 0s c.0->d background $all flows=3
from 2s to 8s c.1->d.0 background $all
"""


def in_tdl(folder: Path, text: str, *arguments: str) -> Result:
    (folder / "f.tdl").write_text(text, encoding="utf-8")
    return tstorm("predict", "a.tdl", "--flows", "f.tdl", *arguments)


def test_a_list_in_tdl_says_what_one_in_csv_does(folder: Path) -> None:
    result = in_tdl(folder, STATEMENTS, "--format", "json")
    assert status(result) == 0, result.stderr
    assert result.stdout == said("--format", "json")


def test_a_loop_is_many_flows_and_a_line_each_way_two(folder: Path) -> None:
    text = """\
for i in 0..1 {
    at ${i+1}s c.$i--d background 2Mb for 3s
}
"""
    found = json.loads(in_tdl(folder, text, "--format", "json").stdout)["flows"]
    told = [
        (one["line"], one["from"], one["to"], one["start_ns"], one["end_ns"], one["demand_bps"])
        for one in found
    ]
    second, rate = 10**9, 2_000_000
    assert told == [
        (2, "c.0", "d.0", second, 4 * second, rate),
        (2, "d.0", "c.0", second, 4 * second, rate),
        (2, "c.1", "d.0", 2 * second, 5 * second, rate),
        (2, "d.0", "c.1", 2 * second, 5 * second, rate),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("service c\n", 1, "this is no flow", "a list has let, param, for and flows"),
        ("\nat 1s c.0 crash\n", 2, "this is no flow", "such as 'from 2s to 8s a->b"),
        ("at 1s background 1Mb\n", 1, "a flow leads from one end to another", "write a->b"),
        ("at 1s c.0 background 1Mb\n", 1, "a flow leads from one end to another", "write a->b"),
        ("at 1s x:c.0->s background 1Mb\n", 1, "'x:' names a link", "leave it out"),
        ("at 1s c.0->d background 0\n", 1, "a flow of 0 b/s sends nothing", "leave the line out"),
        ("at 1s c.0->d background 1Mb flows=1001\n", 1, "flows=1,001 is too many", "1 to 1,000"),
        ("at 1s c.0->d background 1Mb for 1s..2s\n", 1, "times are drawn", "at T … for 5s"),
        ("from 1s to 9s c.0->d background 1Mb for 2s\n", 1, "times are drawn", ""),
        ("at 10s c.0->d background 1Mb\n", 1, "starts at 10s, when all is over", "ends at 10s"),
        ("at 1s c->d background 1Mb\n", 1, "from: service 'c' has 2 instances; name one", ""),
        ("at 1s c.0->dd background 1Mb\n", 1, "to: no service or instance 'dd'", "'d'?"),
        ("at 1s c.0->s background 1Mb\n", 1, "to: 's' is a bridge", ""),
        (STATEMENTS + "at 0s c.0->d.0 background $all flows=3\n", 4, "of line 2 once more", ""),
        ("for i in 1..2 {\n at 1s c.0->d background 1Mb\n}\n", 2, "once more (with $i = 2)", ""),
        ("# nothing\n", 1, "there is no flow in the list", "such as"),
    ],
)
def test_a_statement_that_is_no_flow_is_named(
    folder: Path, text: str, line: int, message: str, hint: str
) -> None:
    result = in_tdl(folder, text)
    error = str(result.exception)
    assert status(result) == 1
    assert error.startswith(f"error: f.tdl:{line}: ")
    assert message in error
    assert hint in error
    assert not result.stdout


def test_what_the_language_refuses_is_shown_as_ever(folder: Path) -> None:
    result = in_tdl(folder, "at 1s c.0->d background 4\n")
    assert status(result) == 1
    assert "f.tdl:1:25: error TS0021: the rate 4 has no unit" in result.stderr
    (folder / "more.tdl").write_text(STATEMENTS)
    result = in_tdl(folder, 'include "more.tdl"\n')
    assert "f.tdl:1:9: error TS0151: a list of flows is one file" in result.stderr


def test_a_list_in_tdl_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_statements, "MAX_FLOWS", 1)
    error = str(in_tdl(folder, STATEMENTS).exception)
    assert error.startswith("error: f.tdl:3: a list has at most 1 flows")
