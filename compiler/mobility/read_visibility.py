"""Visibility graphs: JSON with a record of each node for each time, and whom it sees then.

Records are decoded one by one, so that a large file needs little more memory than its text. What
the format is, docs/mobility.md says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NoReturn

from compiler.mobility.tracks import UNITS, BadMotion, Tracks, check_records, length, seconds
from tdl.bounds import MAX_DISTANCE_MM

MOST_NESTED = 32
_SPACE = re.compile(r"[ \t\n\r]*")
_TOP, _NODES, _DURATION = "MobilecomScnDef", "MobileNode", "simDuration"
_SEES = {1: True, 0: False, "true": True, "false": False, "1": True, "0": False}
_HINT = 'a visibility graph is {"MobilecomScnDef": {"simDuration": …, "MobileNodeDef": […]}}'
_POSITION = ("PosX", "PosY", "PosZ")


class _Number(str):
    """A number with a point or an exponent, as it is written."""

    __slots__ = ()


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


_DECODER = json.JSONDecoder(parse_float=_Number, parse_constant=_refuse)


class _Record:
    """Of one node at one time."""

    __slots__ = ("at_ns", "node", "offset", "sees")

    def __init__(self, at_ns: int, node: int, offset: int, sees: frozenset[int]) -> None:
        self.at_ns, self.node, self.offset, self.sees = at_ns, node, offset, sees


class _Reader:
    def __init__(self, text: str, scale: int) -> None:
        self._text, self._scale = text, scale
        self._tracks = Tracks(holds=True)
        self._ids: dict[int, int] = {}  # node by nodeID
        self._records: list[_Record] = []
        self._graphs: dict[frozenset[int], frozenset[int]] = {}  # each once
        self._duration_ns: int | None = None

    # --- places ---

    def fail(self, offset: int, why: str, hint: str = "", code: str = "TS0191") -> NoReturn:
        raise BadMotion(*self._at(offset), why, hint, code)

    def _at(self, offset: int) -> tuple[int, int]:
        before = self._text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def _key_at(self, offset: int, key: str) -> int:
        found = self._text.find(f'"{key}"', offset)
        return offset if found < 0 else found

    # --- JSON ---

    def _skip(self, pos: int) -> int:
        found = _SPACE.match(self._text, pos)
        return found.end() if found else pos

    def _value(self, pos: int) -> tuple[Any, int]:
        try:
            return _DECODER.raw_decode(self._text, pos)
        except json.JSONDecodeError as error:
            self.fail(error.pos, f"is not JSON: {error.msg.lower()}")
        except RecursionError:
            self.fail(pos, f"is nested deeper than {MOST_NESTED}", _HINT)
        except ValueError:
            self.fail(pos, "has a number that is none", "NaN, Infinity and endless digits are not")

    def _object(self, pos: int, readers: dict[str, Callable[[int], int]], hint: str) -> int:
        """Reads the members of the object at a place, each by who reads its key; where it ends."""
        if self._text[pos : pos + 1] != "{":
            self.fail(pos, "has no object here", hint)
        start, known = self._skip(pos + 1), set[str]()
        pos = start
        while self._text[pos : pos + 1] != "}":
            if pos != start:
                pos = self._comma(pos)
            key, after = self._value(pos)
            after = self._skip(after)
            if not isinstance(key, str) or self._text[after : after + 1] != ":":
                self.fail(pos, "is not JSON: there is no key here")
            word = _NODES if key.startswith(_NODES) else key
            if word not in readers:
                self.fail(pos, "has a key that no visibility graph has", hint)
            if word in known:
                self.fail(pos, f"has {word!r} twice", "keep one of them")
            known.add(word)
            pos = self._skip(readers[word](self._skip(after + 1)))
        return pos + 1

    def _comma(self, pos: int) -> int:
        if self._text[pos : pos + 1] != ",":
            self.fail(pos, "is not JSON: there is no comma here")
        return self._skip(pos + 1)

    # --- the file ---

    def read(self) -> Tracks:
        end = self._object(self._skip(0), {_TOP: self._scenario}, _HINT)
        if self._skip(end) < len(self._text):
            self.fail(self._skip(end), "goes on after its end", "one file has one object")
        if not self._records:
            self.fail(0, f"has no {_NODES}Def with records in it", _HINT)
        return self._told()

    def _scenario(self, pos: int) -> int:
        hint = f"it has {_DURATION} and {_NODES}Def"
        return self._object(pos, {_DURATION: self._duration, _NODES: self._nodes}, hint)

    def _duration(self, pos: int) -> int:
        value, end = self._value(pos)
        try:
            self._duration_ns = seconds(str(value))
        except ValueError:
            self.fail(pos, f"has a {_DURATION} that is no time in seconds")
        if isinstance(value, bool) or not self._duration_ns:
            self.fail(pos, f"has a {_DURATION} that is no time in seconds")
        return end

    def _nodes(self, pos: int) -> int:
        text = self._text
        if text[pos : pos + 1] != "[":
            self.fail(pos, "has no list of records here", _HINT)
        start = pos = self._skip(pos + 1)
        while text[pos : pos + 1] != "]":
            if pos != start:
                pos = self._comma(pos)
            record, end = self._value(pos)
            self._record(record, pos)
            pos = self._skip(end)
        return pos + 1

    def _record(self, found: Any, offset: int) -> None:
        if type(found) is not dict:
            self.fail(offset, "has a record that is no object", _HINT)
        node = self._node(found, offset)
        at = self._number(found, "Time", offset, seconds)
        x, y, z = (self._number(found, key, offset, self._length) for key in _POSITION)
        sees = self._graph(found.get("visibilityGraph", []), offset)
        self._tracks.points[node].append((at, (x, y, z)))
        self._records.append(_Record(at, node, offset, sees))
        check_records(len(self._records))

    def _length(self, text: str) -> int:
        return length(text, self._scale)

    def _number(
        self, found: dict[str, Any], key: str, offset: int, read: Callable[[str], int]
    ) -> int:
        value = found.get(key)
        with suppress(ValueError):
            if type(value) in (int, _Number):
                return read(str(value))
        if key not in found:
            self.fail(offset, f"has a record without {key}", _HINT)
        most = f", of {MAX_DISTANCE_MM // 10**6:,} km at most"
        what = "a number of seconds, from 0 on" if key == "Time" else f"a number{most}"
        place = self._at(self._key_at(offset, key))
        raise BadMotion(*place, f"has a {key} that cannot be", f"it is {what}")

    def _node(self, found: dict[str, Any], offset: int) -> int:
        name, number = found.get("nodeName"), found.get("nodeID")
        if type(name) is not str or not name or type(number) is not int:
            self.fail(offset, "has a record without nodeName, a text, and nodeID, a whole number")
        node = self._ids.get(number)
        if node is None:
            if name in self._tracks.names:
                self.fail(offset, "has two ids of one name", "each node has one id")
            node = self._ids[number] = self._tracks.node(name)
        elif self._tracks.names[node] != name:
            self.fail(offset, "has two names of one id", "each node has one name")
        return node

    def _graph(self, found: Any, offset: int) -> frozenset[int]:
        """The ids of whom it sees."""
        place = self._key_at(offset, "visibilityGraph")
        if type(found) is not list:
            self.fail(place, "has a visibilityGraph that is no list")
        seen: list[int] = []
        listed: set[int] = set()
        for one in found:
            sees = one.get("LoS") if type(one) is dict else None
            sees = sees.lower() if isinstance(sees, str) else sees
            sees = _SEES.get(sees) if isinstance(sees, str | int) else None
            if sees is None or type(one.get("nodeID")) is not int:
                self.fail(place, "has a visibilityGraph without nodeID or LoS, true or false")
            if one["nodeID"] in listed:
                self.fail(place, "has a visibilityGraph with one node twice", "keep one of them")
            listed.add(one["nodeID"])
            if sees:
                seen.append(one["nodeID"])
        graph = frozenset(seen)
        return self._graphs.setdefault(graph, graph)

    # --- what it comes to ---

    def _told(self) -> Tracks:
        tracks = self._tracks
        for record in self._records:
            for number in record.sees:
                if number not in self._ids:
                    self.fail(record.offset, "sees a node of which there is no record")
        self._sort()
        times = sorted({record.at_ns for record in self._records})
        tracks.quits = self._duration_ns is not None
        tracks.end_ns = times[-1] if self._duration_ns is None else self._duration_ns
        missing = len(times) * len(tracks.names) - len(self._records)
        if missing:
            node = next(i for i, track in enumerate(tracks.points) if len(track) < len(times))
            count = "1 record is" if missing == 1 else f"{missing:,} records are"
            what = f"{count} missing, the first of them of {tracks.names[node]!r:.60}"
            tracks.warnings.append(("TS0981", what, "a node stands where it was"))
        tracks.sights = list(self._sights())
        return tracks

    def _sort(self) -> None:
        last: dict[int, _Record] = {}
        unsorted = None
        for record in self._records:
            before = last.get(record.node)
            if before is not None and record.at_ns < before.at_ns:
                unsorted = unsorted or record
            last[record.node] = record
        self._records.sort(key=lambda one: one.at_ns)
        last.clear()
        for record in self._records:
            before = last.get(record.node)
            if before is not None and before.at_ns == record.at_ns:
                self.fail(record.offset, "has two records of one node for one time")
            last[record.node] = record
        if unsorted is not None:
            for track in self._tracks.points:
                track.sort()
            line, column = self._at(unsorted.offset)
            what = f"line {line}, column {column} is earlier than the record before it"
            self._tracks.warnings.append(("TS0980", what, "sort the file by Time"))

    def _sights(self) -> Iterator[tuple[int, frozenset[tuple[int, int]]]]:
        now: dict[int, _Record] = {}
        pairs: frozenset[tuple[int, int]] | None = None
        told = False
        at, number = 0, 0
        while number < len(self._records):
            at = self._records[number].at_ns
            while number < len(self._records) and self._records[number].at_ns == at:
                now[self._records[number].node] = self._records[number]
                number += 1
            ways = {(a, self._ids[b]) for a, record in now.items() for b in record.sees}
            found = frozenset((a, b) for a, b in ways if a < b and (b, a) in ways)
            if not told:
                told = self._tell_one_sided(now, ways)
            if found != pairs:
                yield at, found
            pairs = found

    def _tell_one_sided(self, now: dict[int, _Record], ways: set[tuple[int, int]]) -> bool:
        one = min(((a, b) for a, b in ways if a != b and (b, a) not in ways), default=None)
        if one is None:
            return False
        names = [self._tracks.names[node] for node in one]
        places = ["line {}, column {}".format(*self._at(now[a].offset)) for a in one if a in now]
        message = f"{names[0]!r:.60} sees {names[1]!r:.60}, which does not ({', '.join(places)})"
        hint = "LoS is true on both sides, or on none"
        self._tracks.warnings.append(("TS0982", message, hint))
        return True


def read(text: str, unit: str | None) -> Tracks:
    """Raises BadMotion."""
    return _Reader(text, UNITS[unit or "km"]).read()
