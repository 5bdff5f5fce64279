"""What a plan says, as frozen dataclasses of integers and strings.

Units are in the names: `_ns`, `_bps` (bits per second at layer 3, 0 = unlimited), `_ppb`, `_bytes`.
Change anything here and bump FORMAT_VERSION in compiler/plan/format.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compiler.plan.properties import LinkState

DEFAULT_READY_TIMEOUT_NS = 60 * 10**9
DEFAULT_GRACE_NS = 5 * 10**9
NO_CHECK = "none"  # as `ready`: there at once
TCP_CHECK = "tcp:"  # as `ready`, before a port
PRIVATE = "private"  # as `fs`
EXPECTATIONS = ("success", "run", "any")
NETWORKS = ("dual", "ipv4", "ipv6")
HOPS = ("", "answer", "silent")
REACTIONS = ("log", "exit", "ready", "file")
# In a word of a command: $TSTORM_IPV4 or ${TSTORM_IPV4}. Runs put in their own value.
RUN_VARIABLE = re.compile(r"\$(?:\{(TSTORM_[A-Z0-9_]+)\}|(TSTORM_[A-Z0-9_]+))")


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A file that each instance of a service gets before its first start."""

    path: str  # relative: in the instance's directory; absolute: in its own file system
    mode: int  # 0o644 or 0o755
    digest: str  # SHA-256 of the content, which is in files.tar


@dataclass(frozen=True, slots=True)
class Mount:
    """Something of the machine's file system that instances of a service see at `target`."""

    source: str  # on the machine, as written: absolute, or relative to the TDL file
    target: str  # absolute
    read_only: bool


@dataclass(frozen=True, slots=True)
class PlannedExternal:
    """Real machines behind a network card of the machine that carries the plan out."""

    card: str
    behind: str  # their addresses, 'A.B.C.D/P'
    own: str  # 'A.B.C.D/P' that the run has on the card, '' for none
    gateway: str  # who leads to them, '' where they are at the card itself
    file: str  # the included file that declares it, '' = the source itself
    line: int


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
    user: str = ""  # 'postgres', '1000', 'postgres:ssl'; '' = not stated
    cwd: str = ""  # '' = not stated: the instance's directory, or what an image says
    files: tuple[PlanFile, ...] = ()  # by path
    mounts: tuple[Mount, ...] = ()
    fs: str = ""  # '' or 'private': the machine's files, changes are the instance's own
    sysctls: tuple[tuple[str, str], ...] = ()
    setup: tuple[str, ...] = ()  # argv, run once before the first start
    ready: tuple[str, ...] = ()  # () = not stated, ('none',), ('tcp:5432',), else argv
    ready_timeout_ns: int = 0  # 0 = not stated: DEFAULT_READY_TIMEOUT_NS
    stop: str = ""  # 'SIGINT'; '' = not stated: what an image says, else SIGTERM
    grace_ns: int = 0  # 0 = not stated: DEFAULT_GRACE_NS
    expect: str = ""  # '' = not stated, or one of EXPECTATIONS
    keep: bool = True  # False: its data directories are not kept after the run
    # File and line that say `interfaces` or `router`; line 0: none do.
    interfaces_at: tuple[str, int] = ("", 0)
    router: bool = False  # its instances forward by themselves
    gateway: bool = False  # routers that lead to the outside, too
    external: PlannedExternal | None = None  # no program: machines behind a network card


FIRST_INTERFACE = "eth0"


@dataclass(frozen=True, slots=True)
class Node:
    """An end point (an instance, or a further interface of one) or a bridge. `index` of the node is
    its position in Topology.nodes.

    Instances come first, by service in order of declaration and then by index; their further
    interfaces follow, by instance and number, and then bridges in order of declaration. An instance
    is the end point of its first interface, eth0, as well.
    """

    name: str  # 'server.3', 'server.3.eth1' or 's1'
    service: int  # position in Topology.services, -1 for a bridge
    ipv4: str  # '' for a bridge or an end of frames that has none
    ipv6: str  # the same
    tags: tuple[str, ...]
    owner: int = -1  # of a further interface: the node of its instance; -1: it is none
    frames: bool = False  # a lan, or an end point whose link carries frames
    air: bool = False  # a lan that is the radio of the end point that it has a link to
    prefixes: tuple[int, int] = (0, 0)  # of such an end point: those of `ipv4` and `ipv6`
    gateways: tuple[str, str] = ("", "")  # the same: default routes, '' for none

    @property
    def is_instance(self) -> bool:
        return self.service >= 0 and self.owner < 0

    @property
    def interface(self) -> str:
        """Of an end point: what its device is called in the instance."""
        return FIRST_INTERFACE if self.owner < 0 else self.name.rpartition(".")[2]


