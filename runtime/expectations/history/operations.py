"""Histories: the operations that clients have written down as JSON lines, as Jepsen's are.

Input: the bytes of a file of each instance. Output: `Operation`s, a begin with its end, in the
order in which they began. A line is an object:

    {"process": 0, "type": "invoke", "f": "write", "key": "x", "value": 3, "time": 1500000000}
    {"process": 0, "type": "ok", "f": "write", "key": "x", "value": 3, "time": 1512000000}

`ok` says that it took effect, `fail` that it did not, `info`, or no end at all, that nobody knows.
Processes are of their instance, and do one thing after another; one that begins again without an
end of before leaves that unknown, as a client does that was killed and started anew. HistoryError
names the file and the line of what is wrong. Specified in docs/histories.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import parse

MOST_BYTES = 64 << 20  # of a file
MOST_OPERATIONS = 100_000  # of all files of an expectation
INVOKE, OK, FAIL, INFO = "invoke", "ok", "fail", "info"
TYPES = (INVOKE, OK, FAIL, INFO)
MONOTONIC_BELOW = 10**17  # three years in ns: what is more counts since 1970
_SHOWN = 60  # characters of a value in words
_Process = tuple[str, str]


class HistoryError(Exception):
    """A history that cannot be judged; `str()` says where and why."""


class LongHistoryError(HistoryError):
    """A history of which not all can be looked at."""


def canonical(value: object) -> str:
    """Of a JSON value: equal texts are equal values of one type."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(slots=True)
class Operation:
    """`begin_ns` and `end_ns` are as the client wrote them; without an end it may take effect at
    any later time, or never. `ended` is OK, FAIL or INFO."""

    instance: str
    process: str
    f: str
    key: str  # canonical; '' for none
    value: Any  # of the begin
    begin_ns: int
    place: str  # file and line of the begin
    ended: str = INFO
    result: Any = None  # of the end, if that is OK
    has_result: bool = False
    end_ns: int | None = None
    end_place: str = ""  # file and line of the end

    @property
    def words(self) -> str:
        """`write x 3`, `read x → 3`."""
        asked = "" if self.value is None else f" {_short(self.value)}"
        key = f" {self.key[:_SHOWN]}" if self.key else ""
        if self.ended == INFO:
            return f"{self.f}{key}{asked} → ?"
        told = self.has_result and canonical(self.result) != canonical(self.value)
        return f"{self.f}{key}{asked}" + (f" → {_short(self.result)}" if told else "")


def _short(value: Any) -> str:
    text = canonical(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def read(files: Mapping[str, bytes], path: str) -> list[Operation]:
    """All operations of the files of that name of these instances, by the moment of their begin.
    HistoryError."""
    found: list[Operation] = []
    for instance, data in files.items():
        found += _Reader(instance, path).read(data, MOST_OPERATIONS - len(found))
    clocks = {one.begin_ns < MONOTONIC_BELOW for one in found}
    if len(clocks) > 1:
        late = next(one for one in found if one.begin_ns >= MONOTONIC_BELOW)
        raise HistoryError(f"{late.place}: the time counts since 1970, and that of others does not")
    return sorted(found, key=lambda one: one.begin_ns)


class _Reader:
    """Of one file."""

    def __init__(self, instance: str, path: str) -> None:
        self._instance, self._path = instance, path
        self._open: dict[str, Operation] = {}
        self._at_ns: dict[str, int] = {}

    def read(self, data: bytes, most: int) -> list[Operation]:
        found: list[Operation] = []
        for number, line in _lines(data):
            place = f"{self._instance}'s {self._path}, line {number}"
            record = _object(line, place)
            if record is None:
                continue
            begun = self._line(record, place)
            if begun is not None:
                found.append(begun)
            if len(found) > most:
                raise LongHistoryError(f"there are more than {MOST_OPERATIONS:,} operations")
        return found

    def _line(self, record: Mapping[str, Any], place: str) -> Operation | None:
        """The operation that begins here."""
        process, kind, at_ns = canonical(record["process"]), record["type"], record["time"]
        if at_ns < self._at_ns.get(process, 0):
            raise HistoryError(f"{place}: time goes backwards for process {process}")
        self._at_ns[process] = at_ns
        if kind != INVOKE:
            self._end(record, process, place)
            return None
        key = canonical(record["key"]) if "key" in record else ""
        begun = Operation(
            self._instance, process, record["f"], key, record.get("value"), at_ns, place
        )
        self._open[process] = begun
        return begun

    def _end(self, record: Mapping[str, Any], process: str, place: str) -> None:
        kind, opened = record["type"], self._open.pop(process, None)
        if opened is None:
            raise HistoryError(f"{place}: {kind} of process {process}, which has begun nothing")
        if opened.f != record["f"]:
            raise HistoryError(f"{place}: {kind} of {record['f']}, and {opened.f} has begun")
        if "key" in record and canonical(record["key"]) != opened.key:
            of, begun = _short(record["key"]), opened.key[:_SHOWN] or "no key"
            raise HistoryError(f"{place}: {kind} of {of}, and {opened.f} of {begun} has begun")
        opened.ended, opened.end_place = kind, place
        if kind == OK:
            opened.end_ns = record["time"]
            opened.has_result = "value" in record
            opened.result = record.get("value")


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Whole lines: what a client that was killed had not written to its end is none."""
    whole, _, _ = data.rpartition(b"\n")
    for number, line in enumerate(whole.split(b"\n"), 1):
        if line.strip():
            yield number, line


def _object(line: bytes, place: str) -> dict[str, Any] | None:
    """A line about an operation; None for one of another kind."""
    try:
        record = parse(line, "it", unique=True)
    except RunError as error:
        raise HistoryError(f"{place}: no JSON: {error.message.removeprefix('it is ')}") from None
    if not isinstance(record, dict):
        raise HistoryError(f"{place}: no JSON object")
    if record.get("process") == "nemesis":
        return None  # what Jepsen's faults are called, which are no operations
    for name in ("process", "type", "f", "time"):
        if name not in record:
            raise HistoryError(f"{place}: it has no {name!r}")
    if record["type"] not in TYPES:
        shown = _short(record["type"])
        raise HistoryError(f"{place}: the type {shown} is none of {', '.join(TYPES)}")
    if type(record["f"]) is not str or type(record["process"]) not in (str, int):
        raise HistoryError(f"{place}: 'f' is a text, 'process' a text or a number")
    if type(record["time"]) is not int or record["time"] < 0:
        raise HistoryError(f"{place}: the time {_short(record['time'])} is no whole number of ns")
    return record


def words_of(operations: Sequence[Operation]) -> str:
    """How many there are, of how many processes."""
    processes = {(one.instance, one.process) for one in operations}
    unknown = sum(one.ended == INFO for one in operations)
    more = f", {unknown:,} of them without a known end" if unknown else ""
    return f"{len(operations):,} operations of {len(processes):,} processes{more}"
