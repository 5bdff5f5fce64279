"""Control groups that limit what processes use: of version 2 where the controllers are there, else
of version 1 (cgroups(7)). An ordinary user can make some where they are delegated.

All of a run's groups are in one, `tstorm-RUN`, below the innermost group of ours that can hold it:
what limits us goes on limiting them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# The control groups of this process, of either version (cgroups(7)), as the kernel shows them.

ROOT = Path("/")
_CGROUP_MOUNT = "sys/fs/cgroup"


def own(controller: str, root: Path = ROOT) -> Iterator[Path]:
    """Directories of the groups that limit us, the innermost first; those that cannot be seen from
    here are left out."""
    mount = root / _CGROUP_MOUNT
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controller in controllers.split(","):
            yield from _upwards(mount / controller, name)
        elif number == "0":
            yield from _upwards(mount, name)


def _upwards(mount: Path, name: str) -> Iterator[Path]:
    here = mount / name.lstrip("/")
    while here != mount and mount in here.parents:
        yield here
        here = here.parent
    yield mount


def value(path: Path) -> int | None:
    """The number in a file; None if there is none ('max') or no such file."""
    text = _read(path).strip()
    return int(text) if text.isdecimal() else None


def counter(path: Path, key: str) -> int | None:
    """The number of `key` in a file of lines `KEY NUMBER`; None if there is none."""
    for line in _read(path).splitlines():
        word, _, number = line.partition(" ")
        if word == key and number.strip().isdecimal():
            return int(number)
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


PREFIX = "tstorm-"
_PERIOD_US = 100_000
_LEAST_QUOTA_US = 1000  # the kernel takes no less
EVENTS = "pids.events"
_CONTROLLERS, _PIDS = ("cpu", "memory"), "pids"
_MOUNT = Path("sys/fs/cgroup")
_TRIES, _PAUSE_S = 20, 0.05  # the last process of a group may just be dying


@dataclass(frozen=True, slots=True)
class ControlGroups:
    """A run's groups of each controller: the same directory again and again in version 2."""

    cpu: Path | None
    memory: Path | None
    pids: Path | None = None

    @property
    def _places(self) -> set[Path]:
        return {place for place in (self.cpu, self.memory, self.pids) if place is not None}

    @property
    def missing(self) -> set[str]:
        """Of 'cpu' and 'mem', what no process can be limited in."""
        found = {"cpu": self.cpu, "mem": self.memory}
        return {what for what, place in found.items() if place is None}

    def enclose(self, name: str, cpu_millis: int, mem_bytes: int) -> list[str]:
        """Makes a group in which others have their groups: together they get no more than these
        limits (0: none), and of the processor each as much as another if all want some. Returns
        what of that, 'cpu' or 'mem', cannot be enforced."""
        lacking = []
        for what, place, value in (
            ("cpu", self.cpu, cpu_millis),
            ("mem", self.memory, mem_bytes),
            (_PIDS, self.pids, 0),
        ):
            wanted = value or what == "cpu"
            if (place is None or not _enclose(place / name, what, value)) and wanted:
                lacking.append(what)
        return lacking

    def limit(
        self,
        name: str,
        pid: int,
        cpu_millis: int,
        mem_bytes: int,
        processes: int = 0,
        outer: str = "",
    ) -> list[str]:
        """Puts a process into a group of this name with these limits (0: none); `outer`: into one
        in this group, that `enclose` has made. Returns what of the limits, 'cpu', 'mem' or 'pids',
        cannot be enforced."""
        lacking = []
        for what, place, value in (
            ("cpu", self.cpu, cpu_millis),
            ("mem", self.memory, mem_bytes),
            ("pids", self.pids, processes),
        ):
            group = None if place is None else _group(place, name, outer)
            if group is None or ((value or outer) and not _limit(group, what, value, pid)):
                lacking += [what] if value else []
        return lacking

    def kills(self, name: str, outer: str = "") -> int:
        """How many processes of this group the kernel has killed for want of memory: the group's,
        the outer one's or the machine's."""
        if self.memory is None:
            return 0
        here = _group(self.memory, name, outer)
        files = (here / "memory.events", here / "memory.oom_control")
        return max(counter(file, "oom_kill") or 0 for file in files)

    def times_full(self, name: str, outer: str = "") -> int:
        """How often this group, or the outer one, has come to its limit of memory: a process that
        the kernel kills since the machine has no more is killed without that."""
        if self.memory is None:
            return 0
        places = {_group(self.memory, name, outer), self.memory / (outer or name)}
        found = 0
        for place in places:  # version 2 counts before it kills, 1 also where some could be freed
            found += counter(place / "memory.events", "oom") or 0
            found += value(place / "memory.failcnt") or 0
        return found

    def refused(self, name: str, outer: str = "") -> int:
        """How often this group was refused one more process."""
        if self.pids is None:
            return 0
        return counter(_group(self.pids, name, outer) / EVENTS, "max") or 0

    def remove(self) -> None:
        """Once their processes are dead."""
        for place in self._places:
            _remove(place)


