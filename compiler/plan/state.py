"""The state of the network through time: events folded into epochs, and epochs into one moment.

Input: a topology and its events in order. Output: one `Epoch` per instant at which something
happens (and one for time 0), each the difference to the one before. Rules in docs/plan.md
(semantics). Linear in events times the degree of what they touch.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from compiler.plan.event_kinds import DOWN, EVENT_KINDS, INSTANCE, LINK, UP, EventKind
from compiler.plan.format import TIMELINE, PlanError
from compiler.plan.packet_class import is_sound
from compiler.plan.parts.delay_tables import is_known
from compiler.plan.properties import (
    LinkState,
    beside_flows,
    flow_rates,
    flow_rates_text,
    least_rate,
)
from compiler.plan.routes.core import NO_LINK, Core
from compiler.plan.types import Epoch, Event, Topology, interfaces


class _Links:
    """What events have made of the links' own properties; `view` is the effective state."""

    def __init__(self, topology: Topology, index: Mapping[str, int]) -> None:
        self.index = index
        self.own = [link.state for link in topology.links]  # rate as declared or set
        self.background = [0] * len(topology.links)
        self.reacting: dict[int, int] = {}  # flows that make the background, where they give way

    def view(self, link: int, ends_up: bool) -> LinkState:
        own, taken = self.own[link], self.background[link]
        up = own.up and ends_up
        if up == own.up and not taken:
            return own
        if not taken:
            return own._replace(up=up)
        if link in self.reacting:
            return beside_flows(own._replace(up=up), taken, self.reacting[link])
        rows = flow_rates(own.flow_rates)
        return own._replace(
            up=up,
            rate_bps=own.rate_bps - taken,
            capacity_bps=own.capacity_bps or own.rate_bps,
            flow_rates=flow_rates_text(row._replace(rate_bps=row.rate_bps - taken) for row in rows),
        )


def follows(state: LinkState, topology: Topology) -> bool:
    """Whether the link follows one of the plan's traces, and has its means; or none. So it is with
    measured delays."""
    if not is_known(state.distribution, (one.digest for one in topology.delays)):
        return False
    if not state.trace:
        return True
    known = topology.traces[state.trace - 1 : state.trace]
    return bool(known) and all(getattr(state, field) == mean for field, mean in known[0].means)


