"""Assertions that programs have written by an SDK of the field (Antithesis' for C++, Go, Java,
Python, Rust, and what else writes their format), as JSON lines.

Input: files, which anybody may have written. Output: for each assertion whether it was true, false
or not reached. A line is an object with one key, which says what it is about:

    {"antithesis_assert": {"assert_type": "sometimes", "message": "leader changed", "hit": true,
     "must_hit": true, "condition": true, "location": {"file": "raft.go", "begin_line": 7}, …}}

`hit: false` only declares an assertion. The SDKs write the first `true` and the first `false` of
each, and no time. One with another message, or of another kind, is another assertion, wherever it
stands. The display type follows from `assert_type` and `must_hit`, and is not looked at; so is
`condition` of a reachability. The format: docs/assertions.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

ALWAYS, SOMETIMES, REACHABILITY = "always", "sometimes", "reachability"
TYPES = (ALWAYS, SOMETIMES, REACHABILITY)
MOST_ASSERTIONS = 5000
LINE_BYTES = 1 << 20
_SKIPPED_BYTES = 1 << 16
_SHOWN = 200  # characters of details
_ASSERT = "antithesis_assert"
_PREFIX = "antithesis_"
_KNOWN = ("antithesis_sdk", "antithesis_setup", "antithesis_guidance")  # which judge nothing
_MOST_NOTES = 20
_Key = tuple[str, bool, str]


@dataclass(frozen=True, slots=True)
class SdkRecord:
    """Of an assertion that was reached. `place`: file and line of the record; `details` are JSON,
    cut."""

    instance: str
    place: str
    source: str  # of the assertion: `raft.go:7 in elect`, '' if that is not said
    details: str


@dataclass(slots=True)
class SdkAssertion:
    """`true` and `false`: the first record of each; both None where it was not reached."""

    kind: str  # one of TYPES
    must_hit: bool
    message: str
    true: SdkRecord | None = None
    false: SdkRecord | None = None

    @property
    def name(self) -> str:
        word = self.kind
        if word == REACHABILITY:
            word = "reachable" if self.must_hit else "unreachable"
        elif word == ALWAYS and not self.must_hit:
            word = "always or unreachable"
        return f"{word} {json.dumps(self.message, ensure_ascii=False)}"

    @property
    def reached(self) -> SdkRecord | None:
        return self.true or self.false

    @property
    def violated(self) -> SdkRecord | None:
        """What it must not be, whatever other runs do."""
        if self.kind == ALWAYS:
            return self.false
        return self.reached if self.kind == REACHABILITY and not self.must_hit else None

    @property
    def waits_for(self) -> bool:
        """Whether some run has to come to it."""
        return self.must_hit or self.kind == SOMETIMES

    @property
    def happened(self) -> bool:
        """Whether this one did."""
        return (self.true if self.kind == SOMETIMES else self.reached) is not None


@dataclass(slots=True)
class SdkRecords:
    """What files say together. `problems`: lines that could not be read, in words, which may have
    been anything; `notes`: what was left out, and is no assertion."""

    found: dict[_Key, SdkAssertion] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def read(self, file: BinaryIO, instance: str, name: str) -> None:
        """All lines of a file. OSError."""
        place = f"{instance}'s {name}"
        for number, line, whole in _lines(file):
            if line is None:
                self._problem(f"{place}, line {number}: more than {LINE_BYTES:,} bytes")
            elif not whole and _parsed(line) is None:
                self._note(f"the last line of {place} was not written to its end and is left out")
            elif line.strip():
                self._line(line, instance, f"{place}, line {number}")

    def _line(self, line: bytes, instance: str, place: str) -> None:
        record = _parsed(line)
        if record is None:
            self._problem(f"{place}: no JSON")
            return
        if not isinstance(record, dict):
            self._problem(f"{place}: no JSON object")
            return
        for key, value in record.items():
            if key == _ASSERT:
                self._assertion(value, instance, place)
            elif key.startswith(_PREFIX) and key not in _KNOWN:
                self._note(f"records {key[:60]!r} are not known here ({place})", once=key[:60])

    def _assertion(self, value: Any, instance: str, place: str) -> None:
        if not isinstance(value, dict):
            self._problem(f"{place}: the assertion is no JSON object")
            return
        kind, message = value.get("assert_type"), value.get("message")
        if kind not in TYPES:
            shown = _short(kind)
            self._problem(f"{place}: the assert_type {shown} is none of {', '.join(TYPES)}")
            return
        for name in ("hit", "must_hit", *(["condition"] if value.get("hit") is True else [])):
            if not isinstance(value.get(name), bool):
                self._problem(f"{place}: '{name}' is neither true nor false")
                return
        if not isinstance(message, str):
            self._problem(f"{place}: 'message' is no text")
            return
        key = (kind, value["must_hit"], message)
        known = self.found.get(key)
        if known is None:
            if len(self.found) >= MOST_ASSERTIONS:
                self._problem(f"{place}: more than {MOST_ASSERTIONS:,} assertions", once="more")
                return
            known = self.found[key] = SdkAssertion(*key)
        if value["hit"]:
            self._reached(known, value, instance, place)

    def _reached(self, known: SdkAssertion, value: Any, instance: str, place: str) -> None:
        if (known.true if value["condition"] else known.false) is not None:
            return
        details = value.get("details")
        told = SdkRecord(
            instance, place, _source(value.get("location")), _short(details) if details else ""
        )
        if value["condition"]:
            known.true = told
        else:
            known.false = told

    def _problem(self, text: str, once: str = "") -> None:
        _add(self.problems, text, once)

    def _note(self, text: str, once: str = "") -> None:
        _add(self.notes, text, once)


def _add(texts: list[str], text: str, once: str) -> None:
    """As many as anybody reads; `once`: a part of a text of which one is enough."""
    if len(texts) < _MOST_NOTES and not (once and any(once in one for one in texts)):
        texts.append(text)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None, bool]]:
    """Number, text (None: too long to be looked at) and whether it has an end: who writes a single
    line may leave that out, and who was killed."""
    number = 0
    while line := file.readline(LINE_BYTES + 1):
        number += 1
        if line.endswith(b"\n"):
            yield number, line, True
        elif len(line) <= LINE_BYTES:
            yield number, line, False
        else:
            while rest := file.readline(_SKIPPED_BYTES):
                if rest.endswith(b"\n"):
                    break
            yield number, None, True


def _parsed(line: bytes) -> Any:
    """None if it is no JSON, or null."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _source(location: Any) -> str:
    if not isinstance(location, dict) or not isinstance(location.get("file"), str):
        return ""
    line, function = location.get("begin_line"), location.get("function")
    where: str = location["file"][:_SHOWN]
    where += f":{line}" if type(line) is int and 0 < line < 10**9 else ""
    return where + (f" in {function[:_SHOWN]}" if function and isinstance(function, str) else "")


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
