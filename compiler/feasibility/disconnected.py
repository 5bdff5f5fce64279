"""TS0914: instances that are there at the end and have no path to each other then, or never had.

Input: a model without errors and its timeline. Who and since when comes from disconnected_since.py;
here is why: of all ways between two of them, the one with the fewest links and bridges that are
down, and the statements that took those down.

A link that nothing but a flap, nodes that move, or an interval in which it has left, has down when
the experiment quits counts as up: it would come back.
What comes only with the quit itself lasts no time and is nobody's loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compiler.declare.model import Model
from compiler.expand.timeline import Timeline
from compiler.feasibility.connected import Connectivity
from compiler.feasibility.disconnected_since import Parting, Side, partings
from compiler.feasibility.statement_places import StatementPlaces
from compiler.feasibility.wording import Names, lines
from compiler.phrases import moment
from compiler.plan.graph_search import Key, easiest_way
from compiler.plan.types import Event
from tdl import ast
from tdl.diagnostics import Sink
from tdl.formatter import format_selector

MOST = 10  # warnings; the others are counted
_MOST_SIDES = 4  # that are named in a warning
_BEFORE = 1_000_000  # more than any number of links on a way


@dataclass(frozen=True, slots=True)
class _Element:
    """A link direction or a bridge that is down at the end."""

    name: str
    statements: tuple[ast.Dynamic | None, ...]  # for good; None: absent from the start
    at_ns: int  # when it went down
    seq: int


def warn(model: Model, timeline: Timeline, places: StatementPlaces, sink: Sink) -> None:
    down = _down(timeline, places)
    flapping = [name for name, element in down.items() if not element.statements]
    network = Connectivity(model.topology)
    found = partings(model.topology, timeline.events, [network.link_of[n] for n in flapping])
    found = [parting for parting in found if parting.never or parting.since_ns < timeline.end_ns]
    found = [parting for parting in found if not (parting.never and _by_programs(parting, model))]
    if not found:
        return
    for event in timeline.events:
        network.apply(event)
    for name in flapping:
        network.links[network.link_of[name]] = 1
    report = _Report(model, network, down, places, sink)
    for parting in found[:MOST]:
        report.say(parting)
    if len(found) > MOST:
        report.rest(found[MOST:])


def _by_programs(parting: Parting, model: Model) -> bool:
    """Whether all but one of the sides are parts of machines, whose programs may pass things on."""
    inside = {node for machine in model.topology.machines for node in machine.members}
    return sum(not inside.issuperset(side) for side in parting.sides) <= 1


def _down(timeline: Timeline, places: StatementPlaces) -> dict[str, _Element]:
    """The links and bridges that are down at the end by their own events, by name."""
    events: dict[str, Event] = {}
    for event in timeline.events:
        if event.kind in ("link_down", "bridge_down"):
            events[event.target] = event
        elif event.kind in ("link_up", "bridge_up"):
            events.pop(event.target, None)
    found: dict[str, _Element] = {}
    for name, event in events.items():
        statements: tuple[ast.Dynamic | None, ...] = (places.maker(event),)
        if event.kind == "link_down":
            holders = (places.statement(order) for order in timeline.holders[name])
            statements = tuple(s for s in holders if not (s and _ends(s)))
        found[name] = _Element(name, statements, event.at_ns, event.seq)
    return found


def _ends(statement: ast.Dynamic) -> bool:
    """Whether it would bring its links back by itself."""
    action, drawn = statement.action, statement.drawn
    lasts = statement.end_ns is not None if drawn is None else drawn.longest_ns > 0
    if isinstance(action, ast.Leave):
        return lasts and not action.sometime
    if isinstance(action, ast.Partition):
        return lasts
    return isinstance(action, ast.Flap | ast.Move)


class _Report:
    def __init__(
        self,
        model: Model,
        network: Connectivity,
        down: dict[str, _Element],
        places: StatementPlaces,
        sink: Sink,
    ) -> None:
        self._net, self._down, self._places, self._sink = network, down, places, sink
        self._topology = model.topology
        present = [i for i in range(network.instances) if network.nodes[i]]
        self._names = Names(model.topology, present)

    def say(self, parting: Parting) -> None:
        sides = sorted(parting.sides, key=lambda side: (len(side), side))
        a, b = sides[0][0], sides[-1][0]
        there, back = self._way(a, b, parting.since_ns), self._way(b, a, parting.since_ns)
        one_way = _latest(there) != _latest(back)
        obstacles = max((way for way in (there, back) if way is not None), key=len, default=None)
        span, hint = self._reason(a, obstacles, parting.since_ns)
        self._sink.warning("TS0914", span, self._what(parting, sides, one_way), hint)

    def rest(self, others: Sequence[Parting]) -> None:
        """One warning for all that are too many to name."""
        first = others[0]
        sides = sorted(first.sides, key=lambda side: (len(side), side))
        a, b = sides[0][0], sides[-1][0]
        since_ns = first.since_ns
        span, _ = self._reason(a, self._way(a, b, since_ns) or self._way(b, a, since_ns), since_ns)
        members = {member for parting in others for member in min(parting.sides, key=len)}
        message = f"{len(members)} more instances have no path to others at the end"
        hint = f"mend the {MOST} reported ones, and these are named"
        self._sink.warning("TS0914", span, message, hint)

    # --- words ---------------------------------------------------------------------------------

    def _what(self, parting: Parting, sides: Sequence[Side], one_way: bool) -> str:
        each_way = " and back" if one_way else ""
        if len(sides) == 2:
            one, other = (self._names.of(side) for side in sides)
            has = "has" if len(sides[0]) == 1 else "have"
            return f"{one} {_time(parting, has, f'to {other}{each_way}')}"
        return f"{self._many(sides)} {_time(parting, 'have', f'to one another{each_way}')}"

    def _many(self, sides: Sequence[Side]) -> str:
        single = sorted(member for side in sides if len(side) == 1 for member in side)
        words = [self._names.of(side) for side in sides if len(side) > 1]
        if single:
            each = " (each by itself)" if words and len(single) > 1 else ""
            words.insert(0, self._names.of(single) + each)
        if len(words) > _MOST_SIDES:
            words = [*words[: _MOST_SIDES - 1], f"{len(words) - _MOST_SIDES + 1} more groups"]
        return "; ".join(words)

    # --- reasons -------------------------------------------------------------------------------

    def _way(self, a: int, b: int, since_ns: int) -> list[_Element] | None:
        """What is down on the way from `a` to `b` on which the least is down; None: no links.

        The last way there was leads over nothing that went down before `since_ns` for good.
        """
        net = self._net

        def ahead(node: int, cost: Key, _link: int) -> Iterator[tuple[Key, int, int]]:
            for link in net.out[node] if node >= net.instances or node == a else ():
                far = net.ends[link][1]
                yield (cost[0] + self._price(link, far, since_ns),), far, link

        way = easiest_way(a, b, (0,), ahead)
        return None if way is None else self._on_the_way(way)

    def _price(self, link: int, far: int, since_ns: int) -> int:
        """Of going over a link to a node: what is down costs, what was down before costs more."""
        price = 0
        if not self._net.links[link]:
            before = self._down[self._topology.links[link].name].at_ns < since_ns
            price += _BEFORE if before else 1
        if not self._net.nodes[far]:
            element = self._down.get(self._topology.nodes[far].name)
            price += _BEFORE if element is None or element.at_ns < since_ns else 1
        return price

    def _on_the_way(self, way: Sequence[tuple[int, int]]) -> list[_Element]:
        found = []
        for link, node in way:
            for name in (self._topology.links[link].name, self._topology.nodes[node].name):
                if name in self._down and not self._is_up(name):
                    found.append(self._down[name])
        return found

    def _is_up(self, name: str) -> bool:
        """A link in a flap counts as up."""
        net = self._net
        return bool(net.links[net.link_of[name]] if name in net.link_of else False)

    def _reason(
        self, a: int, obstacles: list[_Element] | None, since_ns: int
    ) -> tuple[ast.Span, str]:
        """To blame is what went down at `since_ns`, else what went down last."""
        if not obstacles:
            span = self._places.service(self._topology.nodes[a].service)
            return span, "no links lead from one to the other: link them if they are to talk"
        last = max(obstacles, key=lambda element: (element.at_ns == since_ns, element.seq))
        statement = last.statements[-1]
        also = {s.span.place for element in obstacles for s in element.statements if s is not None}
        if statement is not None:
            also.discard(statement.span.place)
        more = f"; {lines(also)} too" if also else ""
        if statement is None:
            span = self._places.element(last.name)
            return span, f"{last.name!r} is absent until it joins, and it does not join{more}"
        line = ast.said(statement.span.place)
        if isinstance(statement.action, ast.Partition):
            hint = f"the partition of {line} is never healed: add `at T heal`{more}"
            return statement.span, hint
        if _ends(statement):
            hint = f"{line} brings {last.name!r} back only after the end of the run{more}"
            return statement.span, hint
        selector = format_selector(statement.selector)
        word = "reconnect" if isinstance(statement.action, ast.Disconnect) else "join"
        again = f"at T {selector} {word}".replace("  ", " ")
        hint = f"{line} takes {last.name!r} away for good: add `{again}`{more}"
        return statement.span, hint


def _latest(way: Sequence[_Element] | None) -> int:
    """When this direction was cut, as far as that is known; -1: it is open."""
    return max((element.at_ns for element in way or ()), default=-1)


def _time(parting: Parting, has: str, to_whom: str) -> str:
    if parting.never:
        return f"never {has} a path {to_whom}"
    or_before = ", or before," if parting.bound else ""
    return f"{has} no path {to_whom} from {moment(parting.since_ns)}{or_before} to the end"
