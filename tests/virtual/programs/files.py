"""Says what a file system does with files in use: the same in a guest as on its host."""

import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path


def put(name: str, data: bytes) -> None:
    Path(name).write_bytes(data)


def rename_over_open() -> object:
    put("new", b"new")
    put("old", b"old")
    with Path("old").open("r+b", buffering=0) as file:
        Path("new").rename("old")
        file.seek(0, os.SEEK_END)
        file.write(b"er")
        links = os.fstat(file.fileno()).st_nlink
        return os.pread(file.fileno(), 9, 0), links, Path("old").read_bytes()


def unlinked() -> object:
    path = Path("unlinked")
    with path.open("w+b", buffering=0) as file:
        path.unlink()
        file.write(bytes(10000))
        file.truncate(5000)
        path.write_bytes(b"another")
        os.utime(file.fileno(), (5, 7))
        state = os.fstat(file.fileno())
        return state.st_size, state.st_nlink, state.st_mtime, path.read_bytes()


def links() -> object:
    one, two, three = Path("one"), Path("two"), Path("three")
    put("one", b"1")
    two.hardlink_to(one)
    counts = [one.stat().st_nlink]
    three.hardlink_to(one)
    counts.append(two.stat().st_nlink)
    for path in (one, three):
        path.unlink()
        counts.append(two.stat().st_nlink)
    return counts


def removed_directory() -> object:
    gone = Path("gone")
    gone.mkdir()
    directory = os.open(gone, os.O_RDONLY)
    gone.rmdir()
    return os.fstat(directory).st_nlink


def truncated_while_read() -> object:
    put("read", bytes(9000))
    with Path("read").open("rb", buffering=0) as file:
        os.truncate("read", 100)
        short = len(file.read())
        os.truncate("read", 5000)
        return short, os.fstat(file.fileno()).st_size, len(file.read())


def symbolic_link() -> object:
    target, link = Path("target"), Path("link")
    target.touch()
    os.utime(target, (10, 20))
    link.symlink_to(target)
    os.utime(link, (1, 2), follow_symlinks=False)
    with suppress(PermissionError):  # a guest's root is its user on the host
        os.chown(link, 1234, 4321, follow_symlinks=False)
    state, own = target.stat(), link.lstat()
    mine = state.st_uid == os.geteuid()
    return state.st_mtime, own.st_mtime, mine, own.st_uid == state.st_uid


def mapped() -> object:
    put("mapped", bytes(10000))
    with Path("mapped").open("r+b") as file, mmap.mmap(file.fileno(), 10000) as memory:
        memory[5000:5005] = b"hello"
        seen = Path("mapped").read_bytes()[5000:5005]
        os.pwrite(file.fileno(), b"J", 5000)
        return seen, memory[5000:5005]


def appended() -> object:
    ends = [os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT) for _ in range(2)]
    for i, data in enumerate((b"one", b"two", b"three")):
        os.write(ends[i % 2], data)
    os.ftruncate(ends[0], 2)
    os.pwrite(ends[1], b"X", 0)
    return Path("log").read_bytes()


def emptied_while_listed() -> object:
    many = Path("many")
    many.mkdir()
    for i in range(2000):
        put(f"many/{i}", b"")
    seen = set()
    with os.scandir(many) as entries:
        for entry in entries:
            seen.add(entry.name)
            Path(entry).unlink()
    return len(seen), list(many.iterdir())


CASES = (
    rename_over_open,
    unlinked,
    links,
    removed_directory,
    truncated_while_read,
    symbolic_link,
    mapped,
    appended,
    emptied_while_listed,
)

os.chdir(sys.argv[1])
for case in CASES:
    try:
        print(case.__name__, case())
    except OSError as error:
        print(case.__name__, error)
