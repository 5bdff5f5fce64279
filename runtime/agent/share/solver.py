"""Weighted max-min shares, by libtsshare (tcal_c/share/tsshare.h says what they are).

Input: flows with the links that they pass, and the links' capacities. Output: a share per flow and
a level per link. Links may have any numbers; only those of the flows count.
"""

from __future__ import annotations

import errno
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runtime.agent.share.tsshare import library
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


class Question:
    """Flows over links that have places in an array of capacities."""

    def __init__(self) -> None:
        self.first = array("I", [0])
        self.places = array("I")
        self.rtts_ns = array("Q")
        self.demands_bps = array("Q")

    def add(self, places: array[int], rtt_ns: int, demand_bps: int) -> None:
        self.places.extend(places)
        self.first.append(len(self.places))
        self.rtts_ns.append(rtt_ns)
        self.demands_bps.append(demand_bps)

    def ask(self, capacities_bps: array[int], numbers: Sequence[int]) -> Solution:
        """`numbers` are the links' by place. Raises MachineError if there is no memory."""
        count, places = len(self.rtts_ns), len(capacities_bps)
        allocations, entitlements = array("Q", bytes(8 * count)), array("Q", bytes(8 * count))
        bottlenecks, levels = array("I", bytes(4 * count)), array("d", bytes(8 * places))
        failed = library().tsshare_solve(
            count,
            self.first,
            self.places,
            self.rtts_ns,
            self.demands_bps,
            places,
            capacities_bps,
            allocations,
            bottlenecks,
            entitlements,
            levels,
        )
        if failed == -errno.ENOMEM:
            raise MachineError(f"there is no memory to share links between {count} flows")
        assert failed == 0, failed  # numbers of ours
        links = [NO_LINK if place == _NONE else numbers[place] for place in bottlenecks]
        shares = list(map(Share, allocations, links, entitlements))
        return Solution(shares, {numbers[at]: level for at, level in enumerate(levels) if level})


def solve(flows: Sequence[Flow], capacities_bps: Mapping[int, int]) -> Solution:
    """Shares of the links between `flows`; a link without capacity, or with 0, is unlimited.

    Raises MachineError if there is no memory. The same input gives the same output.
    """
    numbers = sorted({link for flow in flows for link in flow.links})
    place = {number: at for at, number in enumerate(numbers)}
    question = Question()
    for flow in flows:
        question.add(array("I", map(place.__getitem__, flow.links)), flow.rtt_ns, flow.demand_bps)
    return question.ask(array("Q", [capacities_bps.get(n, 0) for n in numbers]), numbers)
