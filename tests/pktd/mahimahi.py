"""mahimahi's link, in a second way: its trace is gone through delivery by delivery.

Source: mm-link(1). A delivery has 1,504 bytes, and each packet 4 more than its own, those of the
header that mahimahi's device puts before it. What comes at the moment of a delivery is too late for
it. What a delivery does not use is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

MS = 1_000_000
DELIVERY, HEADER = 1504, 4


def departures(
    lines: Sequence[int], packets: Sequence[tuple[int, int]], limit: int | None = None
) -> list[int | None]:
    """When each of the (arrival in ns, bytes) leaves; None: the queue had no room for it."""
    left: list[int | None] = [None] * len(packets)
    queue: deque[list[int]] = deque()  # number and bytes to go
    coming, number = 0, 0
    while coming < len(packets) or queue:
        rounds, line = divmod(number, len(lines))
        at_ns = (rounds * lines[-1] + lines[line]) * MS
        while coming < len(packets) and packets[coming][0] < at_ns:
            cost = packets[coming][1] + HEADER
            waits = sum(bytes_ for _, bytes_ in queue)
            if limit is None or not queue or waits + cost <= limit:
                queue.append([coming, cost])
            coming += 1
        room = DELIVERY
        while room and queue:
            part = min(room, queue[0][1])
            room -= part
            queue[0][1] -= part
            if not queue[0][1]:
                left[queue.popleft()[0]] = at_ns
        number += 1
    return left
