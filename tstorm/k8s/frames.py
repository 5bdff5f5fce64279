"""The stream of `tstorm-coordinator follow` taken apart: lines of JSON, some with bytes after them.

A header with "file" is followed by "bytes" raw bytes of that file. What comes from a cluster is
foreign data: lengths and types are checked before they are used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from runtime.errors import RunError

HEADER_BYTES = 1 << 26  # the last message has facts of every node
FRAME_BYTES = 1 << 24


class Frames:
    def __init__(self) -> None:
        self._held = bytearray()
        self._searched = 0  # so many bytes have no line end in them
        self._header: dict[str, Any] | None = None

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
        """What is whole by now: headers, each with its bytes (none for most). RunError."""
        self._held += data
        while True:
            if self._header is None:
                end = self._held.find(b"\n", self._searched)
                if end < 0:
                    self._searched = len(self._held)
                    if self._searched >= HEADER_BYTES:
                        raise _nonsense("a line without an end")
                    return
                self._searched = 0
                self._header = _header(bytes(self._held[:end]))
                del self._held[: end + 1]
            wanted = self._header.get("bytes", 0) if "file" in self._header else 0
            if len(self._held) < wanted:
                return
            header, self._header = self._header, None
            payload = bytes(self._held[:wanted])
            del self._held[:wanted]
            yield header, payload


def _header(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise _nonsense(f"{line[:80]!r}") from error
    if type(found) is not dict:
        raise _nonsense(f"{line[:80]!r}")
    if "file" in found:
        sizes = found.get("offset"), found.get("bytes")
        right = all(type(size) is int and size >= 0 for size in sizes)
        if type(found["file"]) is not str or not right or found["bytes"] > FRAME_BYTES:
            raise _nonsense(f"{line[:80]!r}")
    return found


def _nonsense(what: str) -> RunError:
    return RunError(
        f"the coordinator says what this release does not understand: {what}",
        "use the release that made its image (--agent-image)",
    )
