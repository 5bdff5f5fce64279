"""report.html: what happened, on one page that needs no network. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from runtime.judge import outcomes, telling
from runtime.rundir.directory import HeldDirectory
from runtime.rundir.eventlog import how_ended, read_events
from runtime.rundir.runfiles import EVENTS, EXPECT_RUN, EXPECTATION
from runtime.stacks import counters

MAX_ROWS = 1000  # of each table; the files have the rest

_STYLE = """body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em}
table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{padding:.15em .7em;text-align:left;
border-bottom:1px solid #ddd}td.n{text-align:right;font-variant-numeric:tabular-nums}
.failed,.degraded,.invalid{color:#b00020}.valid{color:#1b7f3b}@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}
td,th{border-color:#333}}"""


def seconds(value_ns: int) -> str:
    return f"{value_ns / 1e9:.3f}"


def _cell(value: object) -> str:
    kind = ' class="n"' if isinstance(value, int) else ""
    return f"<td{kind}>{escape(str(value))}</td>"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    body = []
    left_out = 0
    for number, row in enumerate(rows):
        if number < MAX_ROWS:
            body.append("<tr>" + "".join(map(_cell, row)) + "</tr>")
        else:
            left_out += 1
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    more = f"<p>… and {left_out} more rows in the files</p>" if left_out else ""
    return f"<table><tr>{titles}</tr>{''.join(body)}</table>{more}"


def _facts(manifest: Mapping[str, Any]) -> list[tuple[str, object]]:
    computer = manifest.get("machine", {})
    options = manifest.get("options", {})
    return [
        ("plan", manifest.get("plan_digest", "")),
        ("seed", str(manifest.get("seed", ""))),
        ("started (UTC)", manifest.get("started", "")),
        ("pace", str(options.get("pace", 1))),
        ("datapath", manifest.get("datapath", "")),
        ("machine", f"{computer.get('cores')} × {computer.get('cpu')}"),
        ("kernel", computer.get("kernel", "")),
    ]


_LAGS = (
    ("all", "lag"),
    ("network", "network_lag"),
    ("processes", "process_lag"),
    ("programs started", "start_lag"),
)


def _lag_rows(events: Mapping[str, Any]) -> Iterable[Sequence[object]]:
    for title, key in _LAGS:
        lag = events[key]
        yield (title, lag["count"], *(lag[name] // 1000 for name in ("p50_ns", "p99_ns", "max_ns")))


def _event_rows(directory: HeldDirectory) -> Iterable[Sequence[object]]:
    if not directory.has(EVENTS):
        return
    for record in read_events(directory):
        planned = record.get("planned_ns")
        yield (
            "" if planned is None else seconds(planned),
            seconds(record["applied_ns"]) if "applied_ns" in record else "",
            record.get("kind", ""),
            record.get("target", ""),
            details(record),
        )


def details(record: Mapping[str, Any]) -> str:
    """Of a line of events.jsonl, in words, what its kind and target do not say."""
    if record.get("kind") == "stall":
        return f"{seconds(record['stalled_ns'])} s"
    if record.get("kind") == "exit":
        if "error" in record:
            return str(record["error"])
        why = f": {record['reason']}" if "reason" in record else ""
        return how_ended(record) + (" (by the run)" if record.get("asked") else "") + why
    if record.get("kind") in ("setup", "ready", "not_ready", "quit", EXPECT_RUN):
        return _beside_the_plan(record)
    if record.get("kind") == EXPECTATION:
        return f"{outcomes.WORDS.get(record['state'], '')}: {record['text']}"
    return " ".join(f"{key}={value}" for key, value in sorted(record.get("args", {}).items()))


def _beside_the_plan(record: Mapping[str, Any]) -> str:
    """What setups, readiness and programs that end the run say."""
    took = f"after {seconds(record['took_ns'])} s" if "took_ns" in record else ""
    status = f"status {record['status']}" if "status" in record else ""
    words = (took, status, record.get("error", ""), record.get("reason", ""))
    return ": ".join(filter(None, words))


_HOST_HEAD = (
    *("host", "address", "instances", "datapath", "clock, µs", "± µs"),
    *("loop late, max µs", "loop CPU, ms", "metadata sent, bytes"),
)


def _host_rows(
    manifest: Mapping[str, Any], summary: Mapping[str, Any]
) -> Iterable[Sequence[object]]:
    counters = {one["name"]: one for one in summary.get("hosts", ())}
    for host in manifest.get("hosts", ()):
        clock, found = host.get("clock") or {}, counters.get(host["name"], {})
        loop, metadata = found.get("loop", {}), found.get("metadata", {})
        yield (
            *(host["name"], host["address"], len(host["instances"]), host["datapath"]),
            *(clock.get("offset_ns", 0) // 1000, clock.get("bound_ns", 0) // 1000),
            *(loop.get("late_max_ns", 0) // 1000, loop.get("cpu_ns", 0) // 1_000_000),
            metadata.get("sent_bytes", 0),
        )


def _hosts(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """Nothing for a run without hosts."""
    if not manifest.get("hosts"):
        return []
    return ["<h2>Hosts</h2>", _table(_HOST_HEAD, _host_rows(manifest, summary))]


def _failures(summary: Mapping[str, Any]) -> list[str]:
    """Nothing if every program did what is right."""
    found = summary.get("failures")
    if not found:
        return []
    rows = ((one["target"], _failure(one), one["last_log_line"]) for one in found)
    return ["<h2>Programs that failed</h2>", _table(("instance", "how", "last log line"), rows)]


def _failure(one: Mapping[str, Any]) -> str:
    right = f" (expect={one['expect']})" if one.get("expect") else ""
    if one.get("still_running"):
        return f"still running at the end{right}"
    if one.get("killed"):
        return f"killed from outside{right}"
    return f"could not start: {one['error']}" if "error" in one else how_ended(one) + right


def _expectations(summary: Mapping[str, Any]) -> list[str]:
    """Nothing if there are none."""
    found = outcomes.of(summary)
    if not found:
        return []
    rows = (
        (one["text"], outcomes.WORDS[one["state"]], one["message"], outcomes.place(one))
        for one in found
    )
    head = ("expectation", "", "measured", "")
    return ["<h2>Expectations</h2>", _table(head, rows)]


def _stacks(summary: Mapping[str, Any]) -> list[str]:
    """Nothing if no counter of an instance's own stack has moved."""
    found = [(name, one) for name, one in summary.get("stacks", {}).items()]
    found += [("this machine", summary["softnet"])] if summary.get("softnet") else []
    if not found:
        return []
    rows = (
        (who, name, value, counters.MEANINGS.get(name, ""))
        for who, one in found
        for name, value in one.items()
    )
    head = ("instance", "counter", "by", "meaning")
    return ["<h2>Instances' own stacks</h2>", _table(head, rows)]


def _paragraph(kind: str, text: str) -> str:
    return f'<p class="{escape(str(kind))}">{escape(text)}</p>'


def render(
    directory: HeldDirectory, manifest: Mapping[str, Any], summary: Mapping[str, Any]
) -> str:
    """The whole page."""
    title = escape(str(manifest.get("run_id", "run")))
    outcome = escape(str(summary["outcome"]))
    message = escape(str(summary.get("message", "")))
    events = summary["events"]
    link_head = list(summary["links"][0]) if summary["links"] else ["link"]
    pair_head = list(summary["pairs"][0]) if summary["pairs"] else ["src", "dst"]
    judged = summary.get("verdict", {})
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>',
        f"<style>{_STYLE}</style><h1>{title}</h1>",
        *(_paragraph(judged.get("state", ""), line) for line in telling.told(judged)),
        *(_paragraph("limit", one["text"]) for one in summary.get("limits", ())),
        f'<p class="{outcome}"><b>{outcome}</b> {message}</p>',
        *_expectations(summary),
        _table(("", ""), _facts(manifest)),
        f"<h2>Events</h2><p>{events['applied']} of {events['planned']} applied.</p>",
        _table(("lag", "events", "p50 µs", "p99 µs", "max µs"), _lag_rows(events)),
        _table(("planned s", "applied s (real)", "event", "target", ""), _event_rows(directory)),
        *_failures(summary),
        *_hosts(manifest, summary),
        *_stacks(summary),
        "<h2>Links</h2>",
        _table(link_head, (list(row.values()) for row in summary["links"])),
        "<h2>Pairs</h2>",
        _table(pair_head, (list(row.values()) for row in summary["pairs"])),
        "</html>\n",
    ]
    return "\n".join(parts)
