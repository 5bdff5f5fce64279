"""Files that grow while a run goes on: one JSON object a line, each written at once.

A line is one write(2), so that whatever kills the driver leaves whole lines behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

EVENTS = "events.jsonl"
SAMPLES = "samples.jsonl"

OnError = Callable[[str], None]


def encode(record: Mapping[str, object]) -> bytes:
    """Canonical bytes of one record, with its newline."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


class LineFile:
    """Appends to a file of its own, made new.

    What cannot be written (a full disk) is told once, to `on_error` in words; nothing is written
    after that, so that a line which was cut stays the last one.
    """

    def __init__(self, path: Path, on_error: OnError) -> None:
        self._path = path
        self._on_error = on_error
        self._failed = False
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o644)

    def append(self, record: Mapping[str, object]) -> None:
        self.append_bytes(encode(record))

    def append_bytes(self, line: bytes) -> None:
        view = memoryview(line)
        try:
            while view and not self._failed:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            self._failed = True
            self._on_error(f"cannot write {self._path}: {error.strerror}")

    def close(self) -> None:
        os.close(self._descriptor)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole record of a file; a last line cut by a crash is left out. OSError if missing."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)
