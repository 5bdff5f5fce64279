"""How large the properties of links and paths may be, by field of LinkState.

`LINK` is what a link of a plan may have, so what the language allows (tdl/bounds.py) and pktd takes
of one. `PATHS` is, by datapath, what it takes of a path that an agent composes of links; 0 where it
cannot carry out the property at all, of a text 1 where it can. `HOP_EXACT` stands for pktd where no
path is composed.
Tests hold tdl/bounds.py and docs to this table, and ask pktd and tcald themselves where they
refuse.

A path visits each node once, so its delay is at most that of MAX_NODES links. pktd and tcald take
that much, hence no sum of delays is ever too large for them. Jitters add up as the root of the sum
of their squares. netem draws a jitter of 31 bits, of which a table of Pareto's takes a sixth.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.plan.format import MAX_NODES
from compiler.plan.properties import NUMBERS

_TAILED = ("pareto", "paretonormal")
HOP_EXACT = "hop-exact"
_TAIL = {HOP_EXACT: 1, "user": 1, "kernel": 6}  # what part of its jitter it takes with these

LINK: Mapping[str, int] = {row.field: row.most for row in NUMBERS}
# Between hosts a path is one queue: what happens to single packets on a link cannot be composed.
_ONE_BY_ONE = (
    "burst_milli",
    "burst_pass_ppb",
    "gap_loss_ppb",
    "duplicate_ppb",
    "corrupt_ppb",
    "reorder_ppb",
    "reorder_ns",
    "reject_ppb",
    "mtu_bytes",
    "trace",
    "queue_packets",
    "aqm",
    "only",
    "capacity_bps",  # where it is not carried out, a background takes from the rate alone
    "wmax_bytes",
    "neck",
    "rtt_ns",
)
_USER = {
    **LINK,
    **dict.fromkeys(_ONE_BY_ONE, 0),
    "delay_ns": MAX_NODES * LINK["delay_ns"],
    "jitter_ns": 256 * LINK["jitter_ns"],  # 256 is the root of MAX_NODES, rounded up
}
PATHS: Mapping[str, Mapping[str, int]] = {
    HOP_EXACT: {**_USER, **{field: LINK.get(field, 1) for field in _ONE_BY_ONE}},
    "user": _USER,
    "kernel": {**_USER, "jitter_ns": (1 << 31) - 1},
}


def jitter_limit(datapath: str, distribution: str) -> int:
    """The most of a path, ns."""
    return PATHS[datapath]["jitter_ns"] // (_TAIL[datapath] if distribution in _TAILED else 1)
