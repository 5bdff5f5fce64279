"""What fuzzers share whose attempts each come from one seed: their command, and changed bytes."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Words(NamedTuple):
    """What the two outcomes of an attempt are called, and how the closing line counts them."""

    true: str
    false: str
    closing: str  # with {count} attempts and {true} of them


def mutate_bytes(rnd: random.Random, data: bytes, texts: Sequence[bytes] = ()) -> bytes:
    """A few bytes changed, removed, repeated or put in; with `texts` also one of these."""
    found = bytearray(data)
    for _ in range(rnd.choice([1, 1, 2, 5])):
        at = rnd.randrange(len(found) + 1)
        kind = rnd.randrange(5 if texts else 4)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << rnd.randrange(8)
        elif kind == 1:
            del found[at : at + rnd.choice([1, 8, 1000])]
        elif kind == 2:
            found[at:at] = found[at // 2 : at // 2 + rnd.choice([1, 8, 100])]
        elif kind == 3 and texts:
            found[at:at] = rnd.choice(texts)
        else:
            found[at:at] = rnd.randbytes(rnd.choice([1, 4]))
    return bytes(found)


def run(name: str, about: str | None, attempt: Callable[[int], bool], words: Words) -> int:
    """`--seconds N` attempts from `--seed N` on; a seed alone is one attempt. The exit status.

    Prints the command that makes a failed attempt again, and raises what it raised.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seconds", type=float, default=None, help="10 unless there is a seed")
    parser.add_argument("--seed", type=int, default=None, help="the first; without time, the only")
    options = parser.parse_args()
    if options.seed is not None and options.seconds is None:
        print(words.true if attempt(options.seed) else words.false)
        return 0
    first = random.SystemRandom().randrange(2**48) if options.seed is None else options.seed
    deadline = time.monotonic() + (10 if options.seconds is None else options.seconds)
    count = true = 0
    while time.monotonic() < deadline:
        try:
            true += attempt(first + count)
        except Exception:
            failed = f"python -m tests.fuzz.{name} --seed {first + count}"
            print(f"failed: {failed}", file=sys.stderr)
            raise
        count += 1
    print(f"{name}: {words.closing.format(count=count, true=true)}")
    return 0
