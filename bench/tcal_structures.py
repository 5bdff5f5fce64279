"""Ways to give one path a rate, a queue and a delay, each between the same two ends.

Ends a and b are joined by two forwarding namespaces, r1 and r2. The reference is what the others
are held against: r1 is a router whose link towards b is the bottleneck (tbf with the rate and a
queue in bytes), r2 the long way (netem, the delay in both directions). The others leave r1 and r2
plain and do everything at a, or behind a, where a host of an experiment could. The way back has the
delay only, made the same way. tc-tbf(8), tc-netem(8) and tc-htb(8) say what the words mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from bench.netns import Namespace
from bench.pktd_client import Pktd
from bench.probing import program
from bench.wiring import ETHERNET_BYTES, MTU_BYTES

FRAME_BYTES = MTU_BYTES + ETHERNET_BYTES
NEAR, FAR = "10.77.1.1", "10.77.3.2"  # addresses of a and b
HUGE_BPS = 10_000_000_000
MANY_PACKETS = 100_000


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What the path shall be. The rate and the queue count IP bytes."""

    rate_bps: int
    delay_ns: int
    queue_bytes: int

    @property
    def frame_rate_bps(self) -> int:
        """The rate for a shaper that counts the Ethernet header, exact for full packets."""
        return self.rate_bps * FRAME_BYTES // MTU_BYTES

    @property
    def frame_queue_bytes(self) -> int:
        return self.queue_bytes * FRAME_BYTES // MTU_BYTES

    @property
    def netem(self) -> str:
        return f"netem delay {self.delay_ns // 1000}us limit {MANY_PACKETS}"

    @property
    def packets(self) -> int:
        """Of the rate during the delay, and of the queue: netem's limit where that is the queue."""
        flying = self.rate_bps * self.delay_ns // 8_000_000_000
        return max(2, (flying + self.queue_bytes) // MTU_BYTES)


@dataclass(slots=True)
class Line:
    """The four namespaces of a connected line a - r1 - r2 - b."""

    a: Namespace
    r1: Namespace
    r2: Namespace
    b: Namespace
    engine: Pktd | None = None  # pktd or tcald, where that is what shapes

    def close(self) -> None:
        if self.engine is not None:
            self.engine.close()
        for space in (self.a, self.r1, self.r2, self.b):
            space.close()


def tc(space: Namespace, *commands: str) -> None:
    for command in commands:
        space.run(["tc", *command.split()])


def line() -> Line:
    """Four namespaces, forwarding, no shaping."""
    made = Line(Namespace(), Namespace(), Namespace(), Namespace())
    spaces = (made.a, made.r1, made.r2, made.b)
    for number, (near, far) in enumerate(pairwise(spaces), start=1):
        peer = far.path.parts[2]
        near.run(f"ip link add right type veth peer name left netns {peer}".split())
        near.ip_batch([f"addr add 10.77.{number}.1/24 dev right", "link set right up"])
        far.ip_batch([f"addr add 10.77.{number}.2/24 dev left", "link set left up"])
    made.a.ip_batch(["route add default via 10.77.1.2"])
    made.r1.ip_batch(["route add 10.77.3.0/24 via 10.77.2.2"])
    made.r2.ip_batch(["route add 10.77.1.0/24 via 10.77.2.1"])
    made.b.ip_batch(["route add default via 10.77.3.1"])
    for space in (made.r1, made.r2):
        space.sysctl("net.ipv4.ip_forward", "1")
    return made


def segments_only(space: Namespace, device: str) -> None:
    """No super-packets from this device: each packet is queued, dropped and counted on its own."""
    space.run(["ip", "link", "set", device, "gso_max_segs", "1"])


def htb(space: Namespace, device: str, path: Bottleneck) -> None:
    """A class of the path's rate for everything; its leaf comes after."""
    rate = f"rate {path.frame_rate_bps}bit ceil {path.frame_rate_bps}bit"
    burst = max(2 * FRAME_BYTES, path.frame_rate_bps // 8000)
    tc(
        space,
        f"qdisc add dev {device} root handle 1: htb default 1",
        f"class add dev {device} parent 1: classid 1:1 htb {rate} burst {burst} cburst {burst}"
        f" quantum {FRAME_BYTES}",
    )


def router(path: Bottleneck) -> Line:
    """The reference."""
    made = line()
    shape = f"rate {path.frame_rate_bps}bit burst {2 * FRAME_BYTES} limit {path.frame_queue_bytes}"
    tc(made.r1, f"qdisc add dev right root tbf {shape}")
    tc(made.r2, f"qdisc add dev right root {path.netem}", f"qdisc add dev left root {path.netem}")
    return made


def _back(made: Line, path: Bottleneck) -> Line:
    tc(made.b, f"qdisc add dev left root {path.netem}")
    return made


def sender_netem(path: Bottleneck) -> Line:
    """htb over netem whose limit is the queue, at the sender (as the public Kollaps has it)."""
    made = line()
    htb(made.a, "right", path)
    segments_only(made.a, "right")
    leaf = f"netem delay {path.delay_ns // 1000}us limit {path.packets}"
    tc(made.a, f"qdisc add dev right parent 1:1 handle 2: {leaf}")
    return _back(made, path)


def sender_nested(path: Bottleneck) -> Line:
    """htb over netem over a drop-tail queue in bytes, at the sender."""
    made = line()
    htb(made.a, "right", path)
    segments_only(made.a, "right")
    tc(
        made.a,
        f"qdisc add dev right parent 1:1 handle 2: {path.netem}",
        f"qdisc add dev right parent 2: handle 3: bfifo limit {path.frame_queue_bytes}",
    )
    return _back(made, path)


def sender_super(path: Bottleneck) -> Line:
    """The same with super-packets, which are queued and dropped whole."""
    made = line()
    htb(made.a, "right", path)
    tc(
        made.a,
        f"qdisc add dev right parent 1:1 handle 2: {path.netem}",
        f"qdisc add dev right parent 2: handle 3: bfifo limit {path.frame_queue_bytes}",
    )
    return _back(made, path)


def sender_tbf(path: Bottleneck) -> Line:
    """netem over tbf, at the sender: the shaper's own queue in bytes inside the delay."""
    made = line()
    segments_only(made.a, "right")
    shape = f"rate {path.frame_rate_bps}bit burst {2 * FRAME_BYTES} limit {path.frame_queue_bytes}"
    tc(
        made.a,
        f"qdisc add dev right root handle 1: {path.netem}",
        f"qdisc add dev right parent 1: handle 2: tbf {shape}",
    )
    return _back(made, path)


def sender_fifo(path: Bottleneck) -> Line:
    """htb over a drop-tail queue at the sender, the delay behind it: the socket is held back."""
    made = line()
    htb(made.a, "right", path)
    segments_only(made.a, "right")
    tc(made.a, f"qdisc add dev right parent 1:1 handle 2: bfifo limit {path.frame_queue_bytes}")
    tc(made.r1, f"qdisc add dev right root {path.netem}")
    return _back(made, path)


def sender_rate(path: Bottleneck) -> Line:
    """netem's own rate, at the sender, its limit the queue."""
    made = line()
    segments_only(made.a, "right")
    shape = f"rate {path.frame_rate_bps}bit limit {path.packets}"
    tc(made.a, f"qdisc add dev right root netem delay {path.delay_ns // 1000}us {shape}")
    return _back(made, path)


def _to_ifb(space: Namespace, device: str) -> None:
    space.ip_batch(["link add ifb0 type ifb", "link set ifb0 up"])
    tc(
        space,
        f"qdisc add dev {device} clsact",
        f"filter add dev {device} ingress matchall action mirred egress redirect dev ifb0",
    )


def host_nested(path: Bottleneck) -> Line:
    """As sender_nested, on an ifb behind the sender's veth: a host's side of it."""
    made = line()
    segments_only(made.a, "right")
    _to_ifb(made.r1, "left")
    htb(made.r1, "ifb0", path)
    tc(
        made.r1,
        f"qdisc add dev ifb0 parent 1:1 handle 2: {path.netem}",
        f"qdisc add dev ifb0 parent 2: handle 3: bfifo limit {path.frame_queue_bytes}",
    )
    return _back(made, path)


def receiver_netem(path: Bottleneck) -> Line:
    """htb over netem whose limit is the queue, on an ifb at the receiver."""
    made = line()
    segments_only(made.a, "right")
    _to_ifb(made.b, "left")
    htb(made.b, "ifb0", path)
    leaf = f"netem delay {path.delay_ns // 1000}us limit {path.packets}"
    tc(made.b, f"qdisc add dev ifb0 parent 1:1 handle 2: {leaf}")
    return _back(made, path)


def receiver_nested(path: Bottleneck) -> Line:
    """As sender_nested, on an ifb at the receiver."""
    made = line()
    segments_only(made.a, "right")
    _to_ifb(made.b, "left")
    htb(made.b, "ifb0", path)
    tc(
        made.b,
        f"qdisc add dev ifb0 parent 1:1 handle 2: {path.netem}",
        f"qdisc add dev ifb0 parent 2: handle 3: bfifo limit {path.frame_queue_bytes}",
    )
    return _back(made, path)


def _attached(name: str, path: Bottleneck) -> Line:
    """A datapath of the project at both ends, over the path protocol."""
    made = line()
    made.engine = Pktd(program(name))
    made.engine.ask_all(
        [
            f"attach 0 netns={made.a.path} if=right prefix=10.77.3.0/24",
            f"attach 1 netns={made.b.path} if=left prefix=10.77.1.0/24",
            *(f"node 0 ip={NEAR}", f"node 1 ip={FAR}", "bind 0 0", "bind 1 1"),
            f"path 0 1 rate={path.rate_bps} delay={path.delay_ns} jitter=0 loss=0"
            f" queue={path.queue_bytes} up=1",
            f"path 1 0 rate=0 delay={path.delay_ns} jitter=0 loss=0 queue=0 up=1",
        ]
    )
    made.engine.commit()
    return made


def tcald(path: Bottleneck) -> Line:
    """tcald at both ends."""
    return _attached("tcald", path)


def pktd_path(path: Bottleneck) -> Line:
    """pktd in path mode at both ends."""
    return _attached("pktd", path)


def pktd(path: Bottleneck) -> Line:
    """pktd between the ends, hop by hop: the bottleneck is a link, as in `tstorm run`."""
    made = Line(Namespace(), Namespace(), Namespace(), Namespace())
    made.engine = Pktd(program("pktd"))
    for number, (space, address) in enumerate(((made.a, NEAR), (made.b, FAR))):
        made.engine.ask(f"open {number} netns={space.path} if=eth0")
        space.ip_batch([f"addr add {address}/8 dev eth0", "link set eth0 up"])
    rate = f"rate={path.rate_bps} queue={path.queue_bytes}"
    same = "jitter=0 loss=0 dist=normal up=1"
    made.engine.ask_all(
        [
            *(f"node 0 ip={NEAR}", f"node 1 ip={FAR}", "bind 0 0", "bind 1 1"),
            f"link 0 0 1 {rate} delay={path.delay_ns} seed=1 {same}",
            f"link 1 1 0 rate=0 queue=0 delay={path.delay_ns} seed=2 {same}",
            *("route 0 0 1", "route 1 1 0"),
        ]
    )
    made.engine.commit()
    return made


STRUCTURES: dict[str, Callable[[Bottleneck], Line]] = {
    "router": router,
    "sender_nested": sender_nested,
    "sender_netem": sender_netem,
    "sender_super": sender_super,
    "sender_tbf": sender_tbf,
    "sender_fifo": sender_fifo,
    "sender_rate": sender_rate,
    "host_nested": host_nested,
    "receiver_netem": receiver_netem,
    "receiver_nested": receiver_nested,
    "pktd": pktd,
    "pktd_path": pktd_path,
    "tcald": tcald,
}
