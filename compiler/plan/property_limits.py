"""How large the properties of links and paths may be, by field of LinkState.

`LINK` is what a link of a plan may have, so what the language allows (tdl/bounds.py) and both
datapaths take. `PATHS` is, by datapath, what it takes of a path that an agent composes of links; 0
where it cannot carry out the property at all. Tests hold tdl/bounds.py and docs to this table, and
ask pktd and tcald themselves where they refuse.

A path visits each node once, so its delay is at most that of MAX_NODES links. pktd and tcald take
that much, hence no sum of delays is ever too large for them. Jitters add up as the root of the sum
of their squares. netem draws a jitter of 31 bits, of which a table of Pareto's takes a sixth.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.plan.format import MAX_NODES
from compiler.plan.properties import NUMBERS

_TAILED = ("pareto", "paretonormal")
_TAIL = {"user": 1, "kernel": 6}  # what part of its jitter a datapath takes with these

LINK: Mapping[str, int] = {row.field: row.most for row in NUMBERS}
_USER = {
    **LINK,
    "delay_ns": MAX_NODES * LINK["delay_ns"],
    "jitter_ns": 256 * LINK["jitter_ns"],  # 256 is the root of MAX_NODES, rounded up
}
PATHS: Mapping[str, Mapping[str, int]] = {
    "user": _USER,
    "kernel": {**_USER, "jitter_ns": (1 << 31) - 1},
}


def jitter_limit(datapath: str, distribution: str) -> int:
    """The most of a path, ns."""
    return PATHS[datapath]["jitter_ns"] // (_TAIL[datapath] if distribution in _TAILED else 1)
