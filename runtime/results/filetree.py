"""Where the files of two runs part: byte by byte, told by lines; documents of JSON by their keys.

Programs write into their run directory what they like: it is read as foreign data, no link is
followed, and what is no regular file is compared by what it is.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, TypeVar

from runtime.errors import RunError
from runtime.json_schema import REMEDY
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import LOGS
from runtime.say import number

# What differs between two runs, as told: one place, both sides of it, and how much else.

SHOWN_CHARACTERS = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunDifference:
    """`what` is 'event', 'link', 'pair', 'sample', 'packet', 'log', 'file', 'file of packets',
    'manifest' or 'summary'."""

    what: str
    subject: str  # the link, pair, instance or file
    at_ns: int | None  # since the start, of the first moment; None: it has none
    first: str  # what the first run has there, '' if nothing
    second: str
    more: int = 0  # further lines, figures or entries that differ

    def to_record(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "subject": self.subject,
            "at_ns": self.at_ns,
            "recorded": self.first,
            "replayed": self.second,
            "more": self.more,
        }


def first_difference(
    pairs: Iterable[tuple[T | None, T | None]],
) -> tuple[T | None, T | None, int] | None:
    """The first pair whose sides differ, and how many pairs after it do; None if none does."""
    found: tuple[T | None, T | None] | None = None
    more = 0
    for mine, theirs in pairs:
        if mine == theirs:
            continue
        if found is None:
            found = (mine, theirs)
        else:
            more += 1
    return None if found is None else (*found, more)


def shortened(text: str) -> str:
    """Text that is foreign data, at a length that can be read."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


