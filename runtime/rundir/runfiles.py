"""What the files of a run directory are called, how large each may be, and what readers need of it.

The one table of limits, and the shapes (runtime/json_schema.py) of what is used. A run directory
is foreign data to its readers: it may come from another machine, or be edited. So what is used has
its type checked before it is used; keys that no shape names are tolerated, since nothing is done
with them and later releases add some. Options are the exception: a replay that left one out would
be another run, so they are decoded by their own rules (runtime/options.py).

Raise VERSION when a reader of the version before would misunderstand what is written: another
meaning or unit, or something missing that its shapes require. A new key is none of these.
"""

from __future__ import annotations

from typing import Any

from compiler.plan.properties import COMPOSED
from runtime.errors import RunError
from runtime.json_schema import (
    COUNT,
    FLAG,
    INTEGER,
    NOTHING,
    NUMERAL,
    REMEDY,
    SCALAR,
    TEXT,
    Each,
    OneOf,
    Shape,
    ValueKind,
    check,
)
from runtime.options import decode

FORMAT, VERSION = "thunderstorm-run", 1

MANIFEST, SUMMARY, REPORT, DRIVER_LOG = "manifest.json", "summary.json", "report.html", "driver.log"
PLAN, LOGS, INSTANCES, HOSTS = "plan", "logs", "instances", "hosts"
PLANNED = "planned"  # of a run that was steered: the plan that it began with
LONGER_PLAN = "do"  # stem of the folders with plans that are offered (scratch.py)
AGENTS, COORDINATOR_LOG = "agents", "coordinator.log"  # of a run on a cluster that has failed
KEPT = "kept"  # files of instances that expectations read
ASSERTIONS = ".assertions"  # in an instance's directory: what SDKs write of its programs
PACKETS, GAI, FILES, PROGRAMS = "packets", "gai.conf", "files", "programs"
PRIVATE = ".fs"  # in INSTANCES: what instances changed in file systems of their own
TRIAL = ".try-"  # in INSTANCES, begin of a name: where overlays are tried
MEMORY = ".memory"  # where private files are mounted that the disk cannot hold
EVENTS, SAMPLES, LOG_TIMES = "events.jsonl", "samples.jsonl", "logs.jsonl"
STACKS = "stacks.jsonl"
PROBES, PROBES_FORMAT, PROBES_VERSION = "probes.jsonl", "tstorm-probes", 1
# Begin of the names of folders whose run nobody is to keep
AT_PLACE, SHRINK_PLACE, WHY_PLACE = "tstorm-at-", "tstorm-shrink-", "tstorm-why-"
HUNT_PLACE = "tstorm-hunt-"
HEADER = "header"  # kind of a first line
EXPECT_RUN, EXPECTATION = "expect_run", "expectation"  # kinds of events
# Of `expect drivers`: what is in its template; a command of it begins; it has ended
TEMPLATE, COMMAND, COMMAND_END = "template", "command", "command_end"
INSTANCE_ENDED = "its instance ended"  # what `lost` of a COMMAND_END says then
LOGS_INCOMPLETE = "logs_incomplete"  # of the facts and the manifest: instances, and why
CERTIFICATE = "certificate.json"

_MB = 1 << 20
MAX_BYTES = {
    MANIFEST: 16 * _MB,  # 65,000 instances over hosts take 5
    SUMMARY: 256 * _MB,  # a link or pair takes some 300 bytes
    EVENTS: 1024 * _MB,  # so does an event
    SAMPLES: 1 << 50,  # read line by line only
    LOG_TIMES: 1 << 50,
    STACKS: 1 << 50,
    PROBES: 1 << 50,
    CERTIFICATE: 256 * _MB,
}
MAX_LINE_BYTES = {
    EVENTS: _MB,
    SAMPLES: 128 * _MB,
    LOG_TIMES: 128 * _MB,
    STACKS: _MB,
    PROBES: 16 * _MB,
}
MAX_EVENTS = 1_000_000  # of a plan (docs/limits.md)

MANIFEST_SHAPE = Shape(
    {
        "run_id": TEXT,
        "experiment": TEXT,
        "plan_digest": TEXT,
        "seed": COUNT,
        "options": {},  # see runtime.options
        "outcome?": TEXT,
        "message?": TEXT,
        "no_page?": TEXT,  # why it could not be written
        "start_directory?": TEXT,
        "source_directory?": TEXT,
        "discards?": [TEXT],
    }
)

