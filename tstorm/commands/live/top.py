"""`tstorm top [RUN]`: what a run does now, again and again."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

import click

from tstorm import output
from tstorm.options import option_types
from tstorm.options.shared import run_argument

SECOND_NS = 10**9
LEAST_NS = SECOND_NS // 10


@click.command()
@run_argument(required=False)
@click.option(
    "--every",
    "every_ns",
    type=option_types.DURATION,
    default="1s",
    show_default=True,
    help="How long rates are measured, and until the next look; 0.1s at least.",
)
@click.option("--frames", type=click.IntRange(1), help="End after so many.")
def command(run: str | None, every_ns: int, frames: int | None) -> None:
    """Show the links, pairs and programs of the running experiment RUN, until it has ended.

    RUN is a run's name or directory; it may be left out if only one goes on. Rates are the growth
    of counters between two looks, by the run's own time: bits that went into a link and came out,
    packets that it lost (loss=), dropped as its queue was full and dropped as it was down; and
    bytes that wait in it. The run reads its counters ten times a second; a look shows the last
    reading. The busiest come first; what does not fit is counted. Programs that do not run are
    named. Over hosts only pairs are counted. Ctrl-C ends this command, and nothing else.

    On a terminal a frame replaces the one before; elsewhere they follow each other.

    \b
    Examples:
      tstorm top
      tstorm top runs/shop --every 5s
      tstorm top runs/shop --frames 1
    """
    from tstorm.command_support import errors_shown

    if every_ns < LEAST_NS:
        raise click.UsageError("--every is 0.1s at least")
    with errors_shown():
        from runtime.launch.run_status import inspect

        first = inspect(run)
        if not first["live"]:
            output.note(f"{first['run_id']} has ended: tstorm inspect {first['directory']}")
            return
        _follow(first, every_ns / SECOND_NS, frames)


def _follow(first: dict[str, Any], seconds: float, frames: int | None) -> None:
    """Looks first, and shows once there are rates."""
    from runtime.errors import RunError
    from runtime.launch.run_status import inspect

    before, shown = first, 0
    while frames is None or shown < frames:
        time.sleep(seconds)
        try:
            now = inspect(first["run_id"])
        except RunError:
            output.note("the run has ended")
            return
        _show(before, now)
        before, shown = now, shown + 1


def _show(before: dict[str, Any], now: dict[str, Any]) -> None:
    from tstorm.text import toptext

    terminal = sys.stdout.isatty()
    width, height = shutil.get_terminal_size() if terminal else (200, 10_000)
    lines = toptext.frame(before, now, width, height - 1)
    if terminal:
        click.clear()
    for line in lines:
        output.line(line)
    if not terminal:
        output.line("")
    sys.stdout.flush()
