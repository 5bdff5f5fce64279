"""Lines of a file that may be of any length, in bounded time: all of them, or some all over it.

What is counted in samples.jsonl is cumulative, so lines may be left out: what they had is in the
next line that is read. A file of more than READ_BYTES is read in evenly spread pieces of a line.
Foreign data, as for runtime/rundir/line_files.py; the last line may be cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import REMEDY, parse
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import LINE_CHECKS, MAX_BYTES, MAX_LINE_BYTES

READ_BYTES = 32 << 20  # of one file: some seconds
TAIL_BYTES = 4 << 20


def stride(directory: HeldDirectory, name: str, most_bytes: int = READ_BYTES) -> int:
    """One of so many bytes of the file is read: 1 where all of it is."""
    status = directory.status(name)
    return 1 if status is None else max(-(-status.st_size // most_bytes), 1)


def read_some(
    directory: HeldDirectory, name: str, most_bytes: int = READ_BYTES
) -> Iterator[dict[str, Any]]:
    """The first line, and the others or as many as the bytes allow. RunError."""
    every = stride(directory, name, most_bytes)
    most, path = MAX_LINE_BYTES[name], str(directory / name)
    with directory.reading(name, MAX_BYTES[name]) as file:
        number = 0
        while line := file.readline(most + 1):
            number += 1
            place = f"{path}:{number}" if every == 1 else f"{path}, byte {file.tell() - len(line)}"
            if len(line) > most:
                raise _too_long(place, most)
            if not line.endswith(b"\n"):
                return
            record = parse(line, place)
            LINE_CHECKS[name](record, place)
            yield record
            if every > 1 and number > 1:
                file.seek(len(line) * (every - 1), os.SEEK_CUR)
                rest = file.readline(most + 1)  # of the line in the middle of which that is
                if len(rest) > most:
                    raise _too_long(place, most)


def _too_long(place: str, most: int) -> RunError:
    return RunError(f"{place}: the line is longer than {most:,} bytes", REMEDY)


def last_line(directory: HeldDirectory, name: str) -> dict[str, Any] | None:
    """The last whole one; None if there is none, or it is longer than TAIL_BYTES. RunError."""
    whole = directory.tail(name, TAIL_BYTES).rpartition(b"\n")[0]
    line = whole.rpartition(b"\n")[2]
    size = directory.status(name)
    if not line or (len(line) == len(whole) and size is not None and size.st_size > TAIL_BYTES):
        return None
    record = parse(line, f"the last line of {directory / name}")
    LINE_CHECKS[name](record, str(directory / name))
    return record if isinstance(record, dict) else None
