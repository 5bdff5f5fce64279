"""What a page has in plain tables: facts, lags, counters, hosts, stacks, programs that failed.

Input: manifest and summary, perhaps of somebody else's run. Each table is a title, the names of its
columns and rows of texts and integers; at most MOST_ROWS rows, the files have the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from runtime.results.failed import how_failed, oom_kills, seconds
from runtime.stacks import counters

MOST_ROWS = 2000
Rows = Iterable[Sequence[object]]

_LAGS = (
    ("all", "lag"),
    ("network", "network_lag"),
    ("processes", "process_lag"),
    ("programs started", "start_lag"),
)
_HOST_HEAD = (
    *("host", "address", "instances", "datapath", "clock, µs", "± µs"),
    *("loop late, max µs", "loop CPU, ms", "metadata sent, bytes"),
)


def table(name: str, title: str, head: Sequence[str], rows: Rows) -> dict[str, Any]:
    """`name` is what its file of CSV is called after."""
    whole = [[_cell(value) for value in row] for row in rows]
    left_out = {"left_out": len(whole) - MOST_ROWS} if len(whole) > MOST_ROWS else {}
    return {"name": name, "title": title, "head": list(head), "rows": whole[:MOST_ROWS], **left_out}


def _cell(value: object) -> str | int | None:
    if value is None or (isinstance(value, (str, int)) and not isinstance(value, bool)):
        return value
    return str(value)


def facts(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    machine, options = _object(manifest.get("machine")), _object(manifest.get("options"))
    rows = [
        ("experiment", manifest.get("experiment", "")),
        ("plan", manifest.get("plan_digest", "")),
        ("seed", str(manifest.get("seed", ""))),
        ("started (UTC)", manifest.get("started", "")),
        ("pace", str(options.get("pace", 1))),
        ("time", options.get("time", "real")),
        ("datapath", manifest.get("datapath", "")),
        ("machine", f"{machine.get('cores')} × {machine.get('cpu')}"),
        ("kernel", machine.get("kernel", "")),
        ("made by", manifest.get("plan_tool", "")),
    ]
    quit_early = summary.get("quit_early")
    if quit_early:
        rows.append(("ended early", str(quit_early)))
    if killed := oom_kills(summary):
        rows.append(("processes killed for mem=", killed))
    return table("facts", "This run", ("", ""), rows)


def lags(summary: Mapping[str, Any]) -> dict[str, Any]:
    events = _object(summary.get("events"))
    rows: list[Sequence[object]] = []
    for title, key in _LAGS:
        lag = _object(events.get(key))
        if lag:
            figures = (_number(lag.get(name)) // 1000 for name in ("p50_ns", "p99_ns", "max_ns"))
            rows.append((title, lag.get("count", ""), *figures))
    head = ("events", "number", "p50, µs", "p99, µs", "max, µs")
    return table("lags", "How late events were applied", head, rows)


def failures(summary: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        (one.get("target", ""), how_failed(one), one.get("last_log_line", ""))
        for one in _records(summary.get("failures"))
    ]
    head = ("instance", "how", "last log line")
    return table("failures", "Programs that failed", head, rows)


def figures(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The experiment's own."""
    rows = [
        (one.get("name"), one.get("instance"), one.get("value"), one.get("message"))
        for one in _records(summary.get("figures"))
    ]
    return table("figures", "Figures", ("figure", "of", "value", ""), rows)


def ends(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Programs that ended by themselves."""
    rows = [
        (
            one.get("target", ""),
            _moment(one.get("applied_ns")),
            how_failed(one),
            one.get("last_log_line", ""),
        )
        for one in _records(summary.get("exits"))
    ]
    head = ("instance", "at, s (real)", "how", "last log line")
    return table("exits", "Programs that ended by themselves", head, rows)


def starts(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Setups, and when programs were ready."""
    rows = []
    for what in ("setups", "readiness"):
        for one in _records(summary.get(what)):
            said = [
                f"status {one['status']}" if "status" in one else "",
                str(one.get("error", "")),
                str(one.get("reason", "")),
            ]
            name = "setup" if what == "setups" else "ready"
            took = _moment(one.get("took_ns"))
            when = _moment(one.get("ready_ns", one.get("applied_ns")))
            rows.append((one.get("target", ""), name, when, took, ": ".join(filter(None, said))))
    head = ("instance", "what", "at, s (real)", "took, s", "")
    return table("starts", "Setups and readiness", head, rows)


def hosts(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    counted = {str(one.get("name")): one for one in _records(summary.get("hosts"))}
    rows = []
    for host in _records(manifest.get("hosts")):
        clock, found = _object(host.get("clock")), counted.get(str(host.get("name")), {})
        loop, metadata = _object(found.get("loop")), _object(found.get("metadata"))
        instances = host.get("instances")
        rows.append(
            (
                *(host.get("name", ""), host.get("address", "")),
                *(len(instances) if isinstance(instances, list) else 0, host.get("datapath", "")),
                *(_number(clock.get(key)) // 1000 for key in ("offset_ns", "bound_ns")),
                *(_number(loop.get("late_max_ns")) // 1000, _number(loop.get("cpu_ns")) // 10**6),
                _number(metadata.get("sent_bytes")),
            )
        )
    return table("hosts", "Hosts", _HOST_HEAD, rows)


def stacks(summary: Mapping[str, Any]) -> dict[str, Any]:
    found = list(_object(summary.get("stacks")).items())
    found += [("this machine", summary["softnet"])] if summary.get("softnet") else []
    rows = [
        (who, name, value, counters.MEANINGS.get(name, ""))
        for who, one in found
        for name, value in _object(one).items()
    ]
    head = ("instance", "counter", "by", "meaning")
    return table("stacks", "Instances' own stacks", head, rows)


def refused(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What an instance sent that was not its own to send."""
    rows = [
        (one.get("instance", one.get("target", "")), _words(one))
        for one in _records(summary.get("refused"))
    ]
    return table("refused", "Packets refused", ("instance", "packets"), rows)


def engine(summary: Mapping[str, Any]) -> dict[str, Any]:
    rows = sorted(_object(summary.get("engine")).items())
    return table("engine", "Counters of the engine", ("counter", "value"), rows)


def totals(summary: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """`kind`: 'links' or 'pairs'. Names first, then counters."""
    rows = _records(summary.get(kind))
    names = [key for key in ("link", "src", "dst") if rows and key in rows[0]]
    head = names + [key for key in (rows[0] if rows else ()) if key not in names]
    title = "Counters of links" if kind == "links" else "Counters of pairs"
    return table(f"{kind}-total", title, head, ([row.get(key) for key in head] for row in rows))


def every(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All of them but those with a place of their own; without empty ones."""
    found = (
        *(facts(manifest, summary), lags(summary), hosts(manifest, summary), stacks(summary)),
        *(refused(summary), engine(summary), totals(summary, "links"), totals(summary, "pairs")),
    )
    return (one for one in found if one["rows"])


def _words(one: Mapping[str, Any]) -> str:
    hidden = ("instance", "target")
    return " ".join(f"{key}={value}" for key, value in sorted(one.items()) if key not in hidden)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _records(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _number(value: object) -> int:
    return value if type(value) is int else 0


def _moment(value: object) -> str:
    return seconds(value) if type(value) is int else ""
