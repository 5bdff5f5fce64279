"""pktd's path mode: what it adds to a bridge between namespaces, and what its commands take.

Namespaces with an eth0 of their own stand at one bridge; first nothing shapes them, then pktd is
attached to each. Rows are {group, what, through, value, unit} and for delays the quantiles.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from bench.engine.delay import ERRORS, owd
from bench.engine.netns import Namespace
from bench.engine.probing import goodput_bps, probe, program, serving, stream_words
from bench.engine.wiring import Ends, Pipe, address, bridged
from bench.errors import BenchError
from bench.tables import Record, Table
from tests.datapath.client import Client

PREFIX = "10.77.0.0/16"
DELAYS_MS = (1, 10, 50)
PORTS = 20
MOVED = 1_000  # paths that have moved when usage is asked for
CHANGES = 10_000
_TIMES = 10

# One datagram to each of so many addresses from the third on.
_SCATTER = """
import socket, sys, time
source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for index in range(2, 2 + int(sys.argv[1])):
    source.sendto(bytes(100), (f"10.77.{(index + 1) >> 8}.{(index + 1) & 255}", 9))
    if index % 50 == 0:
        time.sleep(0.005)
"""

_MEASURED = "{value} {unit}"
TABLES = (
    Table(
        {"Path mode": "{what}", "through": "{through}", "measured": _MEASURED},
        {"group": ["throughput"]},
    ),
    Table(
        {"Path mode: delay": "{delay_ms} ms", "through": "{through}", **ERRORS},
        {"group": ["delay"]},
    ),
    Table({"Path mode: command": "{what}", "median": _MEASURED}, {"group": ["commands"]}),
)


def measure(quick: bool) -> list[Record]:
    ends = bridged(2)
    rows = _traffic(ends, "bridge", quick, None)
    ends.close()
    with Client.start(program("pktd")) as pktd:
        ends = bridged(2)
        attach(pktd, ends.spaces)
        rows += _traffic(ends, "pktd", quick, pktd)
        ends.close()
    return rows + _commands()


def attach(pktd: Client, spaces: Sequence[Namespace]) -> None:
    """Attaches every namespace as a node, with a path without limits to every other one."""
    for index, space in enumerate(spaces):
        _attach_one(pktd, space, index)
        pktd.all([f"node {index} ip={address(index)}", f"bind {index} {index}"])
    _declare(pktd, len(spaces), Pipe())


def _declare(pktd: Client, count: int, pipe: Pipe) -> None:
    pktd.all(
        f"path {source} {dest} {pipe.words()} seed={source} up=1"
        for source in range(count)
        for dest in range(count)
        if source != dest
    )
    pktd.commit()


def _traffic(ends: Ends, through: str, quick: bool, pktd: Client | None) -> list[Record]:
    rows: list[Record] = []
    with serving(ends.spaces[1]):
        for delay_ms in (0, 20) if pktd else (0,):
            if pktd:
                _declare(pktd, 2, Pipe(delay_ns=delay_ms * 1_000_000))
            seconds = (2.0, 1.0) if quick else (6.0, 3.0)
            summary = probe(ends.spaces[0], *stream_words(1, seconds[0], skip=seconds[1]))
            rate = round(goodput_bps(summary) / 1e9, 3)
            rows.append(_row("throughput", f"tcp cubic, {delay_ms} ms", through, rate, "Gb/s"))
        if pktd:
            _declare(pktd, 2, Pipe())
        words = ("blast", address(1), "--seconds", "1" if quick else "4")
        pace = round(probe(ends.spaces[0], *words)["pps"] / 1000, 1)
        rows.append(_row("throughput", "udp 64 B", through, pace, "kpps"))
    for delay_ms in DELAYS_MS if pktd else (0,):
        if pktd:
            _declare(pktd, 2, Pipe(delay_ns=delay_ms * 1_000_000))
        error = owd(ends.spaces[0], ends.spaces[1], delay_ms, 100 if quick else 800)
        rows.append({"group": "delay", "through": through, **error})
    return rows


def _commands() -> list[Record]:
    """How long commands take, the client in Python included."""
    with Client.start(program("pktd")) as pktd:
        ends = bridged(PORTS)
        attached = [
            _took(partial(_attach_one, pktd, space, port)) for port, space in enumerate(ends.spaces)
        ]
        _many_paths(pktd, ends.spaces[0])
        usage = [_usage(pktd, ends.spaces[0]) for _ in range(_TIMES)]
        staged, applied = zip(*(_change(pktd, turn) for turn in range(_TIMES)), strict=True)
        detached = [_took(partial(pktd, f"detach {port}")) for port in range(PORTS)]
        ends.close()
    return [
        _row("commands", "attach a port", "pktd", median(attached), "ms"),
        _row("commands", "detach a port", "pktd", median(detached), "ms"),
        _row("commands", f"usage of {MOVED:,} paths that moved", "pktd", median(usage), "ms"),
        _row("commands", f"stage {CHANGES:,} changes of paths", "pktd", median(staged), "ms"),
        _row("commands", "commit them, until told applied", "pktd", median(applied), "ms"),
    ]


def _attach_one(pktd: Client, space: Namespace, port: int) -> None:
    pktd(f"attach {port} netns={space.path} if=eth0 prefix={PREFIX}")


def _many_paths(pktd: Client, space: Namespace) -> None:
    """Nodes that only have addresses, which the kernel need not look for, and paths to them."""
    addresses = [address(index) for index in range(2, 2 + MOVED)]
    space.ip_batch(
        [f"neigh add {a} lladdr 02:00:00:00:00:09 nud permanent dev eth0" for a in addresses]
    )
    pktd.all([f"node 0 ip={address(0)}", "bind 0 0"])
    pktd.all(f"node {node} ip={a}" for node, a in enumerate(addresses, 1))
    pktd.all(
        f"path 0 {node} {Pipe(rate_bps=1_000_000).words()} up=1" for node in range(1, MOVED + 1)
    )
    pktd.commit()


def _change(pktd: Client, turn: int) -> tuple[float, float]:
    """Milliseconds to stage so many changes of rates, and from the commit to the word of it."""
    lines = [
        f"path 0 {1 + change % MOVED} rate={1_000_000 + turn * CHANGES + change}"
        for change in range(CHANGES)
    ]
    return _took(lambda: pktd.all(lines)), _took(pktd.commit)


def _usage(pktd: Client, space: Namespace) -> float:
    """Milliseconds to ask for the usage of paths all of which have moved."""
    rows: list[str] = []
    before = pktd.engine()["rx"]
    space.run(["python3", "-c", _SCATTER, str(MOVED)])
    deadline = time.monotonic() + 5
    while pktd.engine()["rx"] < before + MOVED:
        if time.monotonic() > deadline:
            raise BenchError("datagrams for the usage of paths were lost before pktd read them")
        time.sleep(0.001)
    took = _took(lambda: rows.extend(pktd.body("usage")))
    if len(rows) != MOVED:
        raise BenchError(f"{len(rows)} paths have moved, not {MOVED}")
    return took


def _took(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _row(group: str, what: str, through: str, value: float, unit: str) -> Record:
    return {
        "group": group,
        "what": what,
        "through": through,
        "value": round(value, 3),
        "unit": unit,
    }
