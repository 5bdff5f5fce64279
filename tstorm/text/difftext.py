"""`tstorm diff`: what differs between two plans, as text and as JSON.

Every list is cut at `limit` entries, and says so.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from compiler.analysis import path_diff
from compiler.analysis.history import History
from compiler.analysis.network_side import MOST_EQUAL
from compiler.analysis.timeline_diff import WHAT
from compiler.phrases import number
from compiler.plan.paths import path_properties
from compiler.plan.properties import BY_FIELD
from tstorm import output, units
from tstorm.notes import action, argument, arguments

if TYPE_CHECKING:
    from compiler.analysis.network_diff import Group, NetworkDifference
    from compiler.analysis.plan_diff import PlanDiff
    from compiler.analysis.timeline_diff import TimelineEntry
    from compiler.analysis.topology_diff import TopologyDifference
    from compiler.plan.reader import Plan
    from tstorm.notes import Statements

Figures = dict[str, Any]  # of a path; {} = unreachable

_MARKS = {"added": "+", "removed": "-", "moved": ">", "changed": "~", "reordered": "="}
_WORDS = {"only_a": "only in A", "only_b": "only in B"}
_PROPERTIES = (
    (path_diff.ROUTE, "route"),
    *((bit, BY_FIELD[field].word) for field, bit in path_diff.PROPERTY.items()),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """Two plans, what the user called them, and what differs."""

    names: tuple[str, str]
    plans: tuple[Plan, Plan]
    statements: tuple[Statements, Statements]
    diff: PlanDiff
    limit: int


def _more(left: int, word: str, of: str = "") -> str:
    return f"… and {number(left, f'more {word}')}{of} (--limit)"


def differs_in(mask: int) -> list[str]:
    """`['delay', 'loss']`, or `['only in a']`."""
    if mask & (path_diff.ONLY_A | path_diff.ONLY_B):
        return ["only_a" if mask & path_diff.ONLY_A else "only_b"]
    return [word for bit, word in _PROPERTIES if mask & bit]


class _Samples:
    """The figures of single pairs in both plans."""

    def __init__(self, plans: tuple[Plan, Plan]) -> None:
        self._histories = tuple(History(plan) for plan in plans)
        self._nodes = [
            {node.name: i for i, node in enumerate(plan.topology.nodes)} for plan in plans
        ]

    def both(self, src: str, dst: str, at_ns: int) -> tuple[Figures, Figures]:
        one, two = (self._one(side, src, dst, at_ns) for side in (0, 1))
        return one, two

    def _one(self, side: int, src: str, dst: str, at_ns: int) -> Figures:
        history, nodes = self._histories[side], self._nodes[side]
        epoch = history.epoch_at(at_ns)
        walk = history.walk(nodes[src], nodes[dst], epoch)
        if not walk.arrives:
            return {}
        stretch = path_properties.of_links(history.link(link, epoch) for link in walk.links)
        names = history.topology.links
        found = {
            "route": [names[link].name for link in walk.links],
            **path_properties.totals(stretch)._asdict(),
        }
        if walk.shared:
            routes = islice(history.equal_routes(nodes[src], nodes[dst], epoch), MOST_EQUAL)
            found["routes"] = [[names[link].name for link in links] for links in routes]
        return found


# --- text ----------------------------------------------------------------------------------------


def show(compared: Compared) -> None:
    """Prints it; nothing where nothing differs."""
    if compared.diff.equal:
        return
    for mark, name, plan in zip("-+", compared.names, compared.plans, strict=True):
        output.line(f"{mark * 3} {name} (seed {plan.seed}, {len(plan.events):,} events)")
    for part in (_topology, _timeline, _network):
        for text in part(compared):
            output.line(text)


def _topology(compared: Compared) -> Iterator[str]:
    found, limit = compared.diff.topology, compared.limit
    if not found:
        return
    yield ""
    yield f"topology: {number(len(found), 'difference')}"
    for one in found[:limit]:
        yield f"  {_difference(one)}"
    if len(found) > limit:
        yield f"  {_more(len(found) - limit, 'difference')}"


def _difference(one: TopologyDifference) -> str:
    if not one.field:
        said = (
            one.name if one.kind in ("expectation", "figure", "when") else f"{one.kind} {one.name}"
        )
        return f"{'+' if one.a is None else '-'} {said}"
    old, new = (_value(one.field, value) for value in (one.a, one.b))
    row = BY_FIELD.get(one.field)
    field = row.called if row is not None and row.called else one.field
    name = " ".join(word for word in (one.kind, one.name, field) if word)
    return f"~ {name}: {old} -> {new}"


def _value(field: str, value: Any) -> str:
    if isinstance(value, int):
        if field == "end_ns":
            return units.duration(value)
        return argument(field, value).partition("=")[2]
    return output.to_json(value)


def _timeline(compared: Compared) -> Iterator[str]:
    found, limit = compared.diff.timeline, compared.limit
    if not found:
        return
    counts = Counter(entry.what for entry in found)
    yield ""
    yield "timeline: " + ", ".join(f"{counts[what]:,} {what}" for what in WHAT if counts[what])
    for entry in found[:limit]:
        yield from _entry(entry, compared.statements)
    if len(found) > limit:
        yield f"  {_more(len(found) - limit, 'event')}"


def _entry(entry: TimelineEntry, statements: tuple[Statements, Statements]) -> Iterator[str]:
    a, b, mark = entry.a, entry.b, _MARKS[entry.what]
    event = a or b
    assert event is not None
    at = units.duration(event.at_ns)
    if a is None or b is None:
        yield f"  {mark} {at} {action(event)}"
    elif entry.what == "moved":
        yield f"  {mark} {at} -> {units.duration(b.at_ns)} {action(a)}"
    elif entry.what == "changed":
        yield f"  {mark} {at} {action(a)} -> {arguments(b)}"
    else:
        yield f"  {mark} {at} the same events in another order, from {action(a)} on"
    shown = [side.said(one.place) for side, one in zip(statements, (a, b), strict=True) if one]
    for text in dict.fromkeys(shown):
        yield f"      {text}"


def _network(compared: Compared) -> Iterator[str]:
    network, limit = compared.diff.network, compared.limit
    if network is None:
        return
    until = units.duration(network.end_ns)
    yield ""
    count = network.compared * (network.compared - 1)
    yield (
        f"network: {_differing(network):,} of {count:,} pairs differ at some time before {until}"
    )
    if not limit and network.groups:
        yield f"  {_more(len(network.groups), 'group')}"
        return
    samples = _Samples(compared.plans)
    for group in network.groups[:limit]:
        yield from _group(group, network, compared, samples)
    if len(network.groups) > limit:
        left = network.groups[limit:]
        pairs = number(sum(len(group.pairs) for group in left), "pair")
        yield f"  {_more(len(left), 'group', f' with {pairs}')}"


def _differing(network: NetworkDifference) -> int:
    """How many pairs differ at any time."""
    if len(network.groups) == 1:
        return len(network.groups[0].pairs)
    found: set[int] = set()
    for group in network.groups:
        found.update(group.pairs)
    return len(found)


def _group(
    group: Group, network: NetworkDifference, compared: Compared, samples: _Samples
) -> Iterator[str]:
    what = ", ".join(_WORDS.get(word, word) for word in differs_in(group.mask))
    span = f"{units.duration(group.from_ns)} to {units.duration(group.to_ns)}"
    yield f"  {span}: {number(len(group.pairs), 'pair')}, {what}"
    for src, dst in _named(group.pairs[: compared.limit], network, compared.plans[0]):
        one, two = samples.both(src, dst, group.from_ns)
        yield f"    {src} -> {dst}" + _figures(group.mask, one, two)
    if len(group.pairs) > compared.limit:
        yield f"    {_more(len(group.pairs) - compared.limit, 'pair')}"


def _named(pairs: array[int], network: NetworkDifference, plan: Plan) -> Iterator[tuple[str, str]]:
    nodes = plan.topology.nodes
    for pair in pairs:
        src, dst = network.names(pair)
        yield nodes[src].name, nodes[dst].name


def _figures(mask: int, one: Mapping[str, Any], two: Mapping[str, Any]) -> str:
    """`: delay 10ms -> 20ms, loss 0% -> 1%`; '' where one has no path."""
    parts = []
    if one and two:
        for name in path_diff.PROPERTY:
            if one[name] != two[name]:
                old, new = argument(name, one[name]), argument(name, two[name])
                parts.append(f"{old.replace('=', ' ')} -> {new.partition('=')[2]}")
        if mask & path_diff.ROUTE:
            parts.append(_routes(one, two))
    return f": {', '.join(parts)}" if parts else ""


def _routes(one: Mapping[str, Any], two: Mapping[str, Any]) -> str:
    """`route a->b -> a->c`; where there are several, `4 paths -> 3, without a->b`."""
    if "routes" not in one and "routes" not in two:
        return f"route {' '.join(one['route'])} -> {' '.join(two['route'])}"
    old, new = (
        [" ".join(route) for route in side.get("routes", [side["route"]])] for side in (one, two)
    )
    found = f"{number(len(old), 'path')} -> {len(new)}"
    for word, left, right in (("without", old, new), ("with", new, old)):
        gone = [route for route in left if route not in right]
        if gone:
            more = f" and {len(gone) - 1} more" if gone[1:] else ""
            found += f", {word} {gone[0]}{more}"
    return found


# --- JSON ----------------------------------------------------------------------------------------


def record(compared: Compared) -> dict[str, Any]:
    """All that text says, as one object."""
    a, b = (
        {"name": name, "sha256": plan.digest, "seed": plan.seed, "end_ns": plan.end_ns}
        for name, plan in zip(compared.names, compared.plans, strict=True)
    )
    diff, limit = compared.diff, compared.limit
    counts = Counter(entry.what for entry in diff.timeline)
    return {
        "equal": diff.equal,
        "a": a,
        "b": b,
        "topology": {
            "count": len(diff.topology),
            "differences": [
                {"kind": one.kind, "name": one.name, "field": one.field, "a": one.a, "b": one.b}
                for one in diff.topology[:limit]
            ],
        },
        "timeline": {
            "count": len(diff.timeline),
            "counts": {what: counts[what] for what in WHAT},
            "entries": [_entry_record(one, compared) for one in diff.timeline[:limit]],
        },
        "network": None if diff.network is None else _network_record(diff.network, compared),
    }


def _entry_record(entry: TimelineEntry, compared: Compared) -> dict[str, Any]:
    first, second = compared.statements
    return {
        "what": entry.what,
        "a": None if entry.a is None else first.record(entry.a),
        "b": None if entry.b is None else second.record(entry.b),
    }


def _network_record(network: NetworkDifference, compared: Compared) -> dict[str, Any]:
    limit = compared.limit
    samples = _Samples(compared.plans) if limit and network.groups else None
    groups = []
    for group in network.groups[:limit]:
        assert samples is not None
        pairs = []
        for src, dst in _named(group.pairs[:limit], network, compared.plans[0]):
            one, two = samples.both(src, dst, group.from_ns)
            pairs.append({"src": src, "dst": dst, "a": one or None, "b": two or None})
        groups.append(
            {
                "from_ns": group.from_ns,
                "to_ns": group.to_ns,
                "differs": differs_in(group.mask),
                "count": len(group.pairs),
                "pairs": pairs,
            }
        )
    return {
        "instances": network.compared,
        "until_ns": network.end_ns,
        "pairs_differing": _differing(network),
        "count": len(network.groups),
        "groups": groups,
    }
