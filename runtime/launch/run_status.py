"""What a run is doing now, and how a finished one ended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from runtime.errors import RunError
from runtime.launch import registry
from runtime.rpc.control import ask
from runtime.rundir import rundir
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import MANIFEST


def inspect(run: str | None = None) -> dict[str, Any]:
    """State, next events and counters of a run by id or directory; None: the only one going on.

    A finished run is known by its directory: `live` is False and manifest and summary are given.
    """
    try:
        record = registry.find(run)
    except RunError:
        if run is not None and _is_recorded(run):
            found = _finished(rundir.recorded(run))
            unseen = registry.is_elsewhere(run) or registry.other_owner(run)
            if "outcome" in found["manifest"] or not unseen:
                return found
        raise
    state, _ = ask(Path(record.socket), {"ask": "state"})
    return {"live": True, **state}


def directory_of(run: str) -> RunDirectory:
    """Of a run by its directory, or by the name of one that goes on here. RunError."""
    if not _is_recorded(run):
        return rundir.recorded(registry.find(run).directory)
    return rundir.recorded(run)


def _is_recorded(run: str) -> bool:
    """Whether a manifest is there; if that cannot be told, reading it says why."""
    return os.path.lexists(Path(run) / MANIFEST)


def _finished(directory: RunDirectory) -> dict[str, Any]:
    manifest = directory.manifest()
    return {
        "live": False,
        "run_id": manifest["run_id"],
        "directory": str(directory.path),
        "manifest": manifest,
        "summary": directory.summary(),
    }


def goes_on(directory: RunDirectory) -> bool | None:
    """Whether its run is known to go on: here, or on another machine. None: it is another user's,
    and nobody here can see that."""
    path = str(directory.path)
    try:
        registry.find(path)
    except RunError:
        if registry.is_elsewhere(path):
            return True
        return None if registry.other_owner(path) else False
    return True


def live_runs() -> list[dict[str, str]]:
    """The runs of this user that go on here now."""
    return [
        {"run_id": record.run_id, "directory": record.directory}
        for record in registry.records()
        if record.is_live
    ]
