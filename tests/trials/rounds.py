"""The command of a trial: rounds that each come from one seed, counted by what came of them.

A trial is a module of this folder that can be started (`python -m tests.trials.NAME`) with
`--rounds N` or `--seconds N` and `--seed N`. It goes on after a failure, names the seed of each,
prints counts at the end and ends with 1 if there was one. `make trial` runs all of them.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator

SECONDS = 20.0

Attempt = Callable[[random.Random], str]  # what came of it; raises if that is wrong


def run(name: str, about: str | None, attempt: Attempt) -> int:
    """The exit status."""
    options = _options(about)
    first = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    found: Counter[str] = Counter()
    failed: list[int] = []
    for seed in _seeds(first, options.rounds, options.seconds):
        try:
            found[attempt(random.Random(seed))] += 1
        except Exception:
            failed.append(seed)
            traceback.print_exc()
            print(
                f"failed: python -m tests.trials.{name} --rounds 1 --seed {seed}", file=sys.stderr
            )
            sys.stderr.flush()
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(found.items()))
    total = sum(found.values()) + len(failed)
    print(f"{name}: {total} rounds from seed {first}: {counts or 'none held'}")
    if failed:
        print(f"{name}: {len(failed)} failed: {' '.join(map(str, failed))}")
    return 1 if failed else 0


def _options(about: str | None) -> argparse.Namespace:
    summary = (about or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    until = parser.add_mutually_exclusive_group()
    until.add_argument("--rounds", type=int, default=None)
    until.add_argument("--seconds", type=float, default=SECONDS, help="[default: %(default)s]")
    parser.add_argument("--seed", type=int, default=None, help="of the first round; the next + 1")
    return parser.parse_args()


def _seeds(first: int, rounds: int | None, seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    count = 0
    while count < rounds if rounds is not None else time.monotonic() < end:
        yield first + count
        count += 1
