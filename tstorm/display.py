"""Shows a run's progress on stderr: a live table on a terminal, plain lines elsewhere.

Input: `runtime.driver.progress.Progress` records. The runtime decides when they come; this file
decides what of them is worth showing. All of it is for people: nothing here is a product.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from typing import TYPE_CHECKING

from tstorm import output, units

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from runtime.driver.progress import Progress, Reporter

_SECOND = 10**9


def _clock(ns: int) -> str:
    """Plan time, to a tenth of a second: more would only flicker."""
    return units.duration(ns - ns % (_SECOND // 10))


def _until(record: Progress) -> str:
    """What there is of the run: while it is held nobody knows where its end is."""
    return "held" if record.held_ns is not None else units.duration(record.end_ns)


def _next(record: Progress) -> str:
    if record.held_ns is not None:
        return f"what is planned waits at {_clock(record.held_ns)} of the text"
    event = record.next_event
    if event is None:
        return "no further event"
    return f"next: {event.kind} {event.target}".rstrip() + f" at {units.duration(event.at_ns)}"


def _services(record: Progress) -> str:
    parts = []
    for service in record.services:
        counts = [f"{service.joined} up"]
        counts += [f"{service.cut} cut"] if service.cut else []
        counts += [f"{service.down} down"] if service.down else []
        counts += [f"{service.done} done"] if service.done else []
        counts += [f"{service.failed} failed"] if service.failed else []
        counts += [f"{service.not_started} failed to start"] if service.not_started else []
        parts.append(f"{service.name} {' '.join(counts)}")
    return ", ".join(parts)


def _said(record: Progress) -> str:
    warning = "warning: " if record.warning else ""
    return f"{_clock(record.at_ns)}: {warning}{record.message}"


def _warn(record: Progress) -> None:
    """For who wants no progress."""
    if record.warning or record.news:
        output.note(_said(record))


class PlainLines:
    """A line when the phase changes or something is said, and at most one a second otherwise."""

    def __init__(self) -> None:
        self._phase = ""
        self._shown: tuple[int, int | None] = (-1, None)
        self._elapsed_ns = -_SECOND

    def __call__(self, record: Progress) -> None:
        if record.message:
            output.note(_said(record))
        shown = (record.applied, record.held_ns)
        due = record.elapsed_ns - self._elapsed_ns >= _SECOND and shown != self._shown
        if record.phase == self._phase and not due:
            return
        self._phase, self._shown = record.phase, shown
        self._elapsed_ns = record.elapsed_ns
        output.note(self._line(record))

    def _line(self, record: Progress) -> str:
        parts = [
            f"{_clock(record.at_ns)}/{_until(record)}",
            record.phase,
            f"{record.applied}/{record.total} events",
        ]
        parts += [_next(record)] if record.phase == "running" else []
        parts += [_services(record)] if record.services else []
        return "; ".join(parts)


def panel(record: Progress) -> RenderableType:
    """The live view of one record: head line, bar of time, table of services."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    head = Text.assemble(
        (output.visible(record.run_id), "bold"),
        f"  {record.phase}  {_clock(record.at_ns)} of {_until(record)}",
        f"  {record.applied}/{record.total} events  ",
        (output.visible(_next(record)), "cyan"),
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("SERVICE")
    for name in ("UP", "CUT", "DOWN", "DONE", "FAILED", "FAILED TO START"):
        table.add_column(name, justify="right")
    for service in record.services:
        _, *counts = astuple(service)
        table.add_row(service.name, *(str(count) if count else "-" for count in counts))
    bar = Table.grid(expand=True)  # a bar alone does not end its line
    done = min(record.at_ns, record.end_ns)
    bar.add_row(ProgressBar(total=max(1, record.end_ns), completed=done))
    return Group(head, bar, table)


@contextmanager
def _on_terminal(live: Live) -> Iterator[None]:
    """A terminal that is gone takes nothing with it."""
    with output.kept_going(sys.stderr):
        live.start()
    try:
        yield
    finally:
        with output.kept_going(sys.stderr):
            live.stop()


@contextmanager
def reporter(quiet: bool) -> Iterator[Reporter]:
    """The reporter that suits stderr, for the duration of a run."""
    if quiet:
        yield _warn
    elif not sys.stderr.isatty():
        yield PlainLines()
    else:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, no_color=not output.colour(sys.stderr))
        live = Live(console=console, auto_refresh=False, transient=False)
        with _on_terminal(live):

            def show(record: Progress) -> None:
                if record.message:
                    live.console.print(output.visible(_said(record)), markup=False)
                live.update(panel(record), refresh=True)

            yield show
