"""The JSON file of a link simulator with one server and its clients, as services and links.

Each client has a link to the server; forward is from client to server. Each direction has its own
throughput, delay and loss, and a key that is missing says that there is no limit, no delay and no
loss. Services are declared where the text does not: it gives them their programs. Source: Fig. 4.6
of the thesis on nested containers whose link emulator docs/fidelity.md is measured beside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats import json_tree
from tdl.formats.yaml_tree import Value
from tdl.preprocess.includes import Reader
from tdl.preprocess.translated import Line, Piece, Translation
from tdl.suggest import did_you_mean

WORDS = r'"Linksimulation"'
MAX_CLIENTS = 10_000
SERVER = "server"
WAYS = ("forward", "backward")
_PARTS = ("Routerpairs", "Linkproperties")
_OF_PAIRS = ("Routerid", "Clientcount", "Server_IP")
_OF_PROPERTIES = ("Routerid", "properties")
_CLIENT = re.compile(r"Client_IP([1-9][0-9]{0,5})", re.ASCII)
_KEY = re.compile(r"(throughput|delay|packetloss)_([0-9]{1,6})_(forward|backward)", re.ASCII)
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_RATE = re.compile(rf"({_NUMBER}) ?([KkMGT]?)(?:bps|bit/s)", re.ASCII)
_TIME = re.compile(rf"({_NUMBER}) ?(ns|us|ms|s)", re.ASCII)
_LOSS = re.compile(rf"({_NUMBER}) ?%?", re.ASCII)
_VALUES = {
    "throughput": (_RATE, "40Mbps"),
    "delay": (_TIME, "8ms"),
    "packetloss": (_LOSS, "0.5, in percent"),
}

Properties = Mapping[str, Piece]  # by key: a property of a link


@dataclass(frozen=True, slots=True)
class _Client:
    name: str
    number: int
    router: str
    span: Span


def translate(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    """None after a report."""
    if len(paths) > 1:
        span = Span(1, 1, 1, 2, paths[0])
        sink.error("TS0501", span, "this is no matrix", f'write include "{paths[0]}"')
        return None
    root = json_tree.read(read(paths[0]), paths[0], sink)
    return None if root is None else _LinkSimulation(sink).translation(root)


class _LinkSimulation:
    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._addresses: dict[IPv4Address, Span] = {}
        self._server: Value | None = None

    def translation(self, root: Value) -> Translation:
        inner = self._fields(root, ("Linksimulation",), "the file").get("Linksimulation", root)
        parts = self._fields(inner, _PARTS, "Linksimulation")
        pairs = self._routers(parts.get("Routerpairs"), _OF_PAIRS)
        said = self._routers(parts.get("Linkproperties"), _OF_PROPERTIES)
        clients = [
            client
            for router, value in pairs.items()
            for client in self._clients(router, value, alone=len(pairs) == 1)
        ]
        for router, value in said.items():
            if router not in pairs:
                message = f"no pair of routers has the Routerid {router[:40]}"
                self._bad(value.get("Routerid") or value, message, did_you_mean(router, pairs))
        properties = {router: self._properties(router, said[router], clients)
                      for router in pairs if router in said}  # fmt: skip
        if len(clients) > MAX_CLIENTS:
            self._sink.error("TS0506", inner.span, f"more than {MAX_CLIENTS:,} clients")
            return Translation()
        self._told(clients)
        lines = [line for one in clients for line in self._links(one, properties)]
        names = [(one.name, one.span) for one in clients]
        if self._server is not None:
            names.append((SERVER, self._server.span))
        services = {name: (Piece(f"service {name}", span),) for name, span in names}
        return Translation(tuple(lines), services=services)

    # --- what all parts share ---

    def _bad(self, value: Value, message: str, hint: str | None = None) -> None:
        self._sink.error("TS0501", value.span, message, hint)

    def _fields(
        self, value: Value, known: Sequence[str], what: str, others: re.Pattern[str] | None = None
    ) -> dict[str, Value]:
        """What a map has, after a report of what it does not know and of what it is."""
        if value.entries is None:
            self._bad(value, f"{what} is an object, and not {value.kind}", f"{known[0]}: …")
        for name, span, _ in value.values():
            if name not in known and not (others and others.fullmatch(name)):
                hint = did_you_mean(name, known) or f"it has {', '.join(known)}"
                self._sink.error("TS0501", span, f"{what} has no key '{name[:40]}'", hint)
        for name in known:
            if value.entries is not None and name not in value.entries:
                self._bad(value, f"{what} has {name}", "which is missing here")
        return {name: one for name, _, one in value.values()}

    def _routers(self, part: Value | None, known: Sequence[str]) -> dict[str, Value]:
        """The entries of a part, by Routerid."""
        found: dict[str, Value] = {}
        if part is not None and part.items is None:
            self._bad(part, f"this is a list, and not {part.kind}", "[{…}]")
        others = _CLIENT if known is _OF_PAIRS else None
        for one in (part.items if part else None) or ():
            router = self._fields(one, known, "an entry", others).get("Routerid")
            if router is None:
                continue
            if not re.fullmatch("[0-9]{1,9}", router.text or ""):
                self._bad(router, "a Routerid is a number")
            elif router.text in found:
                self._bad(router, f"the Routerid {router.text} stands here twice")
            else:
                found[str(router.text)] = one
        if part is not None and part.items == ():
            self._bad(part, "nothing is in it")
        return found

    # --- clients and the server ---

    def _clients(self, router: str, value: Value, *, alone: bool) -> Iterator[_Client]:
        found: dict[int, Value] = {}
        for name, _, one in value.values():
            match = _CLIENT.fullmatch(name)
            if match:
                found[int(match[1])] = one
                self._address(one)
        self._same_server(value.get("Server_IP"))
        count = value.get("Clientcount")
        if count is not None and count.text != str(len(found)):
            have = f"{len(found)} {'address' if len(found) == 1 else 'addresses'} of clients"
            self._bad(count, f"Clientcount is not what stands here: {have}", f"write {len(found)}")
        for position, number in enumerate(sorted(found), 1):
            if position != number:
                message = f"Client_IP{position} is missing before this"
                self._bad(found[number], message, f"they count from 1 to {len(found)}")
                return
        for number, one in sorted(found.items()):
            name = f"client_{number}" if alone else f"client_{router}_{number}"
            yield _Client(name, number, router, one.span)

    def _same_server(self, value: Value | None) -> None:
        first = self._server
        if value is None:
            return
        if first is None:
            self._server = value
            self._address(value)
        elif value.text != first.text:
            hint = f"another entry has {first.text}: give it a file of its own"
            self._sink.error("TS0502", value.span, "there is one server in a file", hint)

    def _address(self, value: Value) -> None:
        try:
            address = IPv4Address(value.text or "")
        except AddressValueError:
            self._bad(value, f"'{(value.text or '')[:40]}' is no IPv4 address", "10.1.1.123")
            return
        if address in self._addresses:
            line = self._addresses[address].line
            self._bad(value, f"{address} is an address of two", f"the other is on line {line}")
        self._addresses.setdefault(address, value.span)

    def _told(self, clients: Sequence[_Client]) -> None:
        if clients:
            one = clients[0]
            hint = f"the first client is {one.name}, the server {SERVER}; `tstorm inspect` has both"
            self._sink.warning(
                "TS0971", one.span, "addresses are not carried over: a run gives its own", hint
            )

    # --- links ---

    def _properties(
        self, router: str, value: Value, clients: Sequence[_Client]
    ) -> Mapping[int, Properties]:
        """By the client's number."""
        found: dict[int, dict[str, Piece]] = {}
        count = sum(one.router == router for one in clients)
        inner = value.get("properties")
        if inner is not None and inner.items is None:
            self._bad(inner, f"properties is a list, and not {inner.kind}", "[{…}]")
        for one in (inner.items if inner else None) or ():
            if one.entries is None:
                self._bad(one, f"this is an object, and not {one.kind}")
            for name, span, said in one.values():
                match = _KEY.fullmatch(name)
                if match is None:
                    self._no_key(name, span)
                elif not 0 < int(match[2]) <= count:
                    hint = f"clients of this Routerid count from 1 to {count}"
                    message = f"there is no client {int(match[2])}"
                    self._sink.error("TS0501", span, message, hint)
                else:
                    own = found.setdefault(int(match[2]), {})
                    key = f"{match[1]}_{match[3]}"
                    if key in own:
                        self._sink.error("TS0501", span, f"'{name}' stands here twice")
                    self._property(own, key, said)
        return found

    def _no_key(self, name: str, span: Span) -> None:
        near = [f"{what}_1_{way}" for what in _VALUES for way in WAYS]
        number = re.search("_([0-9]{1,6})_", name)
        if number:
            near = [one.replace("_1_", number[0]) for one in near]
        hint = did_you_mean(name, near) or "such as throughput_1_forward"
        self._sink.error("TS0501", span, f"no property is called '{name[:40]}'", hint)

    def _property(self, own: dict[str, Piece], key: str, said: Value) -> None:
        what = key.split("_")[0]
        pattern, example = _VALUES[what]
        match = pattern.fullmatch(said.text or "")
        if match is None:
            shown = said.kind if said.text is None else f"'{said.text[:40]}'"
            unit = re.fullmatch(_NUMBER, said.text or "") is not None
            why = f"{shown} has no unit" if unit else f"{shown} is no {what}"
            self._bad(said, why, f"such as {example}")
            return
        if what == "throughput":
            text = f"up={match[1]}{match[2].upper()}b"
        elif what == "delay":
            text = f"latency={match[1]}{match[2]}"
        else:
            text = f"loss={match[1]}%"
        own[key] = Piece(text, said.span)

    def _links(
        self, client: _Client, properties: Mapping[str, Mapping[int, Properties]]
    ) -> Iterator[Line]:
        own = properties.get(client.router, {}).get(client.number, {})
        if not own:
            message = f"nothing is said of the links of client {client.number}"
            hint = "they have no limit, no delay and no loss"
            self._sink.warning("TS0973", client.span, message, hint)
        for way, link in zip(WAYS, (f"{client.name}->{SERVER}", f"{SERVER}->{client.name}"),
                             strict=True):  # fmt: skip
            keys = (f"{what}_{way}" for what in _VALUES)
            said = (own[key] for key in keys if key in own)
            yield (Piece(f"link {link}", client.span), *said)
