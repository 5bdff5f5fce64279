"""The network at a moment as text that other tools read: DOT (Graphviz), Mermaid, GraphML.

Input: a plan's nodes and links at T. Output: one line each, in the plan's order. GraphML has each
direction as an edge, with every property in the plan's units and, as `latency`, `rate`, `jitter`
and `loss`, in words that `tstorm import` and other readers know; in the two others a link whose
directions are alike is one line, with the interface where an instance has several. What is down is
dashed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import get_type_hints
from xml.sax.saxutils import escape, quoteattr

from compiler.plan.event_kinds import UP
from compiler.plan.properties import BY_WORD, PROPERTIES, LinkState
from compiler.plan.types import Link, Node, end_names, interfaces, named_direction, owner_of
from tstorm import units
from tstorm.output import visible
from tstorm.plotting.subject import Subject

SUFFIXES = (".dot", ".mmd", ".graphml")


def text(what: Subject, at_ns: int, suffix: str) -> str:
    """PlanError."""
    fold = what.plan.folded_at(at_ns)
    topology = what.plan.topology
    network = _Network(what, at_ns, topology.nodes, topology.links, fold.nodes, fold.links)
    lines = {".dot": _dot, ".mmd": _mermaid, ".graphml": _graphml}[suffix](network)
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class _Network:
    what: Subject
    at_ns: int
    nodes: Sequence[Node]
    links: Sequence[Link]
    states: Sequence[str]
    properties: Sequence[LinkState]

    @property
    def title(self) -> str:
        return visible(f"{self.what.name} at {units.duration(self.at_ns)}")

    def drawn(self) -> Iterator[tuple[int, Node]]:
        """Interfaces are their instance."""
        return ((number, node) for number, node in enumerate(self.nodes) if node.owner < 0)

    def ends(self, link: int) -> tuple[int, int]:
        found = self.links[link].src, self.links[link].dst
        src, dst = (end if self.nodes[end].owner < 0 else self.nodes[end].owner for end in found)
        return src, dst

    def lines(self) -> Iterator[tuple[int, int, str, bool, bool]]:
        """From, to, words, whether it is up, whether it is both ways."""
        several = interfaces(self.nodes)
        for first in range(0, len(self.links), 2):
            states = self.properties[first], self.properties[first + 1]
            both = states[0] == states[1]
            for link in (first,) if both else (first, first + 1):
                src, dst = self.ends(link)
                yield src, dst, self.label(link, several), self.properties[link].up, both

    def label(self, link: int, several: Collection[int]) -> str:
        """`several`: instances that have more than one interface, which tell theirs."""
        state = self.properties[link]
        called = named_direction(self.links[link].name)[2]
        words = [called] if called else []
        ends = (self.links[link].src, self.links[link].dst)
        words += [self.nodes[end].interface for end in ends if owner_of(self.nodes, end) in several]
        words.append(units.duration(state.delay_ns))
        if state.rate_bps:
            words.append(units.rate(state.rate_bps))
        lost = getattr(state, BY_WORD["loss"].field)
        if lost:
            words.append(f"{units.probability(lost)} loss")
        return " ".join(words if state.up else [*words, "down"])


def _dot(network: _Network) -> Iterator[str]:
    yield "digraph network {"
    yield f"  label={_quoted(network.title)};"
    yield '  node [shape=ellipse, fontname="sans-serif"];'
    yield '  edge [fontsize=10, fontname="sans-serif"];'
    for number, node in network.drawn():
        shape = "box" if node.service < 0 else "ellipse"
        style = "" if network.states[number] == UP else ", style=dashed"
        yield f"  n{number} [label={_quoted(_said(network, number))}, shape={shape}{style}];"
    for src, dst, words, up, both in network.lines():
        arrow = ", dir=none" if both else ""
        style = "" if up else ", style=dashed"
        yield f"  n{src} -> n{dst} [label={_quoted(words)}{arrow}{style}];"
    yield "}"


def _said(network: _Network, number: int) -> str:
    """A node's name, and what became of it."""
    state = network.states[number]
    return visible(network.nodes[number].name) + ("" if state == UP else f" ({state})")


def _quoted(words: str) -> str:
    escaped = visible(words).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_ENTITIES = str.maketrans({one: f"#{ord(one)};" for one in '"#&<>[](){}|;`'})


def _mermaid(network: _Network) -> Iterator[str]:
    yield "---"
    yield f"title: {_quoted(network.title)}"
    yield "---"
    yield "flowchart LR"
    for number, node in network.drawn():
        words = _said(network, number).translate(_ENTITIES)
        yield f'  n{number}["{words}"]' if node.service < 0 else f'  n{number}(["{words}"])'
    for src, dst, words, up, both in network.lines():
        line = ("---" if both else "-->") if up else ("-.-" if both else "-.->")
        yield f'  n{src} {line}|"{visible(words).translate(_ENTITIES)}"| n{dst}'


_NODE_KEYS = ("kind", "service", "state", "ipv4", "ipv6", "tags")
_LINK_TEXTS = ("name", "latency", "rate", "jitter", "loss")


def _graphml(network: _Network) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    numbers = [row.field for row in PROPERTIES]
    for key in _NODE_KEYS:
        yield f'  <key id="{key}" for="node" attr.name="{key}" attr.type="string"/>'
    for key in (*_LINK_TEXTS, "up", *numbers):
        form = "boolean" if key == "up" else _form(key)
        yield f'  <key id="e_{key}" for="edge" attr.name="{key}" attr.type="{form}"/>'
    yield '  <graph id="network" edgedefault="directed">'
    yield f"    <desc>{_content(network.title)}</desc>"
    for number, node in network.drawn():
        yield f"    <node id={_attribute(node.name)}>"
        services = network.what.plan.topology.services
        values = {
            "kind": "bridge" if node.service < 0 else "instance",
            "service": "" if node.service < 0 else services[node.service].name,
            "state": network.states[number],
            "ipv4": node.ipv4,
            "ipv6": node.ipv6,
            "tags": " ".join(node.tags),
        }
        yield from (_data(key, value) for key, value in values.items() if value)
        yield "    </node>"
    for number, link in enumerate(network.links):
        src, dst = end_names(network.nodes, link)
        ends = f"source={_attribute(src)} target={_attribute(dst)}"
        yield f'    <edge id="{number}" {ends}>'
        yield from _edge(network.properties[number], link)
        yield "    </edge>"
    yield "  </graph>"
    yield "</graphml>"


def _edge(state: LinkState, link: Link) -> Iterator[str]:
    called = named_direction(link.name)[2]
    if called:
        yield _data("e_name", called)
    yield _data("e_latency", units.duration(state.delay_ns))
    if state.rate_bps:
        yield _data("e_rate", units.rate(state.rate_bps))
    for word, said in (("jitter", units.duration), ("loss", units.probability)):
        value = getattr(state, BY_WORD[word].field)
        if value:
            yield _data(f"e_{word}", said(value))
    yield _data("e_up", "true" if state.up else "false")
    for row, value in zip(PROPERTIES, state[1:], strict=True):
        if value:
            yield _data(f"e_{row.field}", str(value))


def _form(key: str) -> str:
    return "long" if get_type_hints(LinkState).get(key) is int else "string"


def _data(key: str, value: str) -> str:
    return f'      <data key="{key}">{_content(value)}</data>'


def _content(words: str) -> str:
    return escape(visible(words))


def _attribute(words: str) -> str:
    return quoteattr(visible(words))