COMMON_MAC = "02:54:53:00:00:01"  # of devices without one of their own (docs/pktd.md, "Ports")


def device_mac(node: int) -> str:
    """Of the device of an end point that has one of its own: the same in every run and life."""
    return f"02:54:53:01:{node >> 8:02x}:{node & 255:02x}"


def device_macs(nodes: Sequence[Node]) -> dict[int, str]:
    """The MACs of devices that have one of their own, by node: of ends that carry frames, and of
    all interfaces of an instance that has several."""
    several = interfaces(nodes)
    return {
        index: device_mac(index)
        for index, node in enumerate(nodes)
        if node.service >= 0 and (node.frames or node.owner >= 0 or index in several)
    }


def element_of(node: str) -> str:
    """The service of the instance with this name; a bridge's name as it is."""
    service, _, index = node.rpartition(".")
    return service if index.isdecimal() else node


def owner_of(nodes: Sequence[Node], node: int) -> int:
    """The instance whose interface a node is; itself, where it is an instance or a bridge."""
    return node if nodes[node].owner < 0 else nodes[node].owner


def end_names(nodes: Sequence[Node], link: Link) -> tuple[str, str]:
    """Of the elements at its ends, as events name them: an instance, whichever interface."""
    src, dst = (nodes[owner_of(nodes, end)].name for end in (link.src, link.dst))
    return src, dst


def interfaces(nodes: Sequence[Node]) -> dict[int, list[int]]:
    """The further interfaces of instances that have any, by node."""
    found: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        if node.owner >= 0:
            found.setdefault(node.owner, []).append(index)
    return found


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of one link between two nodes; its index is its position in Topology.links.

    The two directions of a link are neighbours: index 2k is as written, 2k+1 the other way.
    """

    # 'server.0->s1', 'fast:server.0->s1' (direction_name): of instances, whichever interface it is
    name: str
    src: int  # node
    dst: int  # node
    seed: int  # 63 bits: keys the loss and jitter draws of this direction
    tags: tuple[str, ...]
    state: LinkState  # before any event; `up` tells only the link's own state (always true)


def direction_name(src: str, dst: str, called: str = "") -> str:
    """The name of a link direction between these nodes; `called`: by `name=`, which tells it from
    others between the same two."""
    return f"{called}:{src}->{dst}" if called else f"{src}->{dst}"


def named_direction(name: str) -> tuple[str, str, str]:
    """Both ends of a link direction, and what it is called ('': it has no name of its own)."""
    called, _, ends = name.rpartition(":")
    src, _, dst = ends.partition("->")
    return src, dst, called


@dataclass(frozen=True, slots=True)
class PlannedTrace:
    """What links follow from `begin_ns` on; its number is its position in Topology.traces + 1."""

    name: str  # as the source has it
    digest: str  # SHA-256 of its content (compiler/plan/parts/traces.py), which is in files.tar
    begin_ns: int
    holds: bool  # its last values stay; else it begins again at its end
    means: tuple[tuple[str, int], ...]  # of the properties that it has, by field of LinkState


@dataclass(frozen=True, slots=True)
class PlannedDelays:
    """Measured delays that jitters are drawn from; states of links name them
    (compiler/plan/parts/delay_tables.py)."""

    name: str  # as the source has it
    digest: str  # SHA-256 of its content, which is in files.tar


@dataclass(frozen=True, slots=True)
class PlannedReaction:
    """A `when`: what a run looks for, and how often that counts. What happens then is in the
    source; whoever has the compiler makes a longer plan of it (compiler/firing.py)."""

    kind: str  # one of REACTIONS
    nodes: tuple[int, ...]  # instances, ascending
    pattern: str  # log: a regular expression; file: a path from the instance's directory on
    status: int  # exit: with this one, -1: with any
    every: bool  # else the first time only, whichever instance it is
    most: int  # how often
    after_ns: int
    text: str  # the statement in canonical form
    file: str  # the included file that its first line is in, '' = the source itself
    line: int


@dataclass(frozen=True, slots=True)
class PlannedMobility:
    """Where nodes are over time (compiler/plan/parts/motion.py)."""

    name: str  # of the file, as the source has it
    digest: str  # SHA-256 of its content, which is in files.tar
    nodes: tuple[int, ...]  # which nodes those of the content are: bridges, or routers
    # With how many others of them each may be linked at a time, as programs ask; 0: none asks, and
    # who reaches each other is linked as planned.
    transceivers: int = 0
    # How far apart those may be who reach each other, and how near to the point 0, 0, 0 the line
    # between them may come; None: not stated.
    range_mm: int | None = None
    body_mm: int | None = None


class PlannedLanEnd(NamedTuple):
    """An instance at a lan of the kernel's, by a device of that lan's name. Addresses have the
    lengths of their prefixes; '' for none."""

    node: int
    ipv4: str  # '192.168.0.1/24'
    ipv6: str

    @property
    def mac(self) -> str:
        """The same in every run and life; those of devices of links begin otherwise."""
        return f"02:54:53:02:{self.node >> 8:02x}:{self.node & 255:02x}"


@dataclass(frozen=True, slots=True)
class PlannedLan:
    """A bridge of the kernel's in a machine, which no link leads to: what passes it is not
    emulated."""

    name: str  # 'sat.3.inner'
    ends: tuple[PlannedLanEnd, ...]  # by node, ascending
    file: str  # the included file that declares it, '' = the source itself
    line: int

    @property
    def device(self) -> str:
        """In its instances."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class PlannedMachine:
    """Several instances that are one machine: it bounds what all of them use, and ends as one."""

    name: str  # 'sat.3'
    members: tuple[int, ...]  # instances, ascending
    bridges: tuple[int, ...]  # nodes, ascending
    cpu_millis: int  # 0 = not stated
    mem_bytes: int  # 0 = not stated
    file: str  # the included file that declares it, '' = the source itself
    line: int
    lans: tuple[PlannedLan, ...] = ()  # of the kernel's, in the order of the block


