"""Pass 2: services become instances and links become link directions between nodes.

Input: `Declared` and the number of replicas of every service. Output: the `Topology`, without and
with interfaces of instances, and where each service and each declared link lies in it. Numbering is
fixed by compiler/plan/types.py; addresses by docs/tdl.md: instance k has 10.77.0.0 + k + 1 and
fd77:7473:: + k + 1, bridge k 10.77.255.254 - k and fd77:7473::1:0 + k.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from compiler import path_queues, queues
from compiler.declare.declared import Declared
from compiler.declare.endpoints import endpoint, with_interfaces
from compiler.declare.ends import ending
from compiler.declare.nodes import kernel_lans
from compiler.declare.nodes.externals import planned_external
from compiler.declare.nodes.frames import FrameProblem, with_frames
from compiler.declare.nodes.machines import parts_of
from compiler.draws import link_seed
from compiler.plan.properties import BY_WORD, LinkState
from compiler.plan.types import (
    Link,
    Mount,
    Node,
    PlanFile,
    PlannedDelays,
    PlannedMachine,
    PlannedMobility,
    PlannedTrace,
    Service,
    Topology,
    direction_name,
)
from tdl import ast
from tdl.tokens.words import LINK_WORDS

# What the language calls the fields of LinkState, where plans have another word.
_OTHER_WORDS = {
    "latency": "delay",
    "up": "rate",
    "down": "rate",
    "trace-up": "trace",
    "trace-down": "trace",
}
FIELDS = {
    word: BY_WORD[_OTHER_WORDS.get(word, word)].field
    for word, row in LINK_WORDS.items()
    if row.kind != "end"
}
LAST_IPV4 = 0xFFFE  # of 10.77.0.0/16: above it is broadcast
NO_FILES: Mapping[str, tuple[PlanFile, ...]] = {}


class MovingBridges(Protocol):
    """Nodes that move, by their names (compiler/declare/nodes/mobile_links.py)."""

    @property
    def source(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def transceivers(self) -> int: ...
    @property
    def range_mm(self) -> int | None: ...
    @property
    def body_mm(self) -> int | None: ...


class Recorded(NamedTuple):
    """What files say that statements name."""

    traces: tuple[PlannedTrace, ...] = ()
    delays: tuple[PlannedDelays, ...] = ()
    moving: MovingBridges | None = None


NOTHING_RECORDED = Recorded()
_AMOUNTS = {FIELDS[word]: row.field for word, row in LINK_WORDS.items() if row.field}
_amounts = attrgetter(*_AMOUNTS.values())


@dataclass(frozen=True, slots=True)
class Layout:
    """The topology, and the way from declared names to its indexes.

    A declared link with ends a and b owns the directions `2k, 2k + 1` for k in `pairs[link]`, in
    order of the instances of a, then of b, that it is for: all of a service, or the one it names.
    Of one service with itself it has each two instances once, the lower one first.
    """

    topology: Topology
    service_of: Mapping[str, int]
    instances: tuple[range, ...]  # by service: its nodes
    node_of: Mapping[str, int]  # bridges and instances
    pairs: tuple[range, ...]  # by declared link
    planned: Topology  # the plan's: with further interfaces, in which links have the same indexes
    frame_problems: tuple[FrameProblem, ...] = ()

    @property
    def bridges(self) -> range:
        """The nodes that are bridges: all after the instances."""
        first = self.instances[-1].stop if self.instances else 0
        return range(first, len(self.topology.nodes))


def expand(
    declared: Declared,
    replicas: Mapping[str, int],
    seed: int,
    files: Mapping[str, tuple[PlanFile, ...]] = NO_FILES,
    recorded: Recorded = NOTHING_RECORDED,
) -> Layout:
    """`replicas` has every service and at most MAX_INSTANCES instances in total."""
    services: list[Service] = []
    nodes: list[Node] = []
    instances: list[range] = []
    for position, (name, statement) in enumerate(declared.services.items()):
        services.append(_service(statement, replicas[name], files.get(name, ())))
        instances.append(range(len(nodes), len(nodes) + replicas[name]))
        for index in range(replicas[name]):
            nodes.append(endpoint(f"{name}.{index}", position, len(nodes), services[-1].tags))
    silent = declared.hops is not None and declared.hops.word == "silent"
    first = len(nodes)
    for index, (name, bridge) in enumerate(declared.bridges.items()):
        ipv4, ipv6 = ("", "") if silent or bridge.lan else _bridge_addresses(first, index)
        nodes.append(Node(name, -1, ipv4, ipv6, texts(bridge.tags), air=bridge.air))
    node_of = {node.name: index for index, node in enumerate(nodes)}
    ends = {name: [f"{name}.{i}" for i in range(replicas[name])] for name in declared.services}
    links: list[Link] = []
    pairs: list[range] = []
    for link in declared.links:
        first = len(links) // 2
        links += _links(link, ends, node_of, seed)
        pairs.append(range(first, len(links) // 2))
    topology = Topology(
        services=tuple(services),
        nodes=tuple(nodes),
        links=tuple(links),
        bootstrapper=declared.bootstrapper.image if declared.bootstrapper else "",
        routing=_routing(declared),
        network=declared.network.family if declared.network else "dual",
        hops=declared.hops.word if declared.hops else "",
        hops_at=declared.hops.span.place if declared.hops else ("", 0),
        start_when_ready=declared.start is not None,
        quit_when=ending(declared),
        traces=recorded.traces,
        delays=recorded.delays,
        mobility=_mobility(recorded.moving, node_of),
        machines=tuple(_machines(declared.machines, node_of)),
    )
    service_of = {name: index for index, name in enumerate(declared.services)}
    planned, problems = with_frames(declared, with_interfaces(topology), pairs)
    return Layout(topology, service_of, tuple(instances), node_of, tuple(pairs), planned, problems)


def _routing(declared: Declared) -> str:
    """A path is what lies between its ends, whatever else of the file does."""
    if declared.routing is not None:
        return declared.routing.metric
    if declared.dialect is not None:
        return "hops"
    return "direct" if any(link.path for link in declared.links) else "delay"


def _ends(instances: Mapping[str, Sequence[str]], name: str, index: int | None) -> Sequence[str]:
    """The nodes that an end of a link stands for."""
    if name not in instances:
        return (name,)
    return instances[name] if index is None else instances[name][index : index + 1]


def texts(names: Iterable[ast.Name]) -> tuple[str, ...]:
    """The words, each once, in the order written."""
    return tuple(dict.fromkeys(name.text for name in names))


def _service(
    statement: ast.ServiceStatement, replicas: int, files: tuple[PlanFile, ...]
) -> Service:
    return Service(
        name=statement.name.text,
        image=statement.image or "",
        exec=tuple(shlex.split(statement.exec)) if statement.exec else (),
        command=statement.command or (),
        entrypoint=statement.entrypoint or (),
        replicas=replicas,
        tags=texts(statement.tags),
        env=statement.env,
        ports=statement.ports,
        cpu_millis=statement.cpu_millis or 0,
        mem_bytes=statement.mem_bytes or 0,
        options=tuple((name.text, value) for name, value in statement.options),
        user=statement.user or "",
        cwd=statement.cwd or "",
        files=files,
        mounts=tuple(Mount(one.source, one.target, one.read_only) for one in statement.mounts),
        fs=statement.fs or "",
        sysctls=statement.sysctls,
        setup=tuple(shlex.split(statement.setup)) if statement.setup else (),
        ready=tuple(shlex.split(statement.ready)) if statement.ready else (),
        ready_timeout_ns=statement.ready_timeout_ns or 0,
        stop=statement.stop or "",
        grace_ns=statement.grace_ns or 0,
        expect=statement.expect or "",
        keep=statement.keep is not False,
        interfaces_at=own.span.place if (own := statement.own_interfaces) else ("", 0),
        router=statement.forwards is not None,
        gateway=statement.gateway is not None,
        external=planned_external(statement),
    )


def _bridge_addresses(instances: int, index: int) -> tuple[str, str]:
    """IPv4 from the end of the network, so that more instances change nothing; none is left for the
    last of as many nodes as there can be."""
    number = LAST_IPV4 - index
    ipv4 = f"10.77.{number >> 8}.{number & 255}" if number > instances else ""
    return ipv4, f"fd77:7473::1:{index:x}"


def _links(
    link: ast.LinkStatement,
    ends: Mapping[str, Sequence[str]],
    node_of: Mapping[str, int],
    seed: int,
) -> Iterator[Link]:
    """Both directions between each two nodes that the statement stands for."""
    (there, back), tags = _states(link), texts(link.tags)
    called = "" if link.name is None else link.name.text
    for position, a in enumerate(_ends(ends, link.a.text, link.a_index)):
        others = _ends(ends, link.b.text, link.b_index)
        for b in others[position + 1 :] if link.is_mesh else others:
            for src, dst, state in ((a, b, there), (b, a, back)):
                name = direction_name(src, dst, called)
                yield Link(name, node_of[src], node_of[dst], link_seed(seed, name), tags, state)


def _mobility(
    moving: MovingBridges | None, node_of: Mapping[str, int]
) -> tuple[PlannedMobility, ...]:
    if moving is None:
        return ()
    nodes = tuple(node_of.get(name, 0) for name in moving.names)  # 0: it is reported
    bounds = (moving.range_mm, moving.body_mm)
    return (PlannedMobility(moving.source, moving.digest, nodes, moving.transceivers, *bounds),)


def _machines(
    statements: Iterable[ast.NodeStatement], node_of: Mapping[str, int]
) -> Iterator[PlannedMachine]:
    for node in statements:
        parts = parts_of(node)
        file, line = node.span.place
        for at in range(node.replicas):
            name = f"{node.name.text}.{at}"
            named = [f"{name}.{part}.{k}" for part, count in parts.items() for k in range(count)]
            bridges = [f"{name}.{part}" for part, count in parts.items() if not count]
            members, inner = (
                tuple(sorted(node_of[one] for one in names if one in node_of))
                for names in (named, bridges)
            )
            yield PlannedMachine(
                name,
                members,
                inner,
                node.cpu_millis or 0,
                node.mem_bytes or 0,
                file,
                line,
                kernel_lans.planned(node, at, parts, node_of),
            )


def _states(link: ast.LinkStatement) -> tuple[LinkState, LinkState]:
    """Of its way there and of its way back."""
    other = link.back or link
    down = other.up_bps if link.back or link.symmetric else link.down_bps
    trace_back = other.trace_up if link.back else link.trace_down
    there, back = _state(link, link.up_bps, link.trace_up), _state(other, down, trace_back)
    if link.path is not None:
        return _path_state(link.path, there), _path_state(link.path, back, back=True)
    return there, back


def _path_state(terms: ast.PathTerms, own: LinkState, *, back: bool = False) -> LinkState:
    """What cannot be is reported with the declaration (compiler/declare/declared.py)."""
    try:
        return own._replace(**path_queues.direction(terms, back=back))
    except path_queues.PathProblem:
        return own


def delay_and_jitter(link: ast.LinkStatement, delays: ast.DelayFile) -> tuple[int, int]:
    """Those of the statement, and of the file where it has none; of a path, the terms of its round
    trip are those of the statement."""
    own = link.path.rtt_ns // 2 + link.latency_ns if link.path else link.latency_ns
    return own or delays.mean_ns, link.jitter_ns or delays.deviation_ns


def _state(link: ast.LinkStatement, rate_bps: int | None, trace: ast.TraceFile | None) -> LinkState:
    values: dict[str, Any] = dict(zip(_AMOUNTS, _amounts(link), strict=True))
    values["rate_bps"] = rate_bps or 0
    distribution = link.distribution or "normal"
    if isinstance(distribution, ast.DelayFile):
        values["delay_ns"], values["jitter_ns"] = delay_and_jitter(link, distribution)
        distribution = distribution.distribution or "normal"
    if trace is not None:
        values |= {"trace": trace.number, **dict(trace.means)}
    size, packets = queues.sized(link.queue, values["rate_bps"], link.aqm)
    return LinkState(
        up=True,
        queue_bytes=size,
        queue_packets=packets,
        aqm=link.aqm,
        distribution=distribution,
        **values,
    )
