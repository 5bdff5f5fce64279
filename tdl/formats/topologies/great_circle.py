"""Distances on the earth, the same on each machine: decimal arithmetic, no floats.

Source: the chord between two points of a sphere, and the angle over it; radius 6371 km (IUGG's mean
radius, rounded).
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

RADIUS_M = 6_371_000
_DIGITS = 40
_TERMS = 30
_PI = Decimal("3.14159265358979323846264338327950288419716939937510")


def distance_m(a: tuple[Decimal, Decimal], b: tuple[Decimal, Decimal]) -> int:
    """Metres between two points, each latitude and longitude in degrees."""
    with localcontext(Context(prec=_DIGITS)):
        ax, ay, az = _vector(a)
        bx, by, bz = _vector(b)
        half = ((ax - bx) ** 2 + (ay - by) ** 2 + (az - bz) ** 2).sqrt() / 2
        angle = 2 * _asin(min(half, Decimal(1)))
        return int((angle * RADIUS_M).to_integral_value())


def _vector(point: tuple[Decimal, Decimal]) -> tuple[Decimal, Decimal, Decimal]:
    latitude, longitude = (one * _PI / 180 for one in point)
    return (
        _cos(latitude) * _cos(longitude),
        _cos(latitude) * _sin(longitude),
        _sin(latitude),
    )


def _sin(x: Decimal) -> Decimal:
    total = term = x
    for n in range(1, _TERMS):
        term *= -x * x / ((2 * n) * (2 * n + 1))
        total += term
    return total


def _cos(x: Decimal) -> Decimal:
    total = term = Decimal(1)
    for n in range(1, _TERMS):
        term *= -x * x / ((2 * n - 1) * (2 * n))
        total += term
    return total


def _asin(x: Decimal) -> Decimal:
    """By halves of the angle until the series is short."""
    times = 1
    for _ in range(4):
        x /= (2 * (1 + (1 - x * x).sqrt())).sqrt()
        times *= 2
    total = term = x
    for n in range(1, _TERMS):
        term *= x * x * (2 * n - 1) / (2 * n)
        total += term / (2 * n + 1)
    return total * times
