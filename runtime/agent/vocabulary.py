"""What the parts of an agent tell each other: usage, flows, paths of an epoch, changes of rates.

Nodes and links are the plan's indices. Times are ns, rates b/s of IP
bytes, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Usage:
    """One line of `usage`: what a path has sent and dropped since it was declared."""

    src: int
    dst: int
    sent_pkts: int
    sent_bytes: int
    drop_queue: int
    drop_loss: int
    backlog_bytes: int


@dataclass(frozen=True, slots=True)
class Moved:
    """What the datapath tells when a sample is due, of paths and pairs that moved."""

    usage: list[Usage]
    pairs: list[bytes]  # lines of `stats pairs`
    digests: list[bytes]  # lines of `digests`, if it keeps some


@dataclass(frozen=True, slots=True)
class PathView:
    """One path in one epoch."""

    links: tuple[int, ...]
    rate_bps: int  # collapsed, 0 = unlimited
    rtt_ns: int
    delay_ns: int  # collapsed, one way


class View(Protocol):
    """One epoch as an agent sees it."""

    @property
    def epoch(self) -> int: ...

    def path(self, src: int, dst: int) -> PathView | None:
        """None: unreachable."""

    def capacity(self, link: int) -> int:
        """b/s, 0 = unlimited."""

    def queue(self, link: int) -> int:
        """Bytes."""


@dataclass(frozen=True, slots=True)
class LocalFlow:
    """A flow of this agent's own instances: what is told to others."""

    src: int
    dst: int
    used_bps: int
    greedy: bool
    allocation_bps: int
    bottleneck: int  # a link, -1 = its own demand
    wait_ns: int = 0  # of one that is greedy: how long what it sends waits in its queue


@dataclass(frozen=True, slots=True)
class RemoteFlow:
    """A flow that another agent told of: what it wants, or that it is greedy and how long what it
    sends waits."""

    src: int
    dst: int
    demand_bps: int  # 0 of one that is greedy
    greedy: bool
    host: int
    age_ns: int
    wait_ns: int = 0  # of one that is greedy


@dataclass(frozen=True, slots=True)
class PathChange:
    """What a path is to be limited to from now on."""

    src: int
    dst: int
    rate_bps: int
    queue_bytes: int


@dataclass(frozen=True, slots=True)
class PathDelay:
    """How long a path takes from now on: its links, and what waiting there adds."""

    src: int
    dst: int
    delay_ns: int


Change = PathChange | PathDelay
