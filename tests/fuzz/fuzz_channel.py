"""A control channel with somebody in between: what comes out is a beginning of what was sent.

    python -m tests.fuzz.fuzz_channel [--seconds N] [--seed N]

The attacker has recorded other sessions with the same key, and changes, cuts, repeats, moves and
replaces parts of either direction from the first byte on; portions are random. Prints the seed of
the first failure and exits 1.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from runtime.rpc.seal import (
    FRAME_BYTES,
    KEY_BYTES,
    NONCE_BYTES,
    ClientHandshake,
    Handshake,
    SealError,
    ServerHandshake,
)
from tests.fuzz.seeds import Words, run

Stream = list[bytes]  # the parts that a side sends: handshake, then frames


def messages(rnd: random.Random) -> list[bytes]:
    sizes = [rnd.choice((0, 1, 40, 300, rnd.randrange(2000))) for _ in range(rnd.randint(1, 6))]
    if rnd.random() < 0.05:
        sizes.append(FRAME_BYTES * 2 + rnd.randrange(3))
    return [rnd.randbytes(size) for size in sizes]


class Session:
    """Two honest sides and what they send each other."""

    def __init__(self, rnd: random.Random, key: bytes) -> None:
        self.key = key
        self.nonces = (rnd.randbytes(NONCE_BYTES), rnd.randbytes(NONCE_BYTES))
        client, server = self.fresh()
        proof = client.feed(server.opening)
        answer = server.feed(proof)
        client.feed(answer)
        self.sent = (messages(rnd), messages(rnd))
        assert client.sealer and server.sealer
        up = [client.sealer.seal(message) for message in self.sent[0]]
        down = [server.sealer.seal(message) for message in self.sent[1]]
        self.streams = (
            [proof, *up, client.sealer.end()],
            [server.opening, answer, *down, server.sealer.end()],
        )

    def fresh(self) -> tuple[Handshake, Handshake]:
        """Both sides again, with the same nonces."""
        return ClientHandshake(self.key, self.nonces[0]), ServerHandshake(self.key, self.nonces[1])


def meddled(rnd: random.Random, stream: Stream, foreign: list[bytes]) -> bytes:
    parts = list(stream)
    for _ in range(rnd.randint(0, 3)):
        at = rnd.randrange(len(parts))
        how = rnd.randrange(6)
        if how == 0 and parts[at]:
            changed = bytearray(parts[at])
            changed[rnd.randrange(min(len(changed), rnd.choice((4, 20, 10**9))))] ^= rnd.randint(
                1, 255
            )
            parts[at] = bytes(changed)
        elif how == 1:
            parts[at] = parts[at][: rnd.randint(0, len(parts[at]))]
        elif how == 2:
            parts.insert(rnd.randrange(len(parts) + 1), parts[at])
        elif how == 3:
            other = rnd.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        elif how == 4:
            parts[at] = rnd.choice(foreign)
        else:
            parts.insert(at, rnd.randbytes(rnd.randrange(80)))
    return b"".join(parts)


def received(rnd: random.Random, side: Handshake, data: bytes) -> tuple[list[bytes], bool]:
    """The messages that come out, and whether a goodbye did."""
    found: list[bytes] = []
    try:
        # A server has to have answered before a client goes on.
        if isinstance(side, ServerHandshake):
            side.feed(data[:72])
            data = data[72:]
        while data and side.opener is None:
            size = rnd.choice((1, 7, 40, 100))
            side.feed(data[:size])
            data = data[size:]
        if side.opener is None:
            return found, False
        data = side.rest + data
        while data:
            size = rnd.choice((1, 20, 21, 500, 100_000))
            found += side.opener.feed(data[:size])
            data = data[size:]
    except SealError:
        return found, False
    return found, side.opener.ended and not side.opener.inside


def attempt(seed: int) -> bool:
    """True if everything got through. AssertionError if anything else than a beginning did."""
    rnd = random.Random(seed)
    key = rnd.randbytes(KEY_BYTES)
    session, other = Session(rnd, key), Session(rnd, key)
    direction = rnd.randrange(2)
    foreign = [*other.streams[0], *other.streams[1], *session.streams[1 - direction]]
    data = meddled(rnd, session.streams[direction], foreign)
    client, server = session.fresh()
    side = client if direction else server
    found, ended = received(rnd, side, data)
    sent = session.sent[direction]
    assert found == sent[: len(found)], "a message came out that was not sent"
    assert not ended or found == sent, "a goodbye came out before everything else"
    return ended


def main() -> int:
    closing = "{count} sessions, {true} left as they were, the others noticed"
    return run("fuzz_channel", __doc__, attempt, Words("whole", "noticed", closing))


if __name__ == "__main__":
    sys.exit(main())
