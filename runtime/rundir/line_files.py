"""Files that grow while a run goes on: one JSON object a line, each written at once.

A line is one write(2), so that whatever kills the driver leaves whole lines behind. Lines that are
read may be anybody's: each has a bound and a shape (runtime/rundir/runfiles.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import IO, Any

from runtime.errors import RunError
from runtime.json_schema import REMEDY, parse
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import LINE_CHECKS, MAX_BYTES, MAX_LINE_BYTES, SAMPLES

OnError = Callable[[str], None]


def encode(record: Mapping[str, object]) -> bytes:
    """Canonical bytes of one record, with its newline."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


class LineFile:
    """Appends to a file of its own, made new.

    What cannot be written (a full disk) is told once, to `on_error` in words; nothing is written
    after that, so that a line which was cut stays the last one.
    """

    def __init__(self, directory: HeldDirectory, name: str, on_error: OnError) -> None:
        import asyncio  # not for those who only read: it takes a command 0.1 s

        self._path = directory / name
        self._on_error = on_error
        self._failed = False
        self.lines = 0  # so far
        self.grown = asyncio.Event()  # set with each line; who waits clears it before
        self._descriptor = directory.create(name, os.O_APPEND)

    def append(self, record: Mapping[str, object]) -> None:
        self.append_bytes(encode(record))

    def append_bytes(self, line: bytes) -> None:
        view = memoryview(line)
        self.lines += 1
        self.grown.set()
        try:
            while view and not self._failed:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            self._failed = True
            self._on_error(f"cannot write {self._path}: {error.strerror}")

    def close(self) -> None:
        os.close(self._descriptor)


def read_lines(directory: HeldDirectory, name: str) -> Iterator[dict[str, Any]]:
    """Every whole record of EVENTS, SAMPLES or LOG_TIMES; a last line cut by a crash is left out.

    RunError names a line that is broken, too long or not what such a line is.
    """
    return GrowingLines(directory, name).more()


def whole_lines(
    file: IO[bytes], path: str, most: int, before: int = 0
) -> Iterator[tuple[str, bytes]]:
    """The lines of a file, each with the place that names it in errors, from line `before` + 1 on;
    a last line cut by a crash is left out. RunError for a line of more than `most` bytes."""
    for number in count(before + 1):
        line = file.readline(most + 1)
        if len(line) > most:
            raise RunError(f"{path}:{number}: the line is longer than {most:,} bytes", REMEDY)
        if not line.endswith(b"\n"):
            return
        yield f"{path}:{number}", line


class GrowingLines:
    """Reads a file of lines that another process may still write."""

    def __init__(self, directory: HeldDirectory, name: str) -> None:
        self._directory, self._name = directory, name
        self._at, self._lines = 0, 0  # where the next one begins, and how many are before it

    def skip(self) -> None:
        """Goes on behind what is there now: each write is a whole line."""
        status = self._directory.status(self._name)
        self._at = status.st_size if status else 0

    def more(self) -> Iterator[dict[str, Any]]:
        """The whole records behind those that were read before. RunError as `read_lines`."""
        most, path = MAX_LINE_BYTES[self._name], str(self._directory / self._name)
        known = None  # a form that was found right
        with self._directory.reading(self._name, MAX_BYTES[self._name]) as file:
            file.seek(self._at)
            for place, line in whole_lines(file, path, most, self._lines):
                self._at, self._lines = self._at + len(line), self._lines + 1
                record = parse(line, place)
                form = _form(line, record) if self._name == SAMPLES else None
                if form is None or form != known:
                    LINE_CHECKS[self._name](record, place)
                    known = form
                yield record


def _form(line: bytes, record: Any) -> tuple[bytes, ...] | None:
    """What decides whether a line of SAMPLES is one, where that does not depend on how large its
    numbers are: all but their digits, and its keys, which may have some. None where there are other
    objects inside, whose keys would have to be looked at, too."""
    if type(record) is not dict or line.count(b"{") > 1:
        return None
    return (
        line.translate(None, b"0123456789"),
        *(key.encode("utf-8", "surrogatepass") for key in record),
    )
