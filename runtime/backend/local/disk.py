"""What of an instance's directory is on its disk, and what a power failure leaves of it.

Files and names of directories are on the disk as they were when they were last synced (fsync,
fdatasync, sync, syncfs, msync; docs/tdl.md, "Power"), at first as they are when the program starts.
What has changed since then is in memory only: `lose` draws what of it had reached the disk anyway.

- Of a file that has changed: nothing, all of it, the first of its changed sectors, or each of them
  with probability 1/2. Where it was truncated in between, the old data do not come back beside new
  ones: what is lost reads as zeros.
- Of the names of a directory (made, removed, renamed) since its last fsync: all or nothing, and the
  same for two directories between which something was moved. A file whose name is lost is gone.

What stands beside the disk (BESIDE) is not its own: assertions that a program has written are the
observer's, and stay.

Inodes are held open, so that their numbers stay theirs. Every draw is keyed by the seed and a path:
nothing depends on numbers of inodes.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from compiler.plan.numbered_draws import below
from runtime.rundir.runfiles import ASSERTIONS

SECTOR = 512
_CHUNK = 1 << 16
_ZEROS = bytes(_CHUNK)

BESIDE = ASSERTIONS  # in the instance's directory

Names = dict[str, int]  # inodes, by name
Content = tuple[bytes, ...]  # in chunks, which two versions of a file share


class _Draws:
    """Of one item, by its name."""

    def __init__(self, seed: int, item: str) -> None:
        text = f"thunderstorm power 1\n{seed}\n{item}".encode("utf-8", "surrogateescape")
        self._key = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
        self._number = -1

    def below(self, bound: int) -> int:
        self._number += 1
        return below(self._key, self._number, bound)


def survived(old: bytes, new: bytes, draws: _Draws, *, truncated: bool) -> bytes:
    """What the disk has of a file that was `old` when it was synced and is `new` now."""
    way = draws.below(4)
    if way < 2 or old == new:
        return new if way else old
    base = b"" if truncated else old
    changed = [
        at
        for at in range(0, len(new), SECTOR)
        if truncated or new[at : at + SECTOR] != base[at : at + SECTOR]
    ]
    if way == 2:  # torn: they were written in order, and it broke off
        reached = changed[: draws.below(len(changed) + 1)]
        end = min(len(new), reached[-1] + SECTOR) if reached else 0
        length = max(end, min(len(base), len(new)))
    else:
        reached = [at for at in changed if draws.below(2)]
        length = len(new)
    found = bytearray(base[:length].ljust(length, b"\0"))
    for at in reached:
        found[at : at + SECTOR] = new[at : at + SECTOR]
    return bytes(found[:length])


@dataclass(frozen=True, slots=True)
class _Kind:
    """Of an inode, beside its content."""

    mode: int
    user: int
    group: int
    target: str = ""  # of a symbolic link


@dataclass(frozen=True, slots=True)
class Lost:
    """How many files are not what they were in memory, and how many names are."""

    files: int
    names: int


@dataclass(slots=True)
class _Tree:
    """Directories by inode, and what all inodes are."""

    names: dict[int, Names] = field(default_factory=dict)
    kinds: dict[int, _Kind] = field(default_factory=dict)

    def paths(self, root: int) -> Iterator[tuple[str, int]]:
        """Relative ones, a directory before what is in it, in order."""
        stack = [("", root)]
        while stack:
            path, inode = stack.pop()
            if path:
                yield path, inode
            if inode in self.names:
                below_it = sorted(self.names[inode].items(), reverse=True)
                stack += [(f"{path}/{name}" if path else name, one) for name, one in below_it]


class Disk:
    """That of an instance. `root`: its directory, which no link leads out of."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._synced = _Tree()
        self._content: dict[int, Content] = {}  # of synced files
        self._held: dict[int, int] = {}  # descriptors, by inode
        self._truncated: set[int] = set()  # since they were synced
        self._written_through: set[str] = set()  # opened with O_SYNC or O_DSYNC
        self._begun = False
        self.failed: OSError | None = None  # something was not seen: `lose` says so

    def begin(self) -> None:
        """The program starts: what is there then is on the disk, if it is the first life."""
        if not self._begun:
            self._begun = True
            self.sync_all()

    def close(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    # --- what programs do ---

    def sync(self, path: str) -> None:
        """A file, or the names of a directory. OSError."""
        found = Path(path).stat()
        self._hold(found.st_ino, path)
        if stat.S_ISDIR(found.st_mode):
            self._synced.names[found.st_ino] = self._scan(path, self._synced.kinds)
        elif stat.S_ISREG(found.st_mode):
            self._content[found.st_ino] = _read(path, self._content.get(found.st_ino, ()))
            self._truncated.discard(found.st_ino)

    def sync_all(self) -> None:
        for path, files in self._walk():
            self.sync(path)
            for name in sorted(files):
                one = Path(path, name)
                if stat.S_ISREG(one.lstat().st_mode):
                    self.sync(str(one))

    def truncate(self, path: str) -> None:
        """A file is about to be. OSError."""
        self._truncated.add(Path(path).stat().st_ino)

    def write_through(self, path: str) -> None:
        """From now on each write to what has this name is synced."""
        self._written_through.add(path)

    def _walk(self) -> Iterator[tuple[str, list[str]]]:
        """Directories, each before what is in it, with their files."""
        for path, directories, files in os.walk(self.root):
            directories[:] = sorted(one for one in directories if not self._is_beside(path, one))
            yield path, files

    def _is_beside(self, path: str, name: str) -> bool:
        return name == BESIDE and path == str(self.root)

    def _hold(self, inode: int, path: str) -> None:
        if inode not in self._held:
            self._held[inode] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def _scan(self, path: str, kinds: dict[int, _Kind]) -> Names:
        names: Names = {}
        with os.scandir(path) as entries:
            for entry in entries:
                if self._is_beside(path, entry.name):
                    continue
                found = entry.stat(follow_symlinks=False)
                target = str(Path(entry.path).readlink()) if entry.is_symlink() else ""
                names[entry.name] = found.st_ino
                kinds[found.st_ino] = _Kind(found.st_mode, found.st_uid, found.st_gid, target)
        return names

    # --- the power fails ---

    def lose(self, seed: int) -> Lost:
        """The directory becomes what the disk has, all of which is synced then. No program of the
        instance may be there any more. OSError."""
        if self.failed is not None:
            raise self.failed
        now, root = _Tree(), self.root.stat().st_ino
        for path, _ in self._walk():
            now.names[Path(path).stat().st_ino] = self._scan(path, now.kinds)
        left = _Tree(kinds={**self._synced.kinds, **now.kinds})
        left.names = self._directories(now, root, seed)
        there, wanted = dict(now.paths(root)), dict(left.paths(root))
        contents: dict[int, bytes] = {}
        for path, inode in wanted.items():
            if stat.S_ISREG(left.kinds[inode].mode) and inode not in contents:
                contents[inode] = self._survived(path, inode, there, _Draws(seed, f"file {path}"))
        lost = self._put_in_place(there, wanted, left.kinds, contents)
        self.close()
        self._synced, self._content, self._truncated = _Tree(), {}, set()
        self.sync_all()
        return lost

    def _directories(self, now: _Tree, root: int, seed: int) -> dict[int, Names]:
        """The names of each that are left."""
        synced = self._synced.names
        owner: dict[int, int] = {}

        def first(one: int) -> int:
            while owner.setdefault(one, one) != one:
                one = owner[one]
            return one

        moved: dict[int, int] = {}
        for directory in (*synced, *now.names):
            before, after = synced.get(directory, {}), now.names.get(directory, {})
            for inode in {*before.values()} ^ {*after.values()}:
                other = moved.setdefault(inode, directory)
                if first(other) != first(directory):
                    owner[first(directory)] = first(other)
        called: dict[int, str] = {}
        for tree in (now, self._synced):
            for path, inode in (("", root), *tree.paths(root)):
                if inode in tree.names:
                    group = first(inode)
                    called[group] = min(called.get(group, path), path)
        reached = {
            one: bool(_Draws(seed, f"names {path}").below(2)) for one, path in called.items()
        }
        return {
            one: now.names.get(one, {}) if reached.get(first(one)) else synced.get(one, {})
            for one in {*synced, *now.names}
        }

    def _survived(self, path: str, inode: int, there: Mapping[str, int], draws: _Draws) -> bytes:
        old = b"".join(self._content.get(inode, ()))
        held = next((one for one, other in there.items() if other == inode), None)
        if held is None and inode not in self._held:
            return old
        source = f"/proc/self/fd/{self._held[inode]}" if held is None else str(self.root / held)
        new = b"".join(_read(source, ()))
        names = {str(self.root / one) for one in (path, held) if one is not None}
        if names & self._written_through:
            return new
        return survived(old, new, draws, truncated=inode in self._truncated)

    def _put_in_place(
        self,
        there: Mapping[str, int],
        wanted: Mapping[str, int],
        kinds: Mapping[int, _Kind],
        contents: Mapping[int, bytes],
    ) -> Lost:
        gone = [path for path in there if wanted.get(path) != there[path]]
        for path in reversed(gone):
            one = self.root / path
            one.rmdir() if one.is_dir() and not one.is_symlink() else one.unlink()
        made = {one: self.root / path for path, one in wanted.items() if there.get(path) == one}
        written: set[int] = set()
        files = 0
        for path, inode in wanted.items():
            one, kind = self.root / path, kinds[inode]
            if there.get(path) != inode:
                self._make(one, kind, made.get(inode))
            made.setdefault(inode, one)
            if inode in contents and inode not in written and _differs(one, contents[inode]):
                one.write_bytes(contents[inode])
                files += 1
            written.add(inode)
        return Lost(files, len(there.keys() ^ wanted.keys()))

    def _make(self, path: Path, kind: _Kind, other: Path | None) -> None:
        if stat.S_ISDIR(kind.mode):
            path.mkdir()
        elif stat.S_ISLNK(kind.mode):
            path.symlink_to(kind.target)
            return
        elif stat.S_ISREG(kind.mode) and other is not None:
            path.hardlink_to(other)
            return
        elif stat.S_ISREG(kind.mode):
            path.touch()
        else:
            return  # a socket or a pipe: whoever made it makes it again
        os.chown(path, kind.user, kind.group)
        path.chmod(stat.S_IMODE(kind.mode))


def _differs(path: Path, content: bytes) -> bool:
    return path.stat().st_size != len(content) or path.read_bytes() != content


def _read(path: str, before: Content) -> Content:
    """All of a file. Chunks that are as they were `before` are the same objects."""
    found: list[bytes] = []
    with Path(path).open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            while len(chunk) < _CHUNK and (more := file.read(_CHUNK - len(chunk))):
                chunk += more
            old = before[len(found)] if len(found) < len(before) else b""
            found.append(old if old == chunk else _ZEROS if chunk == _ZEROS else chunk)
    return tuple(found)