class Fold:
    """Applies events one by one and says what changed since it was last asked."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.node_index = {node.name: i for i, node in enumerate(topology.nodes)}
        self._instances = {node.name for node in topology.nodes if node.owner < 0}
        self.links = _Links(topology, {link.name: i for i, link in enumerate(topology.links)})
        self.nodes = [DOWN if node.service >= 0 else UP for node in topology.nodes]
        self.shown_nodes = [DOWN] * len(topology.nodes)
        self.shown_links = [link.state._replace(up=False) for link in topology.links]
        self._incident: list[list[int]] = [[] for _ in topology.nodes]
        for i, link in enumerate(topology.links):
            self._incident[link.src].append(i)
            self._incident[link.dst].append(i)
        self._touched_nodes = set(range(len(topology.nodes)))
        self._touched_links = set(range(len(topology.links)))
        self._further = interfaces(topology.nodes)  # of instances: they share their state
        self._programs: dict[int, str] = {}  # instances whose programs do not run, by node, and why
        self._quit = False

    def copied(self) -> Fold:
        """One that goes on from here by itself."""
        found = copy(self)
        found.links = copy(self.links)
        links = self.links
        found.links.own, found.links.background = links.own[:], links.background[:]
        found.links.reacting = dict(links.reacting)
        found.nodes, found.shown_nodes = self.nodes[:], self.shown_nodes[:]
        found.shown_links = self.shown_links[:]
        found._touched_nodes, found._touched_links = (
            set(self._touched_nodes),
            set(self._touched_links),
        )
        found._programs = dict(self._programs)
        return found

    def apply(self, event: Event) -> None:
        """Raises PlanError for an unknown target or an event that is not legal in this state."""
        if self._quit:
            _refuse(event, "comes after quit")
        _APPLY[event.kind](self, event)

    def delta(self, index: int, at_ns: int, first_seq: int, last_seq: int) -> Epoch:
        """The epoch made by the events applied since the last call."""
        nodes: list[tuple[int, str]] = []
        for node in sorted(self._touched_nodes):
            if self.nodes[node] != self.shown_nodes[node]:
                self.shown_nodes[node] = self.nodes[node]
                nodes.append((node, self.nodes[node]))
                self._touched_links.update(self._incident[node])
        links: list[tuple[int, LinkState]] = []
        for link in sorted(self._touched_links):
            ends = self.topology.links[link]
            up = self.nodes[ends.src] == UP and self.nodes[ends.dst] == UP
            state = self.links.view(link, up)
            if state != self.shown_links[link]:
                self.shown_links[link] = state
                links.append((link, state))
        self._touched_nodes.clear()
        self._touched_links.clear()
        return Epoch(index, at_ns, first_seq, last_seq, tuple(nodes), tuple(links))

    def _node(self, event: Event, *, instance: bool) -> int:
        node = self.node_index.get(event.target, -1)
        found = self.topology.nodes[node]
        if node < 0 or not (found.is_instance if instance else found.service < 0):
            _refuse(event, "names no " + ("instance" if instance else "bridge"))
        return node

    def _move(self, event: Event, node: int, legal: tuple[str, ...], new: str) -> None:
        if self.nodes[node] not in legal:
            _refuse(event, f"is not possible: the target is {self.nodes[node]}")
        if not new:
            return
        for one in (node, *self._further.get(node, ())):
            self.nodes[one] = new
            self._touched_nodes.add(one)
        if new == DOWN:
            self._programs.pop(node, None)

    def _signal(self, event: Event, before: tuple[str, ...], after: str) -> None:
        """Changes nothing of the network: programs stand still, go on, or are dead ('' before and
        after: they run)."""
        node = self._node(event, instance=True)
        is_now = self._programs.get(node, "")
        if self.nodes[node] == DOWN or is_now not in before:
            _refuse(event, f"is not possible: the target is {is_now or self.nodes[node]}")
        self._programs[node] = after

    def _link(self, event: Event) -> int:
        link = self.links.index.get(event.target, -1)
        if link < 0:
            _refuse(event, "names no link")
        self._touched_links.add(link)
        return link

    def _switch(self, event: Event, up: bool) -> None:
        link = self._link(event)
        if self.links.own[link].up == up:
            _refuse(event, f"is not possible: the link is {'up' if up else 'down'} already")
        self.links.own[link] = self.links.own[link]._replace(up=up)

    def _set(self, event: Event) -> None:
        link = self._link(event)
        changes: dict[str, Any] = dict(event.args)
        self.links.own[link] = self.links.own[link]._replace(**changes)
        if not is_sound(self.links.own[link].only, self._instances):
            _refuse(event, "names packets that there are none of")
        if not follows(self.links.own[link], self.topology):
            _refuse(event, "is not what a trace or delays of the plan have")
        if self.links.own[link].neck != self.topology.links[link].state.neck:
            _refuse(event, "gives a link another bottleneck")
        self._check_background(event, link)

    def _of_host(self, event: Event) -> None:
        """Of a host, whether or not a program runs there."""
        self._node(event, instance=True)

    def _background(self, event: Event) -> None:
        link = self._link(event)
        self.links.background[link] = int(event.args["rate_bps"])
        self.links.reacting.pop(link, None)
        if event.args.get("flows"):
            self.links.reacting[link] = int(event.args["flows"])
        self._check_background(event, link)

    def _check_background(self, event: Event, link: int) -> None:
        taken = self.links.background[link]
        if taken and taken >= least_rate(self.links.own[link]):
            _refuse(event, f"leaves no rate beside the background of {taken} b/s")

    def _end(self, event: Event) -> None:
        if event.target:
            _refuse(event, "has a target")
        self._quit = True


def _refuse(event: Event, why: str) -> None:
    raise PlanError(TIMELINE, f"{event.kind} {event.target!r:.80} {why}", line=event.seq + 1)


def _change(kind: EventKind) -> Callable[[Fold, Event], None]:
    """Of a kind that changes no more than the state of its target."""
    before, after = kind.before, kind.after
    if kind.target == LINK:
        return lambda fold, event: fold._switch(event, after == UP)
    instance = kind.target == INSTANCE
    return lambda fold, event: fold._move(
        event, fold._node(event, instance=instance), before, after
    )


_APPLY: dict[str, Callable[[Fold, Event], None]] = {
    **{kind.word: _change(kind) for kind in EVENT_KINDS if kind.before},
    "pause": lambda fold, event: fold._signal(event, ("",), "paused"),
    "resume": lambda fold, event: fold._signal(event, ("paused",), ""),
    "kill": lambda fold, event: fold._signal(event, ("", "paused"), "killed"),
    "set": Fold._set,
    "clock": Fold._of_host,
    "disk": Fold._of_host,
    "background": Fold._background,
    "quit": Fold._end,
}


def epochs(topology: Topology, events: Iterable[Event]) -> Iterator[Epoch]:
    """One epoch for time 0 and one for every later instant with events, in order.

    Events must be sorted by (at_ns, seq) with seq counting from 0; PlanError if one is impossible.
    """
    fold = Fold(topology)
    index, at_ns, first, seq = 0, 0, 0, 0
    for event in events:
        if event.at_ns != at_ns:
            yield fold.delta(index, at_ns, first, seq)
            index, at_ns, first = index + 1, event.at_ns, seq
        fold.apply(event)
        seq += 1
    yield fold.delta(index, at_ns, first, seq)


@dataclass(frozen=True, slots=True)
class NetworkState:
    """The network in one epoch. Sequences are indexed by node and by link; do not change them."""

    topology: Topology
    core: Core
    epoch: int
    at_ns: int  # when the epoch began
    nodes: Sequence[str]  # 'up' | 'cut' | 'down'
    links: Sequence[LinkState]
    table: array[int]  # next hops, see Core

    def next_links(self, node: int, dest: int) -> tuple[int, ...]:
        """The links by which `node` sends packets for instance `dest`: none, one, or those that
        flows are shared out over.

        Leads towards the anchor of `dest`: whether the access links at both ends are up is in
        `links`, not here.
        """
        core = self.core
        if node == dest:
            return ()
        if core.access_out[node] != NO_LINK:
            return (core.access_out[node],)
        anchor = core.anchor[dest]
        if anchor == node:
            return (core.access_in[dest],)
        row = core.row_of[node]
        return core.leads(row, self.table[row * len(core.columns) + core.column_of[anchor]])


class StateAt:
    """Folds epochs into the state of the nodes and links at one moment."""

    def __init__(self, topology: Topology) -> None:
        self.nodes: list[str] = [DOWN] * len(topology.nodes)
        self.links = [link.state for link in topology.links]
        self.epoch = -1
        self.at_ns = 0

    def advance(self, epoch: Epoch) -> None:
        """Epochs must come in order, from 0."""
        assert epoch.index == self.epoch + 1
        if epoch.index == 0:
            listed = {link for link, _ in epoch.links}
            for link, state in enumerate(self.links):
                if link not in listed:
                    self.links[link] = state._replace(up=False)
        self.epoch, self.at_ns = epoch.index, epoch.at_ns
        for node, word in epoch.nodes:
            self.nodes[node] = word
        for link, state in epoch.links:
            self.links[link] = state
