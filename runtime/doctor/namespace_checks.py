"""The part of `tstorm doctor` that runs inside throw-away namespaces; prints checks as JSON.

It does what a run does: makes an instance, attaches it to pktd, gives it addresses. The kernel's
own queueing disciplines are tried by adding them to a device.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from compiler.plan.types import Node
from runtime.backend.local import hosts_backend, nursery
from runtime.backend.local.instances import Maker
from runtime.backend.ports import EnginePorts
from runtime.backend.refusals import Refusals
from runtime.datapath import pktd
from runtime.errors import RunError
from runtime.system import compiled_programs, namespaces

_NODE = Node("probe.0", 0, "10.77.0.1", "fd77:7473::1", ())

_PORTS = {
    "tap": "TAP devices",
    "packet": "AF_PACKET on veth pairs (no access to /dev/net/tun, which would be a little faster)",
}


def _check(name: str, status: str, detail: str, remedy: str = "") -> dict[str, str]:
    return {"name": name, "status": status, "detail": detail, "remedy": remedy}


def _stamp(word: str) -> dict[str, str]:
    if word == "bpf":
        return _check("arrival stamps", "ok", "by BPF, at the moment a packet leaves its program")
    if word == "socket":
        return _check("arrival stamps", "ok", "by the kernel, when it hands a packet to pktd")
    remedy = "as root, with BPF allowed, stamps are taken earlier"
    return _check("arrival stamps", "warn", "when pktd reads a packet: about 20 µs later", remedy)


def _scheduling(word: str) -> dict[str, str]:
    if word == "fifo":
        return _check("scheduling", "ok", "pktd has real-time priority (SCHED_FIFO)")
    remedy = "run as root, or allow it: ulimit -r 50 (RLIMIT_RTPRIO)"
    detail = "pktd has ordinary priority: delays vary more under load"
    return _check("scheduling", "warn", detail, remedy)


def _tun() -> dict[str, str]:
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return _check("/dev/net/tun", "warn", f"cannot be opened: {error.strerror}", "not needed")
    return _check("/dev/net/tun", "ok", "can be opened")


async def _attach() -> list[dict[str, str]]:
    """An instance with a port and addresses, as in a run."""
    checks = []
    process = await pktd.start([str(compiled_programs.find("pktd"))], sys.stderr.buffer)
    try:
        checks.append(_scheduling(process.facts.get("sched", "")))
        home = nursery.start(compiled_programs.find("tstorm-ns"), {}, sys.stderr.buffer)
        nodes, quiet = (_NODE,), Refusals(lambda _notice: None)
        ports = EnginePorts(process.engine, "auto", nodes, quiet, lambda *_device: None)
        maker = Maker(home, ports)
        incarnation = await maker.make({0: _NODE})
        kind = next(iter(ports.kinds))
        checks.append(_check("ports", "ok", _PORTS.get(kind, kind)))
        checks.append(_stamp(next(iter(ports.stamps))))
        incarnation.kill()
        await incarnation.gone
        maker.close()
        home.close()
    finally:
        await process.end()
    return checks


def _add(route: IPRoute, kind: str, device: int, **more: Any) -> dict[str, str]:
    try:
        route.tc("add", kind, device, **more)
    except NetlinkError as error:
        detail = f"this kernel refuses it: {os.strerror(error.code)}"
        return _check(f"qdisc {kind}", "warn", detail, "not needed: pktd does its work")
    return _check(f"qdisc {kind}", "ok", "can be added")


def _disciplines() -> list[dict[str, str]]:
    """htb and netem on a veth of this namespace."""
    with IPRoute() as route:
        route.link("add", ifname="probe0", kind="veth", peer={"ifname": "probe1"})
        device = route.link_lookup(ifname="probe0")[0]
        other = route.link_lookup(ifname="probe1")[0]
        return [
            _add(route, "htb", device, handle=0x10000, default=0x200000),
            _add(route, "netem", other, handle=0x10000, delay=1000),
        ]


def _hosts() -> dict[str, str]:
    """What `--hosts` needs beside the rest: bridges, veths between namespaces, filters."""
    name = "local hosts"
    try:
        hosts_backend.make(2).close()
    except RunError as error:
        return _check(name, "warn", error.message, error.remedy or "only needed for --hosts")
    return _check(name, "ok", "bridges, veths between namespaces and filters can be made")


def main() -> int:
    checks = [_tun()]
    try:
        checks.extend(asyncio.run(_attach()))
    except (RunError, OSError) as error:
        remedy = getattr(error, "remedy", "") or namespaces.refusal_remedy()
        checks.append(_check("instances", "fail", str(error), remedy))
    checks.append(_hosts())
    try:
        checks.extend(_disciplines())
    except (NetlinkError, OSError) as error:
        checks.append(_check("qdiscs", "warn", f"cannot be tried: {error}", "not needed"))
    print(json.dumps(checks))  # noqa: T201 - this is a program of its own, its output the product
    return 0


if __name__ == "__main__":
    sys.exit(main())
