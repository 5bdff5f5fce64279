"""Run in a sandbox: instances send one frame of each kind; prints what became of it as JSON.

For each: for which reason its port has dropped it, and who else has seen it.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator

from runtime.backend.local import hosts_backend
from tests.runtime.hosts.make_hosts import Instance
from tests.trials import ethernet as eth
from tests.trials.ethernet import ARP, IPV4, IPV6, arp, frame, ipv4, ipv6, mac_of, udp

A, B, C = "10.77.0.1", "10.77.0.2", "10.77.0.3"
A6, B6 = "fd77:7473::1", "fd77:7473::2"
MAC_A, MAC_B, MAC_C = mac_of(A), mac_of(B), mac_of(C)
AGENT, HOST_MAC = "100.64.1.1", "02:01:64:40:01:01"
SETTLE_SECONDS = 0.3
PAYLOAD = b"no padding behind this" * 2  # some kernels take it off

LISTENER = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 0))
print("ready", flush=True)
while True:
    data, where = s.recvfrom(2000)
    if where[2] != 4:  # not what it sends itself
        print(data.hex(), flush=True)
"""
SENDER = """
import sys
from tests.trials.ethernet import RawSocket
out = RawSocket("eth0", bypass=True)
print("ready", flush=True)
for line in sys.stdin:
    out.send(bytes.fromhex(line))
"""
GROUP6, GROUP_MAC = eth.solicited_group(B6)


def datagram(source: str, dest: str) -> bytes:
    return ipv4(source, dest, 17, udp(PAYLOAD, 10))


def solicit(source: str, target: str) -> bytes:
    return eth.discovery(source, GROUP6, eth.SOLICITATION, target, MAC_A)


def frames() -> Iterator[tuple[str, bytes]]:
    """What A (10.77.0.1) sends."""
    six = ipv6(A6, B6, 17, udp(PAYLOAD, 10))
    yield "its own", frame(MAC_B, MAC_A, IPV4, datagram(A, B))
    yield "its own, IPv6", frame(MAC_B, MAC_A, IPV6, six)
    yield "foreign source", frame(MAC_B, MAC_A, IPV4, datagram(C, B))
    yield "foreign source, IPv6", frame(MAC_B, MAC_A, IPV6, ipv6(B6, B6, 17, udp(PAYLOAD, 10)))
    yield "foreign MAC", frame(MAC_B, MAC_C, IPV4, datagram(A, B))
    yield "one station, frame to all", frame(eth.EVERYBODY, MAC_A, IPV4, datagram(A, B))
    yield "one station, IPv6, frame to all", frame("33:33:00:00:00:01", MAC_A, IPV6, six)
    yield "another's frame", frame(MAC_C, MAC_A, IPV4, datagram(A, B))
    yield "an agent", frame(HOST_MAC, MAC_A, IPV4, datagram(A, AGENT))
    yield "an agent, frame to all", frame(eth.EVERYBODY, MAC_A, IPV4, datagram(A, AGENT))
    yield "broadcast", frame(eth.EVERYBODY, MAC_A, IPV4, datagram("0.0.0.0", "255.255.255.255"))
    yield "network's broadcast", frame(eth.EVERYBODY, MAC_A, IPV4, datagram(A, "10.77.255.255"))
    yield "multicast", frame("01:00:5e:00:00:fb", MAC_A, IPV4, datagram(A, "224.0.0.251"))
    yield "VLAN", eth.tagged(MAC_B, MAC_A, 5, IPV4, datagram(A, B))
    yield "VLAN 0", eth.tagged(MAC_B, MAC_A, 0, IPV4, datagram(A, B))
    yield (
        "spanning tree",
        frame("01:80:c2:00:00:00", MAC_A, 38, bytes.fromhex("424203") + bytes(35)),
    )
    yield "LLDP", frame("01:80:c2:00:00:0e", MAC_A, eth.LLDP, bytes(40))
    yield from arps()
    yield from discoveries()


