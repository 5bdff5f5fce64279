"""How large the properties of links and paths may be: the one table.

`LINK` is what a link of a plan may have, so what the language allows (tdl/bounds.py) and both
datapaths take. `PATHS` is, by datapath, what it takes of a path that an agent composes of links.
Tests hold tdl/bounds.py and docs to this table, and ask pktd and tcald themselves where they
refuse.

A path visits each node once, so its delay is at most that of MAX_NODES links. pktd and tcald take
that much, hence no sum of delays is ever too large for them. Jitters add up as the root of the sum
of their squares. netem draws a jitter of 31 bits, of which a table of Pareto's takes a sixth.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.plan.format import MAX_NODES

DAY_NS = 86_400 * 10**9
TAILED = ("pareto", "paretonormal")


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest value of each property; `tailed_jitter_ns` is the jitter's where the distribution
    is one of TAILED.
    """

    rate_bps: int
    delay_ns: int
    jitter_ns: int
    tailed_jitter_ns: int
    queue_bytes: int

    def jitter_of(self, distribution: str) -> int:
        return self.tailed_jitter_ns if distribution in TAILED else self.jitter_ns


LINK = Limits(
    rate_bps=10**13,
    delay_ns=DAY_NS,
    jitter_ns=DAY_NS,
    tailed_jitter_ns=DAY_NS,
    queue_bytes=1 << 30,
)
_PATH_DELAY_NS = MAX_NODES * DAY_NS
_PATH_JITTER_NS = 256 * DAY_NS  # 256 is the root of MAX_NODES, rounded up
_NETEM_JITTER_NS = (1 << 31) - 1
PATHS = {
    "user": Limits(LINK.rate_bps, _PATH_DELAY_NS, _PATH_JITTER_NS, _PATH_JITTER_NS, 1 << 30),
    "kernel": Limits(
        LINK.rate_bps, _PATH_DELAY_NS, _NETEM_JITTER_NS, _NETEM_JITTER_NS // 6, 1 << 30
    ),
}
