"""The state that the walk through time carries, and the events it leaves behind.

Nodes: one byte each, so that counting is fast. Link directions: the statements that have them down
(a leave, each flap, each partition); an event is written when the first comes or the last goes.
Properties: what `set` and `background` have made of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from compiler.declare.model import Model
from compiler.declare.replicas import at_first
from compiler.plan.packet_class import NO_CLASS, PacketClass
from compiler.plan.properties import LinkState
from compiler.plan.types import Event
from tdl import ast

# States of a node; a bridge is UP or GONE. Of one that is paused: UP or CUT, and PAUSED beside it;
# KILLED beside it where its programs are dead and its host is there.
NEVER, UP, CUT, GONE, UP_PAUSED, CUT_PAUSED, UP_KILLED, CUT_KILLED = range(8)
CONNECTED = frozenset((UP, UP_PAUSED, UP_KILLED))
DISCONNECTED = frozenset((CUT, CUT_PAUSED, CUT_KILLED))
RUNNING = frozenset((UP, CUT))
PAUSED = frozenset((UP_PAUSED, CUT_PAUSED))
KILLED = frozenset((UP_KILLED, CUT_KILLED))
ALIVE = RUNNING | PAUSED
PRESENT = ALIVE | KILLED
ABSENT = frozenset((NEVER, GONE)) | KILLED  # a join starts these

# What an event makes of these states.
_AFTER = {
    "disconnect": {UP: CUT, UP_PAUSED: CUT_PAUSED, UP_KILLED: CUT_KILLED},
    "reconnect": {CUT: UP, CUT_PAUSED: UP_PAUSED, CUT_KILLED: UP_KILLED},
    "kill": {UP: UP_KILLED, UP_PAUSED: UP_KILLED, CUT: CUT_KILLED, CUT_PAUSED: CUT_KILLED},
    "pause": {UP: UP_PAUSED, CUT: CUT_PAUSED},
    "resume": {UP_PAUSED: UP, CUT_PAUSED: CUT},
}

EVERY_STATE = frozenset(range(8))

MAX_EVENTS = 1_000_000
NOBODY = -1  # in place of a statement's order: what is there at first

_NOTHING: Mapping[str, int | str] = {}


class NeedReplicas(Exception):  # noqa: N818 - not an error: the caller comes back with more
    """A join needs more instances of a service without `replicas=` than the model has."""

    def __init__(self, service: int, count: int) -> None:
        self.service = service
        self.count = count
        super().__init__(f"service {service} needs {count}")


class TooManyEvents(Exception):  # noqa: N818
    """More events than MAX_EVENTS; the step that made one too many reports it."""


@dataclass(frozen=True, slots=True)
class LinkNow:
    """One link direction at this moment."""

    own: LinkState  # its properties, background not taken off; `up` tells nothing
    queue: ast.QueueSize | None  # as it is given; what is not, or is in ns, follows the rate
    background_bps: int = 0
    background_flows: int = 0  # that make it, and give way; 0: it does not
    background_owner: int = -1  # the order of the interval step that put it there
    path: ast.PathTerms | None = None  # of a measured path; both directions have the same
    path_back: bool = False  # it is the way from B to A of `path A--B`
    some: PacketClass = NO_CLASS  # of `only=`; its text is in `own`


@dataclass(frozen=True, slots=True)
class HostClock:
    """The real-time clock of an instance's host from `since_ns` on (compiler/expand/clocks.py)."""

    offset_ns: int
    drift_ppb: int
    since_ns: int
    order: int = NOBODY  # of the step that has set it

    def offset_at(self, now_ns: int) -> int:
        return self.offset_ns + (now_ns - self.since_ns) * self.drift_ppb // 10**9


EXACT_CLOCK = HostClock(0, 0, 0)


@dataclass(frozen=True, slots=True)
class HostDisk:
    """That of an instance's host (compiler/expand/disks.py). `fault` and `amount` as SetDisk has
    them; `seed`: which of the calls fail."""

    fault: str
    amount: int = 0
    seed: int = 0
    order: int = NOBODY  # of the step that has set it

    def args(self) -> dict[str, int | str]:
        """Of the event."""
        if self.fault == "slow":
            return {"delay_ns": self.amount, "fault": self.fault}
        if self.fault == "error":
            return {"disk_seed": self.seed, "error_ppb": self.amount, "fault": self.fault}
        return {"fault": self.fault}


