"""Run in a sandbox: makes hosts and instances, tries who reaches whom, prints it as JSON."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from runtime.backend.local import hosts_backend
from runtime.errors import RunError
from runtime.system import compiled_programs
from runtime.system.network import addresses, netlink

ANSWERER = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9))
print("ready", flush=True)
while True:
    _, peer = s.recvfrom(100)
    s.sendto(sys.argv[1].encode(), peer)
"""

ASKER = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.2)
for _ in range(40):
    s.sendto(b"who", (sys.argv[1], 9))
    try:
        print(s.recv(100).decode())
        break
    except TimeoutError:
        continue
"""


def wanted(port: int, name: str, pid: int, number: int) -> hosts_backend.PortRequest:
    ipv4, ipv6 = f"10.77.0.{number}", f"fd77:7473::{number}"
    return hosts_backend.PortRequest(port, name, pid, ipv4, ipv6, "eth0")


class Instance:
    """A process in a network namespace of its own that answers with a word."""

    def __init__(self, host: hosts_backend.LocalHost, port: int, name: str, number: int) -> None:
        self.ipv4, self.port = f"10.77.0.{number}", port
        argv = ["unshare", "-n", sys.executable, "-c", ANSWERER, name]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()  # it answers, so it is where it should be
        host.add_port(wanted(port, f"{name}.0", self.process.pid, number))
        self._configure(name, number)

    def _configure(self, name: str, number: int) -> None:
        """With the project's own code, over a socket opened inside."""
        inside = Path(f"/proc/{self.process.pid}/ns/net")
        ours, theirs = socket.socketpair()
        script = (
            "import socket, sys\n"
            "s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)\n"
            "socket.send_fds(socket.socket(fileno=int(sys.argv[1])), [b'!'], [s.fileno()])\n"
        )
        with ours, theirs, inside.open("rb") as net:
            command = [sys.executable, "-c", script, str(theirs.fileno())]
            subprocess.run(
                ["nsenter", f"--net={inside}", *command],
                pass_fds=[theirs.fileno(), net.fileno()],
                check=True,
            )
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        with socket.socket(fileno=descriptors[0]) as connection:
            own = addresses.Addresses(self.ipv4, f"fd77:7473::{number}")
            addresses.configure(connection, name, [own])

    def do(self, *argv: str) -> subprocess.CompletedProcess[str]:
        command = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", *argv]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def reaches(self, address: str) -> bool:
        return self.do("ping", "-c", "1", "-W", "5", address).returncode == 0

    def who_is(self, address: str) -> str:
        return self.do(sys.executable, "-c", ASKER, address).stdout.strip()


def refusal(host: hosts_backend.LocalHost, port: int, pid: int) -> str:
    try:
        host.add_port(wanted(port, "c.0", pid, 3))
    except RunError as error:
        return error.message
    return ""


def in_host(host: hosts_backend.LocalHost) -> str:
    """The addresses that a program started in the host finds at ctl0."""
    entry = str(compiled_programs.find("tstorm-ns"))
    argv = [entry, "in", "--net", str(host.net), "--parent", str(os.getpid()), "--"]
    argv += ["ip", "-j", "addr", "show", "ctl0"]
    done = subprocess.run(argv, pass_fds=[host.net], capture_output=True, text=True, check=True)
    [device] = json.loads(done.stdout)
    return f"{device['addr_info'][0]['local']} {device['address']}"


def main() -> None:
    made = hosts_backend.make(5)
    first, last = made.hosts[0], made.hosts[4]
    a, b, c = Instance(first, 0, "first", 1), Instance(last, 1, "b", 2), Instance(first, 2, "c", 3)
    first.wire([(0, a.ipv4), (2, c.ipv4)])
    last.wire([(1, b.ipv4)])
    ping = ["ping", "-c", "1", "-W", "5", last.address]
    done = subprocess.run(ping, capture_output=True, check=False)
    found: dict[str, object] = {
        "coordinator to the last host": done.returncode == 0,
        "program in the last host": in_host(last),
        "same host": c.reaches(a.ipv4),
        "another host": b.reaches(a.ipv4),
        "another host, IPv6": b.reaches("fd77:7473::1"),
    }
    again = Instance(first, 3, "second", 1)  # has the addresses of the first one
    found["the life before"] = b.who_is(a.ipv4)
    first.wire([(3, a.ipv4)])
    found["the life after"] = b.who_is(a.ipv4)
    found["a port twice"] = refusal(first, 2, c.process.pid)
    found["a port of nobody"] = refusal(first, 9, 4_000_000).rpartition(": ")[2]
    first.remove_port(2)
    first.remove_port(2)
    found["removed twice"] = not netlink.exchange(first.netlink, [netlink.loopback_up()])
    for one in (a, b, c, again):
        one.process.kill()
        one.process.wait()
    made.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