MAX_BYTES = 1 << 40  # of a file that is compared
MAX_DEPTH = 64  # of folders within each other
LINE_BYTES = 1 << 16  # a longer one is compared in pieces
CHUNK = 1 << 20
COUNTED_BYTES = 64 << 20  # behind the first difference, in which others are counted
_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Tally:
    """How much of what was compared."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, what: str) -> None:
        self._counts[what] += 1

    def __getitem__(self, what: str) -> int:
        return self._counts[what]

    def words(self) -> str:
        """`2 logs, 40 lines of samples.jsonl, …`"""
        return ", ".join(_counted(what, count) for what, count in self._counts.items())


def _counted(what: str, count: int) -> str:
    if what.endswith(".jsonl"):
        return f"{count:,} lines of {what}"
    if "." in what:
        return what
    one, of, more = what.partition(" ")
    return f"{number(count, one)}{of}{more}"


# Tells of two files that differ where they do; None: it cannot.
Teller = Callable[[BinaryIO, BinaryIO, str], RunDifference | None]


@dataclass(frozen=True, slots=True)
class FileKind:
    """What files are called where they differ, and how that is told; by lines if nothing else."""

    what: str
    tally: Tally
    teller: Teller | None = None


def tree_differences(
    first: HeldDirectory, second: HeldDirectory, name: str, kind: FileKind
) -> Iterator[RunDifference]:
    """Of a file or folder with all that is in it. RunError."""
    yield from _entry(first, second, name, name, kind)


def _entry(
    first: HeldDirectory, second: HeldDirectory, name: str, path: str, kind: FileKind
) -> Iterator[RunDifference]:
    there = _what_is(first, name), _what_is(second, name)
    if there == ("a folder", "a folder"):
        yield from _folder(first, second, name, path, kind)
        return
    if there != ("", ""):
        kind.tally.add(kind.what)
    if there[0] != there[1]:
        yield RunDifference(kind.what, path, None, *there)
    elif there[0] == "a file":
        yield from _file(first, second, name, path, kind)


def _what_is(directory: HeldDirectory, name: str) -> str:
    """What it is; of a link also where it leads. '' if there is nothing."""
    status = directory.status(name)
    if status is None:
        return ""
    found = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
    return f"a link to {shortened(directory.target(name))}" if found == "a link" else found


def _folder(
    first: HeldDirectory, second: HeldDirectory, name: str, path: str, kind: FileKind
) -> Iterator[RunDifference]:
    if path.count("/") >= MAX_DEPTH:
        raise RunError(f"{first / name}: folders are more than {MAX_DEPTH} deep", REMEDY)
    try:
        mine, theirs = first.enter(name), second.enter(name)
        names = sorted({*mine.names(), *theirs.names()})
    except OSError as error:
        raise RunError(f"cannot read {first / name}: {error.strerror}") from error
    for inner in names:
        yield from _entry(mine, theirs, inner, f"{path}/{inner}", kind)


def _file(
    first: HeldDirectory, second: HeldDirectory, name: str, path: str, kind: FileKind
) -> Iterator[RunDifference]:
    with ExitStack() as stack:
        mine, theirs = (
            stack.enter_context(one.reading(name, MAX_BYTES)) for one in (first, second)
        )
        if _same_bytes(mine, theirs):
            return
        _rewind(mine, theirs)
        told = kind.teller(mine, theirs, path) if kind.teller else None
        if told is None:
            _rewind(mine, theirs)
            told = _told_by_line(mine, theirs, path, kind.what)
    yield told


def _told_by_line(first: BinaryIO, second: BinaryIO, path: str, what: str) -> RunDifference:
    number, mine, theirs, more = _first_line(first, second)
    return RunDifference(what, f"{_shown_path(path)}:{number}", None, mine, theirs, more)


def _rewind(*files: BinaryIO) -> None:
    for file in files:
        file.seek(0)


def _shown_path(path: str) -> str:
    """Logs are known by their instance."""
    return path.removeprefix(f"{LOGS}/")


def _same_bytes(first: BinaryIO, second: BinaryIO) -> bool:
    if os.fstat(first.fileno()).st_size != os.fstat(second.fileno()).st_size:
        return False
    while True:
        mine, theirs = first.read(CHUNK), second.read(CHUNK)
        if mine != theirs:
            return False
        if not mine:
            return True


def _first_line(first: BinaryIO, second: BinaryIO) -> tuple[int, str, str, int]:
    """Number and both texts of the first line that differs, and how many do soon after it."""
    number, found, more, left = 0, None, 0, COUNTED_BYTES
    while left > 0:
        mine, theirs = first.readline(LINE_BYTES), second.readline(LINE_BYTES)
        if not mine and not theirs:
            break
        left -= max(len(mine), len(theirs)) if found else 0
        number += 1
        if mine != theirs and found is None:
            found = (number, _line(mine, theirs), _line(theirs, mine))
        elif mine != theirs:
            more += 1
    # Files that somebody still writes may have become the same.
    return (*(found or (number, "", "")), more)


def _line(line: bytes, other: bytes) -> str:
    """The text, from shortly before the place where it differs if that is far in."""
    shorter = min(len(line), len(other))
    at = next((i for i in range(shorter) if line[i] != other[i]), shorter)
    begin = max(at - 60, 0) if at > 120 else 0
    text = line[begin:].rstrip(b"\n").decode("utf-8", "backslashreplace")
    return ("…" if begin else "") + shortened(text or ("(an empty line)" if line else ""))


def json_difference(first: Any, second: Any) -> tuple[str, str, str, int] | None:
    """The path of the first value that differs, both values, and how many others differ."""
    found = list(islice(_values(first, second, ""), 1_000_000))
    if not found:
        return None
    where, mine, theirs = found[0]
    return where, mine, theirs, len(found) - 1


def _values(first: Any, second: Any, where: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for key in sorted(first.keys() | second.keys()):
            inner = f"{where}.{key}".lstrip(".")
            if key in first and key in second:
                yield from _values(first[key], second[key], inner)
            else:
                yield inner, _value(first, key), _value(second, key)
    elif _is_list(first) and _is_list(second) and len(first) == len(second):
        for number, (mine, theirs) in enumerate(zip(first, second, strict=True)):
            yield from _values(mine, theirs, f"{where}[{number}]")
    elif first != second or type(first) is not type(second):
        yield where, shortened(json.dumps(first)), shortened(json.dumps(second))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _value(record: Mapping[str, Any], key: str) -> str:
    return shortened(json.dumps(record[key])) if key in record else ""
