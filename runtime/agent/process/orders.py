"""What the coordinator asks of an agent, checked: types out of JSON, or an error that says what is
wrong. Table in docs/agent.md (messages)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from compiler.plan.event_kinds import PROCESS_KINDS
from runtime.agent.metadata.codec import MAX_BOOT
from runtime.agent.process.commandline import METADATA_PORT
from runtime.errors import RunError
from runtime.options import RunOptions, decode
from runtime.rpc.endpoint import Endpoint

PORT_LIMIT = 65535  # of a datapath: one more than the largest (tcal_c/common/limits.h)
MAX_NETWORKS = 32  # of one `attach` (docs/tcal.md)
MAX_HOSTS_BYTES = 4 << 20  # of lines for /etc/hosts
MAX_PROBES = 1000  # of one path
MAX_ECHO_PAIRS = 4096
MAX_ECHOES = 1_000_001  # of one pair
MAX_ECHO_NS = 3_600_000_000_000
MAX_PROBE_NS = 10_000_000_000  # of an interval or a wait
WAITS = ("set_up", "started", "ready", "released")  # of what is done before the start
UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)

Network = IPv4Network | IPv6Network


class OrderError(RunError):
    """A request that makes no sense."""


def number(value: Any, what: str, least: int = 0, most: int = 1 << 63) -> int:
    if type(value) is not int or not least <= value < most:
        raise OrderError(
            f"{what} is {value!r:.60}: a number from {least} to {most - 1} is expected"
        )
    return value


def text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise OrderError(f"{what} is {value!r:.60}: a text is expected")
    return value


def word(value: Any, what: str) -> str:
    """A text that can be a word of the datapath's protocol."""
    found = text(value, what)
    if not found or " " in found or not found.isascii():
        raise OrderError(f"{what} is {value!r:.60}: it must be one word")
    return found


