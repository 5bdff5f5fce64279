"""A recorded run with packets: two instances around a bridge, made by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

from compiler.pipeline import compile_source, write
from compiler.plan.reader import read_plan
from runtime.rundir.pcapng import Packet
from tests.runtime import recorded
from tests.runtime.rundir import pcapng_writer

SOURCE = b"""service a img=x exec="sleep 9"
service b img=x exec="sleep 9"
bridge s1
link a--s1 latency=1ms
link b--s1 latency=2ms
at 1s quit
"""
MS = 10**6


def frame(src: str, dst: str, number: int = 0, *, ttl: int = 64, kind: int = 8) -> bytes:
    """An ICMP echo over IPv4; the checksum follows the TTL."""
    ends = ip_address(src).packed + ip_address(dst).packed
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28, number, 0, ttl, 1, ttl) + ends
    return b"\x02" * 12 + b"\x08\x00" + head + struct.pack("!BBHHH", kind, 0, 0, 1, number)


def put(run: Path, records: Iterable[Packet], start_ns: int) -> None:
    """Times of `records` are since the start."""
    (run / "packets").mkdir()
    by_link: dict[str, list[Packet]] = {}
    for one in sorted(records, key=lambda one: one.at_ns):
        ends = sorted(one.interface.split("->"))
        late = Packet(one.interface, start_ns + one.at_ns, one.data, one.comment, one.missing)
        by_link.setdefault("--".join(ends), []).append(late)
    for name, packets in by_link.items():
        a, b = name.split("--")
        data = pcapng_writer.file(packets, [f"{a}->{b}", f"{b}->{a}"])
        (run / "packets" / f"{name}.pcapng").write_bytes(data)


def make(run: Path, start_ns: int) -> Path:
    """a.0 sends a ping at 1 ms that arrives at 4 ms; the answer of 10 ms is lost at 12 ms."""
    run.mkdir()
    for name, data in recorded.files().items():
        (run / name).write_bytes(data)
    manifest = {**recorded.MANIFEST, "start_unix_ns": start_ns}
    (run / "manifest.json").write_bytes(recorded.lines([manifest]))
    write(compile_source(SOURCE, filename="exp.tdl", seed=None), run / "plan")
    a, b = (node.ipv4 for node in read_plan(run / "plan").topology.nodes[:2])
    records = [
        Packet("a.0->s1", 2 * MS, frame(a, b), "", 0),
        Packet("s1->b.0", 4 * MS, frame(a, b, ttl=63), "", 0),
        Packet("b.0->s1", 12 * MS, frame(b, a, 1, kind=0), "", 0),
        Packet("s1->a.0", 12 * MS, frame(b, a, 1, kind=0), "dropped: lost by the draw", 0),
    ]
    put(run, records, start_ns)
    return run
