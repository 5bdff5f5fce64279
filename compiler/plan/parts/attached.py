"""What a plan carries beside itself: contents of files that services get, and included texts.

`files.tar` is a ustar archive (POSIX.1-2017, pax) whose bytes depend on its members alone: by name,
each with mode 0644 and neither owner nor time. Its members are `files/SHA256`, each content once,
`include/PATH`, the text that a statement of this path included, `traces/SHA256`, what links follow
(compiler/plan/parts/traces.py), `delays/SHA256`, what jitters are drawn from
(compiler/plan/parts/delay_tables.py), and `motions/SHA256`, where nodes are
(compiler/plan/parts/motion.py). Format in docs/plan.md.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from copy import copy
from functools import lru_cache

from compiler.plan.format import ATTACHED, MAX_ATTACHED_BYTES, PlanError
from compiler.plan.parts import delay_tables, motion
from compiler.plan.types import Topology

_FILES, _INCLUDE, _TRACES, _DELAYS = "files/", "include/", "traces/", "delays/"
_MOTIONS = "motions/"
_HINT = "it was damaged, or written by another program: compile the source again"


_RECORD_BYTES = 10240  # an archive is a multiple of it, and ends with two blocks of zeros
_BLOCK_BYTES = 512
_PREFIX_AT = 345  # in the head of a member, of a name that is long
_SMALL_BYTES = 2048
_KEPT_BYTES = 1 << 20  # of an archive that is read once for as long as it is the last one


def tar(members: Mapping[str, bytes]) -> bytes:
    """The archive of these members, in their order. ValueError for a name that ustar has no room
    for (100 bytes, or 255 with a `/` at the right place)."""
    return _ended([member(name, data) for name, data in members.items()])


def member(name: str, data: bytes) -> bytes:
    """The part of an archive that has this one. Small ones are kept: while a run goes on its plan
    becomes longer by one text at a time, and is written with all of them each time."""
    return _small_member(name, data) if len(data) <= _SMALL_BYTES else _member(name, data)


def _member(name: str, data: bytes) -> bytes:
    import tarfile  # slow to import, for plans that carry something

    found = tarfile.TarInfo(name)  # mode 0644, no owner, time 0
    found.size = len(data)
    head = found.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")
    return b"".join((head, data, bytes(-len(data) % _BLOCK_BYTES)))


_small_member = lru_cache(1024)(_member)


def _ended(members: Iterable[bytes]) -> bytes:
    found = b"".join((*members, bytes(2 * _BLOCK_BYTES)))
    return found + bytes(-len(found) % _RECORD_BYTES)


def parts(data: bytes) -> dict[str, bytes]:
    """The members of an archive by their names, each as member() makes it. PlanError."""
    return {name: member(name, content) for name, content in _members(data).items()}


def archive(members: Mapping[str, bytes]) -> bytes:
    """files.tar of what parts() has. PlanError."""
    _check_size(sum(map(len, members.values())))
    return _ended(members[name] for name in sorted(members))


def include_name(path: str) -> str:
    """What the member is called that is this included text."""
    return _INCLUDE + path


def encode(
    contents: Iterable[bytes],
    includes: Mapping[str, bytes],
    traces: Iterable[bytes] = (),
    delays: Iterable[bytes] = (),
    motions: Iterable[bytes] = (),
) -> bytes:
    """files.tar of contents, traces, delays and motions (each is kept once) and of included texts
    by path. PlanError."""
    members = {_FILES + hashlib.sha256(data).hexdigest(): data for data in contents}
    members |= {_TRACES + hashlib.sha256(data).hexdigest(): data for data in traces}
    members |= {_DELAYS + hashlib.sha256(data).hexdigest(): data for data in delays}
    members |= {_MOTIONS + hashlib.sha256(data).hexdigest(): data for data in motions}
    members |= {include_name(path): data for path, data in includes.items()}
    _check_size(sum(map(len, members.values())))
    try:
        return tar(dict(sorted(members.items())))
    except ValueError as error:
        raise PlanError(ATTACHED, f"a path is too long ({error})", "shorten it") from None


def _check_size(size: int) -> None:
    if size > MAX_ATTACHED_BYTES:
        most = MAX_ATTACHED_BYTES >> 20
        raise PlanError(ATTACHED, f"its contents are {size} bytes, more than {most} MiB")


class Attached:
    """The contents of files.tar. PlanError for anything but what encode() writes."""

    def __init__(self, data: bytes) -> None:
        members = _members(data)
        self.contents: dict[str, bytes] = {}  # by digest
        self.includes: dict[str, bytes] = {}  # by path
        self.traces: dict[str, bytes] = {}  # by digest
        self.delays: dict[str, bytes] = {}  # by digest
        self.motions: dict[str, bytes] = {}  # by digest
        kinds = {
            _INCLUDE: self.includes,
            _TRACES: self.traces,
            _DELAYS: self.delays,
            _MOTIONS: self.motions,
            _FILES: self.contents,
        }
        for name, content in members.items():
            kind = next((kind for kind in kinds if name.startswith(kind)), _FILES)
            kinds[kind][name.removeprefix(kind)] = content
        try:
            again = (self.contents.values(), self.includes, self.traces.values())
            same = encode(*again, self.delays.values(), self.motions.values()) == data
        except PlanError:
            same = False
        if not same:
            raise PlanError(ATTACHED, "is not as tstorm writes it", _HINT)

    def with_include(self, path: str, data: bytes) -> Attached:
        """A copy that has this text, too."""
        found = copy(self)
        found.includes = {**self.includes, path: data}
        return found

    def check(self, topology: Topology) -> None:
        """Raises PlanError unless there is just what the services are given and links follow."""
        files = {file.digest for service in topology.services for file in service.files}
        traces = {trace.digest for trace in topology.traces}
        delays = {one.digest for one in topology.delays}
        motions = {one.digest for one in topology.mobility}
        for wanted, found, owner in (
            (files, self.contents, "service"),
            (traces, self.traces, "link"),
            (delays, self.delays, "link"),
            (motions, self.motions, "node"),
        ):
            for digest in sorted(wanted ^ found.keys()):
                what = "is missing" if digest in wanted else f"belongs to no {owner}"
                raise PlanError(ATTACHED, f"the content {digest:.12} {what}", _HINT)
        for one in topology.mobility:
            if len(motion.decode(self.motions[one.digest]).places) != len(one.nodes):
                raise PlanError(ATTACHED, "other nodes move than the topology has", _HINT)
        names = {delay_tables.decode(content).name for content in self.delays.values()}
        for link in topology.links if names else ():
            measured = delay_tables.measured(link.state.distribution)
            if measured and link.state.distribution not in names:
                raise PlanError(ATTACHED, f"the delays of {link.name} are others", _HINT)


def read(data: bytes) -> Attached:
    """What an archive has. PlanError."""
    return _read_kept(data) if len(data) <= _KEPT_BYTES else Attached(data)


_read_kept = lru_cache(2)(Attached)


def _members(data: bytes) -> dict[str, bytes]:
    found = _plain_members(data)
    return _any_members(data) if found is None else found


def _plain_members(data: bytes) -> dict[str, bytes] | None:
    """Where all of them are plain files with short names, which need no more than their heads. What
    else is wrong shows when the archive is made again. None: it takes somebody who knows tar."""
    found: dict[str, bytes] = {}
    at = 0
    while head := data[at : at + _BLOCK_BYTES].rstrip(b"\0"):
        size = head[124:135]
        if head[156:157] != b"0" or len(head) > _PREFIX_AT or not size.isdigit():
            return None
        at += _BLOCK_BYTES
        try:
            name, length = head[:100].rstrip(b"\0").decode("utf-8"), int(size, 8)
        except ValueError:
            return None
        if at + length > len(data):
            return None
        found[name] = data[at : at + length]
        at += -(-length // _BLOCK_BYTES) * _BLOCK_BYTES
    return found


def _any_members(data: bytes) -> dict[str, bytes]:
    import tarfile

    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None or member.size > len(data):
                    raise PlanError(ATTACHED, f"{member.name!r:.60} is no file", _HINT)
                found[member.name] = content.read()
    except (tarfile.TarError, ValueError, OSError) as error:
        raise PlanError(ATTACHED, f"is not an archive ({error})", _HINT) from None
    return found