def items(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise OrderError(f"{what} is {value!r:.60}: a list is expected")
    return value


def mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OrderError(f"{what} is {value!r:.60}: an object is expected")
    return value


def nodes(value: Any, what: str, instances: int) -> list[int]:
    """Each once, in order."""
    return sorted({number(item, f"a node of {what}", 0, instances) for item in items(value, what)})


def rows(value: Any, what: str, form: str) -> list[list[Any]]:
    """A list of lists, each with as many items as `form` names."""
    found = items(value, what)
    for row in found:
        if not isinstance(row, list) or len(row) != form.count(",") + 1:
            raise OrderError(f"an item of {what} is {row!r:.60}: [{form}] is expected")
    return found


def bindings(value: Any, what: str, instances: int) -> dict[int, int]:
    return {
        number(node, f"a node of {what}", 0, instances): number(
            port, f"a port of {what}", 0, PORT_LIMIT
        )
        for node, port in rows(value, what, "node, port")
    }


def processes(value: Any, instances: int) -> dict[int, int]:
    return {
        number(node, "a node of lives", 0, instances): number(
            process, "a process of lives", 2, 1 << 31
        )
        for node, process in rows(value, "lives", "node, process")
    }


def early(value: Any, instances: int) -> dict[int, str]:
    """Own nodes, and what each is waited for."""
    found: dict[int, str] = {}
    for node, wait in rows(value, "nodes", f"node, {'|'.join(WAITS)}"):
        if wait not in WAITS:
            raise OrderError(f"a wait of nodes is {wait!r:.60}: {'|'.join(WAITS)} is expected")
        found[number(node, "a node of nodes", 0, instances)] = wait
    return found


def pods(value: Any, instances: int) -> dict[int, str]:
    """Nodes, and the UID of each one's pod."""
    found: dict[int, str] = {}
    for node, uid in rows(value, "pods", "node, UID"):
        if not UID.fullmatch(text(uid, "a pod's UID")):
            raise OrderError(f"the UID of node {node!r:.60}'s pod is {uid!r:.60}")
        found[number(node, "a node of pods", 0, instances)] = uid
    return found


def hosts_lines(value: Any) -> str:
    """Lines for /etc/hosts, each of printable ASCII, that end with a line feed."""
    if not isinstance(value, str) or len(value) > MAX_HOSTS_BYTES:
        raise OrderError("hosts must be a text of at most 4 MiB")
    if not value.isascii() or not value.replace("\n", "").isprintable():
        raise OrderError("hosts must be lines of printable ASCII")
    return value if value.endswith("\n") or not value else value + "\n"


@dataclass(frozen=True, slots=True)
class EchoProbe:
    """ICMP echoes that an own instance is to send."""

    node: int
    address: str
    count: int
    interval_ns: int
    timeout_ns: int


def probes(value: Any, instances: int) -> list[EchoProbe]:
    """Times are in ns."""
    form = "node, address, count, interval, timeout"
    return [_probe(row, instances) for row in rows(value, "probes", form)]


@dataclass(frozen=True, slots=True)
class EchoOrder:
    """Echoes for as long as the run goes on; the first one after `wait_ns`. `pair`: its number."""

    pair: int
    probe: EchoProbe
    wait_ns: int


def echoes(value: Any, instances: int) -> list[EchoOrder]:
    """Times are in ns."""
    form = "pair, node, address, count, interval, timeout, wait"
    return [
        EchoOrder(
            number(pair, "the pair of an echo", 0, MAX_ECHO_PAIRS),
            _probe(probe, instances, MAX_ECHOES, MAX_ECHO_NS),
            number(wait, "the wait of an echo", 0, MAX_ECHO_NS + 1),
        )
        for pair, *probe, wait in rows(value, "echoes", form)
    ]


def _probe(
    row: list[Any], instances: int, most: int = MAX_PROBES, longest_ns: int = MAX_PROBE_NS
) -> EchoProbe:
    node, where, count, interval, timeout = row
    address = text(where, "a probe's address")
    try:
        ip_address(address)
    except ValueError as error:
        raise OrderError(f"a probe's address is {address!r:.60}: {error}") from error
    return EchoProbe(
        number(node, "a node of probes", 0, instances),
        address,
        number(count, "the count of a probe", 1, most + 1),
        number(interval, "the interval of a probe", 1, longest_ns + 1),
        number(timeout, "the timeout of a probe", 1, longest_ns + 1),
    )


@dataclass(frozen=True, slots=True)
class PortOrder:
    """A port that an agent before this one was to attach."""

    port: int
    node: int  # -1: nothing is bound to it yet
    netns: str
    interface: str


@dataclass(frozen=True, slots=True)
class InstanceOrder:
    """A process event of an own instance."""

    step: int
    node: int
    what: str  # one of PROCESS_KINDS


@dataclass(frozen=True, slots=True)
class ResumeOrder:
    """Where the experiment is, for an agent that takes another one's place."""

    t0_ns: int
    ports: tuple[PortOrder, ...]
    held: tuple[int, ...]
    applied: int  # steps that are known to have been applied here, and are not told again
    lives: Mapping[int, int]  # own node -> process of the tstorm-hold that keeps its program
    pods: Mapping[int, str]  # own node -> UID of its pod
    hosts: str  # lines for /etc/hosts of held containers
    moved: Mapping[int, tuple[str, str]]  # nodes that have other addresses than at the start
    orders: tuple[InstanceOrder, ...] = ()  # of applied steps: nobody has said that they were given


@dataclass(frozen=True, slots=True)
class PrepareOrder:
    """What `prepare` says. `placement` is the host of each node, -1 for bridges; `addresses` are
    IPv4 and IPv6 of each instance, '' for none, all of them in `networks`."""

    run: str
    digest: str
    host: int
    hosts: tuple[Endpoint, ...]  # where each agent receives metadata
    starts: tuple[int, ...]  # which start of each host's agent is the present one
    placement: tuple[int, ...]
    addresses: tuple[tuple[str, str], ...]
    networks: tuple[str, ...]
    options: RunOptions
    resume: ResumeOrder | None = None
    own: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        own = tuple([node for node, host in enumerate(self.placement) if host == self.host])
        object.__setattr__(self, "own", own)


def preparation(request: Mapping[str, Any], node_count: int, instances: int) -> PrepareOrder:
    """Raises OrderError; KeyError for what is missing."""
    hosts = tuple([_host(item) for item in items(request["hosts"], "hosts")])
    networks = _networks(request["networks"])
    given = request.get("resume")
    resume = None if given is None else _resume(given, instances, networks)
    addresses = _addresses(request["addresses"], instances, networks)
    moved = {} if resume is None else resume.moved
    return PrepareOrder(
        run=text(request["run"], "run"),
        digest=text(request["digest"], "digest"),
        host=number(request["host"], "host", 0, len(hosts)),
        hosts=hosts,
        starts=starts(request["starts"], len(hosts)),
        placement=_placement(request["placement"], node_count, instances, len(hosts)),
        addresses=tuple([moved.get(node, pair) for node, pair in enumerate(addresses)]),
        networks=tuple([str(network) for network in networks]),
        options=_options(request["options"]),
        resume=resume,
    )


def _options(value: Any) -> RunOptions:
    try:
        return decode(value, "options")
    except RunError as error:
        raise OrderError(error.message, error.remedy) from error


def starts(value: Any, hosts: int) -> tuple[int, ...]:
    """Of the agents of all hosts, in order."""
    found = items(value, "starts")
    if len(found) != hosts:
        raise OrderError(f"there are {len(found)} starts, and {hosts} hosts")
    return tuple([number(item, "a start", 1, MAX_BOOT + 1) for item in found])


def _host(value: Any) -> Endpoint:
    item = mapping(value, "a host")
    port = number(item.get("metadata_port", METADATA_PORT), "metadata_port", 1, 1 << 16)
    address = text(item["address"], "address")
    try:
        if "%" in address:
            raise ValueError("the name of an interface means nothing on another host")
        return str(ip_address(address)), port
    except ValueError as error:  # a name would be looked up again and again
        raise OrderError(
            f"a host's address is {address!r:.60}: an IPv4 or IPv6 address is expected"
        ) from error


def _placement(value: Any, node_count: int, instances: int, hosts: int) -> tuple[int, ...]:
    found = items(value, "placement")
    if len(found) != node_count:
        raise OrderError(f"the placement has {len(found)} nodes, and the plan {node_count}")
    for node, host in enumerate(found[:instances]):
        number(host, f"the host of node {node}", 0, hosts)
    return tuple(found[:instances]) + (-1,) * (node_count - instances)


def _networks(value: Any) -> list[Network]:
    found = [_network(text(item, "a network")) for item in items(value, "networks")]
    if not 1 <= len(found) <= MAX_NETWORKS:
        raise OrderError(f"there are {len(found)} networks: 1 to {MAX_NETWORKS} are expected")
    return found


def _network(words: str) -> Network:
    try:
        return ip_network(words)
    except ValueError as error:
        raise OrderError(f"a network is {words!r:.60}: {error}") from error


def _addresses(value: Any, instances: int, networks: list[Network]) -> tuple[tuple[str, str], ...]:
    found = items(value, "addresses")
    if len(found) != instances:
        raise OrderError(
            f"there are addresses of {len(found)} instances, and the plan has {instances}"
        )
    return tuple([_pair(item, node, networks) for node, item in enumerate(found)])


def _pair(item: Any, node: int, networks: list[Network]) -> tuple[str, str]:
    """What is sent to an address outside of the networks would pass as if nothing were emulated."""
    if not isinstance(item, list) or len(item) != 2 or not any(item):
        raise OrderError(f"addresses of node {node} are {item!r:.60}: [IPv4, IPv6] is expected")
    for words, kind in zip(item, (IPv4Address, IPv6Address), strict=True):
        if text(words, f"an address of node {node}") == "":
            continue
        try:
            address = kind(words)
        except ValueError as error:
            raise OrderError(f"an address of node {node} is {words!r:.60}: {error}") from error
        if not any(address in network for network in networks):
            raise OrderError(f"node {node} is at {words}, which is in no network of the run")
    return item[0], item[1]


def moves(
    value: Any, instances: int, networks: Iterable[Network | str]
) -> dict[int, tuple[str, str]]:
    within = [ip_network(network) for network in networks]
    found: dict[int, tuple[str, str]] = {}
    for word, *addresses in rows(value, "moved", "node, IPv4, IPv6"):
        node = number(word, "a node of moved", 0, instances)
        found[node] = _pair(addresses, node, within)
    return found


def _resume(found: Any, instances: int, networks: Iterable[Network]) -> ResumeOrder:
    value = mapping(found, "resume")
    orders = rows(value.get("orders", []), "orders", f"step, node, {'|'.join(PROCESS_KINDS)}")
    ports = rows(value["ports"], "ports", "port, node, namespace, if")
    return ResumeOrder(
        t0_ns=number(value["t0_ns"], "t0_ns", -(1 << 63)),
        ports=tuple([_port(row, instances) for row in ports]),
        held=tuple(nodes(value.get("held", []), "held", instances)),
        applied=number(value.get("applied", 0), "applied"),
        lives=processes(value.get("lives", []), instances),
        pods=pods(value.get("pods", []), instances),
        hosts=hosts_lines(value.get("hosts", "")),
        moved=moves(value.get("moved", []), instances, networks),
        orders=tuple([_life(row, instances) for row in orders]),
    )


def _life(row: list[Any], instances: int) -> InstanceOrder:
    step, node, what = row
    if what not in PROCESS_KINDS:
        raise OrderError(f"an order is {what!r:.60}: {'|'.join(PROCESS_KINDS)} is expected")
    step = number(step, "the step of an order")
    return InstanceOrder(step, number(node, "a node of orders", 0, instances), what)


def _port(row: list[Any], instances: int) -> PortOrder:
    port, node, netns, interface = row
    return PortOrder(
        number(port, "a port", 0, PORT_LIMIT),
        number(node, "a port's node", -1, instances),
        word(netns, "a port's namespace"),
        word(interface, "a port's interface"),
    )
