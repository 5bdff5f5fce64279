"""Run in an instance: `evade.py KIND SECONDS DESTINATION…`: sends what should not get through.

Datagrams to port 9 hold KIND and the time at which they were sent; `listen` writes down for each
how long it was on its way, and is ready when that port accepts connections. Kinds: see KINDS.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.trials import ethernet as eth

PORT = 9
OWN, OWN_SIX = os.environ["TSTORM_IPV4"], os.environ["TSTORM_IPV6"]
STRANGER = "10.77.200.200"  # nobody's
UNDERLAY = ("100.64.0.1", "100.64.1.1", "100.64.1.2")
INTERVAL_S = 0.02
_RTM_DELLINK, _RTM_DELQDISC = 17, 37
_CLSACT = 0xFFFF_FFF1


def listen() -> None:
    with (
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as own,
        socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as ready,
    ):
        own.bind(("::", PORT))
        ready.bind(("::", PORT))
        ready.listen()
        print("ready", flush=True)
        while True:
            data, _ = own.recvfrom(2000)
            now = time.monotonic_ns()
            kind, _, sent = data.decode().partition(" ")
            print(f"got {kind} {now - int(sent)}", flush=True)


def stamped(kind: str) -> bytes:
    return f"{kind} {time.monotonic_ns()}".encode()


def again(seconds: float, action: Callable[[], object]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        action()
        time.sleep(INTERVAL_S)


def framed(kind: str, seconds: float, to: Sequence[str], source: str, *, mac: str = "") -> None:
    """Frames made by hand, round the queueing disciplines; to everybody with that `mac`."""
    out = eth.RawSocket("eth0", bypass=True)

    def send() -> None:
        for dest in to:
            packet = eth.ipv4(source, dest, 17, eth.udp(stamped(kind), PORT))
            out.send(eth.frame(mac or eth.mac_of(dest), eth.mac_of(OWN), eth.IPV4, packet))

    again(seconds, send)


def plain(kind: str, seconds: float, to: Sequence[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        again(seconds, lambda: [out.sendto(stamped(kind), (dest, PORT)) for dest in to])


def spoofed(kind: str, seconds: float, to: Sequence[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as out:

        def send() -> None:
            for dest in to:
                packet = eth.ipv4(STRANGER, dest, 17, eth.udp(stamped(kind), PORT))
                out.sendto(packet, (dest, 0))

        again(seconds, send)


def claim(seconds: float) -> None:
    """Says of itself to be the coordinator and the first two agents."""
    out, own = eth.RawSocket("eth0"), eth.mac_of(OWN)
    nobody = "00:00:00:00:00:00"

    def send() -> None:
        for address in UNDERLAY:
            for operation in (eth.REQUEST, eth.REPLY):
                body = eth.arp(operation, (own, address), (nobody, address))
                out.send(eth.frame(eth.EVERYBODY, own, eth.ARP, body))
                out.send(eth.frame(eth.mac_of(address), own, eth.ARP, body))

    again(seconds, send)


def _kernel(kind: int, body: bytes) -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as out:
        out.send(struct.pack("=IHHII", 16 + len(body), kind, 5, 1, 0) + body)
        (code,) = struct.unpack_from("=i", out.recv(4096), 16)
        print(f"netlink {kind}: {-code}", flush=True)


def without_filters(kind: str, seconds: float, to: Sequence[str]) -> None:
    """Takes away what traffic control there may be at its own interfaces, and other interfaces."""
    for index, name in socket.if_nameindex():
        if name == "lo":
            continue
        _kernel(_RTM_DELQDISC, struct.pack("=BBHiIII", 0, 0, 0, index, 0xFFFF_0000, _CLSACT, 0))
        if name != "eth0":
            _kernel(_RTM_DELLINK, struct.pack("=BxHiII", 0, 0, index, 0, 0))
    plain(kind, seconds, to)


def end() -> NoReturn:
    """Instead of staying, which is for kinds that somebody looks at afterwards."""
    raise SystemExit(0)


def cut() -> None:
    index = socket.if_nametoindex("eth0")
    _kernel(_RTM_DELLINK, struct.pack("=BxHiII", 0, 0, index, 0, 0))


KINDS: dict[str, Callable[[str, float, Sequence[str]], None]] = {
    "plain": plain,
    "bypass": lambda kind, seconds, to: framed(kind, seconds, to, OWN),
    "to-all": lambda kind, seconds, to: framed(kind, seconds, to, OWN, mac=eth.EVERYBODY),
    "spoofed": spoofed,
    "spoofed-frames": lambda kind, seconds, to: framed(kind, seconds, to, STRANGER),
    "no-filters": without_filters,
    "claim": lambda _kind, seconds, _to: claim(seconds),
    "cut": lambda _kind, _seconds, _to: cut(),
    "end": lambda _kind, _seconds, _to: end(),
}


def main(kinds: str, seconds: str = "0", *to: str) -> None:
    if kinds == "listen":
        listen()
    for kind in kinds.split(","):
        KINDS[kind](kind, float(seconds), to)
        print(f"done {kind}", flush=True)
    time.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
