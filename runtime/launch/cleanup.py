"""Ends runs and removes what a crash has left. Doing it twice is as good as once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compiler.plan.storage import scratch
from runtime.backend.local import environment, ownership
from runtime.errors import RunError
from runtime.launch import registry
from runtime.launch.registry import RunRecord
from runtime.rundir import discard, passing_place
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import INSTANCES, LONGER_PLAN, MANIFEST, PLAN
from runtime.system import control_groups, procs
from runtime.system.procs import Process

CLEAN_SECONDS = 12.0  # for tstorm to end its run: programs have 5 s of grace
KILL_SECONDS = 10.0
KILLED = "killed"  # the outcome of a run that something else than itself has closed


@dataclass(frozen=True, slots=True)
class Destroyed:
    """What was done about one run."""

    run_id: str
    directory: str
    was_live: bool
    processes: int  # how many had to be killed
    elsewhere: str = ""  # where the run is, if that is not here: then it was left alone,
    forgotten: bool = False  # or only its record was removed
    unclosed: str = ""  # why its manifest could not be given an outcome, '' if it has one


def destroy(run: str | None = None, *, everything: bool = False) -> list[Destroyed]:
    """Ends one run (by id or directory; None: the only one) or every run of this user here.

    A run that is unknown is destroyed already. RunError if something cannot be killed, or the named
    run is on another machine or in another container.
    """
    known = list(registry.records())
    if not everything:
        known = _chosen(run, known)
    done = [_left(record) if record.is_elsewhere else _destroy(record) for record in known]
    _sweep_files()
    return done


def forget(run: str) -> list[Destroyed]:
    """Removes the record of a run whose machine or container is no more, and nothing else.

    RunError if the run goes on, as far as can be seen.
    """
    done = []
    for record in registry.named(run, list(registry.records())):
        if record.is_live:
            raise RunError(f"run {record.run_id} goes on here", "end it: leave out --forget")
        if record.is_elsewhere:
            registry.forget(record)
            done.append(replace(_left(record), forgotten=True))
        else:
            done.append(_destroy(record))
    return done


def sweep() -> list[Destroyed]:
    """Removes what runs have left that are over for certain."""
    done = [_destroy(record) for record in registry.records() if record.is_over]
    _sweep_files()
    return done


def _left(record: RunRecord) -> Destroyed:
    return Destroyed(record.run_id, record.directory, False, 0, record.place.text())


def _sweep_files() -> None:
    registry.remove_stale_sockets()
    registry.remove_stale_drafts()
    if places := passing_place.left():
        passing_place.remove(places - {Path(one.directory).parent for one in registry.records()})


def _chosen(run: str | None, known: list[RunRecord]) -> list[RunRecord]:
    """With no name those of elsewhere only if nothing is here."""
    if run is not None:
        found = registry.named(run, known)
        if found and found[0].is_elsewhere:
            raise found[0].not_here()
        return [record for record in found if not record.is_elsewhere]
    ours = [record for record in known if not record.is_elsewhere]
    if len(ours) > 1:
        names = ", ".join(record.run_id for record in ours)
        raise RunError("there is more than one run", f"name one, or say --all: {names}")
    return ours or known


def _destroy(record: RunRecord) -> Destroyed:
    was_live, killed = record.is_live, 0
    if record.place.is_here:
        if procs.alive(record.tstorm) and procs.send(record.tstorm, signal.SIGTERM):
            procs.wait_gone([record.tstorm], CLEAN_SECONDS)
        killed = _kill(record)
    if record.place.is_here:
        control_groups.remove_left(record.run_id)
        _take_back(Path(record.directory) / INSTANCES)
    registry.remove(record)
    unclosed = _close_directory(record)
    return Destroyed(record.run_id, record.directory, was_live, killed, unclosed=unclosed)


def _kill(record: RunRecord) -> int:
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


def _discard(directory: RunDirectory, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the last manifest says of directories that should be gone and are not."""
    left = discard.discard(directory, manifest.get("discards", ()))
    return {"not_discarded": left} if left else {}


def _take_back(instances: Path) -> None:
    """What other numbers of this user's run have left there is this user's again."""
    if os.geteuid() == 0 or not ownership.foreign(instances):
        return
    argv = ownership.argv(instances)
    if not argv:
        ownership.give_back(instances)  # overlays leave directories that nobody may enter
    else:
        with suppress(OSError, subprocess.SubprocessError):
            environ = environment.of_driver(os.environ)
            subprocess.run(
                argv, env=environ, capture_output=True, check=False, timeout=CLEAN_SECONDS
            )


def _remove_temporary(place: Path) -> None:
    """The folder of a run that its command would have thrown away."""
    ours = place.name.startswith(passing_place.PREFIXES) and not place.is_symlink()
    if ours and place.stat().st_uid == os.geteuid():
        shutil.rmtree(place, ignore_errors=True)


def _close_directory(record: RunRecord) -> str:
    """A manifest without an outcome would look like a run that goes on. Why it still does, or ''.

    Nothing is done in a directory that has become another run's, or that a link leads to now.
    """
    try:
        directory = RunDirectory.hold(Path(record.directory))
        if not directory.has(MANIFEST):
            return ""
        manifest = directory.manifest()
        if manifest["run_id"] == record.run_id and "outcome" not in manifest:
            directory.close_manifest(KILLED, **_discard(directory, manifest))
        if manifest["run_id"] == record.run_id:
            _remove_temporary(Path(record.directory).parent)
        directory.remove_drafts()
        directory.enter(PLAN).remove_drafts()
        scratch.sweep(directory.path, LONGER_PLAN)
    except (FileNotFoundError, NotADirectoryError):
        return ""  # it was removed: nothing to close
    except OSError as error:
        return f"cannot write {Path(record.directory) / MANIFEST}: {error.strerror}"
    except RunError as error:
        return error.message
    return ""
