"""`tstorm inspect [RUN]`: what a run is doing, or how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tstorm import output, units
from tstorm.campaign.points import is_campaign
from tstorm.options.cluster import Where, in_cluster
from tstorm.options.shared import run_argument, table_or_json
from tstorm.text import ending_text

_LINKS = ("link", "pkts", "out_pkts", "drop_queue", "drop_loss", "drop_down", "backlog_bytes")
_PAIRS = ("src", "dst", "offered_pkts", "delivered_pkts", "drop_queue", "drop_loss", "drop_down")


def _counters(title: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A table of counters, after an empty line; nothing if nothing was counted."""
    shown = [tuple(str(row[column]) for column in columns) for row in rows]
    if shown:
        output.line("")
        output.line(title)
        keys = sum(column in ("link", "src", "dst") for column in columns)
        head = [column.replace("_", " ").upper() for column in columns]
        output.emit_table(head, shown, right=range(keys, len(columns)))


def _program(instance: Mapping[str, Any]) -> str:
    if not instance["program"]:
        return "-"
    if instance.get("start_error"):
        return f"cannot start: {instance['start_error']}"
    status, signal = instance.get("exit_status"), instance.get("exit_signal")
    if signal:
        return f"ended by signal {signal}"
    if status is not None:
        return f"ended with {status}"
    if instance["state"] in ("down", "killed"):
        return "-"
    if instance.get("paused"):
        return "paused"
    return "running" if instance["started"] else "starting"


def _live(found: Mapping[str, Any]) -> None:
    at, events = units.duration(found["at_ns"]), f"{found['applied']}/{found['total']} events"
    held_ns = found.get("held_ns")
    if held_ns is None:
        output.line(f"{found['run_id']}: at {at} of {units.duration(found['end_ns'])}, {events}")
    else:
        output.line(f"{found['run_id']}: at {at}, {events}")
        text = units.duration(held_ns)
        output.line(f"held: what is planned waits at {text} of the text (`tstorm go`)")
    if "time_held_ns" in found:
        output.line(f"time is held at {units.duration(found['time_held_ns'])} (`tstorm go`)")
    if "namespace" in found:
        output.line(f"namespace: {found['namespace']}")
    else:
        output.line(f"directory: {found['directory']}")
    if found["next_events"]:
        output.line("")
        output.line("next events")
        output.emit_table(
            ("AT", "KIND", "TARGET"),
            (
                (units.duration(event["at_ns"]), event["kind"], event["target"])
                for event in found["next_events"]
            ),
            right=(0,),
        )
    output.line("")
    output.line("instances")
    output.emit_table(
        ("INSTANCE", "STATE", "PROGRAM", "IPV4", "IPV6"),
        (
            (one["name"], one["state"], _program(one), one["ipv4"], one["ipv6"])
            for one in found["instances"]
        ),
    )
    _counters("links", _LINKS, found["links"])
    _counters("pairs", _PAIRS, found["pairs"])


def _finished(found: Mapping[str, Any]) -> None:
    from runtime.judge import verdict_text
    from runtime.results import failed
    from runtime.stacks import stack_summary

    manifest, summary = found["manifest"], found["summary"]
    _failed(manifest, summary)
    for line in verdict_text.told(summary.get("verdict")):
        output.line(line if line.startswith(" ") else f"verdict: {line}")
    for one in summary.get("limits", ()):
        output.line(f"limit: {one['text']}")
    killed = failed.oom_kills(summary)
    if killed:
        output.line(f"processes killed for the mem= of their instance: {killed}")
    own = stack_summary.line(summary)
    if own:
        output.line(f"stacks: {own}")
    # The manifest is closed last: a summary may be there whose run failed after it was written.
    end = {"outcome": "ended without a summary", **summary, **manifest}
    output.line(f"{found['run_id']}: {end['outcome']}")
    output.line(f"directory: {found['directory']}")
    if end.get("no_page"):
        output.line(f"page: it could not be written: {end['no_page']}")
    output.line(f"plan: {manifest['plan_digest']}, seed {manifest['seed']}")
    if end.get("message"):
        output.line(f"reason: {end['message']}")
    _expectations(summary)
    _figures(summary)
    if summary:
        events = summary["events"]
        lag = events["lag"]
        output.line(
            f"events: {events['applied']}/{events['planned']}, "
            f"lag p99 {units.duration(lag['p99_ns'])}, max {units.duration(lag['max_ns'])}"
        )
        _failures(summary.get("failures", ()))
        _counters("links", _LINKS, summary["links"])
        _counters("pairs", _PAIRS, summary["pairs"])


