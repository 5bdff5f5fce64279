"""Two (or more) namespaces and what connects them: a plain veth pair, pktd, or htb or tbf.

Addresses are those of a run: 10.77.0.1 for the first end, 10.77.0.2 for the second, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.engine.netns import Namespace
from tests.datapath.client import Client

# Enough for 20 Gb/s over a round trip of 40 ms.
_TCP_MEMORY = "4096 262144 268435456"
MTU_BYTES = 1500
MSS_BYTES = 1448  # of TCP payload in a full packet with time stamps: 1500 - 20 - 32
GSO_BYTES = 80_000  # 64 KiB, and 66 bytes of headers for each segment
_GSO_BPS = 50_000_000  # from here on the sender's stack makes such packets
ETHERNET_BYTES = 14  # what htb and tbf count on top of the IP packet
FRAME_BYTES = MTU_BYTES + ETHERNET_BYTES


@dataclass(frozen=True, slots=True)
class Pipe:
    """Both directions of one emulated link. Rate 0 = unlimited; the queue counts IP bytes."""

    rate_bps: int = 0
    delay_ns: int = 0
    queue_bytes: int = 16 << 20

    def words(self) -> str:
        return (
            f"rate={self.rate_bps} delay={self.delay_ns} jitter=0 loss=0"
            f" queue={self.queue_bytes} dist=normal"
        )


@dataclass(slots=True)
class Ends:
    """The namespaces that traffic runs between, and everything that has to be closed."""

    spaces: list[Namespace]
    kept: list[Namespace] = field(default_factory=list)

    def address(self, index: int) -> str:
        return address(index)

    def close(self) -> None:
        for space in [*self.spaces, *self.kept]:
            space.close()


def address(index: int) -> str:
    return f"10.77.{(index + 1) >> 8}.{(index + 1) & 255}"


def tune(space: Namespace) -> None:
    """Lets TCP use as much memory as a long fast path needs."""
    space.sysctl("net.ipv4.tcp_rmem", _TCP_MEMORY)
    space.sysctl("net.ipv4.tcp_wmem", _TCP_MEMORY)


def _veth(a: Namespace, a_name: str, b: Namespace, b_name: str) -> None:
    peer = b.path.parts[2]  # /proc/PID/ns/net
    a.run(["ip", "link", "add", a_name, "type", "veth", "peer", "name", b_name, "netns", peer])


def plain_veth() -> Ends:
    """A veth pair between two namespaces and nothing else: the limit of this kernel."""
    a, b = Namespace(), Namespace()
    _veth(a, "eth0", b, "eth0")
    for index, space in enumerate((a, b)):
        space.ip_batch([f"addr add {address(index)}/16 dev eth0", "link set eth0 up"])
        tune(space)
    return Ends([a, b])


def bridged(count: int) -> Ends:
    """Namespaces with an eth0 each at one bridge, which stands in another one, and nothing else."""
    middle = Namespace()
    middle.ip_batch(["link add br0 type bridge", "link set br0 up"])
    spaces = [Namespace() for _ in range(count)]
    for index, space in enumerate(spaces):
        _veth(space, "eth0", middle, f"end{index}")
        middle.ip_batch([f"link set end{index} master br0 up"])
        space.ip_batch([f"addr add {address(index)}/16 dev eth0", "link set eth0 up"])
        tune(space)
    return Ends(spaces, [middle])


def qdisc(kind: str, rate_bps: int) -> Ends:
    """Two namespaces joined by a forwarding third one, which shapes towards the second end.

    The shaper stands between the ends, as tc-netem(8) advises: at the sender's own egress it would
    push back into the sender's stack.
    """
    a, b, middle = Namespace(), Namespace(), Namespace()
    _veth(a, "eth0", middle, "left")
    _veth(b, "eth0", middle, "right")
    middle.ip_batch(
        [
            *("addr add 10.77.1.1/24 dev left", "addr add 10.77.2.1/24 dev right"),
            *("link set dev left up", "link set dev right up"),
        ]
    )
    middle.sysctl("net.ipv4.ip_forward", "1")
    for index, (space, net) in enumerate(((a, 1), (b, 2))):
        space.ip_batch(
            [
                f"addr add {address(index)}/32 dev lo",
                f"addr add 10.77.{net}.2/24 dev eth0",
                "link set eth0 up",
                f"route add default via 10.77.{net}.1 src {address(index)}",
            ]
        )
        middle.run(f"ip route add {address(index)}/32 via 10.77.{net}.2".split())
        tune(space)
        if found := gso_arguments(rate_bps):
            space.run(["ip", "link", "set", "eth0", *found])
    _shape(middle, kind, rate_bps)
    return Ends([a, b], [middle])


def gso_arguments(rate_bps: int) -> list[str]:
    """Arguments of `ip link set DEV` for a sender before htb at such a rate, none at high ones. htb
    sends a whole GSO packet as soon as it has a token and owes the rest: of 128 kb/s a look of 12 s
    saw 145, since one packet of 64 KiB is four seconds of that."""
    return [] if rate_bps >= _GSO_BPS else ["gso_max_segs", "2"]


def smooth_burst_bytes(rate_bps: int) -> int:
    """1 ms of the rate, at least two packets."""
    return max(rate_bps // 8000, 2 * FRAME_BYTES)


def burst_bytes(rate_bps: int) -> int:
    """A smooth burst, and one GSO packet where such come. That counts as
    its 45 segments with a header each; tbf cuts up what is larger than its burst, for which 32
    flows of 100 Mb/s on two cores got 60 % of their rate instead of all of it."""
    return max(smooth_burst_bytes(rate_bps), GSO_BYTES if rate_bps >= _GSO_BPS else 0)


def _shape(middle: Namespace, kind: str, rate_bps: int) -> None:
    """htb or tbf with a long queue."""
    burst = burst_bytes(rate_bps)
    limit = 64 << 20
    if kind == "tbf":
        shape = f"root tbf rate {rate_bps}bit burst {burst} limit {limit}"
        middle.run(f"tc qdisc add dev right {shape}".split())
        return
    shape = f"htb rate {rate_bps}bit burst {burst} cburst {burst} quantum 60000"
    middle.run(
        ["tc", "qdisc", "add", "dev", "right", "root", "handle", "1:", "htb", "default", "1"]
    )
    middle.run(f"tc class add dev right parent 1: classid 1:1 {shape}".split())
    middle.run(f"tc qdisc add dev right parent 1:1 bfifo limit {limit}".split())


def engine(pktd: Client, pairs: int, pipe: Pipe) -> Ends:
    """`pairs` pairs of namespaces on one pktd: ends 2k and 2k+1 are joined by their own links."""
    spaces = [Namespace() for _ in range(2 * pairs)]
    for index, space in enumerate(spaces):
        pktd(f"open {index} netns={space.path} if=eth0")
        space.ip_batch([f"addr add {address(index)}/16 dev eth0", "link set eth0 up"])
        tune(space)
    lines: list[str] = []
    for index in range(2 * pairs):
        lines += [f"node {index} ip={address(index)}", f"bind {index} {index}"]
    for index in range(2 * pairs):
        other = index ^ 1
        lines.append(f"link {index} {index} {other} {pipe.words()} seed={index + 1} up=1")
        lines.append(f"route {index} {index} {other}")
    pktd.all(lines)
    pktd.commit()
    return Ends(spaces)


def change(pktd: Client, pairs: int, pipe: Pipe) -> None:
    """Gives every link of `engine` the properties of `pipe`."""
    pktd.all(f"set {link} {pipe.words()}" for link in range(2 * pairs))
    pktd.commit()
