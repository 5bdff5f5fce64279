"""GPX: each track is a node, its points have latitude, longitude, height and time.

Times count from the first one of the file. All points of a track have a height, or none has: then
it is 0. Documents with a DOCTYPE are refused: what they declare
can grow without end.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from math import isqrt
from xml.parsers import expat

from compiler.mobility.tracks import BadMotion, Tracks, check_records, divided, length, scaled
from compiler.plan.parts.motion import Point

# Latitude, longitude and height to mm from the centre of the earth, on the ellipsoid of WGS 84.
#
# Sines are series of integers with 30 digits, so every machine finds the same mm.

_ONE = 10**30
_PI = 3_141592653589793238462643383279
_NANO = 10**9  # of a degree
_AXIS_MM = 6_378_137_000
_FLATTENING = (1_000_000_000, 298_257_223_563)  # f
_SQUASH = divided(
    (2 * _FLATTENING[1] - _FLATTENING[0]) * _FLATTENING[0] * _ONE, _FLATTENING[1] ** 2
)


def centred(latitude: int, longitude: int, height_mm: int) -> Point:
    """Of degrees in parts of 10^-9: x to longitude 0, y to longitude 90, z to the north pole."""
    sin_lat, cos_lat = _sine_cosine(latitude)
    sin_lon, cos_lon = _sine_cosine(longitude)
    root = isqrt((_ONE - _SQUASH * sin_lat**2 // _ONE**2) * _ONE)
    across = _AXIS_MM * _ONE * 10**9 // root  # in 10^-9 mm
    out = across + height_mm * 10**9
    up = across - across * _SQUASH // _ONE + height_mm * 10**9
    flat = out * cos_lat // _ONE
    x, y = (divided(flat * way, _ONE * 10**9) for way in (cos_lon, sin_lon))
    return x, y, divided(up * sin_lat, _ONE * 10**9)


@lru_cache(4096)
def _sine_cosine(degrees: int) -> tuple[int, int]:
    angle = degrees * _PI // (180 * _NANO)
    return _series(angle, angle, 1), _series(angle, _ONE, 0)


def _series(angle: int, term: int, first: int) -> int:
    """x − x³/3! + … or 1 − x²/2! + …"""
    total, number = 0, first
    while term:
        total += term
        number += 2
        term = -((term * angle // _ONE) * angle // (_ONE * number * (number - 1)))
        if abs(term) == 1:
            break
    return total


_HINT = "a GPX file has <trk> with <trkpt lat=… lon=…> that have a <time>"
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8})(\.[0-9]{1,18})?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_HALF, _QUARTER = 180 * 10**9, 90 * 10**9


class _Reader:
    def __init__(self) -> None:
        self.tracks = Tracks()
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = lambda *_: self._fail("has a DOCTYPE")
        self._parser.buffer_text = True
        self._path: list[str] = []
        self._words: list[str] = []
        self._name, self._node, self._count = "", -1, 0
        self._place = (0, 0)
        self._at: int | None = None
        self._height: int | None = None
        self._has_heights: dict[int, bool] = {}  # by node

    def read(self, data: bytes) -> Tracks:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            why = f"is not XML: {expat.errors.messages[error.code]}"
            raise BadMotion(error.lineno, error.offset + 1, why, _HINT) from None
        self._from_first()
        return self.tracks

    def _fail(self, why: str) -> None:
        at = self._parser
        raise BadMotion(at.CurrentLineNumber, at.CurrentColumnNumber + 1, why, _HINT)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag.rpartition(" ")[2])
        self._words = []
        if len(self._path) == 1 and self._path != ["gpx"]:
            self._fail("is no GPX")
        if self._path[1:] == ["trk"]:
            self._name, self._node = "", -1
        elif self._path[-1] == "trkpt":
            self._place = (
                self._degrees(attributes, "lat", _QUARTER),
                self._degrees(attributes, "lon", _HALF),
            )
            self._at, self._height = None, None

    def _degrees(self, attributes: dict[str, str], word: str, most: int) -> int:
        try:
            value = scaled(attributes.get(word, ""), 10**9)
        except ValueError:
            value = most + 1
        if abs(value) > most:
            self._fail(f"has a point without a {word} in degrees")
        return value

    def _text(self, data: str) -> None:
        if self._path[-1] in ("name", "ele", "time"):
            self._words.append(data)

    def _end(self, _tag: str) -> None:
        word, said = self._path.pop(), "".join(self._words).strip()
        self._words = []
        parent = self._path[-1] if self._path else ""
        if parent == "trk" and word == "name":
            self._name = said
        elif parent == "trkpt" and word == "ele":
            self._height = self._metres(said)
        elif parent == "trkpt" and word == "time":
            self._at = self._time(said)
        elif word == "trkpt":
            self._point()

    def _metres(self, said: str) -> int:
        try:
            return length(said, 1000)
        except ValueError:
            self._fail("has a height that is no number of metres")
            return 0

    def _time(self, said: str) -> int:
        """In ns since 1970."""
        match = _TIME.fullmatch(said)
        try:
            day = datetime.fromisoformat((match[1] + (match[3] or "Z")) if match else "")
        except ValueError:
            self._fail("has a time that is not such as 2026-01-31T12:00:00Z")
            return 0
        since = day - datetime(1970, 1, 1, tzinfo=UTC)
        part = scaled(f"0{match[2]}", 10**9) if match and match[2] else 0
        return (since.days * 86_400 + since.seconds) * 10**9 + part

    def _point(self) -> None:
        if self._at is None:
            self._fail("has a point without a time")
            return
        if self._node < 0:
            self._node = self.tracks.node(self._name or f"node-{len(self.tracks.names)}")
        self._count += 1
        check_records(self._count)
        has_height = self._height is not None
        if self._has_heights.setdefault(self._node, has_height) != has_height:
            self._fail("has points with a height (<ele>) and without one in a track")
        place: Point = centred(*self._place, self._height or 0)
        self.tracks.points[self._node].append((self._at, place))

    def _from_first(self) -> None:
        tracks = self.tracks
        first = min((at for track in tracks.points for at, _ in track), default=0)
        for number, track in enumerate(tracks.points):
            ordered = sorted(track, key=lambda one: one[0])
            if ordered != track:
                what = f"the points of {tracks.names[number]!r:.60} are not in order of time"
                tracks.warnings.append(("TS0980", what, "sort them"))
            tracks.points[number] = [(at - first, place) for at, place in ordered]
            tracks.end_ns = max(tracks.end_ns, tracks.points[number][-1][0])


def read(data: bytes, unit: str | None) -> Tracks:  # noqa: ARG001 - it has its own units
    """Raises BadMotion."""
    return _Reader().read(data)