def _failed(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """What failed, before anything else."""
    from runtime.options import decode
    from runtime.results import failed

    ended = {**summary, **{key: manifest[key] for key in ("outcome", "message") if key in manifest}}
    for one in failed.record(ended, decode(manifest["options"], "options"), 0)["failures"]:
        output.line(f"{'failed' if one['counts'] else 'warning'}: {failed.told(one)}")


def _expectations(summary: Mapping[str, Any]) -> None:
    """How many passed, then all of them; of those that failed the lines of logs. Nothing if there
    are none."""
    from runtime.judge import verdict_text

    found = verdict_text.of(summary)
    if not found:
        return
    output.line(verdict_text.counted(summary))
    for one in found:
        output.line(f"  {verdict_text.WORDS[one['state']]}: {verdict_text.expectation_told(one)}")
        if one["state"] == verdict_text.FAILED:
            for line in verdict_text.lines_of_log(one):
                output.line(f"    {line}")


def _figures(summary: Mapping[str, Any]) -> None:
    from runtime.judge import verdict_text

    for one in verdict_text.figures(summary):
        output.line(f"figure {verdict_text.figure(one)}")


def _failures(found: Sequence[Mapping[str, Any]]) -> None:
    """Programs that did not do what is right, after an empty line; nothing if there are none."""
    if not found:
        return
    output.line("")
    output.line("programs that failed")
    rows = ((one["target"], ending_text.how(one), one["last_log_line"] or "-") for one in found)
    output.emit_table(("INSTANCE", "HOW", "LAST LOG LINE"), rows)


def _found(run: str | None, cluster: Where | None) -> dict[str, Any]:
    if cluster is not None:
        from tstorm.k8s import connection, enter_pod

        with connection.connect(cluster.context) as there:
            return enter_pod.inspect(there, run, cluster.namespace)
    from runtime.launch.run_status import inspect

    return inspect(run)


def _campaign(run: str, form: str) -> None:
    from tstorm.campaign import campaign_directory, shown

    _, record, results = campaign_directory.load(run)
    if form == "json":
        output.emit_json(shown.to_json(Path(run), record, results))
    else:
        shown.table(Path(run), record, results)


@click.command()
@run_argument(required=False)
@in_cluster
@table_or_json
def command(run: str | None, form: str, cluster: Where | None) -> None:
    """Show the state of RUN: time, instances, next events, counters of links and pairs.

    RUN is a run's name or directory; without it, the only one going on. Of a finished run, known by
    its directory, the outcome and the last counters are shown. JSON is one object; "live" says
    which of the two it is. With --backend k8s RUN goes on in a cluster, from whatever machine it
    was begun. Of a campaign (tstorm run --seeds) all points are shown, and for those that failed
    the command that carries them out again.

    \b
    Examples:
      tstorm inspect
      tstorm inspect runs/bank
      tstorm inspect runs/quickstart-20260301T120000Z --format json | jq .instances
      tstorm inspect --backend k8s --namespace trial-7
    """
    from tstorm.command_support import errors_shown

    with errors_shown():
        if cluster is None and run is not None and is_campaign(run):
            _campaign(run, form)
            return
        found = _found(run, cluster)
    if form == "json":
        output.emit_json(found)
    elif found["live"]:
        _live(found)
    else:
        _finished(found)
