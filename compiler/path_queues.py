"""How large the two queues of a measured path are, for both directions to get what is available.

Input: the terms of a `path` (tdl.ast.PathTerms). Output: for each number of flows that its table
names a row of rates and queues by direction. Integers; bytes, ns and b/s. Source: "Modeling and
Emulation of Internet Paths" (equations 1 to 4 of section 2.2); docs/tdl.md, "Measured paths".

A queue is served at the capacity C of the link that is narrow, of which others leave the available
bandwidth A. A flow fills A only while window / round trip is at least A, so the two queues together
may delay no longer than D = n W / A - R: the upper bound. Each of them must hold what the flows
send in one round trip without queues: the lower bound.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from compiler.plan.parts.necks import LEAST_QUEUE_BYTES, MOST_QUEUE_BYTES
from compiler.plan.properties import FlowRate, at_flows, flow_rates_text
from tdl import quantities
from tdl.ast import FlowTable, PathTerms

WINDOW_BYTES = 128_000  # of the paper
MOST_WINDOW_BYTES = 1 << 30
_BITS_NS = 8 * 10**9  # rate * time of one byte


class PathRow(NamedTuple):
    """With so many flows; up and down."""

    flows: int
    abw_bps: tuple[int, int]
    queue_bytes: tuple[int, int]


class DerivedPath(NamedTuple):
    """`rows` ascend from 1 flow."""

    wmax_bytes: int
    rows: tuple[PathRow, ...]


class PathProblem(Exception):  # noqa: N818 - data for a diagnostic, not a failure
    """Why no queues fit. `what` is the property to blame."""

    def __init__(self, what: str, why: str, hint: str) -> None:
        self.what = what
        self.why = why
        self.hint = hint
        super().__init__(why)


def derive(terms: PathTerms) -> DerivedPath:
    """Of a path with queues of its own. Raises PathProblem."""
    _check_capacity(terms, "up", terms.abw_up)
    _check_capacity(terms, "down", terms.abw_down)
    return _derived(terms)


@lru_cache(256)
def _derived(terms: PathTerms) -> DerivedPath:
    """Of both directions at once, each of which asks, and so does what checks the path."""
    wmax = terms.wmax_bytes or _window(terms)
    return DerivedPath(wmax, tuple(_row(terms, wmax, n) for n in _flow_counts(terms)))


def _check_capacity(terms: PathTerms, way: str, table: FlowTable) -> None:
    most = max(bps for _, bps in table)
    if most > terms.capacity_bps:
        why = f"{way} is {quantities.rate(most)}, above the capacity of"
        why += f" {quantities.rate(terms.capacity_bps)}"
        raise PathProblem("abw", why, "raise capacity= (100Mb where it is not stated)")


def direction(terms: PathTerms, *, back: bool) -> dict[str, Any]:
    """What one direction of the path has, by field of LinkState. Raises PathProblem.

    Of one that shares a bottleneck these are the rows of the path by itself behind it, from which
    the engine finds what the bottleneck has with the flows of all its paths."""
    neck, way = (terms.neck_down if back else terms.neck_up), int(back)
    if neck is not None:
        given = neck.queue_bytes
        terms = terms._replace(capacity_bps=neck.capacity_bps, queue_up=given, queue_down=given)
    _check_capacity(terms, ("up", "down")[way], (terms.abw_up, terms.abw_down)[way])
    derived = _derived(terms)
    first, *more = derived.rows
    rows = (FlowRate(row.flows, row.abw_bps[way], row.queue_bytes[way]) for row in more)
    found = {
        "rate_bps": first.abw_bps[way],
        "delay_ns": terms.rtt_ns // 2 if back else terms.rtt_ns - terms.rtt_ns // 2,
        "queue_bytes": first.queue_bytes[way],
        "capacity_bps": terms.capacity_bps,
        "wmax_bytes": derived.wmax_bytes,
        "flow_rates": flow_rates_text(rows),
    }
    if neck is not None:
        found["neck"] = neck.name
        found["rtt_ns"] = 0 if neck.queue_bytes is not None else terms.rtt_ns
    return found


def spare_ns(flows: int, wmax_bytes: int, abw_bps: int, rtt_ns: int) -> int:
    """How long both queues together may delay so many flows that get `abw_bps`: equation 3 less the
    round trip without queues. Negative where windows are too small for the path."""
    return flows * wmax_bytes * _BITS_NS // abw_bps - rtt_ns


def spare_time(terms: PathTerms, derived: DerivedPath) -> tuple[int, int]:
    """How long the full queues of the path delay one flow, and how long they may, ns."""
    first = derived.rows[0]
    delay = sum(first.queue_bytes) * _BITS_NS // terms.capacity_bps
    return delay, spare_ns(1, derived.wmax_bytes, max(first.abw_bps), terms.rtt_ns)


def least_queue(flows: int, wmax_bytes: int, abw_bps: int, rtt_ns: int) -> int:
    """The lower bound: equation 2."""
    return max(min(abw_bps * rtt_ns // _BITS_NS, flows * wmax_bytes), LEAST_QUEUE_BYTES)


def _flow_counts(terms: PathTerms) -> list[int]:
    """Of the rows of its tables."""
    return sorted({n for table in (terms.abw_up, terms.abw_down) for n, _ in table})


def _window(terms: PathTerms) -> int:
    """128 KB as in the paper where that is enough for the path; else the least power of two that
    leaves the queues as much time as the path takes, and room."""
    flows = _flow_counts(terms)
    if all(_spare(terms, WINDOW_BYTES, n) > 0 for n in flows):
        return WINDOW_BYTES
    window = 1 << 17
    while window < MOST_WINDOW_BYTES:
        if all(_is_enough(terms, window, n) for n in flows):
            break
        window *= 2
    return window


def _is_enough(terms: PathTerms, window: int, flows: int) -> bool:
    spare = _spare(terms, window, flows)
    least = sum(_least(terms, window, flows))
    return spare >= terms.rtt_ns and least * _BITS_NS <= spare * terms.capacity_bps


def _abw(terms: PathTerms, flows: int) -> tuple[int, int]:
    return at_flows(terms.abw_up, flows), at_flows(terms.abw_down, flows)


def _spare(terms: PathTerms, window: int, flows: int) -> int:
    return spare_ns(flows, window, max(_abw(terms, flows)), terms.rtt_ns)


def _least(terms: PathTerms, window: int, flows: int) -> tuple[int, int]:
    up, down = (least_queue(flows, window, abw, terms.rtt_ns) for abw in _abw(terms, flows))
    return up, down


def _row(terms: PathTerms, window: int, flows: int) -> PathRow:
    given = terms.queue_up, terms.queue_down
    abw = _abw(terms, flows)
    if given[0] is not None and given[1] is not None:
        return PathRow(flows, abw, (given[0], given[1]))
    spare = _spare(terms, window, flows)
    if spare <= 0:
        round_trip = quantities.latency(terms.rtt_ns)
        why = f"of {quantities.size(window)} fills no more than wmax / rtt, which is below the"
        why += (
            f" {quantities.rate(max(abw))} that are available to {_flows(flows)} over {round_trip}"
        )
        raise PathProblem("wmax", why, "no capacity helps: raise wmax=, or lower abw=")
    least = _least(terms, window, flows)
    if sum(least) * _BITS_NS > spare * terms.capacity_bps:
        needed = -(-sum(least) * _BITS_NS // spare)
        why = f"leaves no room for the queues that {_flows(flows)} need"
        hint = f"at least capacity={quantities.rate(needed)}, or a larger wmax="
        raise PathProblem("capacity", why, hint)
    return PathRow(flows, abw, _shared(spare * terms.capacity_bps // _BITS_NS, least, given))


def _shared(
    room: int, least: tuple[int, int], given: tuple[int | None, int | None]
) -> tuple[int, int]:
    """Bytes for both queues together: equal parts, or what one of them leaves the other."""
    up, down = given
    if up is None and down is None:
        half = room // 2
        up = least[0] if half < least[0] else half if half >= least[1] else None
        down = half if up == half else least[1] if up is None else None
    up = max(room - (down or 0), least[0]) if up is None else up
    down = max(room - up, least[1]) if down is None else down
    return min(up, MOST_QUEUE_BYTES), min(down, MOST_QUEUE_BYTES)


def _flows(count: int) -> str:
    return "one flow" if count == 1 else f"{count:,} flows"
