"""The run directory: what is made before a run starts, and the manifest that says what ran where.

Layout in docs/run.md; everything goes through runtime/rundir/held_directory.py, and what is read is
checked by runtime/rundir/runfiles.py.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from compiler.plan.reader import Plan, read_plan
from runtime.errors import RunError, filesystem_remedy
from runtime.json_schema import REMEDY, parse
from runtime.options import RunOptions, RunPlaces
from runtime.rundir import discard, etchosts, reserve
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import (
    CERTIFICATE,
    FORMAT,
    GAI,
    HOSTS,
    INSTANCES,
    LOGS,
    MANIFEST,
    MAX_BYTES,
    PLAN,
    SUMMARY,
    VERSION,
    check_certificate,
    check_manifest,
    check_summary,
)
from runtime.system import machine_facts

MAX_NAME = 80
MAX_MESSAGE = (
    1000  # characters of a run's reason in the manifest (runtime.rundir.reserve has room for)
)


def encode(text: str) -> bytes:
    """UTF-8. Bytes of a path that are none appear as JSON's escapes of half a pair (`\\udcff`)."""
    return text.encode("utf-8", "backslashreplace")


def encode_json(value: Mapping[str, object]) -> bytes:
    """Canonical."""
    return encode(json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n")


def experiment_name(name: str) -> str:
    """What a run is called after, safe as a file's name."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".-")[:MAX_NAME] or "run"


def utc_stamp() -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def default_path(name: str, stamp: str, attempt: int) -> Path:
    suffix = f"-{attempt}" if attempt > 1 else ""
    return Path("runs") / f"{name}-{stamp}{suffix}"


NOTHING: Mapping[str, object] = {}
MOST_NAMES = 1000  # of runs that begin in the same second


def plan_in(directory: HeldDirectory) -> Plan:
    """The plan of a run directory, wherever that is by now. PlanError, OSError."""
    held = directory.enter(PLAN)
    return read_plan(Path(f"/proc/self/fd/{held.descriptor}"), lazy=True)


class RunDirectory(HeldDirectory):
    """A run directory, held. Reading raises RunError, writing OSError.

    `made` are the directories that were made for it, the outermost first. Whoever has begun a
    manifest goes on with the one it knows, whatever has become of the file.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        super().__init__(path, descriptor)
        self.made: tuple[Path, ...] = ()
        self._known: dict[str, Any] | None = None

    def fill(self, plan: Plan, *, hops: bool) -> None:
        """The plan's copy, the hosts file and the empty folders."""
        copy = self.make(PLAN)
        for name in plan.names:
            copy.write(name, plan.raw(name))
        self.make(LOGS)
        self.make(INSTANCES)
        self.write(HOSTS, etchosts.text(plan.topology, hops=hops).encode("ascii"))
        self.write(GAI, etchosts.GAI.encode("ascii"))
        for name in (HOSTS, GAI):  # whoever an instance's programs are
            os.chmod(name, 0o644, dir_fd=self.descriptor)

    def write_json(self, name: str, value: Mapping[str, object]) -> None:
        self.write(name, encode_json(value))

    def manifest(self) -> dict[str, Any]:
        return self._json(MANIFEST, check_manifest)

    def summary(self) -> dict[str, Any]:
        """Empty if there is none. RunError also if the certificate has another verdict."""
        found = self._json(SUMMARY, check_summary) if self.has(SUMMARY) else {}
        told = self._certified() if "verdict" in found else None
        if told is not None and told != found["verdict"]:
            raise RunError(
                f"{self / SUMMARY} and {CERTIFICATE} do not agree on the verdict: one of them was"
                " changed after the run",
                REMEDY,
            )
        return found

    def _certified(self) -> Any:
        """The verdict that the certificate has; None where it cannot be read, which is told by who
        wants more of it."""
        if not self.has(CERTIFICATE):
            return None
        with suppress(RunError):
            found = parse(self.read(CERTIFICATE, MAX_BYTES[CERTIFICATE]), CERTIFICATE)
            return found.get("verdict") if type(found) is dict else None
        return None

    def certificate(self) -> dict[str, Any]:
        """Empty if there is none."""
        return self._json(CERTIFICATE, check_certificate) if self.has(CERTIFICATE) else {}

    def _json(self, name: str, check: Callable[[Any, str], dict[str, Any]]) -> dict[str, Any]:
        place = str(self / name)
        return check(parse(self.read(name, MAX_BYTES[name]), place), place)

    def begin_manifest(self, values: Mapping[str, object]) -> None:
        """The first one, before space is put aside: if we are killed meanwhile, nothing is left of
        that in a directory that nobody knows to be a run's."""
        data = encode_json(values)
        self.write(MANIFEST, data)
        reserve.put_aside(self, len(data))
        self._known = {**values}

    def update_manifest(self, **values: object) -> None:
        """While the run goes on. Puts space aside for the last one, too."""
        known = {**self._before(), **values}
        data = encode_json(known)
        reserve.put_aside(self, len(data))
        self.write(MANIFEST, data)
        self._known = known

    def close_manifest(self, outcome: str, message: str = "", **values: Any) -> dict[str, Any]:
        """The last one, which says how the run ended; works on a full disk. Returns it."""
        end = {"outcome": outcome, "message": message[:MAX_MESSAGE]}
        manifest = {**self._before(), **values, **end}
        reserve.spend(self, MANIFEST, encode_json(manifest))
        return manifest

    def manifest_so_far(self, **values: object) -> dict[str, Any]:
        """What the last one says, but for the end."""
        return {**self._before(), **values}

    def _before(self) -> dict[str, Any]:
        return self.manifest() if self._known is None else self._known

    def abandon(self) -> None:
        """Removes what is in it, and the directories that were made for it."""
        self.clear()
        _remove(self.made)


def create(path: Path) -> RunDirectory:
    """Takes an absent or empty directory. FileExistsError if it is in use; OSError."""
    missing = [place for place in (path, *path.parents) if not place.exists()][::-1]
    try:
        for place in missing or [path]:
            place.mkdir(exist_ok=True)
        found = RunDirectory.hold(Path(os.path.realpath(path)))
        if found.names():
            raise FileExistsError(path)
    except BaseException:
        _remove(missing)
        raise
    found.made = tuple(missing)
    return found


def begin(
    path: Path, plan: Plan, values: Mapping[str, object], *, hops: bool = False
) -> RunDirectory:
    """A new one with the plan and its first manifest: whole, or as it was before. With `hops`
    bridges answer in the run.

    FileExistsError if it is in use; RunError if it cannot be made.
    """
    directory: RunDirectory | None = None
    try:
        directory = create(path)
        directory.fill(plan, hops=hops)
        directory.begin_manifest(values)
    except BaseException as error:
        if directory is not None:
            directory.abandon()
        if isinstance(error, FileExistsError) or not isinstance(error, OSError):
            raise
        reason = error.strerror or str(error)
        raise RunError(
            f"cannot make the run directory {path}: {reason}", filesystem_remedy(error)
        ) from error
    return directory


def begin_new(
    plan: Plan,
    options: RunOptions,
    places: RunPlaces,
    more: Mapping[str, object] = NOTHING,
    is_free: Callable[[str, Path], bool] = lambda _name, _target: True,
) -> RunDirectory:
    """One that is nobody else's, called after its run, with `more` in its first manifest. `is_free`
    hears name and place of the run; if it says no another name is tried. RunError."""
    name, stamp = experiment_name(places.name), utc_stamp()
    for attempt in range(1, MOST_NAMES):
        default = default_path(name, stamp, attempt)
        target = places.out or default
        if not is_free(default.name, target):
            continue
        known = manifest(default.name, plan, options, places, name)
        try:
            return begin(target, plan, {**known, **more}, hops=options.hop_exact)
        except FileExistsError as error:
            if places.out is not None:
                raise in_use(target) from error
    raise RunError("there are too many runs of this name")


def in_use(path: Path) -> RunError:
    """What a directory is that begin() finds in use."""
    what = "not empty" if path.is_dir() else "not a directory"
    return RunError(f"{path} is {what}", "give --out a new directory")


def _remove(made: Sequence[Path]) -> None:
    """Directories that were made, as far as they are empty."""
    for place in reversed(made):
        with suppress(OSError):
            place.rmdir()


def recorded(path: str | Path) -> RunDirectory:
    """The directory of an earlier run. RunError if `path` is none."""
    try:
        found = RunDirectory.hold(Path(os.path.realpath(path)))
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}", "give a run's directory") from error
    if not found.has(MANIFEST):
        raise RunError(f"{path} is not the directory of a run: no {MANIFEST}", "give one")
    return found


def manifest(
    run_id: str, plan: Plan, options: RunOptions, places: RunPlaces, kind: str
) -> dict[str, object]:
    """What is known before the start; facts about the engine and the outcome are added later."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "run_id": run_id,
        "experiment": kind,
        "plan_digest": plan.digest,
        "plan_tool": plan.tool_version,
        "seed": plan.seed,
        "started": utc_stamp(),
        "options": options.to_record(),
        "start_directory": places.start_directory,
        "source_directory": places.source_directory,
        "discards": discard.services(plan.topology.services, options),
        "datapath": "user" if options.datapath == "auto" else options.datapath,
        "machine": machine_facts.facts(),
    }
