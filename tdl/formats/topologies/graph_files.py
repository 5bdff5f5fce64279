"""Graphs in GraphML and GML: nodes and edges, each with words that have their places.

Source: GraphML's primer (graphml.graphdrawing.org), of which keys, nodes, edges and their data are
read; M. Himsolt's report on GML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats import xml_tree
from tdl.formats.attributes import Attribute, Attributes

MAX_BYTES = 16 << 20
MAX_NESTING = 32
_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+|#[^\n]*)|(?P<mark>[\[\]])|\"(?P<string>[^\"]*)\"|(?P<word>[^\s\[\]\"]+)"
)


@dataclass(frozen=True, slots=True)
class GraphNode:
    key: str
    span: Span
    words: Attributes


@dataclass(frozen=True, slots=True)
class GraphEdge:
    source: Attribute
    target: Attribute
    span: Span
    words: Attributes


@dataclass(slots=True)
class GraphFile:
    """`is_directed`: an edge is one direction of a link."""

    span: Span
    is_directed: bool = False
    nodes: list[GraphNode] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)


def read_graphml(data: bytes, file: str, sink: Sink) -> GraphFile | None:
    """None after a report."""
    root = xml_tree.read(data, file, sink)
    if root is None:
        return None
    graphs = [one for one in root.children if one.name == "graph"]
    if root.name != "graphml" or len(graphs) != 1:
        message = f"a GraphML file has one <graph> in <graphml>, this one {len(graphs)}"
        sink.error("TS0501", root.span, message)
        return None
    keys = {
        one.attributes["id"].text: one.attributes["attr.name"].text
        for one in root.children
        if one.name == "key" and {"id", "attr.name"} <= one.attributes.keys()
    }
    default = graphs[0].get("edgedefault")
    graph = GraphFile(graphs[0].span, default is not None and default.text == "directed")
    defaults = {kind: _defaults(root, kind) for kind in ("node", "edge")}
    for one in graphs[0].children:
        words = {**defaults.get(one.name, {}), **_data(one, keys)}
        for inner in one.children:
            if inner.name == "graph":
                sink.error("TS0502", inner.span, "a graph in a node cannot be carried over")
        if one.name == "node":
            key = one.get("id")
            if key is None:
                sink.error("TS0501", one.span, "a node has an id")
            else:
                graph.nodes.append(GraphNode(key.text, key.span, words))
        elif one.name == "edge":
            ends = one.get("source"), one.get("target")
            if ends[0] is None or ends[1] is None:
                sink.error("TS0501", one.span, "an edge has source and target")
            else:
                graph.edges.append(GraphEdge(ends[0], ends[1], one.span, words))
        elif one.name in ("hyperedge", "port"):
            sink.error("TS0502", one.span, f"<{one.name}> cannot be carried over")
    return graph


def _defaults(root: xml_tree.XmlElement, kind: str) -> Attributes:
    """What nodes, or edges, have that say nothing themselves."""
    found: Attributes = {}
    for key in root.children:
        name, whose = key.get("attr.name"), key.get("for")
        said = next((one for one in key.children if one.name == "default"), None)
        is_ours = key.name == "key" and (whose is None or whose.text in (kind, "all"))
        if is_ours and name is not None and said is not None:
            found[name.text] = Attribute(said.text.strip(), said.span)
    return found


def _data(element: xml_tree.XmlElement, keys: dict[str, str]) -> Attributes:
    found: Attributes = {}
    for one in element.children:
        if one.name == "data" and (key := one.get("key")) is not None:
            found[keys.get(key.text, key.text)] = Attribute(one.text.strip(), one.span)
    if (label := element.get("id")) is not None and element.name == "edge":
        found.setdefault("id", label)
    return found


@dataclass(frozen=True, slots=True)
class _Entry:
    key: Attribute
    value: Attribute | list[_Entry]


def read_gml(
    data: bytes, file: str, sink: Sink, before: int = 0, place: Span | None = None
) -> GraphFile | None:
    """None after a report. `before`: how many lines of the file are before these; `place`: where
    all of it is, if its lines are not the file's."""
    if len(data) > MAX_BYTES:
        message = f"the file has more than {MAX_BYTES >> 20} MiB"
        sink.error("TS0506", Span(1, 1, 1, 2, file), message)
        return None
    entries = _entries(_tokens(data.decode("utf-8", "replace"), file, before, place), sink)
    if entries is None:
        return None
    found = [one for one in entries if one.key.text == "graph" and isinstance(one.value, list)]
    if len(found) != 1 or not isinstance(found[0].value, list):
        message = f"a GML file has one graph [ … ], this one {len(found)}"
        sink.error("TS0501", place or Span(1, 1, 1, 2, file), message)
        return None
    inner = found[0].value
    words = _words(inner, sink)
    directed = words.get("directed")
    graph = GraphFile(found[0].key.span, directed is not None and directed.text == "1")
    for one in inner:
        if isinstance(one.value, list) and one.key.text in ("node", "edge"):
            _take(graph, one.key, _words(one.value, sink), sink)
    return graph


def _take(graph: GraphFile, key: Attribute, words: Attributes, sink: Sink) -> None:
    wanted = ("id",) if key.text == "node" else ("source", "target")
    for word in wanted:
        if word not in words:
            sink.error("TS0501", key.span, f"{key.text} has {word}")
            return
    if key.text == "node":
        graph.nodes.append(GraphNode(words["id"].text, key.span, words))
    else:
        graph.edges.append(GraphEdge(words["source"], words["target"], key.span, words))


def _words(entries: list[_Entry], sink: Sink) -> Attributes:
    found: Attributes = {}
    for one in entries:
        if isinstance(one.value, Attribute):
            if one.key.text in found:
                sink.error("TS0501", one.key.span, f"'{one.key.text[:40]}' stands here twice")
            found[one.key.text] = one.value
    return found


def _entries(tokens: Iterable[tuple[Attribute, str]], sink: Sink) -> list[_Entry] | None:
    """Keys and values, with a stack of our own; None after a report."""
    stack: list[list[_Entry]] = [[]]
    keys: list[Attribute] = []
    key: Attribute | None = None
    for word, kind in tokens:
        if kind == "mark" and word.text == "[" and key is not None and len(stack) <= MAX_NESTING:
            keys.append(key)
            stack.append([])
            key = None
        elif kind == "mark" and word.text == "]" and key is None and keys:
            inner = stack.pop()
            stack[-1].append(_Entry(keys.pop(), inner))
        elif kind == "word" and key is None:
            key = word
        elif kind in ("word", "string") and key is not None:
            stack[-1].append(_Entry(key, word))
            key = None
        else:
            sink.error("TS0508", word.span, f"this is not GML: '{word.text[:20]}' here")
            return None
    if keys or key is not None:
        sink.error("TS0508", (key or keys[-1]).span, "this is not GML: the file ends in it")
        return None
    return stack[0]


def _tokens(
    text: str, file: str, before: int, place: Span | None
) -> Iterator[tuple[Attribute, str]]:
    line, start, at = before + 1, 0, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:  # a string without an end
            span = Span(line, at - start + 1, line, at - start + 2, file)
            yield Attribute(text[at], place or span), "mark"
            return
        kind = match.lastgroup or ""
        if kind != "space":
            span = Span(
                line, at - start + 1, line, at - start + 1 + len(match[0].split("\n")[0]), file
            )
            yield Attribute(match[kind], place or span), kind
        newlines = match[0].count("\n")
        if newlines:
            line += newlines
            start = at + match[0].rindex("\n") + 1
        at = match.end()
