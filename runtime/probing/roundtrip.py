"""A round trip out of probes that go one way: of one there, and of the one back that answers it.

No probe is an answer; the one that was sent nearest to the arrival met the network that an answer
would have met. Once in each interval there is a probe at a drawn moment, so without losses the
nearest one is at most an interval away. Errors of the clocks of the two ends go out of the sum.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

REACH = 2  # intervals between an arrival and its answer at most: a lost probe is not missed

Sent = tuple[int, int]  # when a probe was sent, and how long it was under way; both in ns


def round_trip(there: Sent, back: Sequence[Sent], reach_ns: int, pace: int = 1) -> int | None:
    """Of a probe there with its answer; None if there is none within reach. At a `pace` delays take
    so much more of the time in which probes were sent."""
    sent_ns, delay_ns = there
    back_ns = answer(back, sent_ns + delay_ns * pace, reach_ns * pace)
    return None if back_ns is None else delay_ns + back_ns


def answer(back: Sequence[Sent], arrived_ns: int, reach_ns: int) -> int | None:
    """The delay of the nearest one, the earlier of two; None if it is farther than this. `back` is
    in the order of sending."""
    place = bisect_left(back, (arrived_ns, 0))
    near = back[max(place - 1, 0) : place + 1]
    found = min(near, key=lambda one: abs(one[0] - arrived_ns), default=None)
    if found is None or abs(found[0] - arrived_ns) > reach_ns:
        return None
    return found[1]
