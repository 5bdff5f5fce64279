"""The command of a fuzzer whose attempts each come from one seed."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import NamedTuple


class Words(NamedTuple):
    """What the two outcomes of an attempt are called, and how the closing line counts them."""

    true: str
    false: str
    closing: str  # with {count} attempts and {true} of them


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
