"""`tstorm report`: what each format tells of a run, and what becomes of foreign text in it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.cli.support import status, tstorm
from tests.comparing.made import figure
from tests.reporting import support
from tests.runtime import recorded

HOSTILE = "a\x00\x1b[2J\ufffe\udcff|`<b>&@all\u202e]]>\n# x"


@pytest.fixture
def run(tmp_path: Path) -> str:
    return str(support.make(tmp_path / "run"))


def report(run: str, *arguments: str) -> str:
    result = tstorm("report", run, *arguments)
    assert status(result) == 0, result.output + repr(result.exception)
    return result.stdout


def suite(text: str) -> ET.Element:
    found = ET.fromstring(text.encode()).find("testsuite")
    assert found is not None
    return found


def test_markdown_has_what_failed_first_and_then_the_verdict(run: str) -> None:
    text = report(run)
    assert text.startswith(
        "# exp-20260301T120000Z\n\n**FAILED**\n\n"
        "- ❌ expect rtt a b below 50ms: rtt was 61 ms at 4 s; last log line: "
        "a.0: late \\<again> &amp; again\n"
        "- ⚠️ a.0: status 3; last log line: boom\n\n"
        "**DEGRADED: the path a.0 to b.0 was late**"
    )
    assert "## Expectations: 1 of 3 passed" in text
    assert "| ❌ failed | expect rtt a b below 50ms | rtt was 61 ms at 4 s |" in text
    assert "    a.0: late <again> & again" in text  # in a block of code nothing needs an escape
    assert "| a.0 | ended by itself with status 3 | boom |" in text
    assert (
        "| a.0 | b.0 | 0 s to 1 s | 2ms, 100Mb | 2.03 ms, 99 % within 2.40 ms | 1 of 10 |" in text
    )
    assert "| a.0->s1 | 1 | 1 |" in text


def test_json_is_one_document_with_a_name_and_a_version(run: str) -> None:
    found = json.loads(report(run, "--format", "json"))
    assert (found["format"], found["version"]) == ("tstorm-report", 1)
    assert found["run"]["state"] == "finished"
    assert found["run"]["end_ns"] == 10**9
    assert found["verdict"] == support.VERDICT
    assert found["expectations"] == support.EXPECTATIONS
    assert [(one["from"], one["to"], len(one["epochs"])) for one in found["pairs"]] == [
        ("a.0", "a.0", 0),
        ("a.0", "b.0", 1),
        ("b.0", "a.0", 1),
    ]
    (program,) = found["programs"]
    assert (program["instance"], program["starts"], len(program["ends"])) == ("a.0", 1, 2)
    assert program["failures"][0]["text"] == "ended by itself with status 3"


def test_junit_has_a_case_for_the_run_the_verdict_and_each_expectation(run: str) -> None:
    found = suite(report(run, "--format", "junit"))
    cases = found.findall("testcase")
    assert [case.get("name") for case in cases] == [
        "the run comes to its end",
        "verdict",
        "expect rtt a b below 50ms",
        'expect no log "panic"',
        "expect run",
        "the program of a.0 does what is right",
    ]
    counts = [found.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["6", "2", "0", "1"]
    failure = cases[2].find("failure")
    assert failure is not None
    assert failure.get("message") == "rtt was 61 ms at 4 s"
    assert failure.text == "exp.tdl:7: rtt was 61 ms at 4 s\na.0: late <again> & again"
    assert cases[3].findtext("system-out") == "line 1: no line"
    skipped = cases[4].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "it was cut short"
    assert found.get("timestamp") == "2026-03-01T12:00:00"


# Of junit-10.xsd of Jenkins' xUnit plugin, which refuses what it does not name: attributes (* must
# be there) and elements within.
_RESULT = ("type message", "")
SCHEMA = {
    "testsuites": ("name time tests failures errors", "testsuite"),
    "testsuite": (
        "name* tests* failures* errors* time skipped timestamp hostname id package",
        "properties testcase system-out system-err",
    ),
    "properties": ("", "property"),
    "property": ("name* value*", ""),
    "testcase": ("name* time classname", "skipped error failure system-out system-err"),
    **dict.fromkeys(("failure", "error", "skipped"), _RESULT),
    "system-out": ("", ""),
}


def test_junit_has_what_the_schema_names_and_nothing_else(run: str) -> None:
    for outcome in ("completed", "failed"):
        end = {"outcome": outcome, "message": "lost"}
        support.put(Path(run), "manifest.json", {**recorded.MANIFEST, **end})
        root = ET.fromstring(report(run, "--format", "junit", "--require", "valid"))
        assert {"testsuites", "failure", "skipped", "system-out"} <= {
            one.tag for one in root.iter()
        }
        for one in root.iter():
            attributes, inner = (words.split() for words in SCHEMA[one.tag])
            must = {name[:-1] for name in attributes if name.endswith("*")}
            assert must <= one.attrib.keys() <= {name.rstrip("*") for name in attributes}, one.tag
            assert {child.tag for child in one} <= set(inner), one.tag
            assert re.fullmatch(r"\d*(\.\d*)?", one.get("time", ""))


@pytest.mark.parametrize(
    ("asked", "recorded_as", "fails"),
    [(None, "", False), ("valid", "", True), ("degraded", "", False), (None, "valid", True)],
)
def test_a_verdict_fails_only_where_another_was_required(
    run: str, asked: str | None, recorded_as: str, fails: bool
) -> None:
    options = {**recorded.MANIFEST["options"], "require": recorded_as}
    support.put(Path(run), "manifest.json", {**recorded.MANIFEST, "options": options})
    require = [] if asked is None else ["--require", asked]
    found = suite(report(run, "--format", "junit", *require))
    assert (found.findall("testcase")[1].find("failure") is not None) == fails


@pytest.mark.parametrize("outcome", ["failed", "interrupted"])
def test_a_run_that_did_not_come_to_its_end_is_an_error(run: str, outcome: str) -> None:
    end = {"outcome": outcome, "message": "the agent of h1 is lost"}
    support.put(Path(run), "manifest.json", {**recorded.MANIFEST, **end})
    error = suite(report(run, "--format", "junit")).find("testcase/error")
    assert error is not None
    assert error.get("message") == "the agent of h1 is lost"
    assert f"- outcome: {outcome}: the agent of h1 is lost" in report(run)
    assert json.loads(report(run, "--format", "json"))["run"]["outcome"] == outcome


def test_a_run_without_a_summary_is_told_from_what_is_there(run: str) -> None:
    """It was killed: no outcome, no summary, and nobody has judged it."""
    (Path(run) / "summary.json").unlink()
    (Path(run) / "certificate.json").unlink()
    support.put(Path(run), "manifest.json", {**recorded.BEGUN, "run_id": "exp"})
    (Path(run) / "samples.jsonl").unlink()
    result = tstorm("report", run)
    assert "was ended from outside" in result.stderr
    assert "events: 2 of 2 applied" in result.stdout
    assert json.loads(report(run, "--format", "json"))["verdict"]["state"] == "unknown"
    for form in ("html", "junit"):
        report(run, "--format", form)


def test_a_run_that_goes_on_says_so(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (Path(run) / "summary.json").unlink()
    (Path(run) / "samples.jsonl").unlink()
    support.put(Path(run), "manifest.json", recorded.BEGUN)
    monkeypatch.setattr("tstorm.reporting.output_files.goes_on", lambda _directory: True)
    result = tstorm("report", run)
    assert "goes on" in result.stderr
    assert "**The run goes on" in result.stdout
    found = suite(report(run, "--format", "junit"))
    assert [case.get("name") for case in found.findall("testcase[skipped]")] == [
        "the run comes to its end",
        "verdict",
    ]


def test_of_another_users_run_it_says_that_nobody_can_see_the_end(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(run) / "summary.json").unlink()
    (Path(run) / "samples.jsonl").unlink()
    support.put(Path(run), "manifest.json", recorded.BEGUN)
    monkeypatch.setattr("runtime.launch.registry.other_owner", lambda _run: "somebody")
    result = tstorm("report", run)
    for said in (result.stderr, result.stdout):
        assert "is another user's, who alone can see whether it goes on" in said
    assert len(suite(report(run, "--format", "junit")).findall("testcase[skipped]")) == 2


def test_hostile_text_stays_text(run: str) -> None:
    one: dict[str, Any] = {
        "text": HOSTILE,
        "state": "failed",
        "message": HOSTILE,
        "kind": HOSTILE,
        "file": HOSTILE,
    }
    one["log"] = [{"instance": HOSTILE, "at_ns": None, "line": HOSTILE}]
    failure = {**support.FAILURES[0], "last_log_line": HOSTILE}
    changed = {
        **support.summary(),
        "expectations": [support.expectation(**one)],
        "failures": [failure],
    }
    support.put(Path(run), "summary.json", changed)
    found = suite(report(run, "--format", "junit"))
    case = found.findall("testcase")[2]
    shown = "a\\x00\\x1b[2J\\ufffe\\udcff|`<b>&@all\\u202e]]>\\n# x"
    assert case.get("name") == shown
    assert case.findtext("failure") == f"{shown}:1: {shown}\n{shown}: {shown}"
    text = report(run)
    assert "\x1b" not in text
    assert "a\\\\x00\\\\x1b\\[2J\\\\ufffe\\\\udcff\\|\\`\\<b>&amp;&#64;all" in text
    assert "<b>" not in report(run, "--format", "html").replace("<b>completed</b>", "")
    json.loads(report(run, "--format", "json"))


def test_tables_are_a_folder_of_files(run: str, tmp_path: Path) -> None:
    target = tmp_path / "series"
    for _ in range(2):  # the second replaces the first
        report(run, "--format", "csv", "-o", str(target))
    assert sorted(path.name for path in target.iterdir()) == [
        *("contacts.csv", "events.csv", "figures.csv", "links.csv", "pairs.csv", "paths.csv"),
        "probes.csv",
    ]
    paths = list(csv.DictReader((target / "paths.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["planned_delay_ns"] for row in paths] == ["2000000", ""]
    assert paths[0]["measured_delay_p50_ns"] == "2030000"
    links = list(csv.DictReader((target / "links.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["at_ns"], row["link"], row["pkts"]) for row in links] == [
        ("1", "a.0->s1", "1"),
        ("1", "s1->a.0", "1"),
    ]


def test_one_table_goes_anywhere(run: str, tmp_path: Path) -> None:
    text = report(run, "--table", "probes")
    assert list(csv.reader(io.StringIO(text))) == [
        ["sent_ns", "from", "to", "measure", "delay_ns", "lost"],
        ["1000", "a.0", "b.0", "one-way", "2030000", "0"],
        ["2000", "a.0", "b.0", "one-way", "", "1"],
    ]
    report(run, "--table", "probes", "-o", str(tmp_path / "p.csv"))
    assert (tmp_path / "p.csv").read_text(encoding="utf-8") == text


def test_what_is_open_is_neither_lost_nor_left_out(run: str) -> None:
    at_end = {"at_ns": 2 * 10**9, "probes": [], "open": [[0, 3000]], "last": True}
    (Path(run) / "probes.jsonl").write_bytes(recorded.lines([*support.PROBES, at_end]))
    rows = list(csv.reader(io.StringIO(report(run, "--table", "probes"))))
    assert rows[-1] == ["3000", "a.0", "b.0", "one-way", "", ""]
    certificate = json.loads((Path(run) / "certificate.json").read_text())
    certificate["pairs"][0]["measured"]["open"] = 2
    (Path(run) / "certificate.json").write_text(json.dumps(certificate))
    [row, _] = csv.DictReader(io.StringIO(report(run, "--table", "paths")))
    assert [row[f"measured_{name}"] for name in ("probes", "lost", "open")] == ["10", "1", "2"]
    assert "1 of 10, 2 open" in report(run, "--format", "md")


def test_a_folder_of_other_files_is_left_alone(run: str, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "paths.csv").write_text("from,to\n", encoding="utf-8")
    result = tstorm("report", run, "--format", "csv", "-o", str(tmp_path / "mine"))
    assert status(result) == 1
    assert (tmp_path / "mine" / "paths.csv").read_text(encoding="utf-8") == "from,to\n"


@pytest.mark.parametrize(
    ("name", "begins"),
    [("r.html", "<!doctype html>"), ("r.md", "# exp"), ("r.json", "{"), ("r.xml", "<?xml")],
)
def test_the_suffix_says_the_format(run: str, tmp_path: Path, name: str, begins: str) -> None:
    assert report(run, "-o", str(tmp_path / name)) == ""
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    assert {path.name for path in tmp_path.iterdir()} == {"run", name}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "csv"],
        ["--table", "paths", "--format", "md"],
        ["--require", "valid"],
        ["--format", "pdf"],
        ["-o", ""],
    ],
)
def test_wrong_usage(run: str, arguments: list[str]) -> None:
    assert status(tstorm("report", run, *arguments)) == 2


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    result = tstorm("report", str(tmp_path))
    assert status(result) == 1
    assert result.stdout == ""


def test_nothing_but_files_is_replaced(run: str, tmp_path: Path) -> None:
    for target in (str(tmp_path), "/dev/null", str(tmp_path / "none" / "r.md")):
        assert status(tstorm("report", run, "-o", target)) == 1


def test_figures_are_in_each_format(run: str) -> None:
    place = Path(run)
    summary = {**support.summary(), "figures": [figure("lost", "360"), figure("p99", None)]}
    summary["figures"][1]["message"] = "no line"
    support.put(place, "summary.json", summary)
    assert "| lost | a.0 | 360 |\n| p99 | a.0 | not measured: no line |" in report(run)
    assert json.loads(report(run, "--format", "json"))["figures"] == summary["figures"]
    table = report(run, "--format", "csv", "--table", "figures", "-o", "-")
    assert table == "name,instance,value,message\nlost,a.0,360,\np99,a.0,,no line\n"
