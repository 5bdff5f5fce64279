"""Files of instances that expectations read: copied into the run directory when the programs have
ended, before the data of instances is removed. They are those of a `path`, and for `assertions` all
that SDKs have written.

Anybody may have written them: each is a regular file of at most MOST_BYTES, to which no link leads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from compiler.plan.parts.expectations import ASSERTIONS as OF_ASSERTIONS
from compiler.plan.parts.expectations import DRIVERS, asserting
from compiler.plan.reader import Plan
from runtime import say
from runtime.errors import RunError
from runtime.expectations.assertions.sdk_records import SdkRecords
from runtime.expectations.history.operations import MOST_BYTES
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import ASSERTIONS, INSTANCES, KEPT

AWAY = "in a cluster the files of instances are not read"
_SHOWN = 4
MOST_FILES = 2000  # of assertions, of an instance: one for each start of a program or command
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
    for name in sorted(plan.topology.nodes[one].name for one in asserting(plan.expectations)):
        why = _keep_assertions(directory, name) if here else AWAY
        if why:
            found[f"{name} {ASSERTIONS}"] = why
    return found


def _keep_assertions(directory: HeldDirectory, name: str) -> str:
    """Why not; '' also where nothing was written."""
    try:
        held = directory.enter(INSTANCES).enter(name).enter(ASSERTIONS)
        files = held.names()
    except OSError as error:
        return f"{ASSERTIONS} of {name} cannot be read: {error.strerror}"
    if len(files) > MOST_FILES:
        return f"{ASSERTIONS} of {name} has more than {MOST_FILES:,} files"
    for file in files:
        if why := _keep(directory, name, f"{ASSERTIONS}/{file}"):
            return why
    return ""


def _keep(directory: HeldDirectory, name: str, path: str) -> str:
    *folders, last = PurePosixPath(path).parts
    try:
        data = file_of(directory, name, path, MOST_BYTES)
    except RunError as error:
        return error.message
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


def file_of(directory: HeldDirectory, name: str, path: str, most_bytes: int) -> bytes:
    """Of the directory of an instance, while that is there. RunError says why there is none."""
    try:
        held, last = _folder_of(directory.enter(INSTANCES), name, path)
        return held.read(last, most_bytes)
    except (OSError, RunError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        none = f"no file of at most {most_bytes >> 20} MiB"
        why = cause.strerror if isinstance(cause, OSError) else none
        raise RunError(f"{path} of {name} cannot be read: {why}") from error


def _folder_of(held: HeldDirectory, name: str, path: str) -> tuple[HeldDirectory, str]:
    """Where the file is, and its name there. No link is followed. OSError."""
    *folders, last = PurePosixPath(path).parts
    for folder in (name, *folders):
        held = held.enter(folder)
    return held, last


def read(directory: HeldDirectory, name: str, path: str, unkept: Unkept) -> bytes:
    """A copy. RunError says why there is none."""
    why = unkept.get(f"{name} {path}", "")
    if why:
        raise RunError(why)
    try:
        held, last = _folder_of(directory.enter(KEPT), name, path)
    except OSError as error:
        raise RunError(f"{path} of {name} cannot be read: {error.strerror}") from error
    return held.read(last, MOST_BYTES)


def read_assertions(directory: HeldDirectory, name: str, unkept: Unkept, into: SdkRecords) -> None:
    """All that its programs have written. RunError says what cannot be read."""
    why = unkept.get(f"{name} {ASSERTIONS}", "")
    if why:
        raise RunError(why)
    try:
        held = directory.enter(KEPT).enter(name).enter(ASSERTIONS)
        files = held.names()
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunError(f"{ASSERTIONS} of {name} cannot be read: {error.strerror}") from error
    for file in files:
        with held.reading(file, MOST_BYTES) as lines:
            into.read(lines, name, f"{ASSERTIONS}/{file}")


def not_in_cluster(plan: Plan) -> str:
    """What a cluster does not measure; '' if there is no such expectation."""
    of_files = (OF_ASSERTIONS, DRIVERS)
    texts = [one.text for one in plan.expectations if one.path or one.kind in of_files]
    return f"not measured: {say.some(texts, _SHOWN)}: {AWAY}" if texts else ""
