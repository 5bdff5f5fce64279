"""What a run is doing now, and how a finished one ended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from runtime import registry, rundir
from runtime.control import ask
from runtime.errors import RunError


def inspect(run: str | None = None) -> dict[str, Any]:
    """State, next events and counters of a run by id or directory; None: the only one going on.

    A finished run is known by its directory: `live` is False and manifest and summary are given.
    """
    try:
        record = registry.find(run)
    except RunError:
        if run is not None and (Path(run) / rundir.MANIFEST).is_file():
            found = _finished(Path(run))
            if "outcome" in found["manifest"] or not registry.is_elsewhere(run):
                return found
        raise
    state, _ = ask(Path(record.socket), {"ask": "state"})
    return {"live": True, **state}


def _finished(directory: Path) -> dict[str, Any]:
    manifest = rundir.read_json(directory / rundir.MANIFEST)
    summary = directory / rundir.SUMMARY
    return {
        "live": False,
        "run_id": manifest.get("run_id", ""),
        "directory": os.path.realpath(directory),
        "manifest": manifest,
        "summary": rundir.read_json(summary) if summary.exists() else {},
    }


def live_runs() -> list[dict[str, str]]:
    """The runs of this user that go on here now."""
    return [
        {"run_id": record.run_id, "directory": record.directory}
        for record in registry.records()
        if record.is_live
    ]
