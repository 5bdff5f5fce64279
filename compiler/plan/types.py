"""What a plan says, as frozen dataclasses of integers and strings.

Units are in the names: `_ns`, `_bps` (bits per second at layer 3, 0 = unlimited), `_ppb`, `_bytes`.
Change anything here and bump FORMAT_VERSION in compiler/plan/format.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.plan.properties import LinkState


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    image: str
    exec: tuple[str, ...]  # argv, empty = idle instances
    command: tuple[str, ...]  # for Kubernetes and Compose: arguments, empty = the image's own
    entrypoint: tuple[str, ...]  # for them: the program itself, empty = the image's own
    replicas: int
    tags: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    ports: tuple[int, ...]
    cpu_millis: int  # 0 = not stated
    mem_bytes: int  # 0 = not stated
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Node:
    """An instance or a bridge. `index` of the node is its position in Topology.nodes.

    Instances come first, by service in order of declaration and then by index; bridges follow in
    order of declaration.
    """

    name: str  # 'server.3' or 's1'
    service: int  # position in Topology.services, -1 for a bridge
    ipv4: str  # '' for a bridge
    ipv6: str  # '' for a bridge
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of one link between two nodes; its index is its position in Topology.links.

    The two directions of a link are neighbours: index 2k is as written, 2k+1 the other way.
    """

    name: str  # 'server.0->s1'
    src: int  # node
    dst: int  # node
    seed: int  # 63 bits: keys the loss and jitter draws of this direction
    tags: tuple[str, ...]
    state: LinkState  # before any event; `up` tells only the link's own state (always true)


@dataclass(frozen=True, slots=True)
class Topology:
    services: tuple[Service, ...]
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    bootstrapper: str  # agent image, '' = this release's
    routing: str  # 'delay' | 'hops'


@dataclass(frozen=True, slots=True)
class Event:
    """A primitive change at an instant. Kinds and targets are fixed (docs/plan.md)."""

    seq: int
    at_ns: int
    kind: str  # one of KINDS
    target: str  # 'server.3', 's1', 'a.0->s1', '' for quit
    args: Mapping[str, int | str]  # integers and words only
    line: int  # source line of the statement, 0 = implied (a default join)


KINDS = (
    "join",
    "leave",
    "crash",
    "disconnect",
    "reconnect",
    "link_up",
    "link_down",
    "bridge_up",
    "bridge_down",
    "set",
    "background",
    "quit",
)

# args by kind: `set` carries the resulting absolute values of what changed, by fields of LinkState;
# `background` carries rate_bps (the emulated traffic; 0 frees it). All other kinds carry nothing.


@dataclass(frozen=True, slots=True)
class Epoch:
    """An interval without change, as a delta to the epoch before (to nothing, for epoch 0).

    Epoch 0 starts at 0 and lists every link that is up and every instance that is joined; it may
    hold no events. Covers [at_ns, next epoch's at_ns).
    """

    index: int
    at_ns: int
    first_seq: int  # events first_seq .. last_seq-1 made this epoch out of the one before
    last_seq: int
    nodes: tuple[tuple[int, str], ...]  # (node, 'up' | 'cut' | 'down') that changed, by node
    links: tuple[tuple[int, LinkState], ...]  # full new state of each link that changed, by link
