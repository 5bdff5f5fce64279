"""Ends runs and removes what a crash has left. Doing it twice is as good as once."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from runtime import procs, registry, scratch
from runtime.errors import RunError
from runtime.procs import Process
from runtime.registry import Record
from runtime.rundir import MANIFEST, RunDirectory, read_json

CLEAN_SECONDS = 12.0  # for tstorm to end its run: programs have 5 s of grace
KILL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Destroyed:
    """What was done about one run."""

    run_id: str
    directory: str
    was_live: bool
    processes: int  # how many had to be killed


def destroy(run: str | None = None, *, everything: bool = False) -> list[Destroyed]:
    """Ends one run (by id or directory; None: the only one) or every run of this user.

    A run that is unknown here is destroyed already. RunError if something cannot be killed.
    """
    known = list(registry.records())
    if not everything:
        known = _chosen(run, known)
    done = [_destroy(record) for record in known]
    _sweep_files()
    return done


def sweep() -> list[Destroyed]:
    """Removes what dead runs have left; live ones are not touched."""
    done = [_destroy(record) for record in registry.records() if not alive(record)]
    _sweep_files()
    return done


def _sweep_files() -> None:
    registry.remove_stale_sockets()
    registry.remove_stale_drafts()
    scratch.sweep()


def alive(record: Record) -> bool:
    """A run whose tstorm is dead is dead: its processes are on their way out."""
    return procs.alive(record.tstorm)


def _chosen(run: str | None, known: list[Record]) -> list[Record]:
    if run is None:
        if len(known) > 1:
            names = ", ".join(record.run_id for record in known)
            raise RunError("there is more than one run", f"name one, or say --all: {names}")
        return known
    wanted = Path(os.path.realpath(run))
    return [r for r in known if r.run_id == run or Path(r.directory) == wanted]


def _destroy(record: Record) -> Destroyed:
    was_live = record.is_live
    if procs.alive(record.tstorm) and procs.send(record.tstorm, signal.SIGTERM):
        procs.wait_gone([record.tstorm], CLEAN_SECONDS)
    killed = _kill(record)
    registry.remove(record)
    _close_directory(RunDirectory(Path(record.directory)))
    return Destroyed(record.run_id, record.directory, was_live, killed)


def _kill(record: Record) -> int:
    """Everything that is left of the run dies with its keeper; waits until it has."""
    left: list[Process] = []
    for root in (record.keeper, record.tstorm):
        if root is not None and procs.alive(root):
            left.extend([*procs.descendants(root.pid), root])
            procs.send(root, signal.SIGKILL)
    unwilling = procs.wait_gone(left, KILL_SECONDS)
    if unwilling:
        numbers = ", ".join(str(process.pid) for process in unwilling)
        raise RunError(
            f"processes of run {record.run_id} do not die: {numbers}",
            "look at /proc/PID/stack; a device may be stuck",
        )
    return len(left)


def _close_directory(directory: RunDirectory) -> None:
    """A manifest without an outcome would look like a run that goes on."""
    try:
        if "outcome" not in read_json(directory / MANIFEST):
            directory.update_manifest(outcome="killed")
        for leftover in directory.path.glob(".*.new"):
            leftover.unlink(missing_ok=True)
    except (RunError, OSError):
        return  # the directory was removed or is not writable any more: nothing to close
