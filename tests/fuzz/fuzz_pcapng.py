"""Mutated files of packets: reading one ends in packets or a RunError with a place, soon.

    python -m tests.fuzz.fuzz_pcapng [--seconds N] [--seed N]

Bytes of a file are flipped, cut, copied and put in. Prints the seed of the first failure and exits
1.
"""

from __future__ import annotations

import io
import random
import sys
import time
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from runtime.errors import RunError
from runtime.results.everything import first_packet
from runtime.rundir.pcapng import Packet, read_packets
from tests.fuzz.seeds import Words, mutate_bytes, run
from tests.runtime.rundir.pcapng_writer import file

NAMES = ("a.0->s1", "s1->a.0")
TEXTS = (b"\n\r\r\n", b"\x4d\x3c\x2b\x1a", b"\xff" * 8, bytes(8), b"\x06\x00\x00\x00")
SLOW_SECONDS = 5.0  # of CPU time: a busy machine is no fault


def whole(rnd: random.Random) -> bytes:
    packets = [
        Packet(
            rnd.choice(NAMES),
            rnd.randrange(2**64),
            rnd.randbytes(rnd.randrange(90)),
            rnd.choice(["", "dropped: lost by the draw"]),
            rnd.choice([0, 0, 7]),
        )
        for _ in range(rnd.randrange(6))
    ]
    return file(packets, NAMES, order=rnd.choice("<>"))


def attempt(seed: int) -> bool:
    """True if it was read. AssertionError if it was read to something that is no packet."""
    rnd = random.Random(seed)
    before = whole(rnd)
    data = mutate_bytes(rnd, before, TEXTS)
    began = time.process_time()
    difference = first_packet(io.BytesIO(before), io.BytesIO(data), "x", 0)
    assert difference is None or difference.what == "packet"
    try:
        found = list(read_packets(io.BytesIO(data), "x"))
    except RunError as error:
        assert error.message.startswith("x: at byte ")
        found = None
    assert time.process_time() - began < SLOW_SECONDS, "too slow"
    assert found is None or sum(len(one.data) for one in found) <= len(data)
    return found is not None


def main() -> int:
    closing = "{count} mutated files of packets, {true} readable, the others refused"
    return run("fuzz_pcapng", __doc__, attempt, Words("readable", "refused", closing))


if __name__ == "__main__":
    sys.exit(main())
