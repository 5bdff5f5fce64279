"""How a run ended: what casts doubt on its result is said first, on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tstorm import output

if TYPE_CHECKING:
    from runtime.options import RunResult

SHOWN_PROGRAMS = 20  # of those that failed, in text


def report(result: RunResult, form: str, **more: object) -> None:
    """The run directory (text) or summary (JSON) on stdout; before that, on stderr, what keeps the
    result from being what it seems, and a failure's reason."""
    with output.kept_going(sys.stderr):
        for line in _doubts(result):
            output.note(line)
    with output.product_kept_going():
        _emit(result, form, more)


def _emit(result: RunResult, form: str, more: Mapping[str, object]) -> None:
    if form == "json":
        output.emit_json(
            {
                "directory": str(result.directory),
                "outcome": result.outcome,
                "run": result.run_id,
                "summary": dict(result.summary),
                "verdict": dict(result.summary["verdict"]),
                **more,
            }
        )
    else:
        output.path(result.directory)


def _doubts(result: RunResult) -> Iterator[str]:
    from runtime.judge import verdict
    from runtime.options import INTERRUPTED

    yield from _missing_packets(result.summary.get("captures", {}))
    judged = result.summary["verdict"]
    if judged["reasons"]:
        yield from (f"warning: {line}" for line in verdict.told(judged))
    if judged["too_late"]:
        figures = (judged["largest_ns"], judged["max_lateness_ns"])
        worst, allowed = map(verdict.milliseconds, figures)
        yield f"error: something was {worst} late; --max-lateness allows {allowed}"
    yield from _programs(result)
    if result.outcome == INTERRUPTED:
        yield f"interrupted: {result.message}" if result.message else "interrupted"
    elif result.message:
        yield f"{'error' if result.exit_code else 'note'}: {result.message}"


def _missing_packets(captures: Mapping[str, int]) -> Iterator[str]:
    """Why files of packets are not whole."""
    if captures.get("lost"):
        yield (
            f"warning: packets/ lacks {captures['lost']:,} packets: they came faster than they"
            " could be written"
        )
    if captures.get("errno"):
        why = os.strerror(captures["errno"])
        yield f"warning: packets/ lacks {captures['unwritten']:,} packets: {why}"


def _programs(result: RunResult) -> Iterator[str]:
    """Instances whose program could not start; those whose program failed, if that matters."""
    from runtime.results.summary import failed_exits

    exits = result.summary["exits"]
    failed = failed_exits(exits) if result.programs_failed else exits
    found = {one["target"]: one for one in failed if result.programs_failed or "error" in one}
    if not found:
        return
    some = "of one instance" if len(found) == 1 else f"of {len(found)} instances"
    if result.programs_failed:
        yield f"error: programs {some} failed"
    else:
        yield f"warning: programs {some} could not start"
    for name, one in sorted(found.items(), key=_place)[:SHOWN_PROGRAMS]:
        line = f"; last log line: {one['last_log_line']}" if one["last_log_line"] else ""
        yield f"  {name}: {_how(one)}{line}"
    if len(found) > SHOWN_PROGRAMS:
        yield f"  … and {len(found) - SHOWN_PROGRAMS} more in summary.json"


def _place(item: tuple[str, Any]) -> tuple[str, int]:
    """Instances of a service follow each other by number."""
    service, _, number = item[0].rpartition(".")
    return service, int(number)


def _how(one: Mapping[str, Any]) -> str:
    if "error" in one:
        return f"could not start: {one['error']}"
    if one.get("killed"):
        return "the instance was killed from outside"
    from runtime.rundir.eventlog import how_ended

    return f"ended by itself with {how_ended(one)}"
