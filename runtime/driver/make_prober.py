"""The prober of a run, with what it needs of the driver: its file, and where instances are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from compiler.plan.reader import Plan
from runtime.backend.base import Backend
from runtime.errors import unwritten
from runtime.probing.echo_prober import EchoProber
from runtime.probing.probe_record import why_not
from runtime.probing.prober import Prober
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.rundir.runfiles import PROBES
from runtime.schedule import Schedule

Say = Callable[[str], None]


def prober(
    plan: Plan,
    schedule: Schedule,
    backend: Backend,
    directory: HeldDirectory,
    on_error: Say,
    notice: Say,
    on_end: Say,
) -> Prober | EchoProber:
    """It does nothing where the options are against it. RunError if its file cannot be made."""
    file = None
    if not why_not(schedule.options):
        try:
            file = LineFile(directory, PROBES, on_error)
        except OSError as error:
            raise unwritten(error) from error

    if not schedule.options.on_this_machine:
        return EchoProber(plan, schedule, file, backend.echo, notice, on_end)

    def place(name: str) -> tuple[str, asyncio.Future[None]] | None:
        instance, netns = backend.instances[name], backend.namespace(name)
        if not netns or instance.present is None:
            return None
        return netns, instance.present.gone

    return Prober(plan, schedule, file, place, notice, on_end)
