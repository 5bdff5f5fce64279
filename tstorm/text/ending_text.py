"""How a run ended, on stderr: first what failed, then what casts doubt on its result."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tstorm import output

if TYPE_CHECKING:
    from runtime.launch.run_result import RunResult

SHOWN_PROGRAMS = 20  # of those that failed, in text
SHOWN_EXPECTATIONS = 20  # of those that failed, and of those that were not measured


def report(result: RunResult, form: str, *, quiet: bool = False, **more: object) -> None:
    """The run directory (text) or summary (JSON) on stdout; before that, on stderr, what keeps the
    result from being what it seems, and a failure's reason; after it where the page is."""
    from runtime.rundir.runfiles import REPORT

    with output.kept_going(sys.stderr):
        for line in _doubts(result, quiet=quiet):
            output.note(line)
    with output.product_kept_going():
        _emit(result, form, more)
    page = result.directory / REPORT
    if not quiet and form != "json" and "no_page" not in result.summary:
        with output.kept_going(sys.stderr):
            output.note(f"page: {page.absolute().as_uri()}")


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


def _doubts(result: RunResult, *, quiet: bool = False) -> Iterator[str]:
    from runtime.judge import verdict, verdict_text
    from runtime.options import COMPLETED, INTERRUPTED
    from runtime.results import failed, reactions_done
    from runtime.stacks import stack_summary

    yield from _no_page(result)
    yield from reactions_done.told(result.summary.get("reactions", {}))
    yield from _in_state(result, verdict_text.FAILED, "error: failed")
    yield from _programs(result, counted=True)
    judged = result.summary["verdict"]
    prefix = "warning: " if judged["reasons"] else ""
    if judged["reasons"] or (not quiet and result.outcome == COMPLETED):
        for line in verdict_text.told(judged, verdict_text.MOST_LINES):
            yield line if line.startswith(" ") else prefix + line
    yield from _expectations(result, quiet=quiet)
    yield from _figures(result, quiet=quiet)
    fast = reactions_done.figures(result.summary.get("reactions", {}))
    if fast and not quiet:
        yield fast
    yield from _missing_packets(result.summary.get("captures", {}))
    if judged["too_late"]:
        figures = (judged["largest_ns"], judged["max_lateness_ns"])
        worst, allowed = map(verdict.milliseconds, figures)
        yield f"error: something was {worst} late; --max-lateness allows {allowed}"
    if result.outcome == COMPLETED and result.not_as_required:
        state, wanted = judged["state"], result.options.require
        yield f"error: the verdict is {state}; --require {wanted} asks for another one"
    if not any(reason["what"] == "engine_late_p99" for reason in judged["reasons"]):
        yield from (f"warning: {one['text']}" for one in result.summary.get("limits", ()))
    own = stack_summary.line(result.summary)
    if own:
        yield f"note: {own}"
    yield from _programs(result, counted=False)
    killed = failed.oom_kills(result.summary)
    if killed:
        yield f"warning: the kernel killed processes for the mem= of their instance: {killed}"
    left = result.summary.get("not_discarded", ())
    if left:
        yield f"warning: data of {len(left)} instances could not be removed: {', '.join(left)}"
    if result.outcome == INTERRUPTED:
        yield f"interrupted: {result.message}" if result.message else "interrupted"
    elif result.message:
        yield f"{'error' if result.exit_code else 'note'}: {result.message}"


def _no_page(result: RunResult) -> Iterator[str]:
    why = result.summary.get("no_page")
    if why:
        yield f"warning: the run has no page: {why}"
        yield f"  `tstorm report {result.directory} --format html -o F` makes it elsewhere"


def _expectations(result: RunResult, *, quiet: bool) -> Iterator[str]:
    """Those that were not measured, a line each; then how many there are."""
    from runtime.judge import verdict_text

    yield from _in_state(result, verdict_text.NOT_MEASURED, "warning: not measured")
    whole = verdict_text.counted(result.summary)
    if whole and not quiet:
        yield whole


def _in_state(result: RunResult, state: str, prefix: str) -> Iterator[str]:
    from runtime.judge import verdict_text

    found = verdict_text.in_state(result.summary, state)
    yield from (
        f"{prefix}: {verdict_text.expectation_told(one)}" for one in found[:SHOWN_EXPECTATIONS]
    )
    if len(found) > SHOWN_EXPECTATIONS:
        left = len(found) - SHOWN_EXPECTATIONS
        yield f"{prefix}: … and {left} more in summary.json"


def _figures(result: RunResult, *, quiet: bool) -> Iterator[str]:
    """The experiment's own, a line each; those that were not measured in any case."""
    from runtime.judge import verdict_text

    found = verdict_text.figures(result.summary)
    missing = [one for one in found if one["value"] is None]
    known = [] if quiet else [one for one in found if one["value"] is not None]
    for kind, some in (("warning:", missing), ("figure", known)):
        yield from (f"{kind} {verdict_text.figure(one)}" for one in some[:SHOWN_EXPECTATIONS])
        if len(some) > SHOWN_EXPECTATIONS:
            yield f"… and {len(some) - SHOWN_EXPECTATIONS} more figures in summary.json"


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


def _programs(result: RunResult, *, counted: bool) -> Iterator[str]:
    """Instances whose program did not do what is right: an error where somebody has said what that
    is (`counted`), else a warning."""
    from runtime.judge.judge_programs import counts

    options = result.options
    asked = options.fail_on_exit or options.fail_fast
    failures = result.summary.get("failures", ())
    found = [one for one in failures if counts(one, fail_on_exit=asked) == counted]
    if found and counted:
        yield f"error: programs {_some(found)} failed"
    elif found:
        names = ", ".join(dict.fromkeys(one["target"].rpartition(".")[0] for one in found))
        yield f"warning: programs {_some(found)} failed; no expect= of {names} says what is right"
    yield from _listed(found)


def _some(failures: Sequence[Mapping[str, Any]]) -> str:
    count = len({one["target"] for one in failures})
    return "of one instance" if count == 1 else f"of {count} instances"


def _listed(failures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The last failure of each instance."""
    found = {one["target"]: one for one in failures}
    for name, one in sorted(found.items(), key=_place)[:SHOWN_PROGRAMS]:
        line = f"; last log line: {one['last_log_line']}" if one["last_log_line"] else ""
        yield f"  {name}: {how(one)}{line}"
    if len(found) > SHOWN_PROGRAMS:
        yield f"  … and {len(found) - SHOWN_PROGRAMS} more in summary.json"


def _place(item: tuple[str, Any]) -> tuple[str, int]:
    """Instances of a service follow each other by number."""
    service, _, number = item[0].rpartition(".")
    return service, int(number)


def how(one: Mapping[str, Any]) -> str:
    """How the program of a failure in a summary failed."""
    right = f", and expect={one['expect']}" if one.get("expect") else ""
    if one.get("still_running"):
        return f"it ran to the end of the run{right}"
    if "error" in one:
        return f"could not start: {one['error']}"
    if one.get("killed"):
        return "the instance was killed from outside"
    from runtime.rundir.eventlog import how_and_why

    return f"ended by itself with {how_and_why(one)}{right}"