_LAG = {"p99_ns": INTEGER, "max_ns": INTEGER}
_DROPS = {"drop_queue": COUNT, "drop_loss": COUNT, "drop_down": COUNT}
_STATES = ("passed", "failed", "not_measured")  # of an expectation
SUMMARY_SHAPE = Shape(
    {
        "outcome": TEXT,
        "message?": TEXT,
        "no_page?": TEXT,
        "verdict?": {"state?": TEXT},
        "events": {"applied": COUNT, "planned": COUNT, "lag": _LAG},
        "links": [
            {"link": TEXT, "pkts": COUNT, "out_pkts": COUNT, "backlog_bytes": COUNT, **_DROPS}
        ],
        "failures?": [
            {
                "target": TEXT,
                "last_log_line": TEXT,
                "expect?": TEXT,
                "error?": TEXT,
                "applied_ns?": INTEGER,
                "status?": INTEGER,
                "signal?": INTEGER,
                "reason?": TEXT,
            }
        ],
        "oom_kills?": [{"target": TEXT, "processes": COUNT}],
        "limits?": [{"what": TEXT, "text": TEXT}],
        "expectations?": [
            {
                **dict.fromkeys(("text", "kind", "file", "message", "unit", "subject"), TEXT),
                "line": COUNT,
                "state": ValueKind("`passed`, `failed` or `not_measured`", _STATES.__contains__),
                **{name: OneOf(INTEGER, NOTHING) for name in ("figure", "threshold", "at_ns")},
                "log": [{"instance": TEXT, "at_ns": OneOf(INTEGER, NOTHING), "line": TEXT}],
                "operations?": [
                    {
                        **dict.fromkeys(("process", "words"), TEXT),
                        "from_ns": INTEGER,
                        "to_ns": OneOf(INTEGER, NOTHING),
                        **dict.fromkeys(("ok", "guilty"), FLAG),
                    }
                ],
                "happened?": [TEXT],  # of what has to happen in some run: what did in this one
                "never?": [TEXT],
            }
        ],
        "figures?": [
            {
                **dict.fromkeys(("name", "text", "file", "instance", "message"), TEXT),
                "line": COUNT,
                "value": OneOf(NUMERAL, NOTHING),
            }
        ],
        "stacks?": Each(Each(COUNT)),
        "softnet?": Each(COUNT),
        "pairs": [
            {
                "src": TEXT,
                "dst": TEXT,
                "offered_pkts": COUNT,
                "delivered_pkts": COUNT,
                "delivered_bytes?": COUNT,
                **_DROPS,
            }
        ],
    }
)

CERTIFICATE_FORMAT, CERTIFICATE_VERSION = "tstorm-certificate", 1
# Of a path in the certificate: as planned, and as measured, where figures may be missing.
PLANNED_FIGURES = tuple(row.field for row in COMPOSED)
PROBE_COUNTS = ("probes", "lost")
OPEN_PROBES = "open"  # beside these: nobody knows whether they were lost
MEASURED_FIGURES = ("delay_p50_ns", "delay_p99_ns", "mean_ns", "deviation_ns", "rate_bps")
_PLANNED_PATH = Shape(dict.fromkeys(PLANNED_FIGURES, COUNT))
_MEASURED_PATH = Shape(
    {
        **dict.fromkeys(PROBE_COUNTS, COUNT),
        f"{OPEN_PROBES}?": COUNT,
        **{f"{name}?": OneOf(INTEGER, NOTHING) for name in MEASURED_FIGURES},
    }
)
CERTIFICATE_SHAPE = Shape(
    {
        "format": ValueKind(f"`{CERTIFICATE_FORMAT}`", lambda value: value == CERTIFICATE_FORMAT),
        "version": ValueKind(f"{CERTIFICATE_VERSION}", lambda value: value == CERTIFICATE_VERSION),
        "pairs": [
            {
                "from": TEXT,
                "to": TEXT,
                "epoch": {"from_ns": INTEGER, "to_ns": INTEGER},
                "measure": TEXT,
                "planned": OneOf(ValueKind("a planned path", _PLANNED_PATH.fits), NOTHING),
                "measured": OneOf(ValueKind("what was measured", _MEASURED_PATH.fits), NOTHING),
            }
        ],
    }
)

