#!/usr/bin/python3
"""The router of a satellite. It tells its neighbours on every link that is up by which satellites
it reaches each other one (a path vector), and sets the kernel's routes by what they tell. Each
second it asks one of the others for an answer, and writes down how long that took.

It learns from the socket for links which devices have a neighbour, and from nobody else.
"""

import json
import os
import selectors
import socket
import struct
import subprocess
import time

COUNT = int(os.environ["COUNT"])  # of satellites
OWN = int(os.environ["TSTORM_MACHINE"].rpartition(".")[2])
PORT, ECHO, GROUP = 5000, 5001, "ff02::1"
HELLO, SPREAD = 1.0, 0.05  # s: between two tellings, and from a change to the next one


def address(satellite: int) -> str:
    return f"10.0.0.{satellite + 1}"


subprocess.run(["ip", "address", "add", f"{address(OWN)}/32", "dev", "lo"], check=True)
links = socket.socket(socket.AF_UNIX)
links.connect("\0" + os.environ["TSTORM_LINKS"].removeprefix("@"))
links.sendall(b'{"do":"hello"}\n')
rest = b""  # of a line from it
vectors = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
vectors.bind(("::", PORT))
vectors.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
pings = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
pings.bind((address(OWN), ECHO))

devices: dict[str, str] = {}  # of links that are up, and the neighbour's link-local address
heard: dict[str, dict[int, list[int]]] = {}  # by device: a path for each satellite
routes: dict[int, str] = {}  # as the kernel has them


def paths() -> dict[int, tuple[list[int], str]]:
    """The shortest to each, and the device that it begins at."""
    found: dict[int, tuple[list[int], str]] = {}
    for device in sorted(heard):
        for satellite, path in heard[device].items():
            if OWN not in path and (satellite not in found or len(path) < len(found[satellite][0])):
                found[satellite] = path, device
    found.pop(OWN, None)
    return found


def set_routes() -> None:
    wanted = {to: f"via inet6 {devices[on]} dev {on}" for to, (_, on) in paths().items()}
    batch = [
        f"route replace {address(to)}/32 {way} src {address(OWN)}"
        for to, way in wanted.items()
        if routes.get(to) != way
    ]
    batch += [f"route del {address(to)}/32" for to in routes.keys() - wanted.keys()]
    if batch:
        text = "\n".join(batch)
        subprocess.run(["ip", "-force", "-batch", "-"], input=text, text=True, check=False)
    routes.clear()
    routes.update(wanted)


def tell() -> None:
    """On each link what does not come from it."""
    known = paths()
    for device in sorted(devices):
        told = {to: [OWN, *path] for to, (path, on) in known.items() if on != device}
        words = json.dumps({**told, OWN: [OWN]}).encode()
        index = socket.if_nametoindex(device)
        vectors.sendto(words, (GROUP, PORT, 0, index))


def listen_to_links() -> bool:
    global rest
    *lines, rest = (rest + links.recv(65536)).split(b"\n")
    for said in map(json.loads, lines):
        if "ok" in said:  # to our hello
            devices.update({link["interface"]: "" for link in said["ok"]["links"]})
        elif said["say"] in ("up", "down"):
            heard.pop(said["interface"], None)
            devices.pop(said["interface"], None)
            if said["say"] == "up":
                devices[said["interface"]] = ""
    return bool(lines)


def listen_to_neighbour() -> bool:
    words, source = vectors.recvfrom(65536)
    device = socket.if_indextoname(source[3])
    if device not in devices:
        return False
    told = {int(to): path for to, path in json.loads(words).items()}
    new = heard.get(device) != told
    devices[device], heard[device] = source[0].partition("%")[0], told
    return new


def listen_to_pings() -> bool:
    words, source = pings.recvfrom(100)
    kind, to, sent = struct.unpack("<cid", words)
    if kind == b"?":
        pings.sendto(struct.pack("<cid", b"!", to, sent), source)
    else:
        print(f"{sent:.3f} {to} {(time.monotonic() - sent) * 1e3:.3f} ms", flush=True)
    return False


def ping(second: int) -> None:
    to = (OWN + 1 + second % (COUNT - 1)) % COUNT
    now = time.monotonic()
    try:
        pings.sendto(struct.pack("<cid", b"?", to, now), (address(to), ECHO))
        print(f"{now:.3f} {to} asked", flush=True)
    except OSError:  # there is no route
        print(f"{now:.3f} {to} no way", flush=True)


sockets = selectors.DefaultSelector()
sockets.register(links, selectors.EVENT_READ, listen_to_links)
sockets.register(vectors, selectors.EVENT_READ, listen_to_neighbour)
sockets.register(pings, selectors.EVENT_READ, listen_to_pings)
telling = pinging = time.monotonic() + 0.5
second = 0
while True:
    now = time.monotonic()
    if now >= telling:
        tell()
        telling = now + HELLO
    if now >= pinging:
        ping(second)
        second, pinging = second + 1, pinging + 1
    for key, _ in sockets.select(max(min(telling, pinging) - now, 0)):
        if key.data():
            set_routes()
            telling = min(telling, time.monotonic() + SPREAD)
