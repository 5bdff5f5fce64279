"""Run in a network namespace of a host, as a program there: `attack.py ADDRESS SECONDS`.

Listens to the metadata that comes for ADDRESS, then sends it again, changed, sealed with another
key, and garbage, as fast as it can for SECONDS; in between it talks nonsense to the agent's TCP
port. Prints what it sent as JSON.
"""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import sys
import time
from contextlib import suppress

from runtime.agent.metadata import codec
from runtime.agent.metadata.auth import Seal
from runtime.agent.metadata.codec import MessageHeader

UDP_PORT, TCP_PORT = 7473, 7474
ETH_P_IP = 0x0800
CAPTURED = 20
DEADLINE_S = 120.0
BURST = 50
TCP_EVERY = 20  # bursts


def capture(address: str) -> list[bytes]:
    """Payloads of datagrams for ADDRESS, as they pass this host's bridge."""
    found: list[bytes] = []
    wanted = socket.inet_aton(address)
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP)) as tap:
        tap.settimeout(DEADLINE_S)
        while len(found) < CAPTURED:
            packet = tap.recv(2048)
            header = (packet[0] & 15) * 4
            port = struct.unpack_from("!H", packet, header + 2)[0]
            if packet[9] == socket.IPPROTO_UDP and packet[16:20] == wanted and port == UDP_PORT:
                found.append(packet[header + 8 :])
    return found


def forged(genuine: bytes, source: random.Random) -> list[bytes]:
    """As genuine as can be without the key: flows that fill every link, numbers still to come."""
    _, _, run_tag, sender, receiver, boot, for_boot = codec.split_head(genuine)
    header = MessageHeader(run_tag, sender, receiver, boot, for_boot, source.randrange(1, 10**6), 1)
    flows = [(path, codec.value_of(10**9, greedy=True)) for path in range(1, 4)]
    count, body = codec.flow_bodies(flows)[0]
    message = codec.encode(header, count, body)
    another = Seal(os.urandom(32), b"another run")
    place = source.randrange(7, len(genuine))  # behind what the kernel's filter looks at
    changed = bytearray(genuine)
    changed[place] ^= 1 << source.randrange(8)
    return [another.close(message), bytes(changed), genuine[:place]]


def main(address: str, seconds: float) -> None:
    genuine = capture(address)
    source = random.Random(7473)
    sent = {"replayed": 0, "forged": 0, "garbage": 0, "connections": 0}
    end, bursts = time.monotonic() + seconds, 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.connect((address, UDP_PORT))
        while time.monotonic() < end:
            bursts += 1
            kinds = {"replayed": genuine, "forged": forged(source.choice(genuine), source)}
            kinds["garbage"] = [os.urandom(source.randrange(1, 1400)) for _ in range(BURST)]
            for kind, datagrams in kinds.items():
                for datagram in datagrams:
                    with suppress(OSError):  # no room in a queue
                        out.send(datagram)
                        sent[kind] += 1
            if bursts % TCP_EVERY == 0:
                with suppress(OSError), socket.create_connection((address, TCP_PORT), 5) as tcp:
                    tcp.send(os.urandom(200))
                    sent["connections"] += 1
    print(json.dumps(sent))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
