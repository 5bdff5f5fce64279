"""What the coordinator asks of an agent: each request is a dataclass, checked by its annotations
(runtime.json_schema), and here by what the plan has. So is what is answered to those of a cluster.
Table in docs/agent.md (messages)."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Any, NamedTuple

from compiler.plan.event_kinds import PROCESS_KINDS
from compiler.plan.storage.plan_shards import MAX_SHARDS, SHARD_BYTES
from runtime.agent.metadata.codec import MAX_BOOT
from runtime.agent.process.commandline import METADATA_PORT
from runtime.errors import RunError
from runtime.json_schema import Count, ValueKind, decoded, encoded, integer, one_of
from runtime.options import RunOptions, decode
from runtime.rpc.endpoint import Endpoint

PORT_LIMIT = 65535  # of a datapath: one more than the largest (tcal_c/common/limits.h)
MAX_NETWORKS = 32  # of one `attach` (docs/tcal.md)
MAX_SHARD_TEXT = 4 * -(-SHARD_BYTES // 3)  # base64 of a whole one
MAX_HOSTS_BYTES = 4 << 20  # of lines for /etc/hosts
MAX_PROBES = 1000  # of one path
MAX_ECHO_PAIRS = 4096
MAX_ECHOES = 1_000_001  # of one pair
MAX_ECHO_NS = 3_600_000_000_000
MAX_PROBE_NS = 10_000_000_000  # of an interval or a wait
WAITS = ("set_up", "started", "ready", "released")  # of what is done before the start


class OrderError(RunError):
    """A request that makes no sense."""


def _text(name: str, fits: Callable[[str], object]) -> ValueKind:
    """A text of which this is true; ValueError for others."""

    def test(value: object) -> bool:
        try:
            return type(value) is str and bool(fits(value))
        except ValueError:
            return False

    return ValueKind(name, test)


_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def _is_word(value: str) -> bool:
    return value != "" and value.isascii() and value.isprintable() and " " not in value


def _is_base64(value: str) -> bool:
    return (
        len(value) <= MAX_SHARD_TEXT and value.isascii() and b64decode(value, validate=True) != b""
    )


def _are_lines(value: str) -> bool:
    ends = not value or value.endswith("\n")
    words = value.replace("\n", "")
    return ends and len(value) <= MAX_HOSTS_BYTES and words.isascii() and words.isprintable()


Line = Annotated[str, _text("a text of printable characters", str.isprintable)]
Word = Annotated[str, _text("one word of printable ASCII", _is_word)]  # of the datapath's protocol
Lines = Annotated[str, _text("whole lines of printable ASCII, of at most 4 MiB", _are_lines)]
Base64 = Annotated[str, _text("the base64 of a shard of a plan", _is_base64)]
Uid = Annotated[str, _text("the UID of a pod", _UID.fullmatch)]
Address = Annotated[str, _text("an IPv4 or IPv6 address", ip_address)]
# The name of an interface means nothing on another host.
HostAddress = Annotated[
    str, _text("an IPv4 or IPv6 address", lambda value: "%" not in value and ip_address(value))
]
Network = Annotated[str, _text("an IPv4 or IPv6 network", ip_network)]
Moment = Annotated[int, integer(-(1 << 63), (1 << 63) - 1)]  # ns of the agent's clock
Port = Annotated[int, integer(0, PORT_LIMIT - 1)]
Process = Annotated[int, integer(2, (1 << 31) - 1)]
Start = Annotated[int, integer(1, MAX_BOOT)]
Wait = Annotated[str, one_of(WAITS, " or ".join(WAITS))]
ProbeTime = Annotated[int, integer(1, MAX_PROBE_NS)]
EchoTime = Annotated[int, integer(1, MAX_ECHO_NS)]


class EchoProbe(NamedTuple):
    """ICMP echoes that an own instance is to send."""

    node: Count
    address: Address
    echoes: Annotated[int, integer(1, MAX_PROBES)]
    interval_ns: ProbeTime
    timeout_ns: ProbeTime


class EchoOrder(NamedTuple):
    """Echoes for as long as the run goes on; the first one after `wait_ns`. `pair`: its number."""

    pair: Annotated[int, integer(0, MAX_ECHO_PAIRS - 1)]
    node: Count
    address: Address
    echoes: Annotated[int, integer(1, MAX_ECHOES)]
    interval_ns: EchoTime
    timeout_ns: EchoTime
    wait_ns: Annotated[int, integer(0, MAX_ECHO_NS)]

    @property
    def probe(self) -> EchoProbe:
        return EchoProbe(*self[1:6])


class PortOrder(NamedTuple):
    """A port that an agent before this one was to attach."""

    port: Port
    node: Annotated[int, integer(-1, PORT_LIMIT)]  # -1: nothing is bound to it yet
    netns: Word
    interface: Word


class InstanceOrder(NamedTuple):
    """A process event of an own instance."""

    step: Count
    node: Count
    what: Annotated[str, one_of(PROCESS_KINDS, "what happens to an instance")]


class MovedNode(NamedTuple):
    """A node that has other addresses than at the start; '' for the one that it has not."""

    node: Count
    ipv4: str
    ipv6: str


@dataclass(frozen=True, slots=True)
class ResumeOrder:
    """Where the experiment is, for an agent that takes another one's place."""

    t0_ns: Moment
    ports: tuple[PortOrder, ...]
    held: tuple[Count, ...] = ()
    applied: Count = 0  # steps that are known to have been applied here, and are not told again
    lives: Mapping[Count, Process] = field(default_factory=dict)  # by own node: its tstorm-hold
    pods: Mapping[Count, Uid] = field(default_factory=dict)  # by own node
    hosts: Lines = ""  # lines for /etc/hosts of held containers
    moved: tuple[MovedNode, ...] = ()
    orders: tuple[InstanceOrder, ...] = ()  # of applied steps: nobody has said that they were given


