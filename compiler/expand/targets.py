"""The candidates of one statement at one moment, and which of them are legal.

A target is an instance, a bridge or a link; its position counts instances and bridges by node
first, then links in the order of the selection. Which states are legal depends on the verb.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import eq

from compiler.declare.selectors import Selection
from compiler.draws import Stream
from compiler.expand.world import (
    ABSENT,
    ALIVE,
    CONNECTED,
    DISCONNECTED,
    PAUSED,
    PRESENT,
    RUNNING,
    World,
)


@dataclass(frozen=True)
class Verb:
    """What a verb needs of its targets, and the words for it."""

    name: str
    states: frozenset[int]  # of nodes
    left: int  # of links: 0 = must be in place, 1 = must have left
    word: str  # 'only 3 of 5 are WORD'

    @cached_property
    def mark(self) -> bytes:
        """For bytes.translate: state of a node -> 1 if legal, else 0."""
        return bytes(state in self.states for state in range(256))


JOIN = Verb("join", ABSENT, 1, "absent")
LEAVE = Verb("leave", PRESENT, 0, "joined")
CRASH = Verb("crash", PRESENT, 0, "joined")
KILL = Verb("kill", ALIVE, 0, "joined and not killed")
DISCONNECT = Verb("disconnect", CONNECTED, 0, "joined and connected")
RECONNECT = Verb("reconnect", DISCONNECTED, 0, "disconnected")
PAUSE = Verb("pause", RUNNING, 0, "joined and not paused or killed")
RESUME = Verb("resume", PAUSED, 0, "paused")
RESTART = Verb("restart", PRESENT, 0, "joined")


class _Places:
    """Some places of an array of bytes, to read them all at once."""

    def __init__(self, places: Sequence[int]) -> None:
        self._places = places
        every = places
        if not isinstance(places, range) and len(places) > 1 and places[0] < places[1]:
            every = range(places[0], places[-1] + 1, places[1] - places[0])
        self._slice: slice | None = None
        if isinstance(every, range) and (
            every is places or (len(every) == len(places) and all(map(eq, every, places)))
        ):
            self._slice = slice(every.start, every.stop, every.step)

    def read(self, values: bytearray) -> bytes:
        """The values at these places, in their order."""
        if self._slice is not None:
            return bytes(values[self._slice])
        return bytes(map(values.__getitem__, self._places))


class Targets:
    """Candidates in a fixed order. Instances that no join has asked for so far are none.

    With `drawn` (there is a count, or an interval) neither are the links of such instances, so that
    a join further down never changes what is drawn here. Without, every link is meant.

    `unplaced`: nodes that are never legal, whatever their state.
    """

    def __init__(
        self,
        world: World,
        chosen: Selection,
        verb: Verb,
        *,
        drawn: bool,
        unplaced: frozenset[int] = frozenset(),
    ) -> None:
        self.world = world
        self.unplaced = unplaced
        self.chosen = chosen
        self.verb = verb
        self.drawn = drawn
        self._growth = world.growth
        links = chosen.links
        if drawn and links:
            links = tuple(link for link in links if world.asked_for(link[0]))
        self.links = links
        self._there = _Places([link[0] for link in links])
        self._back = _Places([link[-1] for link in links])
        self.nodes: Sequence[int]
        if len(chosen.services) == 1 and not chosen.instances and not chosen.bridges:
            self.nodes = world.range_of(chosen.services[0])
        else:
            nodes = [node for service in chosen.services for node in world.range_of(service)]
            self.nodes = (*nodes, *chosen.instances, *chosen.bridges)
        self._nodes = _Places(self.nodes)

    def renewed(self) -> Targets:
        """The same candidates, with those that have been asked for since."""
        if self._growth == self.world.growth:
            return self
        return Targets(self.world, self.chosen, self.verb, drawn=self.drawn, unplaced=self.unplaced)

    @property
    def size(self) -> int:
        return len(self.nodes) + len(self.links)

    @property
    def word(self) -> str:
        return self.verb.word

    @property
    def what(self) -> str:
        """How messages call all of them."""
        return self.chosen.what

    def name(self, position: int) -> str:
        """What people call a candidate: 'server.3', 's1', 'a.0--s1', 'a.0->s1'."""
        nodes = self.nodes
        if position < len(nodes):
            return self.world.names[nodes[position]]
        link = self.links[position - len(nodes)]
        name = self.world.link_names[link[0]]
        return name if len(link) == 1 else name.replace("->", "--")

    def legal(self, position: int) -> bool:
        nodes = self.nodes
        if position < len(nodes):
            return self._legal_node(nodes[position])
        return self._legal_link(self.links[position - len(nodes)])

    def _legal_node(self, node: int) -> bool:
        return self.world.nodes[node] in self.verb.states and node not in self.unplaced

    def _legal_link(self, link: tuple[int, ...]) -> bool:
        left = self.world.left
        return any(left[direction] == self.verb.left for direction in link)

    def left_out(self) -> list[int]:
        """Nodes whose state is legal, and that are not, since they are unplaced."""
        states, unplaced = self.verb.states, self.unplaced
        return [one for one in self.nodes if one in unplaced and self.world.nodes[one] in states]

    def count_legal(self) -> int:
        return self._marks().count(1)

    def _marks(self) -> bytes:
        """By position: 1 if legal, else 0. As bytes, since there may be very many targets."""
        if self.unplaced:
            return bytes(map(self._legal_node, self.nodes)) + self._link_marks()
        return self._nodes.read(self.world.nodes).translate(self.verb.mark) + self._link_marks()

    def _link_marks(self) -> bytes:
        """1 where a direction has left, or has not, as the verb needs it."""
        left, count = self.world.left, len(self.links)
        there = int.from_bytes(self._there.read(left), "big")
        back = int.from_bytes(self._back.read(left), "big")
        if self.verb.left:
            return (there | back).to_bytes(count, "big")
        every = int.from_bytes(bytes((1,)) * count, "big")
        return (every ^ (there & back)).to_bytes(count, "big")

    def any_legal(self) -> bool:
        nodes = self.nodes
        if isinstance(nodes, range) and not self.unplaced:
            if any(
                self.world.nodes.find(state, nodes.start, nodes.stop) >= 0
                for state in self.verb.states
            ):
                return True
        elif any(map(self._legal_node, nodes)):
            return True
        return any(self._legal_link(link) for link in self.links)

    def hit(self, positions: Sequence[int]) -> list[int]:
        """The nodes of these targets, of which none is a link."""
        return [self.nodes[position] for position in positions]

    def choose(self, stream: Stream) -> int:
        """The position of one legal target; there must be one."""
        return stream.choose(self.size, self.legal, self)

    def pick(self, stream: Stream, count: int) -> list[int]:
        """Positions of `count` legal targets, ascending."""
        return sorted(stream.sample(self.size, self.legal, count, self))

    def all_legal(self) -> list[int]:
        marks, found = self._marks(), []
        position = marks.find(1)
        while position >= 0:
            found.append(position)
            position = marks.find(1, position + 1)
        return found

    def apply(self, positions: Sequence[int], kind: str) -> list[int]:
        """Does it to these targets, in order of nodes and links. Returns the nodes."""
        count = len(self.nodes)
        nodes = [self.nodes[position] for position in positions if position < count]
        if self.verb is JOIN:
            nodes = self._joining(nodes)
        self._move(nodes, kind)
        for position in positions:
            if position >= count:
                self._switch(self.links[position - count])
        return nodes

    def _move(self, nodes: Sequence[int], kind: str) -> None:
        for node in nodes:
            if self.verb is JOIN:
                self.world.bring(node)
            else:
                self.world.take(node, kind)

    def _joining(self, drawn: Sequence[int]) -> list[int]:
        """Where a service is meant, the draw says how many of it join, not which."""
        world = self.world
        nodes: list[int] = []
        counts: dict[int, int] = {}
        for node in drawn:
            service = world.service_of[node]
            if service in self.chosen.services:
                counts[service] = counts.get(service, 0) + 1
            else:
                nodes.append(node)
        for service, number in counts.items():
            nodes += world.next_to_join(service, number, self.unplaced)
        return sorted(nodes)

    def _switch(self, link: tuple[int, ...]) -> None:
        world = self.world
        for direction in sorted(link):
            if world.left[direction] != self.verb.left:
                continue
            if self.verb is JOIN:
                world.rejoin(direction)
            else:
                world.leave(direction)


class MachineTargets(Targets):
    """Machines as candidates, each as a whole: what is drawn are machines, and what is done to one
    is done to all of its parts for which it is legal, or to the links that leave it. Legal is a
    machine of which an instance, or a link of one that is there, is.
    """

    def __init__(
        self,
        world: World,
        chosen: Selection,
        verb: Verb,
        unplaced: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(world, chosen, verb, drawn=True, unplaced=unplaced)
        self._machines = [
            Targets(world, one, verb, drawn=True, unplaced=unplaced) for one in chosen.machines
        ]

    def renewed(self) -> Targets:
        """Each machine has its parts from the beginning."""
        return self

    @property
    def size(self) -> int:
        return len(self._machines)

    @property
    def what(self) -> str:
        return self.chosen.what.replace("parts of", "machines of", 1)

    def name(self, position: int) -> str:
        return self.chosen.machines[position].what

    def legal(self, position: int) -> bool:
        service_of, machine = self.world.service_of, self._machines[position]
        return any(
            self._legal_node(node) and service_of[node] >= 0 for node in machine.nodes
        ) or any(self._legal_way(link) for link in machine.links)

    def _legal_way(self, link: tuple[int, ...]) -> bool:
        """What leads to nobody is cut off already."""
        ends = self.world.topology.links[link[0]]
        there = all(
            self.world.service_of[node] < 0 or self.world.nodes[node] in PRESENT
            for node in (ends.src, ends.dst)
        )
        return self._legal_link(link) and (there or self.verb is JOIN)

    @property
    def word(self) -> str:
        if not self.links:
            return super().word
        return "disconnected" if self.verb is JOIN else "joined and connected"

    def count_legal(self) -> int:
        return len(self.all_legal())

    def any_legal(self) -> bool:
        return any(map(self.legal, range(self.size)))

    def all_legal(self) -> list[int]:
        return [position for position in range(self.size) if self.legal(position)]

    def hit(self, positions: Sequence[int]) -> list[int]:
        found = [(self._machines[one], self._machines[one].all_legal()) for one in positions]
        return [
            machine.nodes[at] for machine, legal in found for at in legal if at < len(machine.nodes)
        ]

    def apply(self, positions: Sequence[int], kind: str) -> list[int]:
        nodes = self.hit(positions)
        self._move(nodes, kind)
        for link in (link for one in positions for link in self._machines[one].links):
            self._switch(link)
        return nodes
