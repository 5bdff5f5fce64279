"""Instances at two bridges that join groups, and one that sends to them and to all."""

from __future__ import annotations

import json
from pathlib import Path

from tests.runs.layout import executables

NETWORK = """\
service tx exec="./send.py"
service rx replicas=4 exec="./listen.py"
bridges s1 s2
link tx--s1 latency=1ms
link rx.0--s1 latency=1ms
link rx.1--s1 latency=1ms
link rx.2--s2 latency=1ms
link rx.3--s2 latency=1ms
link s1--s2 latency=5ms
at 0s rx join
at 0s tx join
at 4s quit
"""
SEND = """\
#!/usr/bin/python3
import socket, struct, time
def send(name, to, hops):
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    end = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, hops)
    else:
        end.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    scope = (0, socket.if_nametoindex("eth0")) if family == socket.AF_INET6 else ()
    end.sendto(f"{name} {time.monotonic_ns()}".encode(), (to, 7000, *scope))
    time.sleep(0.05)
time.sleep(1)
for _ in range(3):
    send("far4", "239.1.2.3", 8)
    send("once4", "239.1.2.3", 1)
    send("near4", "224.0.0.251", 255)
    send("left4", "239.1.2.4", 8)
    send("alone4", "239.1.2.5", 8)
    send("nobody4", "239.9.9.9", 8)
    send("all4", "255.255.255.255", 1)
    send("net4", "10.77.255.255", 1)
    send("far6", "ff05::77", 8)
    send("near6", "ff02::fb", 255)
    send("all6", "ff02::1", 255)
time.sleep(100)
"""
LISTEN = """\
#!/usr/bin/python3
import os, select, socket, struct, time
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
four.bind(("", 7000))
six.bind(("::", 7000))
def four_group(group, what=socket.IP_ADD_MEMBERSHIP):
    request = socket.inet_aton(group) + bytes(4)
    four.setsockopt(socket.IPPROTO_IP, what, request)
four_group("239.1.2.3")
four_group("224.0.0.251")
four_group("239.1.2.4")
four_group("239.1.2.4", socket.IP_DROP_MEMBERSHIP)
if socket.gethostname() == "rx-3":
    four_group("239.1.2.5")
for group in ("ff05::77", "ff02::fb"):
    request = socket.inet_pton(socket.AF_INET6, group) + struct.pack("=I", 0)
    six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
while True:
    for end in select.select([four, six], [], [])[0]:
        name, sent = end.recv(100).split()
        print(name.decode(), (time.monotonic_ns() - int(sent)) // 10**6, flush=True)
"""
TIMES = 3
NEAR = ("far4", "once4", "near4", "all4", "net4", "far6", "near6", "all6")
NEAR_MS, FAR_MS = 2, 7
HEARD = {
    "rx.0": dict.fromkeys(NEAR, NEAR_MS),
    "rx.1": dict.fromkeys(NEAR, NEAR_MS),
    "rx.2": dict.fromkeys(("far4", "far6"), FAR_MS),
    "rx.3": dict.fromkeys(("far4", "alone4", "far6"), FAR_MS),
}


def lay_out(folder: Path) -> None:
    (folder / "exp.tdl").write_text(NETWORK)
    executables(folder, {"send.py": SEND, "listen.py": LISTEN})


def heard(run: Path) -> dict[str, list[tuple[str, int]]]:
    """By instance: what it heard, and after how many ms."""
    found = {}
    for name in HEARD:
        lines = (run / f"logs/{name}.log").read_text().splitlines()
        said = [line.split() for line in lines if line[0].isalpha()]  # no mark of a rejoin
        assert all(len(words) == 2 for words in said), (name, lines)
        found[name] = [(what, int(after_ms)) for what, after_ms in said]
    return found


def offered(run: Path) -> dict[str, int]:
    """Packets by link, of those that were offered any."""
    links = json.loads((run / "plan/topology.json").read_text())["links"]
    found: dict[str, int] = {}
    for line in (run / "samples.jsonl").read_text().splitlines():
        for number, packets, *_ in json.loads(line).get("links", []):
            found[links[number]["name"]] = packets
    return found
