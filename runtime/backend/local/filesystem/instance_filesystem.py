"""What an instance has around its program: user, directory, files, mounts, sysctls, file system.

Composed here from the plan and an image; carried out by the instance's PID 1 (tcal_c/ns/furnish.c).
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from compiler.plan.types import PRIVATE, Node, Service
from runtime.backend.local import cards, nursery, outside
from runtime.backend.local.environment import Own, instance_directory
from runtime.backend.local.filesystem import image_root, privatefs
from runtime.backend.local.filesystem.image_root import ImageRoot
from runtime.backend.local.filesystem.privatefs import Layers
from runtime.backend.local.instances import GRACE_SECONDS, ProgramEnding
from runtime.backend.local.nursery import Operation
from runtime.errors import RunError, unwritten
from runtime.rundir.held_directory import HeldDirectory, write_all
from runtime.rundir.runfiles import FILES, INSTANCES
from runtime.rundir.runfiles import PRIVATE as PRIVATE_FILES
from runtime.system import compiled_programs, userids
from runtime.system.userids import Identity

IN_IMAGE = "/run/tstorm/instance"  # where an instance of an image sees its directory
# A router forwards, and packets may come back another way than they went.
_FORWARDING = (
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv6/conf/all/forwarding", "1"),
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
)
_PORTS = ("sysctl", "net/ipv4/ip_unprivileged_port_start", "0")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Of one instance. `furniture` is what tstorm-ns is told before a life's program starts, None
    if there is nothing to tell; its argument: whether it is the first life. RunError."""

    furniture: Callable[[bool], bytes | None]
    home: str  # the instance's directory, as its program sees it
    directory: str  # where the program begins
    user: str  # as tstorm-ns takes it, '' for who the run is
    name: str  # of that user, '' if it has none
    owner: tuple[int, int] | None  # of what is made for it, None: who the run is
    ending: ProgramEnding


@dataclass(frozen=True, slots=True)
class CommonFacts:
    """What is the same for all instances of a run."""

    run: Path
    source: Path  # the TDL file's folder
    contents: Mapping[str, bytes]  # of files, by digest
    memory: Path  # where private files go if the disk cannot hold them
    one_id: bool  # files and programs can have one user number only
    remedy: str = ""  # against that
    in_memory: bool = False  # private files are meant to be there


