"""`tstorm measure HOSTS.toml`: what lies between real hosts, as TDL."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tstorm import output
from tstorm.exit_codes import INTERRUPTED, CommandError
from tstorm.options import option_types

if TYPE_CHECKING:
    from tstorm.measuring.measure_state import MeasureRequest, MeasureState, StateFile

_MOST_FLOWS = 32  # rows of a table of flows; iperf3 has 128
# Two windows of 5 s, the first second, and one that may be cut short: iperf_flows.
_LEAST_SECONDS = 12
_LEAST_SHARED = 2  # flows, of which each of two paths has a half
_LEAST_RTT_NS = 1_000_000_000
_MOST_RTT_NS = 24 * 3600 * 1_000_000_000
_FLOWS = re.compile(r"(?:1\.\.)?([1-9][0-9]?)", re.ASCII)


class FlowCountsType(click.ParamType[int]):
    """`1..N`: a table of flows has a row for one flow."""

    name = "range of flows"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = _FLOWS.fullmatch(value)
        if found is None:
            self.fail(f"{value!r:.60} is not 1..N, such as 1..10", param, ctx)
        most = int(found[1])
        if most > _MOST_FLOWS:
            self.fail(f"{value} has more than {_MOST_FLOWS} flows", param, ctx)
        return most


@click.command()
@click.argument("file", metavar="HOSTS.toml", type=option_types.TextType())
@click.option(
    "-o",
    "--output",
    "target",
    metavar="PATHS.tdl",
    type=option_types.TextType(),
    default="paths.tdl",
    show_default=True,
    help="The text; beside it come PATHS.json and, until the end, PATHS.state.json.",
)
@click.option(
    "--rtt",
    "rtt_ns",
    metavar="T",
    type=option_types.DURATION,
    default="10m",
    show_default=True,
    help="Send pings from each host to each other one for so long.",
)
@click.option(
    "--flows",
    metavar="1..N",
    type=FlowCountsType(),
    default="1..10",
    show_default=True,
    help="Measure with 1, 2, … N flows of TCP at once.",
)
@click.option(
    "--seconds",
    metavar="N",
    type=option_types.WholeNumber(min=_LEAST_SECONDS, max=60),
    default=15,
    show_default=True,
    help="The length of a test; up to 60 s where slow start takes longer.",
)
@click.option(
    "--bottlenecks",
    is_flag=True,
    help="Find which paths share a bottleneck, by flows on two of them at once.",
)
@click.option("--only-paths", is_flag=True, help="No services in the text: another includes it.")
@click.option("--resume", is_flag=True, help="Go on with a measurement that was not finished.")
@click.option("--quiet", is_flag=True, help="No progress; errors only.")
def command(
    file: str,
    target: str,
    rtt_ns: int,
    flows: int,
    seconds: int,
    bottlenecks: bool,
    only_paths: bool,
    resume: bool,
    quiet: bool,
) -> None:
    """Measure the paths between hosts and write them as TDL.

    HOSTS.toml names hosts and how commands are run there, over ssh as a rule; they need iperf3 and
    ping. Of each pair the round trip is measured, and in both directions the bandwidth that 1, 2, …
    flows get together, three times each. No host is in two tests at once. The port of iperf3 is
    open while a test runs. Ctrl-C ends what runs on the hosts; --resume goes on after the last test
    that was finished. docs/howto/measure-your-paths.md has more.

    With --bottlenecks flows on two paths of a host at once follow. What they share becomes a
    `bottleneck` of the text. The host's next port is open then, too.

    \b
    Examples:
      tstorm measure hosts.toml -o paths.tdl
      tstorm measure hosts.toml --rtt 1m --flows 1..4 --seconds 30
      tstorm measure hosts.toml --flows 1..4 --bottlenecks
      tstorm measure hosts.toml -o paths.tdl --resume
    """
    from tstorm.command_support import errors_shown
    from tstorm.measuring import measured_hosts, paths_text
    from tstorm.measuring.measure_state import MeasureRequest, StateFile

    text, document = _places(target)
    if not _LEAST_RTT_NS <= rtt_ns <= _MOST_RTT_NS:
        raise click.BadParameter("pings are sent for 1s to 24h", param_hint="'--rtt'")
    if bottlenecks and flows < _LEAST_SHARED:
        message = "what two paths share shows with --flows 1..2 or more: with twice as many flows"
        raise click.BadParameter(message, param_hint="'--bottlenecks'")
    with errors_shown(), measured_hosts.opened(file) as hosts:
        paths_text.check_names([host.name for host in hosts])
        if bottlenecks:
            measured_hosts.check_next_ports(hosts, file)
        asked = MeasureRequest(hosts, rtt_ns, flows, seconds, bottlenecks)
        kept = StateFile(text.with_suffix(".state.json"))
        state = _begun(kept, asked, resume)
        _measure(state, kept, quiet)
        _write(state, text, document, only_paths)
        kept.remove()
    output.path(text)


def _places(target: str) -> tuple[Path, Path]:
    """Where TDL and JSON go, before hours go into them: nothing but such files is replaced."""
    text = Path(target)
    if text.suffix != ".tdl":
        message = f"{target!r:.60} does not end in .tdl"
        raise click.BadParameter(message, param_hint="'-o'")
    if not text.parent.is_dir():
        raise CommandError(f"error: writing {target}: there is no directory {text.parent}")
    document = text.with_suffix(".json")
    for place, is_ours in ((text, _is_our_text), (document, _is_our_document)):
        if os.path.lexists(place) and not is_ours(place):
            raise CommandError(
                f"error: {place} is there, and was not written by tstorm measure"
                "\nhint: choose another -o"
            )
    return text, document


def _is_our_text(place: Path) -> bool:
    from tstorm.measuring.paths_text import FIRST_WORDS

    if not place.is_file():
        return False
    with place.open("rb") as file:
        return file.read(len(FIRST_WORDS)) == FIRST_WORDS.encode()


def _is_our_document(place: Path) -> bool:
    from runtime.errors import RunError
    from runtime.json_schema import parse
    from tstorm.measuring import paths_text

    try:
        found = parse(place.read_bytes(), str(place)) if place.is_file() else None
    except RunError:
        return False
    return isinstance(found, dict) and found.get("format") == paths_text.FORMAT


def _begun(kept: StateFile, asked: MeasureRequest, resume: bool) -> MeasureState:
    from tstorm.measuring.measure_state import MeasureState

    if resume and not kept.is_there():
        raise CommandError(f"error: nothing to go on with: there is no {kept.path}")
    if not resume and kept.is_there():
        raise CommandError(
            f"error: {kept.path} has a measurement that was not finished"
            "\nhint: go on with it (--resume), or remove it"
        )
    return kept.load(asked) if resume else MeasureState(asked)


def _measure(state: MeasureState, kept: StateFile, quiet: bool) -> None:
    from tstorm.measuring import measure_pairs
    from tstorm.units import duration

    def tell(text: str) -> None:
        if not quiet:
            with output.kept_going(sys.stderr):
                output.note(text)

    seconds = max(1, round(measure_pairs.seconds_left(state)))
    tell(f"{len(state.asked.hosts)} hosts, some {duration(seconds * 10**9)}")
    try:
        _until_stopped(measure_pairs.measure(state, kept.save, tell))
    except BaseException:
        if kept.is_there():
            output.note(f"note: what was measured is in {kept.path}: go on with --resume")
        raise


def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """A request to stop reaches the work as a cancellation, so that it clears up."""

    async def watched() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves SIGHUP
                loop.add_signal_handler(number, task.cancel)
        await work

    try:
        asyncio.run(watched())
    except asyncio.CancelledError:
        raise CommandError("interrupted", INTERRUPTED) from None


def _write(state: MeasureState, text: Path, document: Path, only_paths: bool) -> None:
    from tstorm.measuring import paths_text
    from tstorm.reporting import output_files

    pairs = list(paths_text.results(state))
    shared = paths_text.shared_ways(state)
    found = output.to_json(paths_text.to_json(state.asked, pairs, shared)) + "\n"
    output_files.put_file(str(document), [found.encode()])
    output_files.put_file(
        str(text), [paths_text.text(state, pairs, shared, only_paths=only_paths).encode()]
    )
