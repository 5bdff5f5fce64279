"""`tstorm at RUN T`: a recorded run at one of its moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tstorm import output, units
from tstorm.exit_codes import INTERRUPTED, CommandError
from tstorm.options import option_types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from compiler.plan.reader import Plan
    from runtime.results.sent_packets import SentPacket
    from runtime.rundir.rundir import RunDirectory
    from runtime.schedule import Schedule


_UNSAID_NS = 4096  # what looks at a clock take at any moment


@click.command()
@click.argument("run", metavar="RUN", type=option_types.TextType())
@click.argument("moment", metavar="T", type=option_types.DURATION)
@click.argument("instance", required=False)
@click.argument("argv", metavar="[-- CMD...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--go",
    "go_ns",
    metavar="D",
    type=option_types.DURATION,
    help="Let time go on by D at most while CMD runs.  [default: it stands still]",
)
@click.option(
    "--packets",
    "around_ns",
    metavar="D",
    type=option_types.DURATION,
    help="Print the packets that were sent, or under way, from D before T to D after it.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print packets.",
)
def command(
    run: str,
    moment: int,
    instance: str | None,
    argv: tuple[str, ...],
    go_ns: int | None,
    around_ns: int | None,
    form: str,
) -> None:
    """Look into the recorded run RUN at its moment T.

    With an INSTANCE, the run is carried out again until then, in virtual time, as which it must
    have been recorded. Time stops, and CMD (without one: a shell) runs in the instance, as with
    'tstorm exec'; its exit code becomes this command's. Programs stand where they stood then. What
    CMD does takes no time, but for what waits: that needs --go. Then the run ends, and nothing of
    it is kept.

    With --packets D, a line is printed for each packet that was on the wire around T: when its
    sender sent it, to whom, what it was, how large, and when it arrived or where and why it was
    lost. RUN must have kept its packets; else 'tstorm replay RUN --packets' carries it out with
    them.

    \b
    Examples:
      tstorm at runs/bank/seed-7 2.5s server.0
      tstorm at runs/bank/seed-7 2.5s server.0 -- ss -tinp
      tstorm at runs/bank/seed-7 2.5s server.0 --go 100ms -- cat /var/lib/bank/log
      tstorm at runs/bank/seed-7 2.5s --packets 5ms
    """
    from tstorm.command_support import errors_shown

    if instance is None and around_ns is None:
        raise click.UsageError("name an INSTANCE to look into, or give --packets.")
    if instance is not None and around_ns is not None:
        raise click.UsageError(f"--packets tells of all instances: leave {instance} out.")
    if instance is None and go_ns is not None:
        raise click.UsageError("--go is for a command in an INSTANCE.")
    with errors_shown():
        if instance is not None:
            code = _looked_into(run, moment, instance, argv, go_ns or 0)
        else:
            assert around_ns is not None
            code = _print_packets(run, moment, around_ns, form)
    if code:
        raise CommandError(code=code)


def _looked_into(path: str, at_ns: int, instance: str, argv: Sequence[str], go_ns: int) -> int:
    """The command's exit status. RunError."""
    import os

    from runtime.launch import launch, relay
    from runtime.rundir.runfiles import AT_PLACE
    from runtime.virtual.standstill import Standstill
    from tstorm.command_support import check_repeats, options_of, passing_places
    from tstorm.live import steer
    from tstorm.loading import plan_to_run

    recorded = _recorded(path)
    schedule = recorded.schedule
    options = options_of({"packets": False}, recorded.manifest)
    check_repeats(path, options, may_have_hosts=True)
    _check_begun(path, recorded.manifest)
    found = plan_to_run(path, None, again=True)
    more = {"TERM": os.environ["TERM"]} if "TERM" in os.environ else {}
    moment_ns = recorded.manifest["start_monotonic_ns"] + schedule.clock.due(at_ns)
    _check_moment(schedule, at_ns)
    if go_ns > (left_ns := schedule.end_ns - at_ns):
        end, left = units.duration(schedule.end_ns), units.duration(left_ns)
        output.note(f"note: the run ends at {end}, after {left} of --go, and CMD with it")
    by_hand = [one for one in steer.entered(path) if one.at_ns <= moment_ns]

    def act(control: Path) -> int:
        if still.late_ns > _UNSAID_NS:
            late, moment = units.duration(still.late_ns), units.duration(at_ns)
            output.note(f"note: what was due by {moment} took {late} more: time stands there")
        return relay.exec_argv(control, instance, argv or ("sh",), more)

    still = Standstill(
        moment_ns,
        act,
        go_ns,
        (lambda: output.note(_stuck_words(argv[0], go_ns))) if argv else None,
    )
    again = steer.repetition(by_hand)
    with passing_places(AT_PLACE, path, found.name) as places:
        result = launch.run(found.plan, options, places, standstill=still, again=again)
    if still.status is None:
        output.note(f"error: the run did not come to {units.duration(at_ns)}: {result.message}")
        return result.exit_code or INTERRUPTED
    return still.status


