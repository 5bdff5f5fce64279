"""One-way delay error from 1 to 100 ms, idle and beside a flow of 100 Mb/s of another pair.

The error is the kernel's receive time stamp less the time of sending less the delay asked for; it
contains the sender's and receiver's own way through their stacks, which the veth row shows.
"""

from __future__ import annotations

from bench.engine.netns import Namespace
from bench.engine.probing import finish, probe, program, serving, start
from bench.engine.wiring import Ends, Pipe, address, change, engine, plain_veth
from bench.tables import Cell, Record, Table
from tests.datapath.client import Client

DELAYS_MS = (1, 5, 10, 20, 50, 100)

ERRORS: dict[str, Cell] = {
    "error: mean µs": "{mean_us:.1f}",
    "p50": "{p50_us:.1f}",
    "p99": "{p99_us:.1f}",
    "max": "{max_us:.1f}",
    "lost": "{lost}",
}
TABLES = (
    Table(
        {
            "One-way delay": "{delay_ms} ms",
            "through": "{through}",
            "beside": "{beside}",
            **ERRORS,
        }
    ),
)


def measure(quick: bool) -> list[Record]:
    """Rows of {through, delay_ms, beside, mean_us, p50_us, p99_us, max_us, lost}."""
    count = 150 if quick else 800
    ends = plain_veth()
    rows = [{**owd(ends.spaces[0], ends.spaces[1], 0, count), "through": "veth", "beside": "idle"}]
    ends.close()
    with Client.start(program("pktd")) as pktd:
        ends = engine(pktd, 2, Pipe())
        with serving(ends.spaces[3]):
            for delay_ms in (1, 20, 100) if quick else DELAYS_MS:
                change(pktd, 2, Pipe(delay_ns=delay_ms * 1_000_000))
                rows += _both(ends, delay_ms, count)
        ends.close()
    return rows


def _both(ends: Ends, delay_ms: int, count: int) -> list[Record]:
    idle = owd(ends.spaces[0], ends.spaces[1], delay_ms, count)
    seconds = str(count * 5 // 1000 + 1)
    words = ["stream", address(3), "--udp", "100Mb", "--seconds", seconds, "--interval", seconds]
    flow = start(ends.spaces[2], words)
    beside = owd(ends.spaces[0], ends.spaces[1], delay_ms, count)
    finish(flow)
    return [
        {**idle, "through": "pktd", "beside": "idle"},
        {**beside, "through": "pktd", "beside": "100 Mb/s"},
    ]


def owd(sender: Namespace, receiver: Namespace, delay_ms: int, count: int) -> Record:
    """`count` probes about 5 ms apart. tprobe enters both namespaces itself."""
    summary = probe(
        sender,
        *("owd", address(1), "--count", str(count), "--interval", "5ms"),
        *("--delay", f"{delay_ms}ms", "--rx-netns", str(receiver.path)),
        *("--tx-netns", str(sender.path)),
    )
    wanted = ("mean_us", "p50_us", "p99_us", "min_us", "max_us", "lost", "sent")
    return {"delay_ms": delay_ms, **{name: summary[name] for name in wanted}}
