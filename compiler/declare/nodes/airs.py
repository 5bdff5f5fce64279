"""`air`: radios that hear each other as nodes move.

Input: the tree without machines, and which instance is at which node that moves. Output: the tree
in which each air is a radio (`car.0.wifi`) for each of its stations, a link that says `air` at an
end is one between a station and its radio, with what it states for what the station sends, and
names of the air stand for its radios. The links between radios, by which stations hear each other,
are made where all links between nodes that move are (mobile_links.py). Source: docs/nodes.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import NamedTuple, TypeVar

from compiler.declare.nodes.other_elements import OtherElements
from compiler.phrases import end_name
from tdl import ast
from tdl.diagnostics import Sink
from tdl.suggest import did_you_mean

_OfLinks = TypeVar("_OfLinks", bound=ast.Selector)
Station = tuple[str, int]  # a service, and which instance of it


class Air(NamedTuple):
    """An air, and the radio of each of its stations."""

    said: ast.Bridges
    radios: dict[Station, ast.Name]


def airs_of(file: ast.File) -> dict[str, ast.Bridges]:
    return {
        name.text: one
        for one in file.statements
        if isinstance(one, ast.Bridges) and one.air
        for name in one.names
    }


def report_still(file: ast.File, sink: Sink) -> bool:
    """Whether there is an air where nothing moves: TS0632."""
    found = airs_of(file)
    for name, one in found.items():
        message = f"nobody is heard in air {name!r}: where its stations are no file says"
        hint = "add `mobility FILE nodes=SERVICE`, or write `lan` where all hear each other"
        sink.error("TS0632", one.span, message, hint)
    return bool(found)


class Airs:
    """What is wrong is reported: TS0101, TS0102, TS0632 and TS0633."""

    def __init__(self, file: ast.File, at_nodes: Mapping[Station, str], sink: Sink) -> None:
        """`at_nodes`: the node of the file that each station is."""
        self._file = file
        self._at_nodes = at_nodes
        self._sink = sink
        self.found = {name: Air(said, {}) for name, said in airs_of(file).items()}
        self._heard: set[frozenset[str]] = set()  # radios with a link between them
        self._links = {id(one): list(self._access(one)) for one in self._at_airs()}
        links = (one for one in file.statements if isinstance(one, ast.LinkStatement))
        self._joined = {frozenset((one.a.text, one.b.text)) for one in links}
        self._check_names()
        self._check_stations()

    def _check_names(self) -> None:
        """What else has the name of an air. Two airs of one name have it, too."""
        for one in self._file.statements:
            named: Iterable[ast.Name] = ()
            if isinstance(one, ast.ServiceStatement | ast.Bottleneck):
                named = (one.name,)
            elif isinstance(one, ast.Bridges):
                named = one.names
            for name in named:
                air = self.found.get(name.text)
                if air is not None and air.said is not one:
                    message = f"{name.text!r} is declared twice; it is an air on "
                    message += ast.said(air.said.span.place)
                    hint = "give one of them another name"
                    self._sink.error("TS0101", name.span, message, hint)

    def _at_airs(self) -> Iterator[ast.LinkStatement]:
        for one in self._file.statements:
            if isinstance(one, ast.LinkStatement) and not self.found.keys().isdisjoint(
                (one.a.text, one.b.text)
            ):
                yield one

    # --- stations ---

    def _access(self, link: ast.LinkStatement) -> Iterator[ast.LinkStatement]:
        """One for each station that the statement is about."""
        wrong = self._wrong(link)
        if wrong is not None:
            self._sink.error("TS0633", link.span, *wrong)
            return
        name, air = link.b.text, self.found[link.b.text]
        stations = [one for one in self._at_nodes if one[0] == link.a.text]
        if link.a_index is not None:
            stations = [one for one in stations if one[1] == link.a_index]
        if not stations:
            self._nobody(link)
        for station in stations:
            if station in air.radios:
                message = f"{end_name(link.a, station[1])} is in air {name!r} already"
                self._sink.error("TS0633", link.span, message, "leave one of the two links out")
                return
            radio = ast.Name(f"{station[0]}.{station[1]}.{name}", air.said.span)
            air.radios[station] = radio
            yield replace(
                link,
                a_index=station[1],
                b=radio,
                down_bps=None,
                symmetric=False,
                back=ast.LinkStatement(radio, link.a, link.span),
                several=link.several or len(stations) > 1,
            )

    def _wrong(self, link: ast.LinkStatement) -> tuple[str, str] | None:
        """What cannot be so of a link at an air, and what to write."""
        one, other = link.a.text, link.b.text
        if one in self.found and other in self.found:
            return f"{one!r} and {other!r} are airs: stations are at them", "link services to each"
        if one in self.found or link.directed:
            station = other if one in self.found else one
            air = one if one in self.found else other
            return "a link at an air begins at the station", f"write `link {station}--{air}`"
        if link.path is not None:
            return "a path lies between programs, and an air is none", "write it as a link"
        if link.b_index is not None:
            return f"{other!r} is an air and has no instances", f"write `{other}`"
        if link.down_bps is not None and not link.symmetric:
            message = "what a station hears has no rate of its own: it comes at that of the sender"
            return message, "leave down= out; up= or rate= is that of what it sends"
        return None

    def _nobody(self, link: ast.LinkStatement) -> None:
        name = link.a.text
        services = [
            one.name.text for one in self._file.statements if isinstance(one, ast.ServiceStatement)
        ]
        if name not in services:
            hint = did_you_mean(name, services) or f"declare it: `service {name}`"
            self._sink.error("TS0102", link.a.span, f"{name!r} is not declared", hint)
            return
        message = f"{end_name(link.a, link.a_index)} is at no node that moves, so nobody hears it"
        hint = f"name it in the mobility: nodes={name}, or link it to a bridge or a lan"
        self._sink.error("TS0632", link.a.span, message, hint)

    def _check_stations(self) -> None:
        heard = {station for air in self.found.values() for station in air.radios}
        deaf = next((one for one in self._at_nodes if one not in heard), None)
        for name, air in self.found.items():
            if not air.radios and not any(link.b.text == name for link in self._at_airs()):
                message = f"nobody is at air {name!r}"
                hint = f"link what moves to it: `link SERVICE--{name} rate=6Mb`"
                self._sink.error("TS0632", air.said.span, message, hint)
            elif deaf is not None and air.radios:
                message = (
                    f"{self._at_nodes[deaf]} moves with {deaf[0]}.{deaf[1]}, which is at no air"
                )
                hint = f"write `link {deaf[0]}--{name}`; where there is an air, all that move are"
                self._sink.error("TS0632", air.said.span, f"{message}", hint)
                return

    # --- the tree ---

    def hear(self, one: ast.Name, other: ast.Name) -> None:
        """There is a link between these radios."""
        self._heard.add(frozenset((one.text, other.text)))

    def resolved(self, statement: ast.Statement) -> Iterator[ast.Statement]:
        match statement:
            case ast.Bridges() if statement.air:
                for name in statement.names:
                    radios = tuple(self.found[name.text].radios.values())
                    if radios:
                        yield replace(statement, names=radios)
            case ast.LinkStatement() if id(statement) in self._links:
                yield from self._links[id(statement)]
            case ast.Dynamic() | ast.Expect() | ast.Figure() | ast.When() | ast.Hunt():
                yield OtherElements(self._selector_of, self._elements).of(statement)
            case _:
                yield statement

    def _elements(self, element: ast.Element) -> list[ast.Element]:
        air = self.found.get(element.name.text)
        if air is None or element.index is not None:
            return [element]
        return [ast.Element(ast.Name(one.text, element.span), element.span)
                for one in air.radios.values()]  # fmt: skip

    def _selector_of(self, statement: ast.Dynamic) -> ast.Selector:
        """Of a link to a radio, what is set is of what the station sends."""
        found = self._selector(statement.selector)
        if not isinstance(statement.action, ast.Set | ast.Ramp | ast.Background):
            return found
        if isinstance(found, ast.Members):
            return replace(found, found=tuple(map(self._sending, found.found)))
        return self._sending(found)

    def _sending(self, one: _OfLinks) -> _OfLinks:
        radios = {name.text for air in self.found.values() for name in air.radios.values()}
        if not isinstance(one, ast.LinkSelector) or one.b.name.text not in radios:
            return one
        return one if one.a.name.text in radios else replace(one, directed=True)

    def _selector(self, selector: ast.Selector) -> ast.Selector:
        match selector:
            case ast.Element():
                elements = self._elements(selector)
                if elements == [selector]:
                    return selector
                return ast.Members(selector, tuple(elements), selector.span)
            case ast.LinkSelector():
                links = self._between(selector)
                if links == [selector]:
                    return selector
                if len(links) == 1:
                    return links[0]
                return ast.Members(selector, tuple(links), selector.span)
            case ast.Members():
                return replace(
                    selector,
                    found=tuple(self._flat(selector.found)),
                    leaving=tuple(
                        one
                        for one in self._flat(selector.leaving)
                        if isinstance(one, ast.LinkSelector)
                    ),
                )
        return selector

    def _flat(
        self, found: Iterable[ast.Element | ast.LinkSelector]
    ) -> Iterator[ast.Element | ast.LinkSelector]:
        for one in found:
            if isinstance(one, ast.Element):
                yield from self._elements(one)
            else:
                yield from self._between(one)

    def _between(self, link: ast.LinkSelector) -> list[ast.LinkSelector]:
        """The links that a name of one stands for; itself, where it is none of an air's."""
        for one, other in ((link.a, link.b), (link.b, link.a)):
            air = self.found.get(other.name.text)
            if air is not None:
                found = [
                    (_instance(one, station), ast.Element(radio, other.span))
                    for station, radio in air.radios.items()
                    if _is_of(one, station)
                ]
                ends = found if one is link.a else [(b, a) for a, b in found]
                return [replace(link, a=a, b=b) for a, b in ends] or [link]
        called = "" if link.name is None else link.name.text
        if called not in self.found and (called or self._is_joined(link)):
            return [link]
        airs = [self.found[called]] if called else list(self.found.values())
        return [one for air in airs for one in self._pairs(link, air)] or [link]

    def _is_joined(self, link: ast.LinkSelector) -> bool:
        """Whether a statement links the two besides."""
        return frozenset((link.a.name.text, link.b.name.text)) in self._joined

    def _pairs(self, link: ast.LinkSelector, air: Air) -> Iterator[ast.LinkSelector]:
        seen: set[tuple[str, ...]] = set()
        for one, other in product(_radios(air, link.a), _radios(air, link.b)):
            key = (one.text, other.text) if link.directed else tuple(sorted((one.text, other.text)))
            if frozenset((one.text, other.text)) in self._heard and key not in seen:
                seen.add(key)
                a, b = (ast.Element(name, link.span) for name in (one, other))
                yield replace(link, a=a, b=b, name=None)


def _radios(air: Air, element: ast.Element) -> Collection[ast.Name]:
    return [radio for station, radio in air.radios.items() if _is_of(element, station)]


def _is_of(element: ast.Element, station: Station) -> bool:
    return element.name.text == station[0] and element.index in (None, station[1])


def _instance(element: ast.Element, station: Station) -> ast.Element:
    return replace(element, index=station[1])
