"""What the command says of `routing ecmp`: all paths with their shares, the one of a flow, how sets
differ, and flows that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import status, tstorm
from tstorm.exit_codes import OK

TDL = """\
routing ecmp
service a img=x
service b img=x
bridges s m[0..2] t
link a--s latency=1ms
link b--t latency=1ms
for i in 0..2 {
    link s--m$i latency=1ms rate=${10*i+10}Mb
    link m$i--t latency=1ms
}
at 5s m1 leave
at 9s quit
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tdl").write_text(TDL, encoding="utf-8")
    return tmp_path


def said(*arguments: str) -> str:
    result = tstorm(*arguments)
    assert status(result) == OK, result.stderr
    return result.stdout


def test_paths_lists_all_with_their_shares() -> None:
    head, *rows = said("paths", "a.tdl", "--from", "a").splitlines()
    assert head.split()[:4] == ["FROM", "TO", "SHARE", "RATE"]
    assert [row.split()[2:4] for row in rows] == [["1/3", "10Mb"], ["1/3", "20Mb"], ["1/3", "30Mb"]]
    assert [row.split()[-3] for row in rows] == ["s->m0", "s->m1", "s->m2"]
    found = json.loads(said("paths", "a.tdl", "--from", "a", "--at", "5s", "--format", "json"))
    assert [path["links"][1] for path in found] == ["s->m0", "s->m2"]
    assert {path["share_ppb"] for path in found} == {500_000_000}
    assert {path["rtt_ns"] for path in found} == {8_000_000}


def test_too_many_paths_are_counted_and_the_first_listed(folder: Path) -> None:
    links = "".join(f"link s--m{i} latency=1ms\nlink m{i}--t latency=1ms\n" for i in range(9))
    more = "".join(f"link t--n{i} latency=1ms\nlink n{i}--u latency=1ms\n" for i in range(9))
    text = (
        "routing ecmp\nservice a\nservice b\nbridges s m[0..8] t n[0..8] u\nlink a--s\nlink b--u\n"
    )
    (folder / "b.tdl").write_text(text + links + more)
    result = tstorm("paths", "b.tdl", "--from", "a")
    assert "a.0 to b.0: 81 equal paths, of which 64 are listed" in result.stderr
    assert len(result.stdout.splitlines()) == 65
    assert {row.split()[2] for row in result.stdout.splitlines()[1:]} == {"1/81"}


def test_explain_says_which_way_a_flow_takes() -> None:
    """Each port has one way, the one of its answers back, and all ways are somebody's."""
    ends, ways = ("--from", "a", "--to", "b", "--format", "json"), set()
    for port in range(5001, 5021):
        told = json.loads(said("explain", "a.tdl", *ends, "--flow", f"tcp:{port}>80"))
        assert told["there"]["equal_paths"] == told["back"]["equal_paths"] == 3
        ways.add(told["there"]["hops"][1]["link"])
        other = json.loads(said("explain", "a.tdl", *ends, "--flow", f"tcp6:{port}>80@0x7"))
        assert other["there"]["reachable"]
    assert ways == {"s->m0", "s->m1", "s->m2"}
    told_back = json.loads(
        said("explain", "a.tdl", "--from", "b", "--to", "a", *ends[4:], "--flow", "tcp:80>5020")
    )
    assert told_back["back"] == told["there"]
    text = said("explain", "a.tdl", *ends[:4], "--flow", "icmp")
    assert text.count("one of 3 equal paths: that of this flow") == 2
    assert said("explain", "a.tdl", *ends[:4]).count("that of a run's probes") == 2
    assert "equal path" not in said("explain", "a.tdl", *ends[:4], "--at", "8s").replace(
        "2 equal", ""
    )


def test_diff_compares_sets(folder: Path) -> None:
    (folder / "b.tdl").write_text(TDL.replace("m1 leave", "m2 leave"))
    found = tstorm("diff", "a.tdl", "b.tdl").stdout
    assert "2 pairs, rate, route" in found or "2 pairs, route, rate" in found
    one = "with a.0->s s->m1 m1->t t->b.0"
    assert f"2 paths -> 2, without a.0->s s->m2 m2->t t->b.0, {one}" in found
    (folder / "b.tdl").write_text(TDL.replace("routing ecmp\n", ""))
    found = tstorm("diff", "a.tdl", "b.tdl").stdout
    assert "3 paths -> 1, without" in found


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ("tcp:80", "a flow is tcp:PORT>PORT"),
        ("tcp:1>70000", "ports end at 65535"),
        ("300", "protocols at 255"),
        ("udp6:1>2@0x1fffff", "labels at 0xfffff"),
        ("http:1>2", "a flow is tcp:PORT>PORT"),
    ],
)
def test_what_is_no_flow_is_refused(flow: str, words: str) -> None:
    result = tstorm("explain", "a.tdl", "--from", "a", "--to", "b", "--flow", flow)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_a_flow_of_a_family_that_is_not_there_is_refused(folder: Path) -> None:
    (folder / "b.tdl").write_text("network ipv4\n" + TDL)
    result = tstorm("explain", "b.tdl", "--from", "a", "--to", "b", "--flow", "tcp6:1>2")
    assert result.exit_code == 2
    assert "network ipv4" in result.stderr
    result = tstorm("explain", "b.tdl", "--event", "0", "--flow", "icmp")
    assert "without --from, --to, --at and --flow" in " ".join(result.stderr.split())
