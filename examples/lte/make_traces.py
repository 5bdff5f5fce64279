"""Writes up.trace and down.trace, the synthetic cell of lte.tdl: always the same bytes.

Each direction has a capacity r(t) = BASE exp(SPREAD x(t)) Mb/s, where x is a first-order
autoregressive process of standard deviation 1 with a step each 20 ms, x' = 0.95 x + 0.31 n, n
normal; twice it is 0 for a while (a handover). Opportunities are where the integral of r passes a
multiple of 12,000 bits, in whole ms. A file has a line for each, as mahimahi's mm-link reads it.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

SECONDS, STEP_MS, PACKET_BITS = 20, 20, 12_000
HANDOVERS_MS = ((7_000, 7_400), (13_500, 14_300))


def trace(seed: int, base: float, spread: float) -> list[int]:
    draws, x, bits, found = random.Random(seed), 0.0, 0.0, list[int]()
    for ms in range(1, SECONDS * 1000 + 1):
        if ms % STEP_MS == 1:
            x = 0.95 * x + 0.31 * draws.gauss(0, 1)
        if not any(begin < ms <= end for begin, end in HANDOVERS_MS):
            bits += base * math.exp(spread * x) * 1000
        while bits >= PACKET_BITS:
            bits -= PACKET_BITS
            found.append(ms)
    return [*found, SECONDS * 1000]  # the last line is how long it lasts


def main() -> None:
    for name, seed, base, spread in (("down", 1, 6.0, 0.7), ("up", 2, 2.0, 0.5)):
        lines = "".join(f"{ms}\n" for ms in trace(seed, base, spread))
        (Path(__file__).parent / f"{name}.trace").write_text(lines)


if __name__ == "__main__":
    main()
