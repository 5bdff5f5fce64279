"""A containerlab topology as statements.

Nodes of kind linux are services with their images; bridges are bridges; what runs a router's system
is a bridge, too, since routes here are the plan's. A node without a link is in the management
network, as all are there. What a node's `exec` says to tc(8) is what a link of its has in the
direction that leaves the node. Source: containerlab's manual, "Topology definition", "Nodes" and
"Links".
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats import yaml_tree
from tdl.formats.element_names import NAME_HINT, is_name
from tdl.formats.topologies.tc_commands import NoShapingError, shapings
from tdl.formats.written import array, bare, image, pair, variable
from tdl.formats.yaml_tree import Value
from tdl.preprocess.includes import Reader
from tdl.preprocess.translated import Attachment, Line, Piece, Translation
from tdl.suggest import did_you_mean

MANAGEMENT = "mgmt"
_BRIDGES = ("bridge", "ovs-bridge")
_TOP = ("name", "prefix", "mgmt", "settings", "topology", "debug")
_OF_TOPOLOGY = ("defaults", "kinds", "groups", "nodes", "links")
_CARRIED = ("kind", "group", "image", "cmd", "entrypoint", "env", "binds", "user", "cpu", "memory")
_OTHER_ENDS = ("host", "mgmt-net", "macvlan", "dummy", "vxlan", "vxlan-stitch")
_WHY = {
    "exec": "but for tc: addresses and routes are the plan's; setup= is a command before the start",
    "ports": "`tstorm forward` makes a port reachable while the experiment runs",
}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_MEMORY = re.compile(r"([0-9]{1,15}) *([kmg]i?b?|b)?", re.IGNORECASE | re.ASCII)
_UNITS = {
    "k": "KB",
    "kb": "KB",
    "ki": "KiB",
    "kib": "KiB",
    "m": "MB",
    "mb": "MB",
    "mi": "MiB",
    "mib": "MiB",
    "g": "GB",
    "gb": "GB",
    "gi": "GiB",
    "gib": "GiB",
}

_End = tuple[str, str]  # a node and its interface
_NO_SUCH = "no property of a link means the same"


def translate(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    root = yaml_tree.read(read(paths[0]), paths[0], sink)
    return None if root is None else _Lab(root, posixpath.dirname(paths[0]), sink).translation()


class _Lab:
    def __init__(self, root: Value, folder: str, sink: Sink) -> None:
        self._folder, self._sink = folder, sink
        topology = self._map(root.get("topology"), "topology")
        for value, known, what in ((root, _TOP, "a lab"), (topology, _OF_TOPOLOGY, "topology")):
            for name, span, _ in value.values() if value else ():
                if name not in known:
                    hint = did_you_mean(name, known) or f"it has {', '.join(known)}"
                    sink.error("TS0501", span, f"{what} has no field '{name[:40]}'", hint)
        self._topology = topology or root
        self._nodes = self._map(self._topology.get("nodes"), "nodes")
        self._names = [name for name, _, _ in self._nodes.values()] if self._nodes else []
        self._bridges: set[str] = set()
        self._linked: dict[str, int] = {}
        self._told: set[str] = set()
        self._shaped: dict[tuple[str, str], dict[str, str]] = {}  # by node and interface
        self._shaped_at: dict[tuple[str, str], Span] = {}
        self._delays: list[tuple[str, Value]] = []  # of services that start later

    def _map(self, value: Value | None, what: str) -> Value | None:
        if value is None or value.is_null or value.entries is not None:
            return None if value is None or value.is_null else value
        self._sink.error("TS0501", value.span, f"{what} is a map, and not {value.kind}")
        return None

    def translation(self) -> Translation:
        if self._nodes is None:
            self._sink.error("TS0501", self._topology.span, "a lab has topology: nodes:")
            return Translation()
        nodes = [
            line
            for name, span, one in self._nodes.values()
            if (line := self._node(name, span, one))
        ]
        links = list(self._links())
        for (name, interface), span in self._shaped_at.items():
            why = "only interfaces of links are shaped"
            message = f"{name} has no link at {interface[:40]}"
            self._sink.warning("TS0973", span, message, why)
        for name, span, _ in self._nodes.values():
            if name not in self._bridges and self._linked.get(name, 0) > 1:
                why = "only bridges do; a router of its own is a bridge here"
                self._sink.warning(
                    "TS0973", span, f"{name} does not forward between its links", why
                )
        alone = tuple(
            Attachment(name, MANAGEMENT, (Piece(f"link {name}--{MANAGEMENT}", span),))
            for name, span, _ in self._nodes.values()
            if name not in self._linked and name not in self._bridges
        )
        networks = (
            {MANAGEMENT: (Piece(f"bridge {MANAGEMENT}", alone[0].line[0].span),)} if alone else {}
        )
        return Translation((*nodes, *links, *self._starts()), networks, alone)

    def _starts(self) -> Iterator[Line]:
        for name, said in self._delays:
            if re.fullmatch(r"[0-9]{1,7}", said.text or "", re.ASCII):
                yield (Piece(f"at {said.text}s {name} join", said.span),)
            else:
                message = f"'{(said.text or '')[:40]}' is no number of seconds"
                self._sink.error("TS0501", said.span, message)

    # --- nodes ---

    def _node(self, name: str, span: Span, value: Value) -> Line:
        if not is_name(name):
            self._sink.error("TS0501", span, f"nothing can be called '{name[:80]}'", NAME_HINT)
            return ()
        fields = self._fields(value)
        self._exec(name, fields.pop("exec", None))
        kind = fields.get("kind")
        word = (kind.text if kind else None) or ""
        if word in ("host", "ext-container"):
            hint = "an experiment has nodes of its own only"
            self._sink.error("TS0502", (kind or value).span, f"a node of kind {word}", hint)
            return ()
        if word == "linux":
            return tuple(self._service(name, span, fields))
        self._bridges.add(name)
        if word not in _BRIDGES:
            why = "routes are the plan's: its image and configuration are not used"
            place = kind.span if kind else span
            self._sink.warning(
                "TS0973", place, f"{name} ({word or 'of no kind'}) becomes a bridge", why
            )
        return (Piece(f"bridge {name}", span),)

    def _fields(self, value: Value) -> dict[str, Value]:
        """With what the defaults, its kind and its group say, the nearest last; env is joined."""
        own = self._entries(value)
        levels = [self._entries(self._topology.get("defaults"))]
        kind = own.get("kind") or levels[0].get("kind")
        group = own.get("group")
        for section, one in (("kinds", kind), ("groups", group)):
            found = self._topology.get(section)
            if one is not None and found is not None and one.text:
                levels.append(self._entries(found.get(one.text)))
        levels.append(own)
        merged: dict[str, Value] = {}
        for level in levels:
            for name, one in level.items():
                before = merged[name].entries if name == "env" and name in merged else None
                merged[name] = (
                    one.with_entries({**before, **(one.entries or {})}) if before else one
                )
        return merged

    def _entries(self, value: Value | None) -> dict[str, Value]:
        known = self._map(value, "this")
        return {name: one for name, _, one in known.values()} if known else {}

    def _service(self, name: str, span: Span, fields: dict[str, Value]) -> Iterator[Piece]:
        yield Piece(f"service {name}", span)
        if (said := fields.pop("startup-delay", None)) and said.text:
            self._delays.append((name, said))
        if (said := fields.get("image")) and said.text:
            yield Piece(f"img={image(said.text)}", said.span)
        for word, prop in (("entrypoint", "entrypoint"), ("cmd", "command")):
            if (said := fields.get(word)) and said.text:
                yield from self._split(said, said.text, prop)
        if said := self._map(fields.get("env"), "env"):
            listed = [variable(key, one.text or "") for key, _, one in said.values()]
            yield Piece(f"env={';'.join(listed)}", said.span)
        yield from self._binds(fields.get("binds"))
        if (said := fields.get("user")) and said.text:
            yield Piece(f"user={bare(said.text)}", said.span)
        if (said := fields.get("cpu")) and said.text:
            yield from self._number(said, "cpu")
        if (said := fields.get("memory")) and said.text:
            yield from self._memory(said, said.text)
        self._rest(name, fields)

    def _exec(self, name: str, commands: Value | None) -> None:
        """What is said to tc(8) becomes properties of links; the rest the plan does."""
        for one in commands.items or () if commands else ():
            try:
                for found in shapings(one.text or ""):
                    if found is None:
                        self._lost(one.span, "exec")
                        continue
                    key = name, found.device
                    self._shaped_at[key] = one.span
                    self._shaped.setdefault(key, {}).update(found.words)
                    for word in found.lost:
                        message = f"{word} of this command is not carried over"
                        self._sink.warning("TS0971", one.span, message, _NO_SUCH)
                    for said in found.otherwise:
                        self._sink.warning("TS0973", one.span, said, "tc(8) takes it so")
            except NoShapingError as problem:
                self._sink.error("TS0501", one.span, str(problem))

    def _memory(self, said: Value, text: str) -> Iterator[Piece]:
        match = _MEMORY.fullmatch(text.strip())
        if match is None:
            self._sink.error("TS0501", said.span, f"'{text[:40]}' is no size")
        else:
            yield Piece(f"mem={match[1]}{_UNITS.get((match[2] or '').lower(), 'B')}", said.span)

    def _rest(self, name: str, fields: dict[str, Value]) -> None:
        """What the service does not have, or has otherwise."""
        for word, value in fields.items():
            if word == "network-mode" and not value.is_null:
                hint = "an instance has a network of its own, and links to others"
                message = f"network-mode of {name} cannot be carried over"
                self._sink.error("TS0502", value.span, message, hint)
            elif word not in _CARRIED and not value.is_null:
                self._lost(value.span, word)
            elif any("$" in one for one in _texts(value)):
                message = f"{word} of {name} is taken as it is"
                self._sink.warning("TS0973", value.span, message, "variables are not put in")

    def _link_words(self, link: Value) -> None:
        for word, span, _ in link.values():
            if word not in ("endpoints", "type", "mtu"):
                self._lost(span, f"{word} of a link")

    def _split(self, said: Value, text: str, prop: str) -> Iterator[Piece]:
        try:
            yield Piece(f"{prop}={array(shlex.split(text))}", said.span)
        except ValueError as error:
            self._sink.error("TS0501", said.span, f"no shell splits this into words: {error}")

    def _number(self, said: Value, prop: str) -> Iterator[Piece]:
        if said.text and _NUMBER.fullmatch(said.text):
            yield Piece(f"{prop}={said.text}", said.span)
        else:
            self._sink.error("TS0501", said.span, f"'{(said.text or '')[:40]}' is no number")

    def _binds(self, value: Value | None) -> Iterator[Piece]:
        found = []
        for one in value.items or () if value else ():
            host, _, rest = (one.text or "").partition(":")
            path = (
                host
                if host.startswith("/")
                else posixpath.normpath(posixpath.join(self._folder, host))
            )
            found.append(pair(path, rest))
        if found and value is not None:
            yield Piece(f"mount={';'.join(found)}", value.span)

    def _lost(self, span: Span, word: str) -> None:
        if word in self._told:
            return
        self._told.add(word)
        why = _WHY.get(word, "docs/import.md says what is")
        self._sink.warning("TS0971", span, f"{word} is not carried over", why)

    # --- links ---

    def _links(self) -> Iterator[Line]:
        value = self._topology.get("links")
        if value is not None and not value.is_null and value.items is None:
            self._sink.error("TS0501", value.span, "links is a list")
            return
        seen: dict[tuple[str, str], int] = {}
        total: dict[tuple[str, str], int] = {}
        found: list[tuple[Value, _End, _End]] = []
        for one in value.items or () if value else ():
            ends = self._ends(one)
            if ends is not None:
                key = min(ends)[0], max(ends)[0]
                total[key] = total.get(key, 0) + 1
                found.append((one, *ends))
        for one, a, b in found:
            key = min(a, b)[0], max(a, b)[0]
            self._link_words(one)
            pieces: list[Piece] = []
            if total[key] > 1:
                seen[key] = seen.get(key, 0) + 1
                pieces.append(Piece(f"name={key[0]}_{key[1]}_{seen[key]}", one.span))
            mtu = one.get("mtu")
            if mtu is not None and not mtu.is_null:
                pieces += self._number(mtu, "mtu")
            for end, _ in (a, b):
                self._linked[end] = self._linked.get(end, 0) + 1
            for link, shaped in self._ways(one, a, b):
                yield (Piece(link, one.span), *pieces, *shaped)

    def _ways(self, link: Value, a: _End, b: _End) -> Iterator[tuple[str, list[Piece]]]:
        """Both directions at once where they are shaped alike, else each of them."""
        there, back = (self._shaped.get(end, {}) for end in (a, b))
        places = [self._shaped_at.pop(end, link.span) for end in (a, b)]
        if there == back:
            more = ["symmetric"] if "up" in there else []
            words = [*(f"{word}={value}" for word, value in there.items()), *more]
            yield f"link {a[0]}--{b[0]}", [Piece(word, places[0]) for word in words]
            return
        for (x, y), shaped, span in (((a, b), there, places[0]), ((b, a), back, places[1])):
            words = [f"{word}={value}" for word, value in shaped.items()]
            yield f"link {x[0]}->{y[0]}", [Piece(word, span) for word in words]

    def _ends(self, link: Value) -> tuple[_End, _End] | None:
        kind, listed = link.get("type"), link.get("endpoints")
        if kind is not None and kind.text != "veth":
            self._no_link(kind.span, f"a link of type {(kind.text or '')[:40]}")
            return None
        names: list[_End] = []
        for one in (listed.items or ()) if listed else ():
            node, port = one.get("node"), one.get("interface")
            name, _, interface = ((node.text if node else one.text) or "").partition(":")
            interface = (port.text or "") if port else interface
            if name in _OTHER_ENDS:
                self._no_link(one.span, f"a link to {name}")
                return None
            if name not in self._names:
                hint = did_you_mean(name, self._names)
                self._sink.error("TS0501", one.span, f"there is no node '{name[:40]}'", hint)
                return None
            names.append((name, interface))
        if len(names) != 2:
            self._sink.error(
                "TS0501", link.span, "a link has two endpoints", '["a:eth1", "b:eth1"]'
            )
            return None
        if names[0][0] == names[1][0]:
            self._no_link(link.span, "a link from a node to itself")
            return None
        return names[0], names[1]

    def _no_link(self, span: Span, what: str) -> None:
        hint = "an experiment's links are between two of its own nodes"
        self._sink.error("TS0502", span, f"{what} cannot be carried over", hint)


def _texts(value: Value) -> Iterator[str]:
    """All words of a value, however deep."""
    if value.text is not None:
        yield value.text
    for one in (*(value.items or ()), *(entry for _, _, entry in value.values())):
        yield from _texts(one)
