"""Files of instances that expectations read (`path`): copied into the run directory when the
programs have ended, before the data of instances is removed.

Anybody may have written them: each is a regular file of at most MOST_BYTES, to which no link leads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from compiler.plan.reader import Plan
from runtime import say
from runtime.errors import RunError
from runtime.expectations.history.operations import MOST_BYTES
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import INSTANCES, KEPT

AWAY = "in a cluster the files of instances are not read"
_SHOWN = 4
Unkept = Mapping[str, str]  # `INSTANCE PATH`, and why there is no copy


def keep(directory: HeldDirectory, plan: Plan, *, here: bool) -> dict[str, str]:
    """Those of which there is no copy, and why. In a cluster files go with their pods."""
    wanted = {
        (plan.topology.nodes[node].name, one.path)
        for one in plan.expectations
        if one.path
        for node in one.nodes
    }
    found: dict[str, str] = {}
    for name, path in sorted(wanted):
        why = _keep(directory, name, path) if here else AWAY
        if why:
            found[f"{name} {path}"] = why
    return found


def _keep(directory: HeldDirectory, name: str, path: str) -> str:
    *folders, last = PurePosixPath(path).parts
    try:
        held = directory.enter(INSTANCES)
        for folder in (name, *folders):
            held = held.enter(folder)
        data = held.read(last, MOST_BYTES)
    except (OSError, RunError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        why = cause.strerror if isinstance(cause, OSError) else "no file of at most 64 MiB"
        return f"{path} of {name} cannot be read: {why}"
    try:
        held = directory
        for folder in (KEPT, name, *folders):
            held = held.enter(folder) if held.has(folder) else held.make(folder)
        if not held.has(last):
            held.write(last, data)
    except (OSError, RunError) as error:
        why = str(error.strerror if isinstance(error, OSError) else error.message)
        return f"{path} of {name} cannot be kept: {why}"
    return ""


def read(directory: HeldDirectory, name: str, path: str, unkept: Unkept) -> bytes:
    """A copy. RunError says why there is none."""
    why = unkept.get(f"{name} {path}", "")
    if why:
        raise RunError(why)
    *folders, last = PurePosixPath(path).parts
    try:
        held = directory
        for folder in (KEPT, name, *folders):
            held = held.enter(folder)
    except OSError as error:
        raise RunError(f"{path} of {name} cannot be read: {error.strerror}") from error
    return held.read(last, MOST_BYTES)


def not_in_cluster(plan: Plan) -> str:
    """What a cluster does not measure; '' if there is no such expectation."""
    texts = [one.text for one in plan.expectations if one.path]
    return f"not measured: {say.some(texts, _SHOWN)}: {AWAY}" if texts else ""
