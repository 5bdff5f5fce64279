"""Mutated metadata datagrams: each is taken or counted, and means what a slow second decoder says.

    python -m tests.fuzz.fuzz_metadata [--seconds N] [--seed N]

Datagrams of a real agent have bytes flipped, cut, copied and numbers replaced; most are then given
a right tag, so that the decoder and the ledger are reached. Prints the seed of the first failure
and exits 1.
"""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from runtime.agent.metadata.codec import varint
from runtime.agent.metadata.metadata import VERDICTS
from tests.agent.hosts import KEY, RUN, Hosts, dumbbell, flow, told
from tests.fuzz.seeds import Words, run

PLACE = [0, 1, 2, 0, 1, 2, 0, 1]
FIXED_BYTES = 27
Flows = dict[int, tuple[int, bool]]  # path -> (rate, or wait in ns; greedy)


def tag(message: bytes) -> bytes:
    """As docs/metadata.md has it; nothing of the code under test."""
    person = b"tstorm metadata1"
    own = hashlib.blake2b(RUN, key=KEY, person=person, digest_size=32).digest()
    return hashlib.blake2b(message, key=own, person=person, digest_size=16).digest()


def numbers(data: bytes) -> list[int] | None:
    """Byte by byte; None if a varint is cut short, too long or not the shortest."""
    found, value, size = [], 0, 0
    for byte in data:
        value |= (byte & 127) << 7 * size
        size += 1
        if size > 9 or (byte == 0 and size > 1):
            return None
        if byte < 128:
            found.append(value)
            value, size = 0, 0
    return None if size else found


def understood(datagram: bytes) -> tuple[int, Flows] | None:
    """Sequence and flows of a datagram with a right tag and a right fixed part; None: malformed."""
    found = numbers(datagram[FIXED_BYTES:-16])
    if found is None or len(found) < 3:
        return None
    sequence, epoch, count, *rest = found
    if not 0 < sequence < 2**62 or epoch >= 2**32 or len(rest) != 2 * count:
        return None
    flows: Flows = {}
    path = 0
    for at in range(count):
        step, value = rest[2 * at : 2 * at + 2]
        path += step
        code = value >> 1
        if (at and not step) or code > 7295 or path >= len(PLACE) ** 2:
            return None
        src, dst = divmod(path, len(PLACE))
        if src == dst or PLACE[src] != 0:
            return None
        amount = code if code < 256 else (128 + code % 128) * 2 ** (code // 128 - 1)
        flows[path] = (amount * 100_000, True) if value & 1 else (amount, False)
    return sequence, flows


def mutate(rnd: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(rnd.choice([1, 1, 2, 4])):
        at = rnd.randrange(len(found) + 1)
        kind = rnd.randrange(6)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << rnd.randrange(8)
        elif kind == 1:
            del found[at : at + rnd.choice([1, 2, 20])]
        elif kind == 2:
            found[at:at] = found[at // 2 : at // 2 + rnd.choice([1, 5, 400])]
        elif kind == 3:
            found[at:at] = rnd.randbytes(rnd.choice([1, 3]))
        elif kind == 4:
            found[at : at + 1] = varint(rnd.choice([0, 1, 127, 128, 14591, 2**32, 2**62, 2**63]))
        elif at < len(found):
            found[at] = rnd.choice([0, 1, 127, 128, 255])
    return bytes(found)


def numbers_only(rnd: random.Random, message: bytes) -> bytes:
    """Leaves the fixed part alone."""
    return message[:FIXED_BYTES] + mutate(rnd, message[FIXED_BYTES:])


class Target:
    """Host 1 of three, that has heard of host 0; and what host 0 would tell it."""

    def __init__(self, rnd: random.Random) -> None:
        self.net = Hosts(dumbbell(4), PLACE)
        self.net.settle()
        pairs = [(s, d) for s in (0, 3, 6) for d in range(8) if s != d]
        chosen = rnd.sample(pairs, rnd.randint(1, len(pairs)))
        self.net.flows[0] = [
            flow(
                src,
                dst,
                rnd.choice([0.0001, 3, 9000]),
                greedy=rnd.random() < 0.5,
                wait_ns=rnd.choice([0, 10**5, 3 * 10**7, 10**12]),
            )
            for src, dst in chosen
        ]
        self.net.lose = lambda source, to, _: (source, to) == (0, 1)
        self.net.tick()
        [self.message] = [
            data[:-16] for source, to, data in self.net.sent if (source, to) == (0, 1)
        ]
        self.agent = self.net.agents[1]

    def give(self, datagram: bytes) -> str:
        """Returns the one counter that moved."""
        before = self.agent.counters()
        self.agent.incoming(self.net.now_ns, datagram)
        after = self.agent.counters()
        moved = [name for name in VERDICTS if after[name] != before[name]]
        assert len(moved) == 1, moved
        assert after[moved[0]] == before[moved[0]] + 1
        return moved[0]

    def known(self) -> Flows:
        flows = self.agent.remote(self.net.now_ns)
        return {one.src * len(PLACE) + one.dst: told(one) for one in flows}


def attempt(seed: int) -> bool:
    """True if the mutant was taken. AssertionError if the two decoders do not agree."""
    rnd = random.Random(seed)
    target = Target(rnd)
    kind = rnd.random()
    if kind < 0.1:
        return check_refused(target, rnd.randbytes(rnd.randrange(1500)))
    if kind < 0.2:
        return check_refused(target, mutate(rnd, target.message + tag(target.message)))
    change = mutate if kind < 0.4 else numbers_only
    message = change(rnd, target.message)
    return check(target, message + tag(message), message[:FIXED_BYTES] == target.message[:27])


def check_refused(target: Target, datagram: bytes) -> bool:
    if datagram == target.message + tag(target.message):
        return False  # mutated back
    assert target.give(datagram) != "taken"
    assert target.known() == {}
    return False


def check(target: Target, datagram: bytes, same_head: bool) -> bool:
    """A datagram with a right tag."""
    counter = target.give(datagram)
    if not same_head or not 46 <= len(datagram) <= 1400:
        assert same_head is False or counter in ("too_long", "garbage"), counter
        return False
    expected = understood(datagram)
    if expected is None:
        assert counter in ("malformed", "replayed"), counter  # a low number may have been seen
        assert target.known() == {}
        return False
    assert counter in ("taken", "replayed"), counter
    if counter == "taken":
        alive = {path: told for path, told in expected[1].items() if told != (0, False)}
        assert target.known() == alive
    return counter == "taken"


def main() -> int:
    closing = "{count} mutated datagrams, {true} taken, the others refused"
    return run("fuzz_metadata", __doc__, attempt, Words("taken", "refused", closing))


if __name__ == "__main__":
    sys.exit(main())
