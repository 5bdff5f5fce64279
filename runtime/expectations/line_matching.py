"""Finds lines that have a regular expression in them, within a bounded time.

The expression comes with a plan and the lines from programs, so both may be anybody's, and there
are expressions that take years for one line. So a process of its own matches (matcher.py), which is
killed if a batch takes it longer than BATCH_SECONDS, or all of them WHOLE_SECONDS. A plain text is
looked for here. In a line that is cut an expression may mean what is not there (`$`): no match
there counts, but that of a plain text. One that its program has not ended is in doubt where an
expression is in it: nobody knows what the whole line would have been.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from runtime.errors import RunError
from runtime.results.loglines import LogRecord
from runtime.system import process_limits

BATCH_LINES = 500
BATCH_SECONDS, WHOLE_SECONDS = 10.0, 120.0
_PROGRAM = Path(__file__).with_name("matcher.py")
_ANSWER_BYTES = 1 << 16
_Row = tuple[int, str | None, bool]  # a position, the first group, and whether it has the second
_SPECIAL = frozenset(r"\.^$*+?{}[]|()")


def is_plain(pattern: str) -> bool:
    """Whether the expression is a text that stands for itself."""
    return _SPECIAL.isdisjoint(pattern)


class TooLongError(Exception):
    """The expression took too long."""


class MatchedRecord(NamedTuple):
    """A line with a pattern in it. `taken`: what the first group of the pattern has taken, or what
    stands at a key of the JSON in it (None: nothing); `has`: whether a second pattern is in the
    line, or in what stands there. `doubt`: the program has not ended the line, and the rest of it
    might have changed this."""

    line: LogRecord
    taken: str | None
    has: bool
    doubt: bool = False


def matched(
    pattern: str, lines: Iterable[LogRecord], key: str = "", has: str = ""
) -> Iterator[MatchedRecord]:
    """Those that have the pattern in them, in their order. TooLongError; RunError if no process can
    be started."""
    if not key and is_plain(pattern + has):
        for line in lines:
            if pattern in line.text:
                found = has in line.text
                yield MatchedRecord(line, None, found, line.torn_ns is not None and not found)
        return
    source = (line for line in lines if not line.cut)
    with _Matcher({"pattern": pattern, "key": key, "has": has}) as matcher:
        while batch := list(islice(source, BATCH_LINES)):
            for number, taken, fits in matcher.find([line.text for line in batch]):
                line = batch[number]
                yield MatchedRecord(line, taken, fits, line.torn_ns is not None)


class _Matcher:
    def __init__(self, wanted: Mapping[str, str]) -> None:
        self._left_s = WHOLE_SECONDS
        self._process = process_limits.start(
            "the search in logs",
            [sys.executable, "-I", "-S", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._send(json.dumps(wanted).encode() + b"\n")

    def __enter__(self) -> _Matcher:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def find(self, texts: list[str]) -> list[_Row]:
        data = json.dumps(texts).encode()
        began = time.monotonic()
        self._send(b"%d\n" % len(data) + data)
        answer = self._answer(began + min(BATCH_SECONDS, self._left_s))
        self._left_s -= time.monotonic() - began
        found: list[_Row] = json.loads(answer)
        return found

    def _send(self, data: bytes) -> None:
        """It reads all before it begins, so this never waits for a match."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RunError("the search in logs ended before it had an answer") from None

    def _answer(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        found, descriptor = b"", self._process.stdout.fileno()
        while not found.endswith(b"\n"):
            left_s = max(deadline - time.monotonic(), 0)
            if not select.select([descriptor], [], [], left_s)[0]:
                raise TooLongError
            data = os.read(descriptor, _ANSWER_BYTES)
            if not data:
                raise RunError("the search in logs ended before it had an answer")
            found += data
        return found