class Furnisher:
    """Makes the surroundings of a run's instances. `warn` hears of each lack once."""

    def __init__(self, facts: CommonFacts, warn: Callable[[str], None]) -> None:
        self._facts = facts
        self._warn = warn
        self._said: set[str] = set()
        self._layers: Layers | None = None
        self._uids, self._gids = userids.present("uid"), userids.present("gid")

    def around(self, service: Service, node: Node, image: ImageRoot | None) -> Surroundings:
        """RunError for what cannot be had."""
        who, mapped = self._identity(service, image)
        home = instance_directory(self._facts.run, node.name)
        seen = IN_IMAGE if image else str(home)
        stated = image.cwd if image else service.cwd
        relative = any(not one.path.startswith("/") for one in service.files)
        if image and not service.cwd and (relative or service.setup):
            stated = ""  # what is made for it is where it begins
        owner = None if mapped or who is None else (who.uid, who.gid)
        directory = str(PurePosixPath(seen, stated)) if stated else seen
        one = _One(self._facts, service, image, home, seen, directory, who, owner)
        if owner is not None:
            _give(home, owner)
        layers = self._needed_layers(service, image)
        user = "" if who is None else ("map:" if mapped else "") + who.text
        return Surroundings(
            furniture=lambda first: one.furniture(layers, user, first=first),
            home=seen,
            directory=directory,
            user=user,
            name=who.name if who else "",
            owner=owner,
            ending=_ending(service, image),
        )

    def _identity(self, service: Service, image: ImageRoot | None) -> tuple[Identity | None, bool]:
        """Who its programs are, and whether that is only a name for who the run is."""
        text = image.user if image else service.user
        if not text:
            return None, False
        root = Path(image.lower) if image else Path("/")
        try:
            who = userids.resolve(text, root, unknown_gid=0 if image else None)
        except RunError as error:
            raise RunError(f"user={text} of service {service.name}: {error.message}") from error
        if (who.uid, who.gid) == (0, 0):
            return None, False
        if self._facts.one_id:
            self._say_once(
                f"user={text}: this run has one user number only. Programs see it as {who.uid};"
                f" files and processes stay this user's own. {self._facts.remedy}"
            )
            return Identity(who.name, who.uid, who.gid), True
        groups = tuple(one for one in who.groups if userids.has(one, self._gids))
        if not userids.has(who.uid, self._uids) or not userids.has(who.gid, self._gids):
            self._say_once(
                f"user={text}: the numbers {who.uid}:{who.gid} are beyond the range that this user"
                " has in /etc/subuid and /etc/subgid"
            )
            return Identity(who.name, who.uid, who.gid), True
        return Identity(who.name, who.uid, who.gid, groups), False

    def _needed_layers(self, service: Service, image: ImageRoot | None) -> Layers | None:
        if image is None and service.fs != PRIVATE:
            return None
        if self._layers is None:
            instances = self._facts.run / INSTANCES
            self._layers = privatefs.layers(instances, self._facts.memory)
            if self._layers.memory is not None and not self._facts.in_memory:
                self._say_once(
                    "this disk cannot hold private file systems (fs=private, images): they are in"
                    " memory, and gone after the run"
                )
            if self._layers.shared:
                names = ", ".join(self._layers.shared)
                self._say_once(f"fs=private: {names} cannot be overlaid and stay the machine's own")
        return self._layers

    def _say_once(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self._warn(message)


def idle(service: Service) -> Service:
    """A service whose image is not to be run: what it states for the image's file system has no
    place in the machine's."""
    return replace(service, cwd="", user="", files=(), mounts=(), setup=(), ready=())


def own(around: Surroundings, image: ImageRoot | None) -> Own:
    """For its environment."""
    return Own(around.home, around.directory, around.name, image.env if image else None)


def _ending(service: Service, image: ImageRoot | None) -> ProgramEnding:
    name = image.stop if image else service.stop
    grace_s = service.grace_ns / 1e9 if service.grace_ns else GRACE_SECONDS
    return ProgramEnding(_number(name) if name else signal.SIGTERM, grace_s)


def _number(name: str) -> int:
    base, _, more = name.partition("+")
    found = signal.Signals.__members__.get(base)
    if found is None or (more and not more.isdecimal()):
        raise RunError(f"there is no signal {name}")
    return int(found) + int(more or 0)


def _give(place: Path, owner: tuple[int, int]) -> None:
    """An instance's directory with the folders in it, which the run has just made."""
    try:
        for one in (place, *place.iterdir()):
            os.chown(one, *owner, follow_symlinks=False)
    except OSError as error:
        raise unwritten(error) from error


@dataclass(frozen=True, slots=True)
class _One:
    """One instance."""

    facts: CommonFacts
    service: Service
    image: ImageRoot | None
    home: Path
    seen: str
    directory: str
    who: Identity | None
    owner: tuple[int, int] | None

    def furniture(self, layers: Layers | None, user: str, *, first: bool) -> bytes | None:
        try:
            operations = [*self._operations(layers, user, first=first)]
        except OSError as error:
            raise unwritten(error) from error
        return nursery.furniture(operations) if operations else None

    def _operations(self, layers: Layers | None, user: str, *, first: bool) -> Iterator[Operation]:
        if self.service.router or self.service.external is not None:
            yield from (("sysctl", path, value) for path, value in _FORWARDING)
        if self.service.gateway:
            yield outside.PROXY_ARP
        if self.service.external is not None:
            yield from (("sysctl", path, value) for path, value in cards.SYSCTLS)
        for key, value in self.service.sysctls:
            yield ("sysctl", key.replace(".", "/"), value)
        if self.who is not None:
            yield _PORTS  # as every container has it
        if layers is None:
            yield from self._reachable()
        else:
            yield from self._own_root(layers)
        for mount in self.service.mounts:
            source = str(self.facts.source / mount.source)
            yield ("bind", source, mount.target, "ro" if mount.read_only else "rw")
        uid, gid = self.owner or (0, 0)
        if self.directory not in (self.seen, "/"):
            yield from self._begin(layers, uid, gid)
        if first:
            yield from self._files(uid, gid)
        if user:
            yield ("user", user)
        if layers is not None:
            yield ("pivot",)

    def _begin(self, layers: Layers | None, uid: int, gid: int) -> Iterator[Operation]:
        """cwd= is made where that is the instance's own business."""
        if layers is None and Path(self.directory).is_relative_to(self.seen):
            place = Path(self.directory)
            place.mkdir(parents=True, exist_ok=True)
            if self.owner is not None:
                os.chown(place, uid, gid, follow_symlinks=False)
        else:
            yield ("directory", self.directory, "755", str(uid), str(gid))

    def _reachable(self) -> Iterator[Operation]:
        if self.owner is not None and self.who is not None:
            needed = [self.home, self.facts.source, compiled_programs.find("tprobe").parent]
            yield from cover_operations(needed, self.who)

    def _own_root(self, layers: Layers) -> Iterator[Operation]:
        place = (layers.memory or self.home.parent / PRIVATE_FILES) / self.home.name
        if self.image is not None:
            yield from privatefs.of_image(self.image.lower, place)
            yield ("bind", str(self.home), self.seen, "rw")
            own = self.home.parent / PRIVATE_FILES / self.home.name
            yield from image_root.volume_operations(self.image, own)
            return
        mapped = self.who is not None and self.owner is None
        yield from privatefs.of_machine(layers, place, self.owner or (0, 0), one_id=mapped)
        fresh = tuple(privatefs.FRESH)
        source = self.facts.source
        if any(source.is_relative_to(one) for one in fresh):
            yield ("bind", str(source), str(source), "ro")
        yield from self._reachable()
        yield ("bind", str(self.facts.run), str(self.facts.run), "rw")
        if self.owner is not None and self.who is not None:
            closed = closed_above(self.home, self.who)
            if closed is not None and closed.is_relative_to(self.facts.run):
                yield ("bind", str(self.home), str(self.home), "rw")

    def _files(self, uid: int, gid: int) -> Iterator[Operation]:
        """Those in the instance's directory are written; PID 1 places the others."""
        for file in self.service.files:
            target = PurePosixPath(self.directory, file.path)
            data = self.facts.contents[file.digest]
            if target.is_relative_to(self.seen):
                _write(self.home, target.relative_to(self.seen), data, file.mode, self.owner)
            else:
                source = _kept(self.facts.run, file.digest, data)
                mode = format(stat.S_IMODE(file.mode), "o")
                yield ("file", str(source), str(target), mode, str(uid), str(gid))


def _write(
    home: Path, path: PurePosixPath, data: bytes, mode: int, owner: tuple[int, int] | None
) -> None:
    """A file in the instance's directory, in which there is nothing yet but files like it."""
    folder = HeldDirectory.hold(home)
    for part in path.parts[:-1]:
        try:
            folder = folder.make(part)
            if owner is not None:
                os.chown(folder.path, *owner, follow_symlinks=False)
        except FileExistsError:
            folder = folder.enter(part)
    folder.remove(path.name)
    descriptor = folder.create(path.name)
    try:
        write_all(descriptor, data)
        if owner is not None:
            os.fchown(descriptor, *owner)
        os.fchmod(descriptor, mode)  # last: a new owner takes the set-id bits away
    finally:
        os.close(descriptor)


def _kept(run: Path, digest: str, data: bytes) -> Path:
    """A content in the run directory, for PID 1 of instances to copy."""
    whole = HeldDirectory.hold(run)
    with suppress(FileExistsError):
        whole.make(FILES)
    folder = whole.enter(FILES)
    if not folder.has(digest):
        folder.write(digest, data)
    return folder / digest


# Ways to what a program needs, through directories that its user may not enter.
#
# A run directory is often below a home that is closed to others (mode 0700). A program of another
# user would not reach its own working directory. So in its instance such a home is covered with
# an empty directory that all may enter, and what it needs is mounted into that. Nothing is lost:
# the program could not have entered the home.


def _may_enter(who: Identity, status: os.stat_result) -> bool:
    """By the mode alone: lists of rights (acl(5)) may allow more, and covering does no harm."""
    if who.uid == 0:
        return True
    if status.st_uid == who.uid:
        return bool(status.st_mode & 0o100)
    if status.st_gid in (who.gid, *who.groups):
        return bool(status.st_mode & 0o010)
    return bool(status.st_mode & 0o001)


def closed_above(path: Path, who: Identity) -> Path | None:
    """The outermost directory above `path` that bars the way to it; None if none does."""
    for above in reversed(path.parents):
        try:
            if not _may_enter(who, above.stat()):
                return above
        except OSError:
            return None  # it is not there: whoever needs it says so
    return None


def cover_operations(needed: Iterable[Path], who: Identity) -> Iterator[Operation]:
    """What tstorm-ns is to do so that all of `needed` (absolute, without links) can be reached."""
    ways: dict[Path, list[Path]] = {}
    for path in sorted(set(needed)):  # what is inside of another comes after it
        barrier = closed_above(path, who)
        if barrier is not None and path.exists():
            ways.setdefault(barrier, []).append(path)
    for barrier, paths in ways.items():
        yield ("tmpfs", str(barrier))
        for path in paths:
            yield ("bind", str(path), str(path), "rw")
