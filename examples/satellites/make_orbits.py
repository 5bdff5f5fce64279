"""Makes orbits.json: twelve satellites in three planes for 120 s, each time with whom they see.

    python make_orbits.py > orbits.json

Orbits are circles, ten times as fast as real ones, so that much changes in two minutes. Two
satellites see each other where the earth and 100 km of air are not between them.
"""

import json
import math

EARTH_KM, AIR_KM = 6371, 100
GRAVITY = 398_600.4418  # km³/s²
PLANES, IN_PLANE, SECONDS, HASTE = 3, 4, 120, 10


def place(number: int, second: int) -> tuple[float, float, float]:
    """In km from the centre of the earth."""
    plane, of_plane = divmod(number, IN_PLANE)
    radius = EARTH_KM + 1200 + 400 * plane
    angle = 2 * math.pi * of_plane / IN_PLANE + plane
    angle += HASTE * second * math.sqrt(GRAVITY / radius**3)
    tilt, turn = math.radians(55 + 10 * plane), 2 * math.pi * plane / PLANES
    x, along = radius * math.cos(angle), radius * math.sin(angle)
    y, z = along * math.cos(tilt), along * math.sin(tilt)
    return (
        x * math.cos(turn) - y * math.sin(turn),
        x * math.sin(turn) + y * math.cos(turn),
        z,
    )


def sees(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    way = [b - a for a, b in zip(one, two, strict=True)]
    length = sum(d * d for d in way)
    share = max(0.0, min(1.0, -sum(a * d for a, d in zip(one, way, strict=True)) / length))
    nearest = math.sqrt(sum((a + share * d) ** 2 for a, d in zip(one, way, strict=True)))
    return nearest > EARTH_KM + AIR_KM


def main() -> None:
    count = PLANES * IN_PLANE
    print(f'{{"MobilecomScnDef": {{"simDuration": {SECONDS}.0, "MobileNodeDef": [')
    for second in range(SECONDS):
        places = [place(number, second) for number in range(count)]
        for number, here in enumerate(places):
            graph = [
                {"nodeID": 100 + other, "LoS": True}
                for other, there in enumerate(places)
                if other != number and sees(here, there)
            ]
            axes = (f'"Pos{axis}": {value:.6f}' for axis, value in zip("XYZ", here, strict=True))
            end = "" if (second, number) == (SECONDS - 1, count - 1) else ","
            print(
                f'{{"nodeName": "S{number}", "nodeID": {100 + number}, {", ".join(axes)}, '
                f'"Time": {second}.0, "visibilityGraph": {json.dumps(graph)}}}{end}'
            )
    print("]}}")


main()
