"""Latitude, longitude and height to mm from the centre of the earth, on the ellipsoid of WGS 84.

Sines are series of integers with 30 digits behind the point, so every machine finds the same mm.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

from compiler.mobility.decimals import divided
from compiler.plan.parts.motion import Point

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
