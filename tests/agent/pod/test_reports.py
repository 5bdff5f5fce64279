"""Reports of holds, and what programs of a container may put in their place."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.agent.pod.reports import MAX_BYTES, PART_BYTES, Report, Reports
from runtime.coordinator import says
from runtime.coordinator.says import HoldReport
from tests.agent.pod.planted import Planted

NOW_NS = 1_000_000


def line(event: str, at_ns: int, **fields: object) -> bytes:
    return json.dumps({"tstorm_hold": event, "monotonic_ns": at_ns, **fields}).encode() + b"\n"


@pytest.fixture
def node(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


@pytest.fixture
def file(node: Planted) -> Path:
    found = node.root(30) / "tstorm/reports"
    found.parent.mkdir()
    found.write_bytes(b"")
    return found


def opened(node: Planted) -> Reports:
    reports = Reports()
    reports.open(30, node.proc)
    return reports


def now() -> int:
    return NOW_NS


def everything(reports: Reports, now_ns: int = NOW_NS) -> list[Report]:
    found: list[Report] = []
    for _ in range(2 * MAX_BYTES // PART_BYTES):
        found += reports.read(lambda: now_ns)
    return found


def test_what_is_written_before_it_is_read_keeps_its_time(node: Planted, file: Path) -> None:
    """Whoever reads may be held up between the file and the clock: the clock comes last."""
    reports = opened(node)

    def writes_meanwhile() -> int:
        file.write_bytes(line("held", NOW_NS + 5))
        return NOW_NS

    assert reports.read(writes_meanwhile) == []
    assert [report.at_ns for report in reports.read(lambda: NOW_NS + 10)] == [NOW_NS + 5]
    reports.close()


def test_lines_are_numbered_and_come_when_they_are_whole(node: Planted, file: Path) -> None:
    reports = opened(node)
    assert reports.read(now) == []
    whole = line("held", 10, unix_ns=3) + line("started", 20, pid=7)
    file.write_bytes(whole[:-5])
    assert reports.read(now) == [Report(0, "held", 10)]
    file.write_bytes(whole + line("failed", 30, program="p", error="no"))
    assert reports.read(now) == [
        Report(1, "started", 20, pid=7),
        Report(2, "failed", 30, program="p", error="no"),
    ]
    assert (reports.odd, reports.over) == (0, False)
    reports.close()


def test_the_next_container_goes_on_with_the_file(node: Planted, file: Path) -> None:
    reports = opened(node)
    file.write_bytes(line("held", 10))
    assert [report.line for report in reports.read(now)] == [0]
    reports.open(30, node.proc)
    with file.open("ab") as appending:
        appending.write(line("held", 20))
    assert [report.line for report in reports.read(now)] == [1]
    file.unlink()
    file.write_bytes(line("started", 30))  # another file
    reports.open(30, node.proc)
    assert reports.read(now) == [Report(2, "started", 30)]
    reports.close()


def test_no_report_is_of_a_time_to_come_or_goes_back(node: Planted, file: Path) -> None:
    file.write_bytes(line("held", 50) + line("started", 10**30) + line("ended", 3))
    reports = opened(node)
    assert [report.at_ns for report in reports.read(now)] == [50, 50]
    assert reports.odd == 1  # a number that no clock has
    file.write_bytes(file.read_bytes() + line("left", 2 * NOW_NS))
    assert [report.at_ns for report in reports.read(now)] == [NOW_NS]
    reports.close()


ODD = [
    b"\n",
    b"{}\n",
    b"[]\n",
    b"null\n",
    b"\xff\xfe\n",
    b"[" * 4000 + b"\n",
    line("danced", 1),
    line("held", -1),
    b'{"tstorm_hold":"held"}\n',
    b'{"tstorm_hold":"held","monotonic_ns":1.5}\n',
    b'{"tstorm_hold":["held"],"monotonic_ns":1}\n',
    line("started", 1, pid="7"),
    line("ended", 1, status=-1),
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd[:30]))
def test_a_line_that_is_no_report_is_left_out(node: Planted, file: Path, odd: bytes) -> None:
    file.write_bytes(odd + line("held", 5))
    reports = opened(node)
    assert everything(reports) == [Report(0, "held", 5)]
    assert reports.odd == 1
    reports.close()


def test_a_line_without_end_does_not_fill_the_memory(node: Planted, file: Path) -> None:
    file.write_bytes(b"x" * 50_000)
    reports = opened(node)
    assert everything(reports) == []
    with file.open("ab") as appending:
        appending.write(b"\n" + line("held", 5))
    assert [report.event for report in everything(reports)] == ["held"]
    reports.close()


def test_an_endless_file_is_read_no_further_than_a_bound(node: Planted, file: Path) -> None:
    one = line("ignored", 5, order="join")
    file.write_bytes(one * (2 * MAX_BYTES // len(one)))
    reports = opened(node)
    assert len(reports.read(now)) <= PART_BYTES // len(one) + 1
    assert len(everything(reports)) <= MAX_BYTES // len(one) + 1
    assert reports.over
    assert reports.read(now) == []
    reports.close()


def plant(file: Path, what: str, secret: Path) -> None:
    file.unlink()
    if what == "a link":
        file.symlink_to(secret)
    elif what == "a link of the folder":
        file.parent.rmdir()
        file.parent.symlink_to(secret.parent)
    elif what == "a FIFO":
        os.mkfifo(file)
    elif what == "a folder":
        file.mkdir()
    elif what == "a device":
        file.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    "what", ["nothing", "a link", "a link of the folder", "a FIFO", "a folder", "a device"]
)
def test_what_is_planted_is_neither_followed_nor_waited_for(
    node: Planted, file: Path, tmp_path: Path, what: str
) -> None:
    secret = tmp_path / "reports"
    secret.write_bytes(line("held", 1))
    plant(file, what, secret)
    reports = Reports()
    with pytest.raises(OSError, match=r"."):
        reports.open(30, node.proc)
    assert reports.read(now) == []


def test_a_lease_is_not_waited_for(node: Planted, file: Path) -> None:
    """The one who has it could keep whoever opens the file waiting for 45 seconds."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # tells who has it that others want in
    with file.open("r+b") as held:
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with pytest.raises(BlockingIOError):
            Reports().open(30, node.proc)
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    signal.signal(signal.SIGIO, before)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = ("tstorm_hold", "monotonic_ns", "pid", "status", "signal", "program", "error", "order")
RECORDS = st.dictionaries(
    st.sampled_from(KEYS), VALUES | st.sampled_from(("held", "started", "ended", 5)), max_size=8
)
PARTS = st.one_of(st.binary(max_size=200), RECORDS.map(lambda r: json.dumps(r).encode() + b"\n"))


@settings(max_examples=300, deadline=None)
@given(parts=st.lists(PARTS, max_size=12), data=st.data())
def test_whatever_is_written_becomes_reports_that_a_coordinator_believes(
    parts: list[bytes], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    node = Planted(tmp_path_factory.mktemp("node"))
    file = node.root(30) / "tstorm/reports"
    file.parent.mkdir()
    file.write_bytes(b"")
    reports = opened(node)
    found: list[Report] = []
    for part in parts:
        with file.open("ab") as appending:
            appending.write(part)
        if data.draw(st.booleans()):
            found += reports.read(now)
    found += everything(reports)
    reports.close()
    assert [report.line for report in found] == list(range(len(found)))
    times = [report.at_ns for report in found]
    assert times == sorted(times)
    for report in found:
        fields = asdict(report)
        told = HoldReport(node=0, elapsed_ns=fields.pop("at_ns"), **fields)
        said = says.write(told)
        assert says.read(said) == told
        assert len(json.dumps(said)) < 10_000
