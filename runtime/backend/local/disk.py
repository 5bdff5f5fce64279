"""What of an instance's directory is on its disk, and what a power failure leaves of it.

Files and names of directories are on the disk as they were when they were last synced (fsync,
fdatasync, sync, syncfs, msync; docs/tdl.md, "Power"), at first as they are when the program starts.
What has changed since then is in memory only: `lose` draws what of it had reached the disk anyway.

- Of a file that has changed: nothing, all of it, the first of its changed sectors, or each of them
  with probability 1/2. What was cut off in between does not come back beside new data: what is
  lost there reads as zeros.
- Of the names of a directory (made, removed, renamed) since its last fsync: all or nothing, and the
  same for two directories between which something was moved. A file whose name is lost is gone.

What stands beside the disk (BESIDE) is not its own: assertions that a program has written are the
observer's, and stay.

Inodes that may be there afterwards are held open, so that their numbers stay theirs, and are read
by that: a file without a name cannot be opened again (hostfs). Every draw is keyed by the seed and
a path: nothing depends on numbers of inodes.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from compiler.plan.numbered_draws import below
from runtime.errors import unread, unwritten
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


def survived(old: bytes, new: bytes, draws: _Draws, kept: int | None = None) -> bytes:
    """What the disk has of a file that was `old` when it was synced and is `new` now. `kept`: the
    shortest that it was cut to in between."""
    way = draws.below(4)
    if way < 2 or old == new:
        return new if way else old
    base = old[:kept]
    changed = [
        at for at in range(0, len(new), SECTOR) if new[at : at + SECTOR] != base[at : at + SECTOR]
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
        self._kept: dict[int, int] = {}  # bytes that no truncation since has cut off
        self._appended: dict[int, int] = {}  # where the last append that was written through ends
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
        inode = found.st_ino
        if self._hold(inode, path):
            self._sync_held(inode, found.st_mode, path)

    def sync_unnamed(self, inode: int, path: str) -> None:
        """A file that had this path, and that a program has in memory only. OSError."""
        if inode in self._held:  # else nothing of it comes back
            self._sync_held(inode, stat.S_IFREG, path)

    def _sync_held(self, inode: int, mode: int, path: str) -> None:
        if stat.S_ISDIR(mode):
            self._synced.names[inode] = self._scan(self._held[inode], path, self._synced.kinds)
            self._hold_names(path, self._synced.names[inode])
        elif stat.S_ISREG(mode):
            self._content[inode] = _read(self._held[inode], path, self._content.get(inode, ()))
            self._kept.pop(inode, None)

    def sync_all(self) -> None:
        for path, files in self._walk():
            self.sync(path)
            for name in sorted(files):
                one = Path(path, name)
                if stat.S_ISREG(one.lstat().st_mode):
                    self.sync(str(one))

    def truncate(self, path: str, length: int) -> None:
        """A file is about to have this length. OSError."""
        inode = Path(path).stat().st_ino
        self._appended.pop(inode, None)
        if self._hold(inode, path):
            self._kept[inode] = min(length, self._kept.get(inode, length))

    def write_through(self, path: str, at: int | None, data: bytes) -> None:
        """`data` are about to be written to a file and to be synced by that, at its end if `at` is
        None. Other changes of the file are not. OSError."""
        found = Path(path).stat()
        inode = found.st_ino
        if at is None:  # what was told last may not have been carried out yet
            at = max(found.st_size, self._appended.get(inode, 0))
            self._appended[inode] = at + len(data)
        if not self._hold(inode, path):
            return
        synced = self._content.get(inode, ())
        kept = self._kept.pop(inode, None)  # its length has to be on the disk as well
        self._content[inode] = _patched(synced if kept is None else _cut(synced, kept), at, data)

    def _walk(self) -> Iterator[tuple[str, list[str]]]:
        """Directories, each before what is in it, with their files."""
        for path, directories, files in os.walk(self.root):
            directories[:] = sorted(one for one in directories if not self._is_beside(path, one))
            yield path, files

    def _is_beside(self, path: str, name: str) -> bool:
        return name == BESIDE and path == str(self.root)

    def _hold(self, inode: int, path: str) -> bool:
        """False: it has no name any more and cannot get one back, so that nothing of it is left
        after a power failure. OSError."""
        if inode in self._held:
            return True
        try:
            self._held[inode] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if _is_named(path, inode):
                error.filename = os.path.realpath(path)
                raise
            return False
        return True

    def _hold_names(self, path: str, names: Names) -> None:
        """What may come back under a synced name. What cannot be opened is left: if it is synced
        one day, that says so."""
        for name, inode in names.items():
            one = str(Path(path, name))
            mode = self._synced.kinds[inode].mode
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                with suppress(FileNotFoundError, PermissionError):
                    self._hold(inode, one)

    def _scan(self, directory: int, path: str, kinds: dict[int, _Kind]) -> Names:
        """`directory`: a descriptor of what has or had this path."""
        names: Names = {}
        with os.scandir(directory) as entries:
            for entry in entries:
                if self._is_beside(path, entry.name):
                    continue
                found = entry.stat(follow_symlinks=False)
                target = os.readlink(entry.name, dir_fd=directory) if entry.is_symlink() else ""
                names[entry.name] = found.st_ino
                kinds[found.st_ino] = _Kind(found.st_mode, found.st_uid, found.st_gid, target)
        return names

    # --- the power fails ---

    def lose(self, seed: int) -> Lost:
        """The directory becomes what the disk has, all of which is synced then. No program of the
        instance may be there any more. RunError."""
        try:
            if self.failed is not None:
                raise self.failed
            there, left, contents = self._left(seed)
        except OSError as error:
            raise unread(error) from error
        try:
            lost = self._put_in_place(there, left, contents)
        except OSError as error:
            raise unwritten(error) from error
        self.close()
        self._synced, self._content, self._kept, self._appended = _Tree(), {}, {}, {}
        try:
            self.sync_all()
        except OSError as error:
            raise unread(error) from error
        return lost

    def _left(self, seed: int) -> tuple[dict[str, int], _Tree, dict[int, bytes]]:
        """Which inodes are there now, by path, what the disk has, and contents of its files."""
        now, root = _Tree(), self.root.stat().st_ino
        for path, _ in self._walk():
            inode = Path(path).stat().st_ino
            self._hold(inode, path)
            now.names[inode] = self._scan(self._held[inode], path, now.kinds)
        left = _Tree(kinds={**self._synced.kinds, **now.kinds})
        left.names = self._directories(now, root, seed)
        there = dict(now.paths(root))
        contents: dict[int, bytes] = {}
        for path, inode in left.paths(root):
            if stat.S_ISREG(left.kinds[inode].mode) and inode not in contents:
                contents[inode] = self._survived(path, inode, there, _Draws(seed, f"file {path}"))
        return there, left, contents

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
        name = next((one for one, other in there.items() if other == inode), None)
        if name is not None:
            self._hold(inode, str(self.root / name))
        if inode not in self._held:
            return old
        new = b"".join(_read(self._held[inode], str(self.root / (name or path)), ()))
        return survived(old, new, draws, self._kept.get(inode))

    def _put_in_place(
        self,
        there: Mapping[str, int],
        left: _Tree,
        contents: Mapping[int, bytes],
    ) -> Lost:
        wanted, kinds = dict(left.paths(self.root.stat().st_ino)), left.kinds
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


def _cut(content: Content, length: int) -> Content:
    whole, rest = divmod(length, _CHUNK)
    last = content[whole][:rest] if whole < len(content) else b""
    return (*content[:whole], last) if last else content[:whole]


def _patched(content: Content, at: int, data: bytes) -> Content:
    """With `data` written over it at that place. What is missing before reads as zeros."""
    chunks = list(content)
    for number in range(at // _CHUNK, (at + len(data) - 1) // _CHUNK + 1):
        while len(chunks) <= number:
            chunks[-1:] = [_filled(one) for one in chunks[-1:]]
            chunks.append(b"")
        begin = number * _CHUNK
        offset = max(at - begin, 0)
        part = data[max(begin - at, 0) : begin + _CHUNK - at]
        old = chunks[number].ljust(offset, b"\0")
        chunks[number] = old[:offset] + part + old[offset + len(part) :]
    return tuple(chunks)


def _filled(chunk: bytes) -> bytes:
    return chunk.ljust(_CHUNK, b"\0") if chunk.strip(b"\0") else _ZEROS


def _is_named(path: str, inode: int) -> bool:
    """Whether what a descriptor in /proc shows has the name that it says; other paths are one."""
    try:
        return Path(os.path.realpath(path)).stat().st_ino == inode
    except OSError:
        return False


def _read(file: int, path: str, before: Content) -> Content:
    """All of a file. Chunks that are as they were `before` are the same objects. OSError, which
    says `path`."""
    found: list[bytes] = []
    at = 0
    try:
        while chunk := _chunk(file, at):
            at += len(chunk)
            old = before[len(found)] if len(found) < len(before) else b""
            found.append(old if old == chunk else _ZEROS if chunk == _ZEROS else chunk)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    return tuple(found)


def _chunk(file: int, at: int) -> bytes:
    """A whole one, but for the file's last."""
    found = b""
    while more := os.pread(file, _CHUNK - len(found), at + len(found)):
        found += more
    return found