_PLANNED_EVENT = Shape(
    {
        "seq": COUNT,
        "kind": TEXT,
        "target": TEXT,
        "args": Each(SCALAR),
        "planned_ns": INTEGER,
        "due_ns": INTEGER,
        "applied_ns": INTEGER,
        "lag_ns": INTEGER,
        "network_ns?": INTEGER,
        "started_ns?": INTEGER,
    }
)
_EXIT = {"kind": TEXT, "target": TEXT, "applied_ns?": INTEGER, "asked?": FLAG, "reason?": TEXT}
_FAILED_EXIT = Shape({**_EXIT, "error": TEXT})
_ENDED_EXIT = Shape({**_EXIT, "status": INTEGER, "signal": INTEGER})
_TARGETED = {"kind": TEXT, "target": TEXT, "applied_ns": INTEGER}
_KINDS = {  # of those that are not the plan's
    "killed": Shape(_TARGETED),
    "oom_kill": Shape({**_TARGETED, "processes": COUNT}),
    "overdue": Shape({**_TARGETED, "grace_ns": INTEGER}),
    "setup": Shape({**_TARGETED, "took_ns": INTEGER, "status?": INTEGER, "error?": TEXT}),
    "ready": Shape({**_TARGETED, "took_ns?": INTEGER, "ready_ns": INTEGER}),
    "not_ready": Shape({**_TARGETED, "took_ns?": INTEGER, "reason": TEXT}),
    "quit": Shape({**_TARGETED, "planned_ns": INTEGER, "reason?": TEXT}),
    "stall": Shape({**_TARGETED, "stalled_ns": INTEGER}),
    "radio": Shape({**_TARGETED, "args": Each(SCALAR), "origin": TEXT, "planned_ns": INTEGER}),
    "start": Shape({**_TARGETED, "started_ns?": INTEGER}),
    "moved": Shape({**_TARGETED, "address": TEXT}),
    "unprobed": Shape({**_TARGETED, "reason?": TEXT}),
    EXPECT_RUN: Shape(
        {
            **_TARGETED,
            "expectation": COUNT,
            "tries": COUNT,
            "status?": INTEGER,
            "error?": TEXT,
            "reason?": TEXT,
            "unavailable?": FLAG,
            "output": [TEXT],
        }
    ),
    TEMPLATE: Shape(
        {
            **_TARGETED,
            "expectation": COUNT,
            "template": TEXT,
            "commands": [TEXT],
            "ignored": [TEXT],
            "error?": TEXT,
            "unavailable?": FLAG,
        }
    ),
    COMMAND: Shape({**_TARGETED, "expectation": COUNT, "command": TEXT}),
    COMMAND_END: Shape(
        {
            **_TARGETED,
            "expectation": COUNT,
            "command": TEXT,
            "began_ns": INTEGER,
            "status?": INTEGER,
            "error?": TEXT,
            "lost?": TEXT,
            "reason?": TEXT,
            "output": [TEXT],
        }
    ),
    EXPECTATION: Shape(
        {"kind": TEXT, "target": TEXT, "text": TEXT, "state": TEXT, "message": TEXT}
    ),
    "agent_lost": Shape(_TARGETED),
    "agent_back": Shape(_TARGETED),
}
_OTHER_EVENT = Shape(
    {
        "kind?": TEXT,
        "target?": TEXT,
        "args?": Each(SCALAR),
        "planned_ns?": OneOf(INTEGER, NOTHING),
        "applied_ns?": INTEGER,
    }
)

_LOG_TIMES = Shape({"from_ns": INTEGER, "elapsed_ns": INTEGER, "bytes": Each(COUNT)})
_COLUMNS = Shape({"columns": {"links": [TEXT], "pairs": [TEXT], "digests?": [TEXT]}})
_ENDS = ValueKind(
    "a pair of instances",
    lambda value: type(value) is list and len(value) == 2 and all(map(TEXT.fits, value)),
)
_PROBES_HEADER = Shape(
    {
        "kind": ValueKind("`header`", lambda value: value == HEADER),
        "format": ValueKind(f"`{PROBES_FORMAT}`", lambda value: value == PROBES_FORMAT),
        "version": ValueKind(f"{PROBES_VERSION}", lambda value: value == PROBES_VERSION),
        "start_monotonic_ns": COUNT,
        "clock": ValueKind("`one` or `each`", lambda value: value in ("one", "each")),
        "measure": ValueKind(
            "`one-way` or `round-trip`", lambda value: value in ("one-way", "round-trip")
        ),
        "pairs": [_ENDS],
        "interval_ns": COUNT,
        "intervals_ns": [COUNT],
        "of": COUNT,
        "not_probed?": [_ENDS],
        "large?": [COUNT],
    }
)


