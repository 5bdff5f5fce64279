"""Fault injection: pktd is given other values of links than the plan has, and nobody is told.

Input: `faults` of the options. A while after time 0 the commands go to pktd as those of a step do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from runtime.datapath.pktd import Engine

AFTER_NS = 3_000_000_000  # time 0; then there is something to tell the fault from
_LINK = "link"
_KEYS = {"delay_ns": "delay", "rate_bps": "rate"}


async def plant(engine: Engine, faults: Mapping[str, Mapping[str, int]], t0_ns: int) -> None:
    """Returns once all are in force."""
    lines = []
    for name, values in sorted(faults.items()):
        if name.startswith(_LINK):
            given = " ".join(f"{_KEYS[key]}={value}" for key, value in sorted(values.items()))
            lines.append(f"set {name.removeprefix(_LINK)} {given}")
    if lines:
        now = asyncio.get_running_loop().time()  # CLOCK_MONOTONIC in s
        await asyncio.sleep((t0_ns + AFTER_NS) / 1e9 - now)
        await engine.commit(lines)