@dataclass(frozen=True, slots=True)
class AgentHost:
    """Where an agent receives metadata."""

    address: HostAddress
    metadata_port: Annotated[int, integer(1, 65535)] = METADATA_PORT

    @property
    def endpoint(self) -> Endpoint:
        return str(ip_address(self.address)), self.metadata_port


@dataclass(frozen=True, slots=True)
class PrepareOrder:
    """What `prepare` says. `starts`: which start of each host's agent is the present one;
    `placement` is the host of each node, -1 for bridges; `addresses` are IPv4 and IPv6 of each
    instance, '' for none, all of them in `networks`."""

    run: Line
    digest: Line
    host: Count
    hosts: tuple[AgentHost, ...]
    starts: tuple[Start, ...]
    placement: tuple[int, ...]
    addresses: tuple[tuple[str, str], ...]
    networks: tuple[Network, ...]
    options: RunOptions
    resume: ResumeOrder | None = None
    own: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        own = tuple([node for node, host in enumerate(self.placement) if host == self.host])
        object.__setattr__(self, "own", own)


@dataclass(frozen=True, slots=True)
class NoFields:
    """What a request says that needs nothing."""


@dataclass(frozen=True, slots=True)
class AttachOrder:
    node: Count
    port: Port
    netns: Word
    if_: Word


@dataclass(frozen=True, slots=True)
class DetachOrder:
    port: Port


@dataclass(frozen=True, slots=True)
class StartOrder:
    t0_ns: Moment


@dataclass(frozen=True, slots=True)
class StartsOrder:
    starts: tuple[Start, ...]


@dataclass(frozen=True, slots=True)
class BindOrder:
    step: Count
    bind: Mapping[Count, Port] = field(default_factory=dict)
    unbind: tuple[Count, ...] = ()
    hold: tuple[Count, ...] = ()


@dataclass(frozen=True, slots=True)
class CutOrder:
    nodes: tuple[Count, ...]


class PathPlace(NamedTuple):
    """A path that is captured; `offered`: before its queue. `interface` is what it is called."""

    src: Count
    dst: Count
    offered: Annotated[int, integer(0, 1)]
    interface: Word


@dataclass(frozen=True, slots=True)
class CaptureOrder:
    """`file`: a pipe in the folder that the datapath was given, with a reader."""

    file: Word
    probes: Annotated[int, integer(0, 1)]
    places: tuple[PathPlace, ...]


@dataclass(frozen=True, slots=True)
class LivesOrder:
    lives: Mapping[Count, Process]


@dataclass(frozen=True, slots=True)
class PodsOrder:
    pods: Mapping[Count, Uid]
    hosts: Lines


@dataclass(frozen=True, slots=True)
class PodsReply:
    """Of each pod that was found its node, the processes that take orders and are in its network,
    and of which kind it is; of the others why they were not."""

    found: tuple[tuple[Count, Count, Count, str], ...]
    missing: tuple[tuple[Count, str], ...]


@dataclass(frozen=True, slots=True)
class ReachOrder:
    probes: tuple[EchoProbe, ...]


@dataclass(frozen=True, slots=True)
class ReachReply:
    """Of each probe its node, address, count and the round trips of what came back."""

    answers: tuple[tuple[Count, str, Count, tuple[Count, ...]], ...]


@dataclass(frozen=True, slots=True)
class EchoesOrder:
    echoes: tuple[EchoOrder, ...]


@dataclass(frozen=True, slots=True)
class EarlyOrder:
    nodes: Mapping[Count, Wait]


@dataclass(frozen=True, slots=True)
class EarlyReply:
    """Nodes that are not done, and those that failed with the reason."""

    pending: tuple[Count, ...]
    failed: tuple[tuple[Count, str], ...]


