"""Weighted max-min shares, by libtsshare (tcal_c/share/tsshare.h says what they are).

Input: flows with the links that they pass, and the links' capacities. Output: a share per flow and
a level per link. Links may have any numbers; only those of the flows count.
"""

from __future__ import annotations

import errno
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runtime.agent.native import library
from runtime.errors import MachineError

LEAST_RTT_NS = 50_000  # TSSHARE_LEAST_RTT_NS: a shorter round trip weighs as much
UNLIMITED = 2**64 - 1  # of a demand: greedy; of a result: no bound
NO_LINK = -1
_NONE = 2**32 - 1  # TSSHARE_NONE


class Flow(NamedTuple):
    """What wants to be sent over some links."""

    links: tuple[int, ...]
    rtt_ns: int
    demand_bps: int  # UNLIMITED = greedy


class Share(NamedTuple):
    """What a flow gets."""

    allocation_bps: int  # UNLIMITED if greedy and no link of it is limited
    bottleneck: int  # the link that stopped it (the least of several), NO_LINK = its own demand
    entitlement_bps: int  # what it may take at once if it wants more; UNLIMITED as above


class Solution(NamedTuple):
    """One share per flow, in their order, and the full links."""

    shares: list[Share]
    levels_bits: dict[int, float]  # full link -> rate times round trip of the highest flow there


def solve(flows: Sequence[Flow], capacities_bps: Mapping[int, int]) -> Solution:
    """Shares of the links between `flows`; a link without capacity, or with 0, is unlimited.

    Raises MachineError if there is no memory. The same input gives the same output.
    """
    index: dict[int, int] = {}
    first, links = array("I", [0]), array("I")
    for flow in flows:
        for link in flow.links:
            links.append(index.setdefault(link, len(index)))
        first.append(len(links))
    numbers = sorted(index)  # ties between links go to the least number, as told to others
    position = {index[number]: at for at, number in enumerate(numbers)}
    links = array("I", [position[link] for link in links])
    capacities = array("Q", [capacities_bps.get(number, 0) for number in numbers])
    count = len(flows)
    allocations, entitlements = array("Q", bytes(8 * count)), array("Q", bytes(8 * count))
    bottlenecks, levels = array("I", bytes(4 * count)), array("d", bytes(8 * len(numbers)))
    failed = library().tsshare_solve(
        count,
        first,
        links,
        array("Q", [flow.rtt_ns for flow in flows]),
        array("Q", [flow.demand_bps for flow in flows]),
        len(numbers),
        capacities,
        allocations,
        bottlenecks,
        entitlements,
        levels,
    )
    if failed == -errno.ENOMEM:
        raise MachineError(f"there is no memory to share links between {count} flows")
    assert failed == 0, failed  # numbers of ours
    shares = [
        Share(allocation, NO_LINK if link == _NONE else numbers[link], entitled)
        for allocation, link, entitled in zip(allocations, bottlenecks, entitlements, strict=True)
    ]
    return Solution(shares, {numbers[at]: level for at, level in enumerate(levels) if level})
