"""Composes the properties of a path from its links, exactly, rounding once at the end.

For links 1..n of one direction: delay = sum of delays; jitter = sqrt(sum of jitter squared);
loss = 1 - product of (1 - loss); rate = least rate, where 0 means unlimited. Source: the network
collapsing of Kollaps and Thunderstorm; exact rounding rules in docs/plan.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from compiler.plan.core import NO_LINK
from compiler.plan.format import PPB, ROUTES, PlanError
from compiler.plan.state import NetworkState


@dataclass(frozen=True, slots=True)
class PathProperties:
    """One direction between two instances. When unreachable, numbers are None and links empty."""

    src: int
    dst: int
    reachable: bool
    rate_bps: int | None  # 0 = unlimited
    delay_ns: int | None
    jitter_ns: int | None
    loss_ppb: int | None
    rtt_ns: int | None  # None if either direction is unreachable
    links: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of a path before rounding; stretches add up without loss."""

    delay_ns: int
    jitter_square: int
    kept: int  # product of (PPB - loss) over the lossy links
    lossy: int  # how many those are
    rate_bps: int
    links: tuple[int, ...]


_NOTHING = _Part(0, 0, 1, 0, 0, ())


class Paths:
    """Answers for one state; what is found once between two anchors is kept."""

    def __init__(self, state: NetworkState) -> None:
        self._state = state
        self._between: dict[tuple[int, int], _Part | None] = {}

    def path(self, src: int, dst: int) -> PathProperties:
        """From instance to instance (node indices, different)."""
        part = self._part(src, dst)
        if part is None:
            return PathProperties(src, dst, False, None, None, None, None, None, ())
        back = self._part(dst, src)
        return PathProperties(
            src=src,
            dst=dst,
            reachable=True,
            rate_bps=part.rate_bps,
            delay_ns=part.delay_ns,
            jitter_ns=_root(part.jitter_square),
            loss_ppb=_loss(part.kept, part.lossy),
            rtt_ns=None if back is None else part.delay_ns + back.delay_ns,
            links=part.links,
        )

    def _part(self, src: int, dst: int) -> _Part | None:
        core = self._state.core
        first, last = core.access_out[src], core.access_in[dst]
        start, end = core.anchor[src], core.anchor[dst]
        if src == dst:
            raise ValueError("a path needs two different instances")
        key = (start, end)
        if key not in self._between:
            self._between[key] = self._walk(start, end)
        part = self._between[key]
        if part is not None and first != NO_LINK:
            part = self._joined(self._of_link(first), part)
        if part is not None and last != NO_LINK:
            part = self._joined(part, self._of_link(last))
        return part

    def _walk(self, start: int, end: int) -> _Part | None:
        """From core node to core node, along the table."""
        state, part, node = self._state, _NOTHING, start
        core, width = state.core, len(state.core.columns)
        column = core.column_of[end]
        for _ in range(len(core.rows)):
            if node == end:
                return part
            row = core.row_of[node]
            choice = state.table[row * width + column]
            if not choice:
                return None
            link = core.out[row][choice - 1]
            step = self._of_link(link)
            if step is None:
                raise PlanError(
                    ROUTES, f"epoch {state.epoch} routes over link {link}, which is down"
                )
            joined = self._joined(part, step)
            assert joined is not None
            part, node = joined, state.topology.links[link].dst
        if node == end:
            return part
        raise PlanError(ROUTES, f"epoch {state.epoch} routes in a circle at node {node}")

    def _of_link(self, link: int) -> _Part | None:
        state = self._state.links[link]
        if not state.up:
            return None
        return _Part(
            delay_ns=state.delay_ns,
            jitter_square=state.jitter_ns**2,
            kept=PPB - state.loss_ppb if state.loss_ppb else 1,
            lossy=1 if state.loss_ppb else 0,
            rate_bps=state.rate_bps,
            links=(link,),
        )

    @staticmethod
    def _joined(a: _Part | None, b: _Part | None) -> _Part | None:
        if a is None or b is None:
            return None
        return _Part(
            delay_ns=a.delay_ns + b.delay_ns,
            jitter_square=a.jitter_square + b.jitter_square,
            kept=a.kept * b.kept,
            lossy=a.lossy + b.lossy,
            rate_bps=min(a.rate_bps or b.rate_bps, b.rate_bps or a.rate_bps),
            links=a.links + b.links,
        )


def _root(square: int) -> int:
    """The square root, rounded half up (a tie cannot occur: (r + 1/2)^2 is no integer)."""
    root = isqrt(square)
    return root + 1 if square > root * root + root else root


def _loss(kept: int, lossy: int) -> int:
    """PPB * (1 - kept / PPB^lossy), rounded half up."""
    if not lossy:
        return 0
    whole, unit = PPB**lossy, PPB ** (lossy - 1)
    rounded: int = (2 * (whole - kept) + unit) // (2 * unit)
    return rounded


def path(state: NetworkState, src: int, dst: int) -> PathProperties:
    """One path. For many paths in one state keep a Paths: it does not start over each time."""
    return Paths(state).path(src, dst)
