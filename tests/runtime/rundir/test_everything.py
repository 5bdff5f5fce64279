"""Two runs in virtual time are compared to the last byte: what differs is told with its place."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from runtime.errors import RunError
from runtime.results import everything
from runtime.results.filetree import RunDifference, json_difference
from runtime.rundir import rundir
from runtime.rundir.pcapng import Packet
from tests.runtime import recorded
from tests.runtime.rundir.pcapng_writer import file

PLAN = compile_source(recorded.TDL, filename="exp.tdl", seed=None).plan
SAMPLES = [
    {
        "columns": {
            "links": ["link", "pkts", "bytes"],
            "pairs": ["src", "dst", "offered_pkts"],
            "digests": ["link", "digest"],
        },
        "interval_ns": 100_000_000,
    },
    *(
        {
            "at_ns": number * 10**8,
            "elapsed_ns": number * 10**8,
            "links": [[0, number, 84 * number], [1, number, 84 * number]],
            "pairs": [[0, 1, number]],
            "digests": [[0, f"{number:016x}"], [1, f"{number + 64:016x}"]],
        }
        for number in range(1, 6)
    ),
]


def made(place: Path) -> Path:
    """A run with logs, files of instances and digests."""
    run = recorded.make(place)
    (run / "samples.jsonl").write_bytes(recorded.lines(SAMPLES))
    (run / "logs").mkdir()
    (run / "logs" / "a.0.log").write_text("".join(f"line {number}\n" for number in range(50)))
    (run / "instances" / "a.0" / "tmp").mkdir(parents=True)
    (run / "instances" / "a.0" / "data").write_bytes(bytes(range(256)) * 20)
    (run / "driver.log").touch()
    (run / "hosts").write_text("10.77.0.1 a.0\n")
    return run


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    return made(tmp_path / "a"), made(tmp_path / "b")


def differ(first: Path, second: Path) -> list[RunDifference]:
    found, _ = everything.differ(rundir.recorded(first), rundir.recorded(second), PLAN)
    return found


def only(runs: tuple[Path, Path]) -> RunDifference:
    (found,) = differ(*runs)
    return found


def rewrite(path: Path, change: Callable[[Any], object]) -> None:
    """Changes a document of JSON."""
    value = json.loads(path.read_bytes())
    change(value)
    path.write_text(json.dumps(value))


def test_two_runs_that_are_the_same(runs: tuple[Path, Path]) -> None:
    first, second = map(rundir.recorded, runs)
    found, compared = everything.differ(first, second, PLAN)
    assert found == []
    assert compared.startswith("4 lines of events.jsonl, 6 lines of samples.jsonl, 2 logs, ")
    assert "manifest.json, summary.json" in compared


def test_what_is_expected_to_differ_is_no_difference(runs: tuple[Path, Path]) -> None:
    def another(manifest: dict[str, Any]) -> None:
        for key in everything.EXPECTED["manifest.json"]:
            manifest[key] = f"another {key}"

    rewrite(runs[1] / "manifest.json", another)
    (runs[1] / "report.html").write_text("another page")
    assert differ(*runs) == []


def test_another_option_is_a_difference(runs: tuple[Path, Path]) -> None:
    rewrite(runs[1] / "manifest.json", lambda one: one["options"].update(pace=7))
    assert only(runs) == RunDifference("manifest", "options.pace", None, "1", "7")


def test_an_event_at_another_moment(runs: tuple[Path, Path]) -> None:
    events = json.loads(json.dumps(recorded.EVENTS))
    events[1]["applied_ns"] = 12
    events[3]["applied_ns"] += 1
    (runs[1] / "events.jsonl").write_bytes(recorded.lines(events))
    assert only(runs) == RunDifference("event", "exit a.0", 10, "applied_ns=10", "applied_ns=12", 1)


def test_another_exit_status(runs: tuple[Path, Path]) -> None:
    events = json.loads(json.dumps(recorded.EVENTS))
    events[1]["status"] = 7
    (runs[1] / "events.jsonl").write_bytes(recorded.lines(events))
    assert only(runs) == RunDifference("event", "exit a.0", 10, "status=1", "status=7")


def test_an_event_that_one_run_lacks(runs: tuple[Path, Path]) -> None:
    (runs[1] / "events.jsonl").write_bytes(recorded.lines(recorded.EVENTS[:3]))
    (found,) = differ(*runs)
    assert (found.what, found.subject, found.at_ns) == ("event", "quit", 10**9 + 1)
    assert "planned_ns=1000000000" in found.first
    assert found.second == ""


def test_counters_are_told_by_link_and_first_moment(runs: tuple[Path, Path]) -> None:
    samples = json.loads(json.dumps(SAMPLES))
    for line in samples[3:]:
        line["links"][1][1] += 2
        line["digests"][1][1] = "f" * 16
    (runs[1] / "samples.jsonl").write_bytes(recorded.lines(samples))
    assert only(runs) == RunDifference(
        "link",
        "s1->a.0",
        3 * 10**8,
        "digest=0000000000000043 pkts=3",
        "digest=ffffffffffffffff pkts=5",
        2,
    )


def test_a_digest_alone_is_a_difference(runs: tuple[Path, Path]) -> None:
    samples = json.loads(json.dumps(SAMPLES))
    samples[2]["digests"][0][1] = "0" * 16
    (runs[1] / "samples.jsonl").write_bytes(recorded.lines(samples))
    found = only(runs)
    assert (found.what, found.subject, found.at_ns) == ("link", "a.0->s1", 2 * 10**8)
    assert (found.first, found.second) == ("digest=0000000000000002", "digest=0000000000000000")


def test_a_pair_and_a_sample_at_another_time(runs: tuple[Path, Path]) -> None:
    samples = json.loads(json.dumps(SAMPLES))
    samples[1]["pairs"][0][2] = 9
    (runs[1] / "samples.jsonl").write_bytes(recorded.lines(samples))
    assert only(runs).subject == "a.0 -> s1"
    samples = json.loads(json.dumps(SAMPLES))
    samples[1]["elapsed_ns"] -= 1
    (runs[1] / "samples.jsonl").write_bytes(recorded.lines(samples))
    found = only(runs)
    assert found.what == "sample"
    assert (found.first, found.second) == ("elapsed_ns=100000000", "elapsed_ns=99999999")


def test_the_earliest_moment_comes_first(runs: tuple[Path, Path]) -> None:
    samples = json.loads(json.dumps(SAMPLES))
    samples[1]["links"][0][1] = 9
    (runs[1] / "samples.jsonl").write_bytes(recorded.lines(samples))
    (runs[1] / "events.jsonl").write_bytes(recorded.lines(recorded.EVENTS[:3]))
    (runs[1] / "logs" / "a.0.log").write_text("")
    assert [one.what for one in differ(*runs)] == ["link", "event", "log"]


def test_the_first_line_of_a_log_that_differs(runs: tuple[Path, Path]) -> None:
    lines = (runs[1] / "logs" / "a.0.log").read_text().replace("line 7\n", "line \x1b[2J\n")
    (runs[1] / "logs" / "a.0.log").write_text(lines.replace("line 30", "line 31"))
    assert only(runs) == RunDifference("log", "a.0.log:8", None, "line 7", "line \x1b[2J", 1)


def test_a_log_that_ends_sooner_and_one_that_is_missing(runs: tuple[Path, Path]) -> None:
    log = runs[1] / "logs" / "a.0.log"
    log.write_text(log.read_text().removesuffix("line 49\n"))
    assert only(runs) == RunDifference("log", "a.0.log:50", None, "line 49", "")
    log.unlink()
    assert only(runs) == RunDifference("log", "logs/a.0.log", None, "a file", "")


def test_a_long_line_is_shown_where_it_differs(runs: tuple[Path, Path]) -> None:
    for run, end in zip(runs, ("this", "that"), strict=True):
        (run / "logs" / "a.0.log").write_text("x" * 5000 + end + "y" * 5000 + "\n")
    found = only(runs)
    assert "this" in found.first and "that" in found.second
    assert len(found.first) < 250


def test_files_of_instances(runs: tuple[Path, Path]) -> None:
    data = runs[1] / "instances" / "a.0" / "data"
    data.write_bytes(data.read_bytes()[:-1] + b"!")
    assert only(runs).subject.startswith("instances/a.0/data:")
    data.unlink()
    data.symlink_to("/etc/passwd")
    found = only(runs)
    assert (found.first, found.second) == ("a file", "a link to /etc/passwd")
    data.unlink()
    os.mkfifo(data)
    assert only(runs).second == "a pipe"
    data.unlink()
    data.mkdir()
    assert only(runs).second == "a folder"


def test_a_file_that_only_one_run_has(runs: tuple[Path, Path]) -> None:
    (runs[1] / "core").write_bytes(b"\0")
    assert only(runs) == RunDifference("file", "core", None, "", "a file")


def test_the_first_packet_that_differs(runs: tuple[Path, Path]) -> None:
    names = ("a.0->s1", "s1->a.0")
    start = 10**18
    packets = [Packet(names[n % 2], start + n * 10**6, bytes(60), "", 0) for n in range(9)]
    for run in runs:
        rewrite(run / "manifest.json", lambda one: one.update(start_unix_ns=start))
        (run / "packets").mkdir()
        (run / "packets" / "a.0--s1.pcapng").write_bytes(file(packets, names))
    assert differ(*runs) == []
    packets[4] = replace(packets[4], data=bytes(20) + b"\x07" + bytes(39))
    packets[6] = replace(packets[6], comment="dropped: lost by the draw")
    (runs[1] / "packets" / "a.0--s1.pcapng").write_bytes(file(packets, names))
    assert only(runs) == RunDifference(
        "packet",
        "a.0->s1",
        4 * 10**6,
        f"0.004000000 s a.0->s1, 60 bytes from byte 20 on: {bytes(16).hex(' ')}",
        f"0.004000000 s a.0->s1, 60 bytes from byte 20 on: 07 {bytes(15).hex(' ')}",
        1,
    )
    (runs[1] / "packets" / "a.0--s1.pcapng").write_bytes(b"no file of packets\n")
    assert only(runs).what == "file of packets"


def test_links_and_pipes_are_not_followed(runs: tuple[Path, Path]) -> None:
    for run in runs:
        (run / "instances" / "a.0" / "out").symlink_to("/dev/zero")
        os.mkfifo(run / "instances" / "a.0" / "pipe")
    assert differ(*runs) == []


def test_a_damaged_record_is_refused_before_anything_runs(runs: tuple[Path, Path]) -> None:
    (runs[0] / "samples.jsonl").write_text('{"links":[["x"]],"pairs":[]}\n')
    with pytest.raises(RunError, match=r"samples\.jsonl:1"):
        everything.read(rundir.recorded(runs[0]))


def test_documents_of_another_shape() -> None:
    assert json_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == ("a[1].b", "2", "3", 0)
    assert json_difference({"a": [1]}, {"a": [1, 2]}) == ("a", "[1]", "[1, 2]", 0)
    assert json_difference({"a": 1, "c": 0}, {"b": 1, "c": 1}) == ("a", "1", "", 2)
    assert json_difference({"a": True}, {"a": 1}) == ("a", "true", "1", 0)
    assert json_difference({"a": [{}]}, {"a": [{}]}) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_documents_differ_if_their_bytes_do(first: Any, second: Any) -> None:
    same = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert (json_difference(first, second) is None) == same
    assert json_difference(first, first) is None


COMPARED = (
    *("events.jsonl", "samples.jsonl", "logs/a.0.log", "instances/a.0/data", "hosts"),
    *("plan/meta.json",),
)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_byte_is_a_difference(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    place = tmp_path_factory.mktemp("runs")
    first, second = made(place / "a"), made(place / "b")
    name = data.draw(st.sampled_from([one for one in COMPARED if (first / one).exists()]))
    whole = bytearray((second / name).read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    (second / name).write_bytes(whole)
    try:
        assert differ(first, second), f"byte {at} of {name}"
    except RunError:
        assert name.endswith(".jsonl"), "only what must have a shape is refused"
    shutil.rmtree(place)
