"""What the processes and namespaces of a running experiment hold, read from outside.

Input: the process id of `tstorm run --hosts`. Output: records of plain numbers. Memory is VmRSS of
proc(5) in KiB; descriptors and threads are counted in /proc/PID; devices, queueing disciplines and
filters with tc(8) in every network namespace that a process of the run is in.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bench.errors import BenchError
from bench.tables import Record

PROC = Path("/proc")
TCP_PORT = ":7474"


def tree(root: int) -> list[int]:
    """The process and all below it, parents before children."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            parent = _parent(int(entry.name))
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [root]
    while todo:
        pid = todo.pop(0)
        found.append(pid)
        todo += sorted(children.get(pid, ()))
    return found


def roles(root: int) -> dict[str, int]:
    """Process ids of the parts that live as long as the run, by name: driver, agent0, pktd0, …"""
    found = {"tstorm": root}
    for pid in tree(root):
        words = _words(pid)
        program = Path(words[0]).name
        if program.startswith("python") and "runtime.driver" in words:
            found["driver"] = pid
        elif "runtime.agent" in words:
            address = words[words.index("--listen") + 1].removesuffix(TCP_PORT)
            found[f"agent{int(address.rpartition('.')[2]) - 1}"] = pid
        elif program in ("pktd", "tcald"):
            number = sum(name.startswith(program) for name in found)
            found[f"{program}{number}"] = pid
        elif program == "tstorm-ns" and "nursery" in words and "nursery" not in found:
            found["nursery"] = pid
    return dict(sorted(found.items()))


def processes(root: int, parts: dict[str, int]) -> Record:
    """How many processes and zombies, and for each part its memory, descriptors and threads."""
    everyone = tree(root)
    states = [_field(pid, "State")[:1] for pid in everyone]
    return {
        "processes": len(everyone),
        "zombies": states.count("Z"),
        "parts": {name: _part(name, pid) for name, pid in parts.items()},
    }


def _part(name: str, pid: int) -> Record:
    memory = _field(pid, "VmRSS")
    if not memory:
        raise BenchError(f"{name} has ended (process {pid})")
    return {
        "rss_kib": int(memory.split()[0]),
        "threads": int(_field(pid, "Threads")),
        "descriptors": sum(1 for _ in (PROC / str(pid) / "fd").iterdir()),
    }


def networks(root: int) -> Record:
    """Namespaces with a process in them; the devices, qdiscs and filters of all together."""
    inside: dict[str, int] = {}
    for pid in tree(root):
        try:
            inside.setdefault(str((PROC / str(pid) / "ns/net").readlink()), pid)
        except OSError:
            continue  # it has ended meanwhile
    here = str(Path("/proc/self/ns/net").readlink())
    found = {"namespaces": 0, "devices": 0, "qdiscs": 0, "filters": 0}
    for name, pid in inside.items():
        if name != here:
            found["namespaces"] += 1
            for key, count in _network(pid).items():
                found[key] += count
    return found


def _network(pid: int) -> dict[str, int]:
    qdiscs = _tc(pid, "qdisc", "show").splitlines()
    hooked = {line.split(" dev ")[1].split()[0] for line in qdiscs if "clsact" in line}
    filters = [
        line
        for device in sorted(hooked)
        for way in ("ingress", "egress")
        for line in _tc(pid, "filter", "show", "dev", device, way).splitlines()
        if line.startswith("filter")
    ]
    devices = (PROC / str(pid) / "net/dev").read_text().splitlines()[2:]
    return {"devices": len(devices), "qdiscs": len(qdiscs), "filters": len(filters)}


def _tc(pid: int, *words: str) -> str:
    user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    argv = ["nsenter", f"--target={pid}", *user, "--net", "tc", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"tc {' '.join(words)} in process {pid}: {done.stderr.strip()}")
    return done.stdout


def _parent(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return -1  # it has ended meanwhile


def _words(pid: int) -> list[str]:
    try:
        return (PROC / str(pid) / "cmdline").read_text().split("\0")
    except OSError:
        return [""]


def _field(pid: int, name: str) -> str:
    """A field of /proc/PID/status, empty when the process has ended."""
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return ""
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith(f"{name}:")), ""
    )
