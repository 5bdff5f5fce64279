"""`tstorm report --format perfetto` and `otlp`: by the rules of the two formats, and with what the
run has recorded."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

from tests.cli.support import status, tstorm
from tests.reporting import support
from tests.runtime import recorded
from tests.runtime.rundir import packets_made

START_NS = 1_700_000_000_000_000_000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = support.make(tmp_path / "run")
    support.put(made, "manifest.json", {**recorded.MANIFEST, "start_unix_ns": START_NS})
    return made


def report(run: Path, form: str) -> str:
    done = tstorm("report", str(run), "--format", form)
    assert status(done) == 0, done.output + repr(done.exception)
    return done.stdout


def with_bytes(value: Any) -> Any:
    """OTLP writes identifiers in hexadecimal, JSON of Protocol Buffers in base 64."""
    if isinstance(value, list):
        return [with_bytes(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: with_bytes(one) for key, one in value.items()}
    for key in ("traceId", "spanId", "parentSpanId"):
        if key in found:
            found[key] = base64.b64encode(bytes.fromhex(found[key])).decode()
    return found


def spans(run: Path) -> list[Span]:
    told = ParseDict(with_bytes(json.loads(report(run, "otlp"))), TracesData())
    return [
        span
        for resource in told.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def test_spans_are_those_of_the_run(run: Path) -> None:
    found = spans(run)
    (root,) = [one for one in found if not one.parent_span_id]
    assert (root.name, root.start_time_unix_nano) == ("exp-20260301T120000Z", START_NS)
    assert root.end_time_unix_nano == START_NS + 10**9 + 1
    assert root.status.code == Status.STATUS_CODE_ERROR
    assert "rtt was 61 ms" in root.status.message
    assert [event.name for event in root.events] == ["join a.0", "exit a.0", "exit a.0", "quit"]
    (incarnation,) = [one for one in found if one.name == "a.0 #1"]
    assert incarnation.start_time_unix_nano == START_NS + 7
    assert incarnation.end_time_unix_nano == START_NS + 10
    (failed,) = [one for one in found if one.name == "expect rtt a b below 50ms"]
    assert failed.status.code == Status.STATUS_CODE_ERROR
    assert failed.start_time_unix_nano == START_NS + 4 * 10**9
    assert {one.parent_span_id for one in found if one is not root} == {root.span_id}
    assert len({one.span_id for one in found}) == len(found)
    assert {len(one.trace_id) for one in found} == {16}


def test_the_same_run_gives_the_same_bytes_and_another_other_names(run: Path) -> None:
    for form in ("otlp", "perfetto"):
        assert report(run, form) == report(run, form)
    before = {one.trace_id for one in spans(run)}
    manifest = json.loads((run / "manifest.json").read_text())
    support.put(run, "manifest.json", {**manifest, "run_id": "exp-20260301T120001Z"})
    assert before.isdisjoint({one.trace_id for one in spans(run)})


def trace(run: Path) -> dict[str, Any]:
    """Checked by the rules of the Trace Event Format."""
    found: dict[str, Any] = json.loads(report(run, "perfetto"))
    slices: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in found["traceEvents"]:
        assert {"ph", "pid", "tid", "ts", "name"} <= event.keys()
        assert event["ph"] in "MXisfbe"
        if event["ph"] == "X":
            assert event["dur"] > 0
            begin = event["ts"]
            slices.setdefault((event["pid"], event["tid"]), []).append((begin, event["dur"]))
    flows = [event for event in found["traceEvents"] if event["ph"] in "sf"]
    for event in flows:  # an arrow begins and ends at a slice
        here = slices[event["pid"], event["tid"]]
        assert any(begin == event["ts"] for begin, _ in here)
    kinds = Counter((event["id"], event["ph"]) for event in flows)
    assert set(kinds.values()) <= {1}
    assert len(kinds) == 2 * len({event["id"] for event in flows})
    return found


def test_a_trace_has_a_process_for_each_instance(run: Path) -> None:
    found = trace(run)
    names = {
        event["args"]["name"]: event["pid"]
        for event in found["traceEvents"]
        if event["name"] == "process_name"
    }
    assert set(names) == {"network", "a.0"}
    (life,) = [event for event in found["traceEvents"] if event["name"] == "a.0 #1"]
    assert (life["pid"], life["ts"], life["dur"]) == (names["a.0"], 0.007, 0.003)
    failed = [event for event in found["traceEvents"] if event.get("s") == "g"]
    assert [event["ts"] for event in failed] == [4_000_000]
    assert not [event for event in found["traceEvents"] if event["ph"] in "sf"]


def test_packets_are_arrows_and_lost_ones_end_in_the_network(tmp_path: Path) -> None:
    run = packets_made.make(tmp_path / "run", START_NS)
    found = trace(run)
    arrows = {
        (event["id"], event["ph"]): (event["pid"], event["ts"])
        for event in found["traceEvents"]
        if event["ph"] in "sf"
    }
    assert arrows == {
        (1, "s"): (2, 1000),
        (1, "f"): (3, 4000),
        (2, "s"): (3, 10_000),
        (2, "f"): (1, 12_000),
    }
    (lost,) = [event for event in found["traceEvents"] if event["name"] == "ping's answer, lost"]
    assert lost["args"]["lost"] == "lost by the draw"
    assert found["otherData"]["notes"] == ""


def test_a_damaged_record_of_packets_is_an_error(tmp_path: Path) -> None:
    run = packets_made.make(tmp_path / "run", START_NS)
    (run / "packets" / "a.0--s1.pcapng").write_bytes(b"no such file")
    done = tstorm("report", str(run), "--format", "perfetto")
    assert status(done) == 1
    assert "it is no pcapng file" in str(done.exception)
