"""A graph as bridges and links: what the Topology Zoo has, and files with words of their own.

Nodes are bridges, called by their labels; programs are linked to them by the text that includes the
file. A link has the delay that its edge states, or else that of light in a fibre (2/3 c) along the
great circle between coordinates. Its rate is the edge's LinkSpeedRaw, or rate, bandwidth, capacity.
In a directed graph the first edge from a to b and the first from b to a are the two directions of
one link, the second ones those of another.
Source: the Topology Zoo's attributes (topology-zoo.org); Shadow's network graphs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal, InvalidOperation, localcontext

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats.attributes import Attribute, Attributes
from tdl.formats.element_names import ElementNames
from tdl.formats.topologies.graph_files import (
    GraphEdge,
    GraphFile,
    GraphNode,
    read_gml,
    read_graphml,
)
from tdl.preprocess.includes import Reader
from tdl.preprocess.translated import Line, Piece, Translation

FIBRE_M_PER_S = 199_861_639  # two thirds of the speed of light
_LABELS = ("label", "name")
_TIMES = ("latency", "delay")
_RATES = ("LinkSpeedRaw", "rate", "bandwidth", "capacity")
_LOSSES = ("packet_loss", "loss")
_TIME = re.compile(
    r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,15})?) *(?P<unit>ns|us|ms|s)?"
    r"|(?:[0-9]{1,6}h)?(?:[0-9]{1,6}m)?(?:[0-9]{1,6}(?:\.[0-9]{1,15})?s)?",  # 1m30s, as TDL has it
    re.ASCII,
)
_RATE = re.compile(
    r"([0-9]{1,18}(?:\.[0-9]{1,9})?(?:[eE]\+?[0-9]{1,2})?) *([KMGTkmgt]?)"
    r"(?:bps|bits?/s|bit|bits|b/s|b)?",
    re.ASCII,
)
_LOSS = re.compile(r"[0-9]+(?:\.[0-9]+)?%?", re.ASCII)
_PREFIXES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def translate_graphml(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    return _translate(read_graphml(read(paths[0]), paths[0], sink), sink)


def translate_gml(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    return _translate(read_gml(read(paths[0]), paths[0], sink), sink)


def _translate(graph: GraphFile | None, sink: Sink) -> Translation | None:
    if graph is None:
        return None
    return Translation(tuple(_Topology(graph, sink).lines()))


class _Topology:
    def __init__(self, graph: GraphFile, sink: Sink) -> None:
        self._graph, self._sink = graph, sink
        self._names = ElementNames(map(_label, graph.nodes))
        self._nodes: dict[str, GraphNode] = {}
        self._edges: list[GraphEdge] = []
        self._unknown: list[Span] = []
        self._undirected: list[Span] = []  # edges of one direction that has no other
        self._down: list[Span] = []
        self._called: dict[tuple[frozenset[str], int], str] = {}

    def lines(self) -> Iterator[Line]:
        for node in self._graph.nodes:
            if node.key in self._nodes:
                self._sink.error("TS0501", node.span, f"node {node.key[:40]} stands here twice")
                continue
            self._nodes[node.key] = node
            yield (Piece(f"bridge {self._names.take(node.key, _label(node))}", node.span),)
        if not self._nodes:
            self._sink.error("TS0501", self._graph.span, "the graph has no node")
        self._edges = [edge for edge in self._graph.edges if self._is_link(edge)]
        yield from self._links()
        if self._undirected:
            message = f"directed edges without one that leads back: {len(self._undirected)}"
            why = "a link has both directions, and what the edge says holds for both"
            self._sink.warning("TS0973", self._undirected[0], message, why)
        if self._down:
            message = f"edges that are down: {len(self._down)}"
            self._sink.warning(
                "TS0973", self._down[0], message, "here they are up: at 0s A--B leave"
            )
        if self._unknown:
            message = f"links without a delay: {len(self._unknown)}"
            why = "their edges state none, and an end has no coordinates: at 0s A--B set latency=…"
            self._sink.warning("TS0973", self._unknown[0], message, why)

    def _is_link(self, edge: GraphEdge) -> bool:
        for end in (edge.source, edge.target):
            if end.text not in self._nodes:
                self._sink.error("TS0501", edge.span, f"there is no node {end.text[:40]}")
                return False
        if edge.source.text == edge.target.text:
            name = self._names[edge.source.text]
            self._sink.warning(
                "TS0971",
                edge.span,
                f"the edge from {name} to itself is not carried over",
                "a link has two ends",
            )
            return False
        return True

    def _links(self) -> Iterator[Line]:
        ends = [(edge.source.text, edge.target.text) for edge in self._edges]
        ways = Counter(ends)
        numbers: Counter[frozenset[str] | tuple[str, str]] = Counter()
        for edge, (a, b) in zip(self._edges, ends, strict=True):
            there, back = ways[a, b], ways[b, a]
            pair = frozenset((a, b))
            among = (a, b) if self._graph.is_directed else pair
            numbers[among] += 1
            one_way = self._graph.is_directed and numbers[among] <= min(there, back)
            mark = "->" if one_way else "--"
            pieces = [Piece(f"link {self._names[a]}{mark}{self._names[b]}", edge.span)]
            if (max(there, back) if self._graph.is_directed else there + back) > 1:
                pieces.append(Piece(f"name={self._name_of(pair, numbers[among])}", edge.span))
            if self._graph.is_directed and not one_way:
                self._undirected.append(edge.span)
            if (state := edge.words.get("up")) is not None and state.text == "false":
                self._down.append(state.span)
            pieces += self._delay(edge)
            pieces += self._rate(edge, "up" if one_way else "rate")
            varies = _first(edge.words, ("jitter",))
            if varies is not None and varies.text:
                pieces += self._time(varies, "jitter")
            if (said := _first(edge.words, _LOSSES)) and said.text not in ("", "0", "0.0"):
                if _LOSS.fullmatch(said.text):
                    pieces.append(Piece(f"loss={said.text}", said.span))
                else:
                    self._bad(said, "no share")
            yield tuple(pieces)

    def _name_of(self, pair: frozenset[str], number: int) -> str:
        """Both directions of a link have the same."""
        first, second = sorted(self._names[one] for one in pair)
        wanted = f"{first}_{second}_{number}"
        if (pair, number) not in self._called:
            self._called[pair, number] = self._names.take(f"{first}--{second}:{number}", wanted)
        return self._called[pair, number]

    def _delay(self, edge: GraphEdge) -> Iterator[Piece]:
        said = _first(edge.words, _TIMES)
        if said is not None and said.text:
            yield from self._time(said, "latency")
            return
        places = [self._place(self._nodes[one.text]) for one in (edge.source, edge.target)]
        a, b = places
        if a is None or b is None:
            self._unknown.append(edge.span)
        else:
            us = (distance_m(a, b) * 10**6 + FIBRE_M_PER_S // 2) // FIBRE_M_PER_S
            yield Piece(f"latency={us}us", edge.span)

    def _time(self, said: Attribute, word: str) -> Iterator[Piece]:
        match = _TIME.fullmatch(said.text)
        if match is None:
            self._bad(said, "no time")
        else:
            number, unit = match["number"], match["unit"] or "ms"
            yield Piece(f"{word}={number}{unit}" if number else f"{word}={said.text}", said.span)

    def _place(self, node: GraphNode) -> tuple[Decimal, Decimal] | None:
        found = []
        for word, most in (("Latitude", 90), ("Longitude", 180)):
            said = node.words.get(word)
            if said is None or not said.text:
                return None
            try:
                value = Decimal(said.text)
            except InvalidOperation:
                value = Decimal("NaN")
            if not value.is_finite() or abs(value) > most:
                self._bad(said, f"no {word.lower()}")
                return None
            found.append(value)
        return found[0], found[1]

    def _rate(self, edge: GraphEdge, word: str) -> Iterator[Piece]:
        said = _first(edge.words, _RATES)
        if said is None or not said.text:
            said = _in_units(edge.words)
        if said is None:
            return
        match = _RATE.fullmatch(said.text)
        bps = Decimal(match[1]) * _PREFIXES[match[2].upper()] if match else Decimal(0)
        if match is None or bps != bps.to_integral_value() or not 0 < bps < 10**15:
            self._bad(said, "no rate")
        else:
            yield Piece(f"{word}={int(bps)}b", said.span)

    def _bad(self, said: Attribute, why: str) -> None:
        self._sink.error("TS0501", said.span, f"'{said.text[:40]}' is {why}")


def _in_units(words: Attributes) -> Attribute | None:
    """LinkSpeed "10" with LinkSpeedUnits "G"."""
    speed, unit = words.get("LinkSpeed"), words.get("LinkSpeedUnits")
    if speed is None or unit is None or not speed.text:
        return None
    return Attribute(f"{speed.text}{unit.text}", speed.span)


def _label(node: GraphNode) -> str:
    said = _first(node.words, _LABELS)
    return said.text if said and said.text else node.key


def _first(words: Attributes, names: Sequence[str]) -> Attribute | None:
    """Of these names in any case, one that says something if there is one."""
    found = [words[name] for wanted in names for name in words if name.lower() == wanted.lower()]
    return next((one for one in found if one.text), next(iter(found), None))


# Distances on the earth, the same on each machine: decimal arithmetic, no floats.
#
# Source: the chord between two points of a sphere, and the angle over it; radius 6371 km (IUGG's
# mean radius, rounded).

RADIUS_M = 6_371_000
_DIGITS = 40
_TERMS = 30
_PI = Decimal("3.14159265358979323846264338327950288419716939937510")


def distance_m(a: tuple[Decimal, Decimal], b: tuple[Decimal, Decimal]) -> int:
    """Metres between two points, each latitude and longitude in degrees."""
    with localcontext(Context(prec=_DIGITS)):
        ax, ay, az = _vector(a)
        bx, by, bz = _vector(b)
        half = ((ax - bx) ** 2 + (ay - by) ** 2 + (az - bz) ** 2).sqrt() / 2
        angle = 2 * _asin(min(half, Decimal(1)))
        return int((angle * RADIUS_M).to_integral_value())


def _vector(point: tuple[Decimal, Decimal]) -> tuple[Decimal, Decimal, Decimal]:
    latitude, longitude = (one * _PI / 180 for one in point)
    return (
        _cos(latitude) * _cos(longitude),
        _cos(latitude) * _sin(longitude),
        _sin(latitude),
    )


def _sin(x: Decimal) -> Decimal:
    total = term = x
    for n in range(1, _TERMS):
        term *= -x * x / ((2 * n) * (2 * n + 1))
        total += term
    return total


def _cos(x: Decimal) -> Decimal:
    total = term = Decimal(1)
    for n in range(1, _TERMS):
        term *= -x * x / ((2 * n - 1) * (2 * n))
        total += term
    return total


def _asin(x: Decimal) -> Decimal:
    """By halves of the angle until the series is short."""
    times = 1
    for _ in range(4):
        x /= (2 * (1 + (1 - x * x).sqrt())).sqrt()
        times *= 2
    total = term = x
    for n in range(1, _TERMS):
        term *= x * x * (2 * n - 1) / (2 * n)
        total += term / (2 * n + 1)
    return total * times