def make(run_id: str, root: Path = ROOT, *, pids: bool = False) -> ControlGroups:
    """Groups of a run; without those that cannot be had here. `pids`: of numbers of processes,
    too."""
    found: dict[str, Path | None] = {}
    for controller in (*_CONTROLLERS, *([_PIDS] if pids else [])):
        places = list(own(controller, root))
        legacy = [place for place in places if _is_legacy(place, root)]
        found[controller] = _make(f"{PREFIX}{run_id}", controller, legacy or places)
    return ControlGroups(found["cpu"], found["memory"], found.get(_PIDS))


def _is_legacy(place: Path, root: Path) -> bool:
    """Of version 1: below a mount with the controller's name."""
    below = place.relative_to(root / _MOUNT).parts
    return bool(below) and below[0] in _CONTROLLERS and not (place / "cgroup.controllers").exists()


def _make(name: str, controller: str, places: list[Path]) -> Path | None:
    for place in places:
        group = place / name
        try:
            group.mkdir(exist_ok=True)
        except OSError:
            continue
        if _has(group, controller):
            return group
        with suppress(OSError):
            group.rmdir()
    return None


def _has(group: Path, controller: str) -> bool:
    """Whether groups in it can be limited, after having asked for that."""
    if not (group / "cgroup.controllers").exists():
        return (group / "cgroup.procs").exists()  # version 1
    with suppress(OSError):
        if controller not in (group / "cgroup.controllers").read_text().split():
            _enable(group.parent, controller)
        _enable(group, controller)
        return True
    return False


def _enable(group: Path, controller: str) -> None:
    (group / "cgroup.subtree_control").write_text(f"+{controller}")


def _group(place: Path, name: str, outer: str) -> Path:
    """Of this name, in the outer one if that could be made."""
    return place / outer / name if outer and (place / outer).is_dir() else place / name


def _enclose(group: Path, what: str, value: int) -> bool:
    try:
        _bound(group, what, value)
        return _has(group, "memory" if what == "mem" else what)
    except OSError:
        return False


def _limit(group: Path, what: str, value: int, pid: int) -> bool:
    try:
        _bound(group, what, value)
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        return False
    return True


def _bound(group: Path, what: str, value: int) -> None:
    """OSError."""
    group.mkdir(exist_ok=True)
    if not value:
        return
    for name, text in _settings(group, what, value):
        (group / name).write_text(text)
    with suppress(OSError):  # without it the rest would go to the swap space
        swap = group / "memory.swap.max"
        if what == "mem" and swap.exists():
            swap.write_text("0")


def _settings(group: Path, what: str, value: int) -> Iterator[tuple[str, str]]:
    if what == "mem":
        new = (group / "memory.max").exists()
        yield ("memory.max" if new else "memory.limit_in_bytes", str(value))
        return
    if what == _PIDS:
        yield ("pids.max", str(value))
        return
    quota = max(value * _PERIOD_US // 1000, _LEAST_QUOTA_US)
    if (group / "cpu.max").exists():
        yield ("cpu.max", f"{quota} {_PERIOD_US}")
    else:
        yield ("cpu.cfs_period_us", str(_PERIOD_US))
        yield ("cpu.cfs_quota_us", str(quota))


def _remove(place: Path) -> None:
    for _ in range(_TRIES):
        with suppress(OSError):
            for folder, _, _ in os.walk(place, topdown=False):
                Path(folder).rmdir()
            return
        if not place.exists():
            return
        time.sleep(_PAUSE_S)


def remove_left(run_id: str, root: Path = ROOT) -> None:
    """Removes groups that a run has left which was killed."""
    wanted = f"{PREFIX}{run_id}"
    for folder, names, _ in os.walk(root / _MOUNT):
        if wanted in names:
            names.remove(wanted)
            _remove(Path(folder, wanted))


REMEDY = (
    "run as root, or as a user to whom control groups are delegated: `systemd-run --user --scope"
    " tstorm run …` where systemd has the controllers cpu and memory delegated"
)
