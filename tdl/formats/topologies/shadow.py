"""A Shadow experiment as statements: hosts are services, the nodes of its graph are bridges.

A host has one process here, since an instance has one program. Hosts are linked to the bridge of
their node without a delay; what the graph says of a node's edge to itself is said to be left out
where it would matter. Source: Shadow's manual, "Config specification" and "Network graph".
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

from tdl import quantities
from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats import yaml_tree
from tdl.formats.attributes import Attribute
from tdl.formats.element_names import ElementNames, is_name
from tdl.formats.topologies.graph_files import GraphEdge, GraphFile, GraphNode, read_gml
from tdl.formats.written import text as written
from tdl.formats.written import variable
from tdl.formats.yaml_tree import Value
from tdl.preprocess.includes import Reader
from tdl.preprocess.translated import Line, Piece, Translation
from tdl.suggest import did_you_mean

_TOP = ("general", "network", "hosts", "host_option_defaults", "experimental")
_OF_HOSTS = ("network_node_id", "processes", "bandwidth_up", "bandwidth_down", "ip_addr",
             "host_options")  # fmt: skip
_OF_PROCESSES = ("path", "args", "environment", "start_time", "shutdown_time", "shutdown_signal",
                 "expected_final_state")  # fmt: skip
_OF_EDGES = ("latency", "packet_loss")
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([a-z]*)", re.ASCII)
_TIMES = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("us", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
}
_RATE = re.compile(
    r"([0-9]{1,18}) *(kilo|mega|giga|tera|kibi|mebi|gibi|tebi|[KMGT]i?|k)?(?:bit|bits)", re.ASCII
)
_POWERS = " kmgt"
_SWITCH = b'graph [ node [ id 0 host_bandwidth_up "1 Gbit" host_bandwidth_down "1 Gbit" ] ]'


def translate(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    root = yaml_tree.read(read(paths[0]), paths[0], sink)
    if root is None:
        return None
    experiment = _Experiment(root, sink)
    graph = experiment.graph(paths[0], read)
    return None if graph is None else Translation(tuple(experiment.lines(graph)))


class _Experiment:
    def __init__(self, root: Value, sink: Sink) -> None:
        self._root, self._sink = root, sink
        self._names = ElementNames()

    def routing(self) -> Iterator[Line]:
        """By the least delay, as here, unless each pair of nodes has an edge that is to be used."""
        network = self._root.get("network")
        said = network.get("use_shortest_path") if network else None
        if said is not None and (said.text or "").lower() in ("false", "no", "off"):
            yield (Piece("routing direct", said.span),)

    def graph(self, path: str, read: Reader) -> GraphFile | None:
        network = self._root.get("network")
        said = network.get("graph") if network else None
        kind = said.get("type") if said else None
        word = kind.text if kind else None
        if word == "1_gbit_switch":
            return read_gml(_SWITCH, path, self._sink)
        if said is None or word != "gml":
            span = (kind or said or self._root).span
            self._sink.error("TS0501", span, "a network has a graph", "type: gml, or 1_gbit_switch")
            return None
        inline, file = said.get("inline"), said.get("file")
        if inline is not None and inline.text:
            whole = None if inline.literal else inline.span
            return read_gml(inline.text.encode(), path, self._sink, inline.span.line, whole)
        name = file.get("path") if file else None
        packed = file.get("compression") if file else None
        if name is None or not name.text:
            self._sink.error("TS0501", said.span, "a gml graph has inline, or file: path:")
            return None
        if packed is not None and not packed.is_null:
            self._sink.error("TS0502", packed.span, "a packed graph is not read", "unpack it")
            return None
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name.text))
        return read_gml(read(place), place, self._sink)

    def lines(self, graph: GraphFile) -> Iterator[Line]:
        for name, span, _ in self._root.values():
            if name not in _TOP and not name.startswith("x-"):
                hint = did_you_mean(name, _TOP) or f"it has {', '.join(_TOP)}"
                self._sink.error("TS0501", span, f"a Shadow file has no field '{name[:40]}'", hint)
            elif name in ("experimental", "host_option_defaults"):
                self._lost(span, name)
        yield from self._general()
        yield from self.routing()
        hosts = self._root.get("hosts")
        listed = list(hosts.values()) if hosts else []
        for name, span, _ in listed:
            if is_name(name):
                self._names.take(f"host {name}", name)
            else:
                hint = "names are letters, digits, '_' and single '-'"
                self._sink.error("TS0501", span, f"nothing can be called '{name[:80]}'", hint)
        nodes = {node.key: node for node in graph.nodes}
        at: dict[str, list[str]] = {}
        for name, span, value in listed:
            if is_name(name):
                yield from self._host(name, span, value, nodes, at)
        yield from self._network(graph, nodes, at)

    # --- the whole ---

    def _general(self) -> Iterator[Line]:
        general = self._root.get("general")
        for name, span, value in general.values() if general else ():
            if name == "stop_time":
                time = self._time(value)
                if time:
                    yield (Piece(f"at {time} quit", value.span),)
            elif name == "seed" and (value.text or "").isdigit():
                yield (Piece(f"seed {value.text}", value.span),)
            elif name not in (
                "data_directory",
                "template_directory",
                "progress",
                "log_level",
                "parallelism",
                "heartbeat_interval",
                "bootstrap_end_time",
                "model_unblocked_syscall_latency",
            ):
                self._sink.error("TS0501", span, f"general has no field '{name[:40]}'")
            else:
                self._lost(span, name)

    def _lost(self, span: Span, what: str) -> None:
        self._sink.warning(
            "TS0971", span, f"{what} is not carried over", "docs/import.md says what is"
        )

    def _time(self, value: Value) -> str:
        match = _TIME.fullmatch(value.text or "")
        if match is None or match[2] not in _TIMES:
            self._sink.error("TS0501", value.span, f"'{(value.text or '')[:40]}' is no time")
            return ""
        return f"{match[1]}{_TIMES[match[2]]}"

    def _rate(self, said: Attribute, word: str) -> Iterator[Piece]:
        match = _RATE.fullmatch(said.text)
        if match is None:
            self._sink.error("TS0501", said.span, f"'{said.text[:40]}' is no rate", '"10 Mbit"')
        else:
            prefix = match[2] or " "
            base = 1024 if prefix.endswith(("i", "bi")) else 1000
            rate_bps = int(match[1]) * base ** _POWERS.index(prefix[0].lower())
            yield Piece(f"{word}={quantities.rate(rate_bps)}", said.span)

    # --- hosts ---

    def _host(
        self,
        name: str,
        span: Span,
        value: Value,
        nodes: dict[str, GraphNode],
        at: dict[str, list[str]],
    ) -> Iterator[Line]:
        for field, place, _ in value.values():
            if field not in _OF_HOSTS:
                hint = did_you_mean(field, _OF_HOSTS) or f"it has {', '.join(_OF_HOSTS)}"
                self._sink.error("TS0501", place, f"a host has no field '{field[:40]}'", hint)
            elif field == "host_options":
                self._lost(place, field)
            elif field == "ip_addr":
                message = "the address of a host is not carried over"
                self._sink.warning("TS0971", place, message, f"its name is {name}")
        processes = value.get("processes")
        items = (processes.items or ()) if processes else ()
        if len(items) > 1:
            hint = "an instance has one program: make it a script, or several hosts"
            self._sink.error(
                "TS0502", items[1].span, f"a second process of {name} cannot be carried over", hint
            )
        process = items[0] if items else None
        yield (Piece(f"service {name}", span), *(self._program(process) if process else ()))
        said = value.get("network_node_id")
        node = nodes.get((said.text if said else "0") or "")
        if node is None:
            place = said.span if said else span
            self._sink.error("TS0501", place, "there is no such node in the network's graph")
            return
        at.setdefault(node.key, []).append(name)
        yield self._access(name, span, value, node)
        if process is not None:
            yield from self._life(name, process)

    def _access(self, name: str, span: Span, value: Value, node: GraphNode) -> Line:
        pieces = [Piece(f"link {name}--{self._bridge(node)}", span)]
        for word, prop in (("bandwidth_up", "up"), ("bandwidth_down", "down")):
            own = value.get(word)
            if own is not None and own.text:
                pieces += self._rate(Attribute(own.text, own.span), prop)
            elif (said := node.words.get(f"host_{word}")) is not None:
                pieces += self._rate(said, prop)
        return tuple(pieces)

    def _bridge(self, node: GraphNode) -> str:
        if node.key in self._names:
            return self._names[node.key]
        label = node.words.get("label")
        return self._names.take(node.key, label.text if label and label.text else f"node{node.key}")

    def _program(self, process: Value) -> Iterator[Piece]:
        for field, span, _ in process.values():
            if field not in _OF_PROCESSES:
                hint = did_you_mean(field, _OF_PROCESSES) or f"it has {', '.join(_OF_PROCESSES)}"
                self._sink.error("TS0501", span, f"a process has no field '{field[:40]}'", hint)
        path, args = process.get("path"), process.get("args")
        if path is not None and path.text:
            words = [path.text]
            if args is not None and args.items is not None:
                words += [one.text or "" for one in args.items]
            more = f" {args.text}" if args is not None and args.text else ""
            yield Piece(f"exec={written(shlex.join(words) + more)}", path.span)
        said = process.get("environment")
        if said is not None and said.entries:
            listed = ";".join(variable(key, one.text or "") for key, _, one in said.values())
            yield Piece(f"env={listed}", said.span)
        if (signal := process.get("shutdown_signal")) and (signal.text or "").isalnum():
            yield Piece(f"stop={signal.text}", signal.span)
        if (state := process.get("expected_final_state")) is not None:
            yield from self._expected(state)

    def _expected(self, state: Value) -> Iterator[Piece]:
        exited = state.get("exited")
        if exited is not None and exited.text == "0":
            yield Piece("expect=success", state.span)
        elif state.text == "running":
            yield Piece("expect=run", state.span)
        else:
            self._lost(state.span, "expected_final_state")

    def _life(self, name: str, process: Value) -> Iterator[Line]:
        for word, action in (("start_time", "join"), ("shutdown_time", "leave")):
            said = process.get(word)
            if said is not None and not said.is_null:
                time = self._time(said)
                if time:
                    yield (Piece(f"at {time} {name} {action}", said.span),)

    # --- the network ---

    def _network(
        self, graph: GraphFile, nodes: dict[str, GraphNode], at: dict[str, list[str]]
    ) -> Iterator[Line]:
        used = {one.text for edge in graph.edges for one in (edge.source, edge.target)} | at.keys()
        for node in graph.nodes:
            if node.key in used:
                yield (Piece(f"bridge {self._bridge(node)}", node.span),)
        ways = {(edge.source.text, edge.target.text) for edge in graph.edges}
        for edge in graph.edges:
            a, b = edge.source.text, edge.target.text
            if a not in nodes or b not in nodes:
                self._sink.error("TS0501", edge.span, "there is no such node")
            elif a == b:
                self._within(at.get(a, []), edge)
            else:
                mark = "->" if graph.is_directed and (b, a) in ways else "--"
                link = f"link {self._bridge(nodes[a])}{mark}{self._bridge(nodes[b])}"
                pieces = [Piece(link, edge.span)]
                if (latency := edge.words.get("latency")) is not None:
                    time = self._time(Value(latency.span, latency.text))
                    pieces.append(Piece(f"latency={time}", latency.span))
                if (loss := edge.words.get("packet_loss")) and re.fullmatch(r"[0-9.]+", loss.text):
                    pieces.append(Piece(f"loss={loss.text}", loss.span))
                if (jitter := edge.words.get("jitter")) is not None:
                    self._sink.warning(
                        "TS0971",
                        jitter.span,
                        "jitter is not carried over",
                        "Shadow reads it, and does nothing with it",
                    )
                yield tuple(pieces)

    def _within(self, hosts: list[str], edge: GraphEdge) -> None:
        """Of the edge of a node to itself, which is between its hosts there."""
        said = [f"{word} {edge.words[word].text}" for word in _OF_EDGES if word in edge.words]
        if len(hosts) > 1 and said:
            message = f"{', '.join(said)} between {hosts[0]} and {hosts[1]} are not carried over"
            why = "hosts of one node are at one bridge: give their links half of it each"
            self._sink.warning("TS0971", edge.span, message, why)
