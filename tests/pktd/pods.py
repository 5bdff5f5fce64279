"""Namespaces that have an eth0 already, joined by a bridge, for pktd to attach to."""

from __future__ import annotations

from tests.datapath.client import Client
from tests.pktd.harness import World

PREFIXES = "10.77.0.0/16,fd77:7473::/64"
MTU = 1500

PATH = {"rate": 0, "delay": 0, "jitter": 0, "loss": 0, "queue": 1 << 24, "up": 1}


def pods(world: World, count: int) -> list[int]:
    """`count` namespaces, each with an eth0 at one bridge: 10.77.0.N and fd77:7473::N from 1 up.

    The last of what is returned is the namespace of the bridge, which is 10.77.255.254.
    """
    bridge = world.namespace()
    world.run(bridge, "ip", "link", "add", "br0", "type", "bridge")
    world.run(bridge, "ip", "addr", "add", "10.77.255.254/16", "dev", "br0")
    world.run(bridge, "ip", "link", "set", "br0", "up")
    made = []
    for number in range(1, count + 1):
        pid = world.namespace()
        far = f"far{number}"
        world.run(
            bridge,
            *["ip", "link", "add", far, "type", "veth"],
            *["peer", "name", "eth0", "netns", str(pid)],
        )
        world.run(bridge, "ip", "link", "set", far, "master", "br0", "up")
        world.run(pid, "ip", "addr", "add", f"10.77.0.{number}/16", "dev", "eth0")
        world.run(pid, "ip", "addr", "add", f"fd77:7473::{number:x}/64", "dev", "eth0", "nodad")
        world.run(pid, "ip", "link", "set", "eth0", "up")
        made.append(pid)
    return [*made, bridge]


def attach(engine: Client, number: int, pid: int, *, kind: str, more: str = "") -> str:
    return engine(
        f"attach {number} netns=/proc/{pid}/ns/net if=eth0 prefix={PREFIXES} kind={kind}{more}"
    )


def path(source: int, dest: int, **properties: int | str) -> str:
    values = {**PATH, **properties}
    return f"path {source} {dest} " + " ".join(f"{k}={v}" for k, v in values.items())


def change(source: int, dest: int, **properties: int | str) -> str:
    return f"path {source} {dest} " + " ".join(f"{k}={v}" for k, v in properties.items())


def two_pods(
    world: World, engine: Client, *, kind: str, **properties: int | str
) -> tuple[int, int, int]:
    """Two pods as nodes 0 and 1 at ports 0 and 1, a path each way, and the bridge's namespace."""
    a, b, bridge = pods(world, 2)
    for number, pid in enumerate((a, b)):
        attach(engine, number, pid, kind=kind)
        engine(f"node {number} ip=10.77.0.{number + 1} ip6=fd77:7473::{number + 1:x}")
        engine(f"bind {number} {number}")
    engine(path(0, 1, seed=1, **properties))
    engine(path(1, 0, seed=2, **properties))
    engine.commit()
    return a, b, bridge
