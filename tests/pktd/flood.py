"""More packets than a port holds, all of which are accounted for."""

from __future__ import annotations

import signal

from tests.datapath.client import Client
from tests.pktd.harness import World
from tests.waiting import wait_until

PACKETS = 60_000
SENDS = f"""
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range({PACKETS}):
        sender.sendto(bytes(1400), ("10.77.0.2", 9))
"""


def flood(world: World, engine: Client, pid: int) -> None:
    """Sends more than a port holds while pktd reads nothing, and waits until it has read the rest:
    then every packet was offered, or is counted as lost before that."""
    for which in ("all", "default"):  # nobody else says anything
        switch = f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6"
        world.run(pid, "sh", "-c", f"echo 1 > {switch}", check=False)
    engine.process.send_signal(signal.SIGSTOP)
    try:
        world.run(pid, "python3", "-c", SENDS)
    finally:
        engine.process.send_signal(signal.SIGCONT)

    offered = 0

    def told() -> int:
        nonlocal offered
        offered = next((row[2] for row in engine.rows("stats pairs") if row[0] == 0), offered)
        return offered + engine.engine()["drop_input"]

    wait_until(lambda: told() >= PACKETS, "all packets are counted")
    assert told() == PACKETS