@dataclass(frozen=True, slots=True)
class ShardOrder:
    """Shard `number` of the plan with this digest (compiler/plan/storage/plan_shards.py), for an
    agent that shares no files with who leads it."""

    digest: Line
    number: Annotated[int, integer(0, MAX_SHARDS - 1)]
    data: Base64


@dataclass(frozen=True, slots=True)
class ExtendOrder:
    """The plan with the digest `base` is to become another one, which lies in the folder `left`
    beside that one; with '' the agent has its shards."""

    base: Line
    digest: Line
    left: Line


@dataclass(frozen=True, slots=True)
class AdoptOrder:
    digest: Line


@dataclass(frozen=True, slots=True)
class MoveOrder:
    moved: tuple[MovedNode, ...]


@dataclass(frozen=True, slots=True)
class FinishReply:
    """The nodes that still run something."""

    running: tuple[Count, ...]


ORDERS: Mapping[str, type] = {
    "attach": AttachOrder,
    "detach": DetachOrder,
    "open": NoFields,
    "start": StartOrder,
    "starts": StartsOrder,
    "bind": BindOrder,
    "cut": CutOrder,
    "pods": PodsOrder,
    "reach": ReachOrder,
    "echo": EchoesOrder,
    "capture": CaptureOrder,
    "lives": LivesOrder,
    "early": EarlyOrder,
    "move": MoveOrder,
    "shard": ShardOrder,
    "extend": ExtendOrder,
    "adopt": AdoptOrder,
    "forget": NoFields,
    "finish": NoFields,
    "status": NoFields,
    "stop": NoFields,
}
_WORDS = {kind: word for word, kind in ORDERS.items() if kind is not NoFields}


def request(order: object) -> dict[str, object]:
    """An order as its agent is sent it. One without fields is given by its word."""
    return (
        {"do": order} if isinstance(order, str) else {"do": _WORDS[type(order)], **encoded(order)}
    )


# -- by what the plan and the run have ------------------------------------------------------------


def preparation(request: Mapping[str, Any], node_count: int, instances: int) -> PrepareOrder:
    """Of a plan with so many nodes, the first of which are instances. RunError."""
    options = decode(request.get("options"), "options")
    order = decoded(PrepareOrder, request, "the request")
    hosts = len(order.hosts)
    check_count("starts", order.starts, hosts)
    check_count("placement", order.placement, node_count)
    check_count("addresses", order.addresses, instances)
    if order.host >= hosts:
        raise OrderError(f"host is {order.host}: there are {hosts}")
    if not 1 <= len(order.networks) <= MAX_NETWORKS:
        raise OrderError(
            f"there are {len(order.networks)} networks, and 1 to {MAX_NETWORKS} can be"
        )
    for node, host in enumerate(order.placement[:instances]):
        if not 0 <= host < hosts:
            raise OrderError(f"the host of node {node} is {host}: there are {hosts}")
    addresses = list(order.addresses)
    if order.resume is not None:
        check_nodes(instances, _nodes_of(order.resume))
        for node, ipv4, ipv6 in order.resume.moved:
            addresses[node] = ipv4, ipv6
    check_addresses(enumerate(addresses), order.networks)
    return replace(
        order,
        placement=order.placement[:instances] + (-1,) * (node_count - instances),
        addresses=tuple(addresses),
        networks=tuple([str(ip_network(network)) for network in order.networks]),
        options=options,
    )


def _nodes_of(resume: ResumeOrder) -> list[int]:
    bound = [port.node for port in resume.ports if port.node >= 0]
    told = [row.node for row in resume.moved] + [row.node for row in resume.orders]
    return [*bound, *told, *resume.held, *resume.lives, *resume.pods]


def check_count(what: str, found: Sequence[object], wanted: int) -> None:
    if len(found) != wanted:
        raise OrderError(f"{what} has {len(found)} items, and {wanted} are expected")


def check_nodes(instances: int, nodes: Iterable[int]) -> None:
    for node in nodes:
        if node >= instances:
            raise OrderError(f"node {node} is no instance: the plan has {instances}")


def check_addresses(
    addresses: Iterable[tuple[int, tuple[str, str]]], networks: Iterable[str]
) -> None:
    """Of nodes. What is sent to one outside of the networks would pass as if nothing were
    emulated."""
    within = [ip_network(network) for network in networks]
    for node, pair in addresses:
        if not any(pair):
            raise OrderError(f"node {node} has no address")
        for words, family in zip(pair, (IPv4Address, IPv6Address), strict=True):
            try:
                address = family(words) if words else None
            except ValueError as error:
                raise OrderError(f"an address of node {node} is {words!r:.60}: {error}") from error
            if address is not None and not any(address in network for network in within):
                raise OrderError(f"node {node} is at {words}, which is in no network of the run")