def arps() -> Iterator[tuple[str, bytes]]:
    def to_all(operation: int, sender: tuple[str, str], target: str) -> bytes:
        body = arp(operation, sender, ("00:00:00:00:00:00", target))
        return frame(eth.EVERYBODY, MAC_A, ARP, body)

    yield "ARP request", to_all(eth.REQUEST, (MAC_A, A), B)
    yield "ARP claim", to_all(eth.REQUEST, (MAC_A, C), C)
    yield "ARP claim, underlay", to_all(eth.REPLY, (MAC_A, AGENT), AGENT)
    yield "ARP with another MAC", to_all(eth.REPLY, (MAC_C, A), B)
    yield "ARP for the underlay", to_all(eth.REQUEST, (MAC_A, A), AGENT)
    yield "ARP from nobody", to_all(eth.REQUEST, (MAC_A, "0.0.0.0"), B)


def discoveries() -> Iterator[tuple[str, bytes]]:
    def claim(kind: int, target: str) -> bytes:
        body = eth.discovery(A6, "ff02::1", kind, target, MAC_A)
        return frame("33:33:00:00:00:01", MAC_A, IPV6, body)

    def alone(kind: int, target: str) -> bytes:
        return frame(MAC_B, MAC_A, IPV6, eth.discovery(A6, B6, kind, target, MAC_A))

    yield "solicitation", frame(GROUP_MAC, MAC_A, IPV6, solicit(A6, B6))
    yield "solicitation, foreign source", frame(GROUP_MAC, MAC_A, IPV6, solicit("fe80::1", B6))
    yield "solicitation, a target elsewhere", frame(GROUP_MAC, MAC_A, IPV6, solicit(A6, "fd00::2"))
    yield "solicitation, to one", alone(eth.SOLICITATION, B6)
    yield "advertisement", alone(eth.ADVERTISEMENT, A6)
    yield "advertisement of another's", alone(eth.ADVERTISEMENT, "fd77:7473::3")
    yield "advertisement to all", claim(eth.ADVERTISEMENT, "fd77:7473::3")
    yield "redirect", alone(eth.REDIRECT, B6)
    router = eth.icmpv6(A6, "ff02::1", eth.ROUTER_ADVERTISEMENT, bytes(12))
    yield "router", frame("33:33:00:00:00:01", MAC_A, IPV6, router)


class Listener:
    """What an instance receives."""

    def __init__(self, instance: Instance) -> None:
        argv = ["nsenter", f"--net=/proc/{instance.process.pid}/ns/net"]
        self.process = subprocess.Popen(
            [*argv, sys.executable, "-c", LISTENER], stdout=subprocess.PIPE, bufsize=0
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()
        self._said = b""

    def heard(self, data: bytes, seconds: float) -> bool:
        """Whether this frame has come, or comes within that time."""
        assert self.process.stdout is not None
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if data.hex().encode() in self._said.split(b"\n")[:-1]:
                return True
            if select.select([self.process.stdout], [], [], left)[0]:
                self._said += os.read(self.process.stdout.fileno(), 65536)
        return False


def main() -> None:
    made = hosts_backend.make(2)
    first, last = made.hosts
    a, b, c = Instance(first, 0, "a", 1), Instance(first, 1, "b", 2), Instance(last, 2, "c", 3)
    first.wire([(0, a.ipv4), (1, b.ipv4)])
    last.wire([(2, c.ipv4)])
    listeners = {"b": Listener(b), "c": Listener(c)}
    sender = subprocess.Popen(
        ["nsenter", f"--net=/proc/{a.process.pid}/ns/net", sys.executable, "-c", SENDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert sender.stdin is not None
    assert sender.stdout is not None
    sender.stdout.readline()
    found: dict[str, list[str]] = {}
    for name, data in frames():
        before = counts(first)
        sender.stdin.write(data.hex() + "\n")
        heard = [who for who, one in listeners.items() if one.heard(data, SETTLE_SECONDS)]
        after = counts(first)
        found[name] = [key for key in after if after[key] > before.get(key, 0)] + heard
    sender.kill()
    for listener in listeners.values():
        listener.process.kill()
    for instance in (a, b, c):
        instance.process.kill()
    made.close()
    print(json.dumps(found))


def counts(host: hosts_backend.LocalHost) -> dict[str, int]:
    """What the port of A has dropped, by reason."""
    return host.dropped().get(0, {})


if __name__ == "__main__":
    main()