SOUND_DISK = HostDisk("ok")


@dataclass(slots=True)
class IntervalClaim:
    """An interval has set a property of a link direction, and will set it back."""

    order: int  # of the step
    before: Any  # what the property was


@dataclass(slots=True)
class RampClaim:
    """A ramp moves properties of a link direction, until it is at its target or another statement
    sets one of them."""

    ended: tuple[tuple[str, int], int] | None = None  # by which statement (place), and when


class World:
    """State and events. All times are `self.now`, set by the walk."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.topology = model.topology
        self.now = 0
        self.place = ("", 0)  # file and line of the statement that acts
        self.by = NOBODY  # the order of the statement that acts
        self.events: list[Event] = []
        layout = model.layout
        statements = list(model.declared.services.values())
        self.fixed = [statement.replicas is not None for statement in statements]
        # Services without replicas= start with what links name and grow with their joins; draws
        # and percentages look at what has been asked for so far, never at what comes later in the
        # file.
        self.declared = list(at_first(model.declared).values())
        self.growth = 0
        self.instances = layout.instances
        self.service_of = [node.service for node in self.topology.nodes]
        self.names = [node.name for node in self.topology.nodes]
        self.nodes = bytearray(len(self.names))  # NEVER
        for bridge in layout.bridges:
            self.nodes[bridge] = UP
        # The order of the step that has it so and will end that, by node: one that has cut it,
        # paused it, or is to bring it back.
        verbs = ("disconnect", "pause", "restart", "leave")
        self.held_by: dict[str, dict[int, int]] = {verb: {} for verb in verbs}
        count = len(self.topology.links)
        self.link_names = [link.name for link in self.topology.links]
        self.left = bytearray(count)
        self.left_by: dict[int, int] = {}  # which statement, of directions that have left
        self.holders: dict[int, list[int]] = {}  # of directions that are down, by order
        self.links = _links(model)
        self.claims: dict[tuple[int, str], list[IntervalClaim]] = {}  # by direction and field
        self.ramps: dict[tuple[int, str], RampClaim] = {}  # by direction and field
        # By node: what is to stay, and above it what intervals have made of it; the last holds.
        self.clocks: dict[int, list[HostClock]] = {}
        self.disks: dict[int, list[HostDisk]] = {}

    def copied(self) -> World:
        """One that goes on from here by itself."""
        found = copy(self)
        found.events, found.declared = self.events[:], self.declared[:]
        found.nodes, found.left = self.nodes[:], self.left[:]
        found.links, found.left_by = self.links[:], dict(self.left_by)
        found.held_by = {verb: dict(by) for verb, by in self.held_by.items()}
        found.holders = {direction: by[:] for direction, by in self.holders.items()}
        found.claims = {key: [copy(one) for one in own] for key, own in self.claims.items()}
        found.ramps = {key: copy(one) for key, one in self.ramps.items()}
        found.clocks = {node: layers[:] for node, layers in self.clocks.items()}
        found.disks = {node: layers[:] for node, layers in self.disks.items()}
        return found

    # --- events --------------------------------------------------------------------------------

    def emit(self, kind: str, target: str, args: Mapping[str, int | str] = _NOTHING) -> None:
        seq = len(self.events)
        if seq >= MAX_EVENTS:
            raise TooManyEvents
        file, line = self.place
        self.events.append(Event(seq, self.now, kind, target, args, line, file))

    # --- nodes ---------------------------------------------------------------------------------

    def move(
        self, node: int, state: int, kind: str, args: Mapping[str, int | str] = _NOTHING
    ) -> None:
        self.nodes[node] = state
        for holders in self.held_by.values():
            holders.pop(node, None)
        self.emit(kind, self.names[node], args)

    def change(self, node: int, kind: str) -> None:
        """It happens to an instance that is there, and goes on being there."""
        self.nodes[node] = _AFTER[kind][self.nodes[node]]
        cuts = kind in ("disconnect", "reconnect")
        self.held_by["disconnect" if cuts else "pause"].pop(node, None)
        self.emit(kind, self.names[node])

    def clock(self, node: int) -> HostClock:
        layers = self.clocks.get(node)
        return layers[-1] if layers else EXACT_CLOCK

    def set_clocks(self, node: int, layers: list[HostClock]) -> None:
        self.clocks[node] = layers
        now = self.clock(node)
        args = {"drift_ppb": now.drift_ppb, "offset_ns": now.offset_at(self.now)}
        self.emit("clock", self.names[node], args)

    def set_disks(self, node: int, layers: list[HostDisk]) -> None:
        self.disks[node] = layers
        now = layers[-1] if layers else SOUND_DISK
        self.emit("disk", self.names[node], now.args())

    def take(self, node: int, kind: str) -> None:
        """An instance leaves or crashes, or a bridge goes down."""
        self.move(node, GONE, kind if self.service_of[node] >= 0 else "bridge_down")

    def bring(self, node: int) -> None:
        """One whose programs were killed gets another host."""
        if self.nodes[node] in KILLED:
            self.take(node, "crash")
        self.move(node, UP, "join" if self.service_of[node] >= 0 else "bridge_up")

    def range_of(self, service: int) -> range:
        """The instances of a service that have been asked for so far."""
        first = self.instances[service].start
        return range(first, first + self.declared[service])

    def joined(self, service: int) -> int:
        """Those whose programs were killed do not count."""
        return self.count(self.range_of(service), ALIVE)

    def count(self, nodes: Sequence[int], states: frozenset[int]) -> int:
        if isinstance(nodes, range):
            return sum(self.nodes.count(state, nodes.start, nodes.stop) for state in states)
        return sum(self.nodes[node] in states for node in nodes)

    def next_to_join(
        self, service: int, count: int, unplaced: frozenset[int] = frozenset()
    ) -> list[int]:
        """Those that never joined, then those that are gone, then those whose programs were killed;
        the lowest first. `unplaced` do not join."""
        found: list[int] = []
        nodes = self.range_of(service)
        for state in (NEVER, GONE, UP_KILLED, CUT_KILLED):
            node = nodes.start - 1
            while len(found) < count:
                node = self.nodes.find(state, node + 1, nodes.stop)
                if node < 0:
                    break
                if node not in unplaced:
                    found.append(node)
        return found

    def grow(self, service: int, count: int) -> None:
        """Raises the number of instances asked for; NeedReplicas if the model has less."""
        if count > len(self.instances[service]):
            raise NeedReplicas(service, count)
        self.declared[service] = max(self.declared[service], count)
        self.growth += 1

    # --- links ---------------------------------------------------------------------------------

    def block(self, direction: int) -> None:
        """The statement that acts has this direction down from now on."""
        holders = self.holders.setdefault(direction, [])
        holders.append(self.by)
        if len(holders) == 1:
            self.emit("link_down", self.link_names[direction])

    def unblock(self, direction: int, by: int) -> None:
        """The statement `by` has it so no longer."""
        holders = self.holders[direction]
        holders.remove(by)
        if not holders:
            del self.holders[direction]
            self.emit("link_up", self.link_names[direction])

    def leave(self, direction: int) -> None:
        self.left[direction] = 1
        self.left_by[direction] = self.by
        self.block(direction)

    def rejoin(self, direction: int) -> None:
        self.left[direction] = 0
        self.unblock(direction, self.left_by.pop(direction))

    def end_ramp(self, direction: int, field: str) -> bool:
        """The statement that acts sets this; whether a ramp ends by it."""
        claim = self.ramps.pop((direction, field), None)
        if claim is None or claim.ended is not None:
            return False
        claim.ended = self.place, self.now
        return True

    def asked_for(self, direction: int) -> bool:
        """Both ends of a link are bridges, or instances that have been asked for."""
        link = self.topology.links[direction]
        return all(
            self.service_of[node] < 0 or node in self.range_of(self.service_of[node])
            for node in (link.src, link.dst)
        )

    def usable(self, direction: int) -> bool:
        """Carries packets now: not taken down, and both ends there and connected."""
        link = self.topology.links[direction]
        ends_up = self.nodes[link.src] in CONNECTED and self.nodes[link.dst] in CONNECTED
        return ends_up and direction not in self.holders


def _links(model: Model) -> list[LinkNow]:
    found = []
    for position, pairs in enumerate(model.layout.pairs):
        link = model.declared.links[position]
        for direction in range(2 * pairs.start, 2 * pairs.stop):
            said = (link.back or link) if direction % 2 else link
            state = model.topology.links[direction].state
            back = link.path is not None and direction % 2 == 1
            found.append(LinkNow(state, said.queue, path=link.path, path_back=back))
    return found
