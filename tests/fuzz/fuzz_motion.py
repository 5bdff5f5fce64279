"""Mutated files of movement, of every format, and tables by distance: each ends in places of
nodes, and in who reaches whom, or in an error at a place of the file, soon.

    python -m tests.fuzz.fuzz_motion [--seconds N] [--seed N]

Bytes, words and lines of small sound files are changed, repeated and put in from others, and whole
files are replaced by bombs. Prints the seed of the first failure and exits 1.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import time
from functools import cache
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from compiler.mobility import distance_tables, sight
from compiler.mobility.motion_formats import tracks_of
from compiler.mobility.tracks import BadMotion, sample
from compiler.plan.parts import motion
from compiler.plan.parts.motion import Motion
from tdl import ast
from tests.fuzz.seeds import Words, mutate_bytes, run

SLOW_SECONDS = 10.0  # of a processor
NOWHERE = ast.Span(1, 1, 1, 2)
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BONNMOTION = b"0 0 0 10 100 50 20.5 0 0\n0 7 7 3 -1e2 8\n"
GPX = b"""<?xml version="1.0"?>
<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><name>bus 7</name><trkseg>
<trkpt lat="0" lon="0"><ele>0</ele><time>2026-01-31T12:00:00Z</time></trkpt>
<trkpt lat="0" lon="90"><ele>1.5</ele><time>2026-01-31T13:00:04.5+01:00</time></trkpt>
</trkseg></trk><trk><trkseg><trkpt lat="51.5" lon="-0.1"><time>2026-01-31T12:00:01Z</time></trkpt>
</trkseg></trk></gpx>"""
BOMBS = (
    b"[" * 200_000,
    b'{"MobilecomScnDef": {"MobileNodeDef": [' + b"[" * 100_000,
    b'{"a":' * 200_000,
    b'<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;&b;">]><gpx>&c;</gpx>',
    b"<gpx>" * 100_000,
    b"0 1 2 " * 200_000,
    b"time,node,x,y\n" + b"".join(b"0,n%d,1,1\n" % node for node in range(2_000)),
    b"time,node,x,y\n0,a,1,1\n99999999,a,2,2\n",
    b'$ns_ at 1e9 "$node_(0) setdest 1 2 3"\n' * 10_000,
    gzip.compress(b"0 1 2 " * 1_000_000),
    b"\xff\xfe" * 50_000,
    b"," * 300_000,
)


@cache
def seeds() -> tuple[tuple[str, bytes], ...]:
    """Sound files, by the format that reads them; '' reads tables by distance."""
    record = json.loads((EXAMPLES / "satellites/orbits.json").read_text())
    record["MobilecomScnDef"]["MobileNodeDef"] = record["MobilecomScnDef"]["MobileNodeDef"][:36]
    return (
        ("visibility", json.dumps(record).encode()),
        ("setdest", (EXAMPLES / "vehicles/cars.tcl").read_bytes()),
        ("bonnmotion", BONNMOTION),
        ("bonnmotion", gzip.compress(BONNMOTION, mtime=0)),
        ("csv", b"time,node,x,y,z\n0,a,1,1,0\n0,b,1,1,7\n1.5,b,2,-2e3,0\n2s,a,0,0,0\n"),
        ("gpx", GPX),
        ("", (EXAMPLES / "vehicles/radio.csv").read_bytes()),
        ("", (EXAMPLES / "vehicles/loss.csv").read_bytes()),
    )


@cache
def pieces() -> tuple[bytes, ...]:
    words = {word for _, data in seeds() for word in data.split()}
    lines = {line + b"\n" for _, data in seeds() for line in data.splitlines()}
    return (*sorted(words), *sorted(lines), b"1e999", b"NaN", b"-0", b"9" * 400, b"\xef\xbb\xbf")


def mutant(rnd: random.Random) -> tuple[str, bytes]:
    kind, data = rnd.choice(seeds())
    if rnd.randrange(12) == 0:
        return kind, rnd.choice(BOMBS)
    if rnd.randrange(12) == 0:  # what another format reads
        return kind, rnd.choice(seeds())[1]
    for _ in range(rnd.choice([1, 1, 2, 3])):
        data = mutate_bytes(rnd, data, pieces())
    return kind, data


def attempt(number: int) -> bool:
    """Whether the file was read."""
    rnd = random.Random(number)
    kind, data = mutant(rnd)
    every_ns = rnd.choice([None, 10**9, 10**8])
    started = time.process_time()
    try:
        if kind:
            wanted = ast.Mobility("file", NOWHERE, NOWHERE, kind)
            _check(sample(tracks_of(data, wanted), every_ns), rnd)
        else:
            rnd.choice([distance_tables.rates, distance_tables.losses])(data)
        read = True
    except BadMotion as bad:
        assert bad.why.isprintable(), bad.why
        assert 0 <= bad.line <= data.count(b"\n") + data.count(b"\r") + 2, bad.line
        read = False
    took = time.process_time() - started
    assert took < SLOW_SECONDS, f"{took:.1f} s of a processor for {len(data):,} bytes of {kind}"
    return read


def _check(found: Motion, rnd: random.Random) -> None:
    assert motion.decode(found.text) == found
    if len(found.times) * len(found.places) ** 2 > 100_000:
        return  # sound, and more than a fuzzer waits for
    most = rnd.choice([None, 1, 3])
    bounds = [rnd.choice([None, 10**6, 10**9]) for _ in range(2)]
    reached = list(sight.seen(found, *bounds))
    linked = list(sight.nearest(reached, len(found.places), most))
    assert len(linked) == len(found.times)
    for pairs, links in zip(reached, linked, strict=True):
        assert set(links) <= {(pair.a, pair.b) for pair in pairs}


def main() -> int:
    words = Words("read", "refused", "{count} files of movement, {true} read")
    return run("fuzz_motion", __doc__, attempt, words)


if __name__ == "__main__":
    sys.exit(main())