def kernel_lans(machines: Sequence[PlannedMachine]) -> list[PlannedLan]:
    """In the order of the source."""
    return [lan for one in machines for lan in one.lans]


@dataclass(frozen=True, slots=True)
class Topology:
    services: tuple[Service, ...]
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    bootstrapper: str  # of the public dialect, '' = not stated; agents have an image of their own
    routing: str  # one of ROUTINGS
    network: str = "dual"  # one of NETWORKS: which addresses instances have
    hops: str = ""  # one of HOPS: whether bridges take from TTLs and answer; '' where they can
    hops_at: tuple[str, int] = ("", 0)  # file and line that says so
    frames_at: tuple[str, int] = ("", 0)  # of the first router or lan; line 0: there is none
    start_when_ready: bool = False  # time 0 is when all that are there at first are ready
    quit_when: tuple[int, ...] = ()  # the run ends when all programs of these services have
    traces: tuple[PlannedTrace, ...] = ()
    delays: tuple[PlannedDelays, ...] = ()  # each file once, by name
    reactions: tuple[PlannedReaction, ...] = ()  # in the order of the source
    mobility: tuple[PlannedMobility, ...] = ()  # one at most
    machines: tuple[PlannedMachine, ...] = ()  # in the order of the source


@dataclass(frozen=True, slots=True)
class Event:
    """A primitive change at an instant. Kinds and targets are fixed (docs/plan.md).

    `args` of `set` are the resulting absolute values of what changed, by fields of LinkState; of
    `background` rate_bps (the emulated traffic; 0 frees it). Other kinds have none.
    """

    seq: int
    at_ns: int
    kind: str  # one of event_kinds.KINDS
    target: str  # 'server.3', 's1', 'a.0->s1', '' for quit
    args: Mapping[str, int | str]  # integers and words only
    line: int  # source line of the statement, 0 = implied (a default join)
    file: str = ""  # the included file that the line is in, '' = the source itself

    @property
    def place(self) -> tuple[str, int]:
        """File and line of the statement."""
        return self.file, self.line


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