def _stuck_words(program: str, go_ns: int) -> str:
    if go_ns:
        return (
            f"note: {program} goes on, and {units.duration(go_ns)} are over: a longer --go lets it"
        )
    return f"note: {program} waits, and time stands still: --go D lets time go on"


def _check_begun(path: str, manifest: Mapping[str, Any]) -> None:
    """RunError for a run that has no moments."""
    from runtime.errors import RunError

    if type(manifest.get("start_monotonic_ns")) is not int:
        raise RunError(f"{path} has not come to its time 0")
    if manifest.get("talked_to"):
        output.note(f"warning: somebody talked to {path} while it went on; this is not quite it")


def _check_moment(schedule: Schedule, at_ns: int) -> None:
    """RunError."""
    from runtime.errors import RunError

    begin_ns, end_ns = schedule.clock.start_at_ns, schedule.end_ns
    if not begin_ns <= at_ns <= end_ns:
        raise RunError(
            f"the run goes from {units.duration(begin_ns)} to {units.duration(end_ns)}: "
            f"{units.duration(at_ns)} is not in it"
        )


class _Recorded(NamedTuple):
    run: RunDirectory
    manifest: Mapping[str, Any]
    plan: Plan
    schedule: Schedule


def _recorded(path: str) -> _Recorded:
    """What the run at `path` was. RunError."""
    from compiler.plan.reader import read_plan
    from runtime.options import decode
    from runtime.rundir import rundir
    from runtime.rundir.runfiles import PLAN
    from runtime.schedule import Schedule

    run = rundir.recorded(path)
    manifest = run.manifest()
    plan = read_plan(run / PLAN, lazy=True)
    return _Recorded(run, manifest, plan, Schedule(plan, decode(manifest["options"], "options")))


def _print_packets(run: str, moment: int, around_ns: int, form: str) -> int:
    plan, found, notes = _around(run, moment, around_ns)
    for words in notes:
        output.note(f"note: {words}")
    if form == "json":
        output.emit_json({"at_ns": moment, "packets": [_record(one, plan) for one in found]})
        return 0
    for one in found:
        output.line(_words(one, plan))
    if not found:
        output.note(f"nobody sent anything within {units.duration(around_ns)} of that")
    return 0


def _around(path: str, at_ns: int, around_ns: int) -> tuple[Plan, list[SentPacket], list[str]]:
    """RunError for what is no run, has no packets or has ended before."""
    from runtime.errors import RunError
    from runtime.results.sent_packets import recorded_packets

    run, manifest, plan, schedule = _recorded(path)
    _check_moment(schedule, at_ns)
    start: object = manifest.get("start_unix_ns")
    found = recorded_packets(run, plan, schedule.clock, start if type(start) is int else 0)
    if found is None:
        raise RunError(
            f"{path} has not kept its packets",
            f"carry it out again with them: tstorm replay {path} --packets",
        )
    low, high = at_ns - around_ns, at_ns + around_ns
    there = [one for one in found.packets if one.sent_ns <= high and one.end_ns >= low]
    there.sort(key=lambda one: (one.sent_ns, one.end_ns, one.src, one.dst, one.link))
    return plan, there, list(found.told())


def _name(plan: Plan, node: int) -> str:
    return plan.topology.nodes[node].name if node >= 0 else "a group"


def _words(one: SentPacket, plan: Plan) -> str:
    ends = f"{_name(plan, one.src)} -> {_name(plan, one.dst)}"
    came = f"arrived at {one.end_ns / 1e9:.9f} s"
    if one.cause:
        link = plan.topology.links[one.link].name
        came = f"lost at {one.end_ns / 1e9:.9f} s on {link}: {one.cause}"
    return f"{one.sent_ns / 1e9:.9f} s  {ends}  {one.words}, {one.size} bytes, {came}"


def _record(one: SentPacket, plan: Plan) -> dict[str, Any]:
    return {
        "sent_ns": one.sent_ns,
        "end_ns": one.end_ns,
        "from": _name(plan, one.src),
        "to": _name(plan, one.dst),
        "what": one.words,
        "bytes": one.size,
        "lost": one.cause,
        "link": plan.topology.links[one.link].name,
    }
