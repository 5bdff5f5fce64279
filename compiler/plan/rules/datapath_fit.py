"""Whether a datapath can do what a plan asks of it, found out before anything is started.

Input: a plan and the name of a datapath. Output: the first thing that is beyond it, with the link
to blame and the source line that gave the link its value; None if all of it is within
compiler/plan/rules/property_limits.py.

Links: every declared state and every `set`. Paths (for the kernel's datapath, which takes less
jitter of a path than a link may have): first a bound, the root of the greatest squares that a path
could be made of, for the whole plan and then epoch by epoch. Only in epochs in which that is too
much are all pairs composed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import isqrt
from operator import attrgetter
from typing import TYPE_CHECKING

from compiler.plan.format import DISTRIBUTIONS, MAX_INT
from compiler.plan.paths.collapse import Collapse
from compiler.plan.paths.path import Paths
from compiler.plan.properties import BY_FIELD, PROPERTIES, LinkState
from compiler.plan.rules.property_limits import HOP_EXACT, LINK, PATHS, jitter_limit
from compiler.plan.types import kernel_lans

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from compiler.plan.state import NetworkState

_UNITS = {"bps": "b/s"}  # of a field's name, where they are written in another way


@dataclass(frozen=True, slots=True)
class Misfit:
    """`what` is beyond `limit` from `at_ns` on, because of `link`."""

    what: str  # 'the jitter of the path from a.0 to b.0'
    value: int
    limit: int
    unit: str
    at_ns: int
    link: str  # 'a.0->s1'
    line: int  # of the source, of the `set` that made it so; 0: it is declared so
    file: str = ""  # the included file that the line is in

    def __str__(self) -> str:
        if not self.limit:
            return f"{self.what} is not possible"
        value, limit = (_shown(number, self.unit) for number in (self.value, self.limit))
        return f"{self.what} is {value}, at most {limit} are possible"


def _shown(number: int, unit: str) -> str:
    """`2.147483647 s`, exactly; what is no time in its own unit."""
    if unit != "ns":
        return f"{number:,} {unit}"
    whole, rest = divmod(number, 10**9)
    return f"{whole:,}.{rest:09}".rstrip("0").rstrip(".") + " s"


def misfit(plan: Plan, datapath: str, begin_ns: int = 0, end_ns: int = MAX_INT) -> Misfit | None:
    """`datapath` is one of PATHS; from `begin_ns` to `end_ns` the plan is to be carried out."""
    return of_links(plan, datapath) or _of_paths(plan, datapath, begin_ns, end_ns)


def of_links(plan: Plan, datapath: str) -> Misfit | None:
    """The same of single links, whatever paths they become; and of the bridges between them, and
    interfaces of instances, which are there hop by hop only."""
    if datapath != HOP_EXACT and (found := _hop_by_hop(plan)) is not None:
        return found
    paths = PATHS[datapath]
    rows = [row.field for row in PROPERTIES if not (row.words or row.table)]
    limits = {field: LINK.get(field, 1) if paths[field] else 0 for field in rows}
    if datapath != HOP_EXACT:
        limits["distribution"] = 0  # that is measured
    beyond = _beyond((link.state for link in plan.topology.links), limits)
    for link in plan.topology.links if beyond else ():
        for field in beyond:
            value = _amount(getattr(link.state, field))
            if value > limits[field]:
                return _misfit(field, value, limits[field], 0, link.name, ("", 0))
    for event in plan.events:
        if event.kind == "background" and event.args.get("flows") and not limits["capacity_bps"]:
            what = f"a background of flows (flows=) on link {event.target}"
            return Misfit(what, 1, 0, "", event.at_ns, event.target, event.line, event.file)
        if event.kind != "set":
            continue
        for field, limit in limits.items():
            value = _amount(event.args.get(field, 0))
            if value > limit:
                return _misfit(field, value, limit, event.at_ns, event.target, event.place)
    return None


def _beyond(states: Iterable[LinkState], limits: Mapping[str, int]) -> list[str]:
    """The fields of which one of these states has more. Most values occur in many states."""
    columns = zip(*map(attrgetter(*limits), states), strict=True)
    return [
        field
        for (field, limit), values in zip(limits.items(), columns, strict=False)
        if max(map(_amount, set(values))) > limit
    ]


def _hop_by_hop(plan: Plan) -> Misfit | None:
    """What one engine for all links can do, and no other."""
    topology = plan.topology
    if topology.hops == "answer":
        file, line = topology.hops_at
        return Misfit("hops answer", 1, 0, "", 0, "", line, file)
    for service in topology.services:
        if service.external is not None:
            what = f"a network card as the end of a link (external {service.name})"
            outside = service.external
            return Misfit(what, 1, 0, "", 0, "", outside.line, outside.file)
        file, line = service.interfaces_at
        if line:
            word = "gateway" if service.gateway else "router" if service.router else "interfaces"
            what = f"an interface for each link of {service.name} ({word})"
            return Misfit(what, 1, 0, "", 0, "", line, file)
    file, line = topology.frames_at
    if line:
        kinds = {
            "air" if one.air else "lan" for one in topology.nodes if one.service < 0 and one.frames
        }
        what = f"links that carry frames ({', '.join(sorted(kinds))})"
        return Misfit(what, 1, 0, "", 0, "", line, file)
    for lan in kernel_lans(topology.machines):
        what = f"a lan of the kernel's (lan {lan.name} kernel)"
        return Misfit(what, 1, 0, "", 0, "", lan.line, lan.file)
    for machine in topology.machines:
        what = f"a machine with parts (node) such as {machine.name}"
        return Misfit(what, 1, 0, "", 0, "", machine.line, machine.file)
    if topology.routing == "ecmp":
        return Misfit("routing ecmp", 1, 0, "", 0, "", 0)
    return None


def _amount(value: int | str) -> int:
    """Of a text 1 where there is one, other than the name of a distribution."""
    return int(bool(value) and value not in DISTRIBUTIONS) if isinstance(value, str) else value


def _misfit(
    field: str, value: int, limit: int, at_ns: int, link: str, place: tuple[str, int]
) -> Misfit:
    file, line = place
    unit = field.rpartition("_")[2]
    what = f"the {BY_FIELD[field].name} of link {link}"
    return Misfit(what, value, limit, _UNITS.get(unit, unit), at_ns, link, line, file)


# --- paths --------------------------------------------------------------------------------------


def _of_paths(plan: Plan, datapath: str, begin_ns: int, end_ns: int) -> Misfit | None:
    words = {state.distribution for state in _states(plan)} | {"normal"}
    least = min(jitter_limit(datapath, word) for word in words)
    longest = 1 + sum(node.service < 0 for node in plan.topology.nodes)
    most: dict[int, int] = {}
    for link, jitter in _jitters(plan):
        most[link] = max(jitter, most.get(link, 0))
    if _bound(most.values(), longest) <= least:
        return None
    collapse = Collapse(plan.topology)
    for at_ns in _moments(plan, begin_ns, end_ns):
        state = plan.state_at(at_ns)
        if _bound((link.jitter_ns for link in state.links if link.up), longest) > least:
            found = _in_state(plan, state, collapse, datapath, least, at_ns)
            if found is not None:
                return found
    return None


def _states(plan: Plan) -> Iterator[LinkState]:
    for link in plan.topology.links:
        yield link.state
    for epoch in plan.epochs:
        for _, state in epoch.links:
            yield state


def _jitters(plan: Plan) -> Iterator[tuple[int, int]]:
    for index, link in enumerate(plan.topology.links):
        yield index, link.state.jitter_ns
    for epoch in plan.epochs:
        for index, state in epoch.links:
            yield index, state.jitter_ns


def _bound(jitters: Iterable[int], longest: int) -> int:
    """No path of at most so many links has more."""
    return isqrt(sum(jitter * jitter for jitter in nlargest(longest, jitters))) + 1


def _moments(plan: Plan, begin_ns: int, end_ns: int) -> Iterator[int]:
    yield begin_ns
    for epoch in plan.epochs:
        if begin_ns < epoch.at_ns <= end_ns:
            yield epoch.at_ns


def _in_state(
    plan: Plan, state: NetworkState, collapse: Collapse, datapath: str, least: int, at_ns: int
) -> Misfit | None:
    paths = Paths(state)
    nodes, links = plan.topology.nodes, plan.topology.links
    for row in collapse.rows(state, range(collapse.core.endpoints)):
        for dest, jitter in zip(row.dests, row.totals.jitter_ns, strict=True):
            if jitter <= least:
                continue
            worst = _worst(state, paths.path(row.source, dest).links)
            limit = jitter_limit(datapath, state.links[worst].distribution)
            if jitter > limit:
                what = f"the jitter of the path from {nodes[row.source].name} to {nodes[dest].name}"
                file, line = _place(plan, links[worst].name, at_ns)
                return Misfit(what, jitter, limit, "ns", at_ns, links[worst].name, line, file)
    return None


def _worst(state: NetworkState, links: Sequence[int]) -> int:
    """The first link of the greatest jitter: a path has its distribution."""
    return max(links, key=lambda link: state.links[link].jitter_ns)


def _place(plan: Plan, link: str, at_ns: int) -> tuple[str, int]:
    """Of the last `set` of the link's jitter or distribution by then."""
    place = ("", 0)
    for event in plan.events:
        if event.at_ns > at_ns:
            break
        made = event.args.keys() & {"jitter_ns", "distribution"}
        if event.kind == "set" and event.target == link and made:
            place = event.place
    return place