def _is_probe(value: Any) -> bool:
    return (
        type(value) is list
        and len(value) == 3
        and COUNT.fits(value[0])
        and COUNT.fits(value[1])
        and (value[2] is None or COUNT.fits(value[2]))
    )


_PROBE = ValueKind("[pair, sent_at_ns, delay_ns or null]", _is_probe)
_OPEN_PROBE = ValueKind(
    "[pair, sent_at_ns]",
    lambda value: type(value) is list and len(value) == 2 and all(map(COUNT.fits, value)),
)
_PROBES = Shape(
    {
        "at_ns": COUNT,
        "probes": [_PROBE],
        "large?": [_PROBE],
        "open?": [_OPEN_PROBE],
        "last?": FLAG,
    }
)
_SAMPLE = Shape({"links": [[INTEGER]], "pairs": [[INTEGER]], "digests?": [[OneOf(COUNT, TEXT)]]})
_STACK_HEADER = Shape({"kind": TEXT, "format": TEXT, "version": COUNT, "interval_ns": COUNT})
_STACK = Shape({"at_ns": COUNT, "instance": TEXT, "counters": Each(COUNT)})


def check_manifest(value: Any, place: str) -> dict[str, Any]:
    """The manifest, fit to be used. RunError, also for one of another version."""
    if type(value) is not dict or value.get("format") != FORMAT:
        raise RunError(f"{place} is not the manifest of a run", "give the directory of a run")
    version = value.get("version")
    if type(version) is not int or version != VERSION:
        newer = type(version) is int and version > VERSION
        raise RunError(
            f"{place} has version {version!r:.40}, {'newer' if newer else 'other'} than {VERSION}, "
            "which this release reads",
            "use the release that made the run" if newer else REMEDY,
        )
    check(value, MANIFEST_SHAPE, place)
    decode(value["options"], f"{place}: options")
    return value


def check_summary(value: Any, place: str) -> dict[str, Any]:
    """RunError."""
    check(value, SUMMARY_SHAPE, place)
    found: dict[str, Any] = value
    return found


def check_certificate(value: Any, place: str) -> dict[str, Any]:
    """RunError."""
    check(value, CERTIFICATE_SHAPE, place)
    found: dict[str, Any] = value
    return found


def check_event(value: Any, place: str) -> None:
    """A line of events.jsonl. RunError."""
    planned = type(value) is dict and value.get("seq") is not None
    check(value, _PLANNED_EVENT if planned else _OTHER_EVENT, place)
    if planned and value["seq"] >= MAX_EVENTS:
        raise RunError(f"{place}: no plan has an event {value['seq']}", REMEDY)
    if not planned and value.get("kind") in _KINDS:
        check(value, _KINDS[value["kind"]], place)
    if value.get("kind") == "exit":
        check(value, _FAILED_EXIT if "error" in value else _ENDED_EXIT, place)


def check_sample(value: Any, place: str) -> None:
    """A line of samples.jsonl: the names of the columns, or counters. RunError."""
    named = type(value) is dict and "columns" in value
    check(value, _COLUMNS if named else _SAMPLE, place)


def check_log_times(value: Any, place: str) -> None:
    """A line of logs.jsonl. RunError."""
    check(value, _LOG_TIMES, place)


def check_stack(value: Any, place: str) -> None:
    """A line of stacks.jsonl: its header, or by how much counters have moved. RunError."""
    headed = type(value) is dict and "kind" in value
    check(value, _STACK_HEADER if headed else _STACK, place)


def check_probes(value: Any, place: str) -> None:
    """A line of probes.jsonl: its header, or a report. RunError."""
    check(value, _PROBES if type(value) is dict and "probes" in value else _PROBES_HEADER, place)


LINE_CHECKS = {
    EVENTS: check_event,
    SAMPLES: check_sample,
    LOG_TIMES: check_log_times,
    STACKS: check_stack,
    PROBES: check_probes,
}
