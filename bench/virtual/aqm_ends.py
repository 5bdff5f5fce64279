#!/usr/bin/python3
"""The programs of bench.virtual.aqm: TCP flows, and when each of their packets was sent and came.

    aqm_ends.py receive FOR_S
    aqm_ends.py send ADDRESS FLOWS FOR_S CONTROL   of congestion: cubic, bbr
    aqm_ends.py kernel FLOWS FOR_S CONTROL RATE_BPS ONE_WAY_MS WORDS...   both, by this kernel

`receive` and `send` write `received` and `sent` in their working directory: for each packet with
payload a line of the time (ns), port of the sender, first byte (relative to nothing) and bytes of
payload, as the interface sees it. `kernel` runs in a network namespace of its own, and makes three
more, so that sender, router, wire and receiver are in a line: an htb with the qdisc of WORDS in it
at the router towards the wire, and the delay of each way at the far end of it, with the time that a
packet takes to be sent (netem with a rate); what tc(8) says of the qdisc in the end is its last
line. Without that time a SYN and a full packet have the same round trip, and one is 1.2 ms
shorter where it takes some: flows of BBR then look for the shortest one at other moments.

htb takes a packet out of that qdisc when the link is free, and with hardly a token saved never
before. (tbf takes one out as soon as the one before has left, and keeps it until it has tokens for
it: what waits there has not waited as the discipline sees it.) It does not cut super-packets as
tbf does, so the sender's device does, in both scenes: what passes the engine as a super-packet is
acknowledged as one, and BBR keeps 1 ms less in a queue of 100 Mb/s for it.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

PORT = 7000
OUTGOING = 4  # PACKET_OUTGOING
SECOND = 10**9
SOL_PACKET, PACKET_RX_RING, PACKET_VERSION, TPACKET_V2 = 263, 5, 10, 1
BLOCK, BLOCKS, FRAME = 1 << 16, 128, 256  # of the ring: bytes; seconds at 100 Mb/s
HEADER = struct.Struct("=IIIHHII")  # tpacket2_hdr: status, len, snaplen, mac, net, s, ns
TYPE_AT = 32 + 10  # sll_pkttype, behind it
READ_EVERY_S = 0.1
SIOCETHTOOL, ETHTOOL_STSO = 0x8946, 0x1F
HEADER_BYTES = 14  # of Ethernet, which take no time of a link
# Devices at both ends; by its place in the list a line has 10.0.N.2 at the first and 10.0.N.1 at
# the other.
LINES = (
    ("sender", "eth0", "router", "r0"),
    ("wire", "w0", "router", "r1"),
    ("wire", "w1", "receiver", "eth0"),
)
ROUTES = (
    ("sender", "default via 10.0.0.1"),
    ("router", "10.0.2.0/24 via 10.0.1.2"),
    ("wire", "default via 10.0.1.1"),
    ("receiver", "default via 10.0.2.2"),
)


def record(to: str, outgoing: bool, until_ns: int) -> None:
    """Reads a ring that the kernel fills, now and then: no packet wakes anybody."""
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    tap.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
    sizes = (BLOCK, BLOCKS, FRAME, BLOCK * BLOCKS // FRAME)
    tap.setsockopt(SOL_PACKET, PACKET_RX_RING, struct.pack("IIII", *sizes))
    ring = mmap.mmap(tap.fileno(), BLOCK * BLOCKS)
    tap.bind(("eth0", 3))  # ETH_P_ALL
    place = 0
    with Path(to).open("w") as file:
        while time.monotonic_ns() < until_ns:
            time.sleep(READ_EVERY_S)
            while ring[place] & 1:  # TP_STATUS_USER
                if (ring[place + TYPE_AT] == OUTGOING) == outgoing:
                    note(ring, place, file)
                ring[place : place + 4] = bytes(4)
                place = (place + FRAME) % len(ring)


def note(ring: mmap.mmap, place: int, file: TextIO) -> None:
    """A line of the packet there, if it has payload."""
    _, _, _, _, begin, seconds, ns = HEADER.unpack_from(ring, place)
    data = ring[place + begin : place + FRAME]
    if data[0] != 0x45 or data[9] != 6:
        return
    bytes_, port, to_port, seq = (
        struct.unpack_from("!H", data, 2)[0],
        *struct.unpack_from("!HHI", data, 20),
    )
    payload = bytes_ - 20 - (data[32] >> 4) * 4
    if to_port == PORT and payload > 0:
        print(seconds * SECOND + ns, port, seq, payload, file=file)


def receive(for_s: int) -> None:
    until_ns = time.monotonic_ns() + for_s * SECOND
    threading.Thread(target=record, args=("received", False, until_ns)).start()
    listener = socket.create_server(("", PORT), backlog=100)
    ends = [listener]
    while time.monotonic_ns() < until_ns:
        for end in select.select(ends, [], [], 1)[0]:
            if end is listener:
                ends.append(listener.accept()[0])
            elif not end.recv(1 << 20):
                ends.remove(end)


def send(address: str, flows: int, for_s: int, control: str) -> None:
    cut()
    until_ns = time.monotonic_ns() + for_s * SECOND
    threading.Thread(target=record, args=("sent", True, until_ns)).start()
    # The first packet asks for addresses on its way, which takes some, or a round trip: a SYN that
    # does is no shortest round trip to BBR.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first:
        first.sendto(b"", (address, PORT))
    time.sleep(0.5)
    ends = []
    for _ in range(flows):
        ends.append(socket.socket())
        ends[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        ends[-1].connect((address, PORT))
        ends[-1].setblocking(False)
    while time.monotonic_ns() < until_ns:
        for end in select.select([], ends, [], 1)[1]:
            try:
                end.send(bytes(65536))
            except BlockingIOError:
                continue
            except ConnectionError:
                ends.remove(end)  # the receiver has ended; it would always be ready


def kernel(
    flows: int, for_s: int, control: str, rate_bps: int, delay_ms: str, qdisc: list[str]
) -> None:
    names = ("sender", "wire", "receiver")
    spaces = {one: subprocess.Popen(["unshare", "-n", "sleep", str(for_s + 30)]) for one in names}
    time.sleep(0.5)
    inside = {one: ["nsenter", "-t", str(space.pid), "-n"] for one, space in spaces.items()}
    inside["router"] = []
    for number, (near, device, far, to) in enumerate(LINES):
        pids = [str(spaces[one].pid) if one in spaces else str(os.getpid()) for one in (near, far)]
        run("ip", "link", "add", "name", device, "netns", pids[0], "type", "veth",
            "peer", "name", to, "netns", pids[1])  # fmt: skip
        for place, card, host in ((near, device, 2), (far, to, 1)):
            run(*inside[place], "ip", "addr", "add", f"10.0.{number}.{host}/24", "dev", card)
            run(*inside[place], "ip", "link", "set", card, "up")
    for place, route in ROUTES:
        run(*inside[place], "ip", "route", "add", *route.split())
    for place in ("router", "wire"):
        run(*inside[place], "sysctl", "-qw", "net.ipv4.ip_forward=1")
    run("tc", "qdisc", "add", "dev", "r1", "root", "handle", "1:", "htb", "default", "1")
    rate = f"htb rate {rate_bps * 1514 // 1500} burst 1 cburst 1 quantum 1514"
    run("tc", "class", "add", "dev", "r1", "parent", "1:", "classid", "1:1", *rate.split())
    run("tc", "qdisc", "add", "dev", "r1", "parent", "1:1", "handle", "2:", *qdisc)
    delay = f"root netem limit 100000 delay {delay_ms}ms rate {rate_bps} -{HEADER_BYTES}".split()
    for place, card in (("wire", "w1"), ("router", "r0")):
        run(*inside[place], "tc", "qdisc", "add", "dev", card, *delay)
    programs = [
        ("receiver", "receive", str(for_s)),
        ("sender", "send", "10.0.2.1", str(flows), str(for_s), control),
    ]
    running = [
        subprocess.Popen([*inside[place], sys.executable, __file__, *words])
        for place, *words in programs
        if time.sleep(0.5) is None
    ]
    for program in running:
        program.wait()
    said = subprocess.run(
        ["tc", "-s", "qdisc", "show", "dev", "r1"], capture_output=True, text=True, check=True
    )
    print(" ".join(said.stdout.split()), flush=True)
    for space in spaces.values():
        space.kill()


def cut() -> None:
    """TCP makes super-packets all the same, and the device gets their segments."""
    off = ctypes.create_string_buffer(struct.pack("II", ETHTOOL_STSO, 0))
    request = struct.pack("16sP16x", b"eth0", ctypes.addressof(off))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        fcntl.ioctl(end, SIOCETHTOOL, request)


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def main() -> None:
    verb, *words = sys.argv[1:]
    if verb == "receive":
        receive(int(words[0]))
    elif verb == "send":
        send(words[0], int(words[1]), int(words[2]), words[3])
    else:
        kernel(int(words[0]), int(words[1]), words[2], int(words[3]), words[4], words[5:])


main()
