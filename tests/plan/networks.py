"""Topologies and timelines for the tests: built by hand, or random but legal."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from compiler.plan.parts.expectations import PlannedExpectation
from compiler.plan.properties import PROPERTIES, FlowRate, LinkState, flow_rates_text
from compiler.plan.routes.routing import snapshots
from compiler.plan.types import Event, Link, Node, Service, Topology, direction_name
from compiler.plan.writer import PlanContents

MS = 1_000_000
SECOND = 1_000_000_000
# Of a declared link: both ends, the state of each direction, and what it is called.
Wire = tuple[str, str, LinkState, LinkState] | tuple[str, str, LinkState, LinkState, str]
PLAIN = LinkState(True, 100_000_000, MS, 0, 0, 625_000, "normal")


def service(name: str, replicas: int = 1) -> Service:
    return Service(
        name, "image", (), ("80",), ("run", "-v"), replicas, ("t",), (("K", "V"),), (80,), 0, 0, ()
    )


def build(
    services: Iterable[tuple[str, int]],
    bridges: Iterable[str],
    links: Iterable[Wire],
    routing: str = "delay",
) -> Topology:
    """`links` are between services or bridges: (a, b, state of a->b, state of b->a), and a name
    where there are several between these two."""
    declared = tuple(service(name, replicas) for name, replicas in services)
    nodes: list[Node] = []
    members: dict[str, list[int]] = {}
    for number, item in enumerate(declared):
        for index in range(item.replicas):
            k = len(nodes) + 1
            address = (f"10.77.{k >> 8}.{k & 255}", f"fd77:7473::{k:x}")
            members.setdefault(item.name, []).append(len(nodes))
            nodes.append(Node(f"{item.name}.{index}", number, *address, item.tags))
    for name in bridges:
        members[name] = [len(nodes)]
        nodes.append(Node(name, -1, "", "", ()))
    found: list[Link] = []
    for wire in links:
        a, b, there, back = wire[:4]
        called = wire[4] if len(wire) > 4 else ""
        for x in members.get(a, []):
            for y in members.get(b, []):
                found.append(_link(nodes, x, y, there, len(found), called))
                found.append(_link(nodes, y, x, back, len(found), called))
    return Topology(declared, tuple(nodes), tuple(found), "agent:1", routing)


def _link(nodes: list[Node], src: int, dst: int, state: LinkState, seed: int, called: str) -> Link:
    name = direction_name(nodes[src].name, nodes[dst].name, called)
    return Link(name, src, dst, seed, (), state)


def joins(topology: Topology) -> list[Event]:
    """Every instance joins at 0."""
    names = [node.name for node in topology.nodes if node.service >= 0]
    return [Event(seq, 0, "join", name, {}, 0) for seq, name in enumerate(names)]


def timeline(topology: Topology, *happenings: tuple[int, str, str]) -> tuple[Event, ...]:
    """All joins at 0, then (at_ns, kind, target) in order."""
    events = joins(topology)
    for at_ns, kind, target in happenings:
        events.append(Event(len(events), at_ns, kind, target, {}, 7))
    return tuple(events)


def contents(topology: Topology, events: tuple[Event, ...], seed: int = 1) -> PlanContents:
    end = events[-1].at_ns if events else 0
    if not events or events[-1].kind != "quit":
        end += 10 * SECOND
    return PlanContents(
        b"# source \xe2\x80\x94\r\n",
        seed,
        topology,
        events,
        end,
        snapshots(topology, events),
        expectations=expectations(topology, end),
        params={"rtt": "5ms", "word": "\u2014"},
    )


def expectations(topology: Topology, end_ns: int) -> tuple[PlannedExpectation, ...]:
    """One of every instance to the next, as far as there are two, and two of everything."""
    instances = sum(node.service >= 0 for node in topology.nodes)
    pairs = tuple((a, a + 1) for a in range(instances - 1))
    nodes = tuple(range(instances))
    found = [PlannedExpectation("expect valid", "valid", 3, to_ns=end_ns)]
    if pairs:
        text = "expect rtt p99 a b < 90% of plan"
        found.append(
            PlannedExpectation(
                text,
                "rtt",
                4,
                "net.tdl",
                pairs,
                op="<",
                value=900_000_000,
                of_plan=True,
                statistic="p99",
                to_ns=end_ns,
            )
        )
    if nodes:
        text = 'expect log * "x"'
        found.append(PlannedExpectation(text, "log", 5, nodes=nodes, pattern="x", eventually=True))
    return tuple(found)


def listing() -> Topology:
    """Two bridges, two servers, two clients; close to the smallest interesting network."""
    fast = LinkState(True, 1_000_000_000, 9_100_000, 0, 0, 6_250_000, "normal")
    slow = LinkState(True, 50_000_000, 23_400_000, 1_200_000, 10_000_000, 312_500, "normal")
    return build(
        [("server", 2), ("client", 2)],
        ["s1", "s2"],
        [("server", "s1", fast, PLAIN), ("s1", "s2", PLAIN, PLAIN), ("client", "s2", slow, fast)],
    )


# --- random ----------------------------------------------------------------------------------


_AQM = "codel;target:5000000;interval:100000000;ecn:0"


def _state(rnd: random.Random) -> LinkState:
    """Few distinct delays, so that ties are common; zero delay and unlimited rates included."""
    delay = rnd.choice([0, MS, MS, 2 * MS, 3 * MS, rnd.randrange(10 * MS)])
    return LinkState(
        up=True,
        rate_bps=rnd.choice([0, 10**7, 10**8, rnd.randrange(1, 10**9)]),
        delay_ns=delay,
        jitter_ns=rnd.choice([0, rnd.randrange(delay + 1)]),
        loss_ppb=rnd.choice([0, 0, 10**7, rnd.randrange(10**9 + 1)]),
        queue_bytes=rnd.randrange(30_000, 10**6),
        distribution=rnd.choice(["normal", "uniform"]),
        **(_rare(rnd) if rnd.random() < 0.1 else {}),
    )


def _rare(rnd: random.Random) -> dict[str, Any]:
    rows = [row for row in PROPERTIES if row.rare and row.field != "trace"]
    chosen = rnd.sample(rows, rnd.randrange(1, 4))
    only = "tcp:80;udp;delay:5000000;loss:7"
    texts = {"flow_rates": _table(rnd), "aqm": _AQM, "only": only, "neck": "west"}
    return {row.field: texts.get(row.field) or rnd.randrange(10**9) for row in chosen}


def _table(rnd: random.Random) -> str:
    """None gets less than background traffic takes."""
    rows = (FlowRate(n, rnd.randrange(10**9, 10**10), 9000 * n) for n in rnd.sample(range(2, 9), 2))
    return flow_rates_text(sorted(rows))


ONE_PATH = ("delay", "delay", "hops", "direct")  # routings with one path between two instances


def random_topology(
    rnd: random.Random, services: int, bridges: int, routings: Sequence[str] = ONE_PATH
) -> Topology:
    """Any mixture of single-homed, multi-homed, parallel and service-to-service links."""
    names = rnd.sample(
        [f"{letter}{n}" for letter in "abxyz" for n in range(40)], services + bridges
    )
    declared = [(name, rnd.choice([1, 1, 2, 3])) for name in names[:services]]
    switches = names[services:]
    links: dict[frozenset[str], tuple[str, str, LinkState, LinkState]] = {}

    def link(a: str, b: str) -> None:
        there, back = _state(rnd), _state(rnd)
        links.setdefault(frozenset((a, b)), (a, b, there, back if rnd.random() < 0.5 else there))

    for name, _ in declared:
        if switches:
            link(name, rnd.choice(switches))
    for _ in range(rnd.randrange(bridges // 2, 3 * bridges + 1) if bridges > 1 else 0):
        link(*rnd.sample(switches, 2))
    for _ in range(rnd.choice([0, 0, 1, 2])):
        if len(names) > 1:
            link(*rnd.sample(names, 2))
    wires: list[Wire] = []
    for a, b, there, back in links.values():
        others = rnd.choice([0, 0, 0, 0, 1, 2])
        called = rnd.sample([f"p{len(wires)}-{number}" for number in range(others + 1)], others + 1)
        wires.append((a, b, there, back, called[0]) if others else (a, b, there, back))
        for name in called[1:]:
            ends = (a, b) if rnd.random() < 0.5 else (b, a)
            wires.append((*ends, rnd.choice([there, _state(rnd)]), _state(rnd), name))
    return build(declared, switches, wires, rnd.choice(routings))


class RandomTimeline:
    """A legal timeline, drawn event by event from a simple record of who is where."""

    def __init__(self, rnd: random.Random, topology: Topology) -> None:
        self.rnd = rnd
        self.topology = topology
        self.node = {n.name: "up" if n.service < 0 else "down" for n in topology.nodes}
        self.link = {link.name: link.state for link in topology.links}
        self.link_up = dict.fromkeys(self.link, True)
        self.background = dict.fromkeys(self.link, 0)
        self.paused: set[str] = set()
        self.killed: set[str] = set()
        self.events: list[Event] = []

    def draw(self, length: int) -> tuple[Event, ...]:
        at_ns = 0
        for name, where in self.node.items():
            if where == "down" and self.rnd.random() < 0.95:
                self._add(0, "join", name)
        for _ in range(length):
            at_ns += self.rnd.choice([0, 1, SECOND])
            if self.link and self.rnd.random() < 0.75:
                self._link_event(at_ns)
            elif self.node:
                self._node_event(at_ns)
        return tuple(self.events)

    def _add(self, at_ns: int, kind: str, target: str, **args: int | str) -> None:
        self.events.append(Event(len(self.events), at_ns, kind, target, args, 1))
        where = {"join": "up", "reconnect": "up", "disconnect": "cut", "bridge_up": "up"}
        if kind in ("leave", "crash", "kill"):
            self.paused.discard(target)
            (self.killed.add if kind == "kill" else self.killed.discard)(target)
        if kind in (*where, "leave", "crash", "bridge_down"):
            self.node[target] = where.get(kind, "down")

    def _node_event(self, at_ns: int) -> None:
        away = [name for name, where in self.node.items() if where != "up"]
        name = self.rnd.choice(away if away and self.rnd.random() < 0.5 else sorted(self.node))
        where = self.node[name]
        if "." not in name:
            self._add(at_ns, "bridge_down" if where == "up" else "bridge_up", name)
        elif self.rnd.random() < 0.05:
            self._add(at_ns, "clock", name, drift_ppb=-500, offset_ns=self.rnd.randint(-9, 9))
        elif self.rnd.random() < 0.05:
            faults: list[dict[str, int | str]] = [
                {"fault": "full"},
                {"fault": "ok"},
                {"fault": "slow", "delay_ns": 1000},
            ]
            faults += [{"fault": "error", "disk_seed": 7, "error_ppb": 10**9}]
            self._add(at_ns, "disk", name, **self.rnd.choice(faults))
        elif where == "down":
            self._add(at_ns, "join", name)
        elif self.rnd.random() < 0.1 and name not in self.killed:
            self._add(at_ns, "kill", name)
        elif self.rnd.random() < 0.3 and name not in self.killed:
            self._add(at_ns, "resume" if name in self.paused else "pause", name)
            self.paused ^= {name}
        elif where == "cut":
            self._add(at_ns, self.rnd.choice(["reconnect", "leave", "crash"]), name)
        else:
            self._add(at_ns, self.rnd.choice(["disconnect", "leave", "crash"]), name)

    def _link_event(self, at_ns: int) -> None:
        name = self.rnd.choice(sorted(self.link))
        choice = self.rnd.random()
        if choice < (0.3 if self.link_up[name] else 0.9):
            self.link_up[name] = not self.link_up[name]
            self._add(at_ns, "link_up" if self.link_up[name] else "link_down", name)
        elif choice < 0.9:
            self._set(at_ns, name)
        elif self.link[name].rate_bps > 1:
            taken = self.rnd.choice([0, self.rnd.randrange(1, self.link[name].rate_bps)])
            self.background[name] = taken
            self._add(at_ns, "background", name, rate_bps=taken)

    def _set(self, at_ns: int, name: str) -> None:
        new = _state(self.rnd)
        args: dict[str, int | str] = {"delay_ns": new.delay_ns}
        if self.rnd.random() < 0.4:
            args = {"loss_ppb": new.loss_ppb, "jitter_ns": new.jitter_ns}
        if self.rnd.random() < 0.1:
            args |= {field: value for field, value in _rare(self.rnd).items() if field != "neck"}
        if self.rnd.random() < 0.2 and new.rate_bps > self.background[name]:
            args["rate_bps"] = new.rate_bps
            self.link[name] = new
        self._add(at_ns, "set", name, **args)


@st.composite
def networks(
    draw: st.DrawFn,
    services: int = 3,
    bridges: int = 6,
    length: int = 12,
    routings: Sequence[str] = ONE_PATH,
) -> tuple[Topology, tuple[Event, ...]]:
    """A random topology and a legal timeline for it, of sizes up to these.

    All follows one seed: sizes drawn by hypothesis itself would nearly always be small.
    """
    rnd = random.Random(draw(st.integers(0, 2**48)))
    sizes = rnd.randint(1, services), rnd.randint(0, bridges)
    topology = random_topology(rnd, *sizes, routings)
    return topology, RandomTimeline(rnd, topology).draw(rnd.randint(0, length))
