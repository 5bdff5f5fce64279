"""Weighted max-min shares in exact arithmetic, round by round: what the solver is compared with.

Written from the definition (docs/sharing.md, Model): all flows rise in proportion to 1/RTT; one
stops when its demand is met or one of its links is full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from runtime.agent.share.solver import LEAST_RTT_NS, UNLIMITED, Flow

Rate = Fraction | None  # None: no bound


class Exact(NamedTuple):
    """The answer; `levels` of full links in b/s times ns."""

    rates: list[Rate]
    levels: dict[int, Fraction]
    left: dict[int, Fraction]


def shares(flows: Sequence[Flow], capacities: Mapping[int, int]) -> Exact:
    weights = [Fraction(1, max(flow.rtt_ns, LEAST_RTT_NS)) for flow in flows]
    limited = sorted({link for flow in flows for link in flow.links if capacities.get(link, 0)})
    rates: list[Rate] = [None] * len(flows)
    rising = set(range(len(flows)))

    def left(link: int) -> Fraction:
        used = (
            (rates[i] or Fraction(0)) * flows[i].links.count(link)
            for i in range(len(flows))
            if i not in rising
        )
        return capacities[link] - sum(used, Fraction(0))

    while rising:
        steps: list[Fraction] = []
        for link in limited:
            weight = sum((weights[i] * flows[i].links.count(link) for i in rising), Fraction(0))
            if weight:
                steps.append(left(link) / weight)
        wanted = [i for i in rising if flows[i].demand_bps != UNLIMITED]
        steps += [flows[i].demand_bps / weights[i] for i in wanted]
        if not steps:
            break
        level = min(steps)
        full = [
            link
            for link in limited
            if (
                weight := sum(
                    (weights[i] * flows[i].links.count(link) for i in rising), Fraction(0)
                )
            )
            and left(link) / weight == level
        ]
        stopped = {i for i in rising if any(link in flows[i].links for link in full)}
        stopped |= {i for i in wanted if flows[i].demand_bps / weights[i] == level}
        for i in stopped:
            rates[i] = level * weights[i]
        rising -= stopped
    remaining = {link: left(link) for link in limited}
    levels = {
        link: max(
            rate / weights[i]
            for i, rate in enumerate(rates)
            if rate is not None and link in flows[i].links
        )
        for link in limited
        if not remaining[link]
    }
    return Exact(rates, levels, remaining)


def entitlement(flow: Flow, rate: Rate, exact: Exact, capacities: Mapping[int, int]) -> Rate:
    rtt = max(flow.rtt_ns, LEAST_RTT_NS)
    found = [
        min(
            max(exact.levels.get(link, Fraction(0)) / rtt, exact.left[link] + (rate or 0)),
            Fraction(capacities[link]),
        )
        for link in flow.links
        if link in exact.left
    ]
    return min(found) if found else None
