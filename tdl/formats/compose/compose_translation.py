"""A Compose project as statements: a service each, a bridge for each network, the start in order.

`default` is the network of services that name none. A network whose name a service has, too, or
that no bridge can have, becomes NAME-net. Services of a profile take part when COMPOSE_PROFILES
names it. `depends_on` becomes after= (docs/tdl.md), with `start when ready` where anybody waits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats.compose import compose_fields
from tdl.formats.compose.compose_overrides import as_map
from tdl.formats.compose.compose_project import Project
from tdl.formats.compose.compose_service import ServiceReader, Shared
from tdl.formats.compose.compose_values import Reading
from tdl.formats.element_names import NAME, NAME_HINT, is_name
from tdl.formats.yaml_tree import Value
from tdl.preprocess.includes import Reader
from tdl.preprocess.translated import Attachment, Line, Piece, Translation, Variable
from tdl.suggest import did_you_mean
from tdl.tokens.words import RESERVED

DEFAULT = "default"
_ALIAS = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?", re.ASCII)
_CONDITIONS = {
    "service_started": ":start",
    "service_healthy": "",
    "service_completed_successfully": ":exit",
}
_KINDS = ("networks", "volumes", "configs", "secrets")
_OF_NETWORKS = ("aliases", "ipv4_address", "ipv6_address", "link_local_ips", "priority",
                "gw_priority", "mac_address", "interface_name", "driver_opts")  # fmt: skip


def translate(
    paths: Sequence[str],
    variable: Variable,
    read: Reader,
    unrecorded: Reader,
    sink: Sink,
    folder: str = "",
) -> Translation | None:
    """What the files say together; None after a report. NoTextError for those that are named.
    `unrecorded` reads what a plan must not have; `folder` is what their folder is called."""
    project = Project(paths, variable, read, unrecorded, sink, folder)
    if project.root is None:
        return None
    found = _Composition(project, sink).translation()
    services = project.root.get("services")
    return found if services and services.entries else None


class _Composition:
    def __init__(self, project: Project, sink: Sink) -> None:
        self._project = project
        self._sink = sink
        self._reading = Reading(sink)
        self._shared = Shared({kind: self._top(kind) for kind in _KINDS})
        self._services: dict[str, tuple[Span, Value]] = {}
        self._bridges: dict[str, str] = {}
        self._meant: dict[str, dict[str, dict[str, Span]]] = {}  # other name, where, services

    def translation(self) -> Translation:
        self._judge()
        everything = self._project.services()
        self._services = {k: v for k, v in everything.items() if self._is_active(v[1])}
        for name, (span, _) in self._services.items():
            self._check_name(name, span)
        self._gather_names()
        attachments = self._attachments()
        self._order(everything)
        lines = [
            ServiceReader(self._project, self._shared, self._reading, name, span).line(value)
            for name, (span, value) in self._services.items()
        ]
        waiting = next((span for w in self._shared.after.values() for _, span in w.values()), None)
        settings = () if waiting is None else ((Piece("start when ready", waiting),),)
        return Translation(
            tuple(lines),
            self._bridge_lines(attachments),
            tuple(attachments),
            settings,
            self._bridges.get(DEFAULT, ""),
            self._project.variables.used,
        )

    # --- the whole file ---

    def _top(self, kind: str) -> Mapping[str, tuple[Span, Value]]:
        value = self._project.root.get(kind) if self._project.root else None
        if value is None or value.is_null:
            return {}
        if value.entries is None:
            self._reading.shape(value, f"a map of {kind}")
        return value.entries or {}

    def _judge(self) -> None:
        for name, span, _ in self._project.root.values() if self._project.root else ():
            if name in compose_fields.TOP_WRONG:
                message = f"{name} cannot be carried over"
                self._sink.error("TS0502", span, message, compose_fields.TOP_WRONG[name])
            elif name not in compose_fields.TOP and not name.startswith("x-"):
                known = sorted(compose_fields.TOP)
                hint = did_you_mean(name, known) or f"it has {', '.join(known)} and x-…"
                message = f"a Compose file has no field '{name[:40]}'"
                self._sink.error("TS0501", span, message, hint)
        for name, (_, value) in self._shared.top["networks"].items():
            self._judge_network(name, value)

    def _judge_network(self, name: str, value: Value) -> None:
        driver = value.get("driver")
        odd = driver is not None and driver.text not in (None, "bridge", "overlay")
        for field, why in (
            ("ipam", "addresses are the experiment's"),
            ("driver_opts", "a network is a bridge of the experiment"),
            ("external", "it is a bridge of the experiment's own, and nobody else is there"),
        ):
            said = value.get(field)
            if said is not None and said.text not in ("false", "no"):
                self._lost(said.span, f"{field} of network {name}", why)
        if odd and driver is not None:
            why = "a network is a bridge of the experiment"
            self._lost(driver.span, f"driver: {driver.text}", why)

    def _lost(self, span: Span, what: str, why: str) -> None:
        self._sink.warning("TS0971", span, f"{what} is not carried over", why)

    def _is_active(self, service: Value) -> bool:
        said = [one.text for one in self._reading.texts(service.get("profiles"))]
        wanted = (self._project.variables.get("COMPOSE_PROFILES") or "").split(",")
        return not said or "*" in wanted or not set(said).isdisjoint(wanted)

    def _check_name(self, name: str, span: Span) -> None:
        if not is_name(name):
            message = f"no service of an experiment can be called '{name[:80]}'"
            self._sink.error("TS0507", span, message, NAME_HINT)

    # --- networks ---

    def _attachments(self) -> list[Attachment]:
        joined = [
            (service, *one)
            for service, (span, value) in self._services.items()
            for one in self._networks_of(span, value)
        ]
        for service, network, _, said in joined:
            if said is not None:
                self._in_network(service, network, said)
        self._judge_names({(service, network) for service, network, _, _ in joined})
        found = []
        for service, network, place, _ in joined:
            bridge = self._bridge(network)
            line = (Piece(f"link {service}--{bridge}", place),)
            found.append(Attachment(service, bridge, line))
        return found

    def _networks_of(self, span: Span, value: Value) -> list[tuple[str, Span, Value | None]]:
        mode = value.get("network_mode")
        if mode is not None and mode.text not in (None, "bridge", "default"):
            message = f"network_mode: {(mode.text or '')[:40]} cannot be carried over"
            hint = "an instance has a network of its own, and links to the experiment's bridges"
            self._sink.error("TS0502", mode.span, message, hint)
        elif mode is not None and mode.text == "bridge":
            why = f"it is in the network {DEFAULT}, where others find it by its name"
            self._lost(mode.span, "network_mode: bridge", why)
        named = value.get("networks")
        named = None if named is None else as_map("networks", named)
        if named is None or not named.entries:
            return [(DEFAULT, span, None)]
        found: list[tuple[str, Span, Value | None]] = []
        for name, place, said in named.values():
            known = self._shared.top["networks"]
            if name not in known and name != DEFAULT:
                hint = did_you_mean(name, list(known)) or f"networks: {{{name[:40]}: }}"
                message = f"there is no network '{name[:40]}'"
                self._sink.error("TS0505", place, message, hint)
            else:
                found.append((name, place, said))
        return found

    def _in_network(self, service: str, network: str, said: Value) -> None:
        fields = self._reading.entries(said, _OF_NETWORKS, "a network of a service")
        for one in self._reading.texts(fields.pop("aliases", None)):
            self._alias(service, one.text or "", one.span, f"network {network}")
        for name, value in fields.items():
            if name in ("ipv4_address", "ipv6_address"):
                message = f"the address {(value.text or '')[:40]} cannot be carried over"
                hint = f"addresses are the experiment's: use the name {service}"
                self._sink.error("TS0502", value.span, message, hint)
            else:
                self._lost(value.span, name, "links say how a service is joined to a network")

    def _bridge(self, network: str) -> str:
        """What the bridge of a network is called."""
        if network not in self._bridges:
            taken = {*self._services, *self._bridges.values()}
            taken.update(*self._shared.aliases.values())
            name = network if NAME.fullmatch(network) else re.sub(r"[^A-Za-z0-9_]+", "_", network)
            if name in taken or name in RESERVED or not NAME.fullmatch(name):
                name = f"{name.strip('_') or 'n'}-net"
                name = name if NAME.fullmatch(name) else f"n_{name}"
            while name in taken:
                name += "x"
            self._bridges[network] = name
        return self._bridges[network]

    def _bridge_lines(self, attachments: Sequence[Attachment]) -> dict[str, Line]:
        places = {one.network: one.line[0].span for one in reversed(attachments)}
        found: dict[str, Line] = {}
        for network, bridge in self._bridges.items():
            span = self._shared.top["networks"].get(network, (places[bridge], None))[0]
            found[bridge] = (Piece(f"bridge {bridge}", span),)
        return found

    # --- other names ---

    def _gather_names(self) -> None:
        for service, (_, value) in self._services.items():
            for key in ("container_name", "hostname"):
                said = value.get(key)
                if said is not None and said.text:
                    self._alias(service, said.text, said.span)
            for one in self._reading.texts(value.get("links")):
                target, _, name = (one.text or "").partition(":")
                if target not in self._services:
                    self._sink.error("TS0505", one.span, f"there is no service '{target[:40]}'")
                elif name:
                    self._alias(target, name, one.span, f"the links of {service}")

    def _alias(self, service: str, name: str, span: Span, where: str = "") -> None:
        """Another name of a service there; without `where` in all of its networks."""
        if name == service:
            return  # it has it already
        if name in self._services:
            why = f"{name} is the service of that name, and no other"
            self._lost(span, f"the name {name} of {service}", why)
            return
        if not _ALIAS.fullmatch(name):
            self._sink.error("TS0507", span, f"'{name[:80]}' is no name of a host")
            return
        self._shared.aliases.setdefault(service, {})[name] = span
        self._meant.setdefault(name, {}).setdefault(where, {})[service] = span

    def _judge_names(self, joined: Set[tuple[str, str]]) -> None:
        """A name is the same for everybody here, and must not be another's elsewhere."""
        for name, meant in self._meant.items():
            places: dict[str, dict[str, Span]] = {}
            for service, span in meant.pop("", {}).items():
                for network in sorted(one for who, one in joined if who == service):
                    places.setdefault(f"network {network}", {})[service] = span
            for where, there in meant.items():
                places.setdefault(where, {}).update(there)
            (first, services), *others = places.items()
            for where, theirs in others:
                if theirs.keys() != services.keys():
                    span = next(theirs[one] for one in theirs)
                    message = (
                        f"'{name}' is {', '.join(theirs)} in {where}, and {', '.join(services)} in "
                        f"{first}"
                    )
                    hint = "a name means the same everywhere here: use the services' own names"
                    self._sink.error("TS0502", span, message, hint)
                    break

    # --- the order of the start ---

    def _order(self, everything: Mapping[str, tuple[Span, Value]]) -> None:
        for service, (_, value) in self._services.items():
            said = value.get("depends_on")
            for name, place, one in as_map("depends_on", said).values() if said else ():
                known = ("condition", "restart", "required")
                fields = self._reading.entries(one, known, "depends_on")
                condition = fields.get("condition")
                needed = fields.get("required")
                if name in self._services:
                    self._after(service, name, place, condition)
                elif needed is None or self._reading.flag(needed):
                    self._no_such(name, place, name in everything)
        self._refuse_cycles()

    def _no_such(self, name: str, place: Span, of_profile: bool) -> None:
        message = f"there is no service '{name[:40]}'"
        hint = did_you_mean(name, list(self._services))
        if of_profile:
            message, hint = f"{message} in these profiles", "name its profile in COMPOSE_PROFILES"
        self._sink.error("TS0505", place, message, hint)

    def _after(self, service: str, name: str, place: Span, condition: Value | None) -> None:
        said = "service_started" if condition is None else condition.text or ""
        span = place if condition is None else condition.span
        if said not in _CONDITIONS:
            hint = did_you_mean(said, _CONDITIONS) or ", ".join(_CONDITIONS)
            self._sink.error("TS0501", span, f"'{said[:40]}' is no condition", hint)
            return
        if name == service:
            self._sink.error("TS0505", place, f"'{name}' depends on itself")
            return
        how = f"{name}{_CONDITIONS[said]}"
        self._shared.after.setdefault(service, {})[name] = (how, span)
        if said != "service_healthy":
            self._shared.awaited.setdefault(name, span)

    def _refuse_cycles(self) -> None:
        done: set[str] = set()
        for first in self._shared.after:
            chain = _cycle(first, self._shared.after, done)
            if chain:
                _, span = self._shared.after[chain[-2]][chain[-1]]
                message = f"'{chain[-1]}' depends on itself"
                self._sink.error("TS0505", span, message, " -> ".join(chain[:8]))
                return


def _cycle(
    first: str, after: Mapping[str, Mapping[str, tuple[str, Span]]], done: set[str]
) -> list[str]:
    """A way from a service to itself, if one begins at `first`; `done` have none."""
    path, left = [first], [list(after.get(first, ()))]
    while path:
        if not left[-1]:
            done.add(path.pop())
            left.pop()
            continue
        name = left[-1].pop(0)
        if name in path:
            return [*path[path.index(name) :], name]
        if name not in done:
            path.append(name)
            left.append(list(after.get(name, ())))
    return []
