"""Holds what engines and agents have counted against what the instances' own devices have.

A device counts what its kernel saw, which nobody of the emulation can change. Readings are about a
second apart from samples, so bounds are compared: what was surely, and what was possibly, counted
between two readings of a device. What devices sent and no engine has counted in any way was lost at
the boundary, by neither a program nor a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime import say
from runtime.certify.byte_buckets import ByteBuckets
from runtime.certify.traffic import Traffic
from runtime.judge.verdict import Judge

SLACK_NS = 1_000_000_000  # between a reading and the sample that belongs to it
HEADERS_BYTES = 80  # of a segment, that a device does not count where it has several as one packet
ETHERNET_BYTES = 14
LEAST_BYTES = 20_000  # of which something can be said
SLACK_BYTES = 4096
LEAST_PACKETS = 1_000
UNPAIRED = {"drop_unknown", "drop_spoofed", "drop_malformed", "drop_input"}  # docs/pktd.md
FIELDS = ("from_ns", "to_ns", "rx_bytes", "rx_packets", "tx_bytes", "tx_packets")


def look_at_interfaces(
    judge: Judge,
    found: Mapping[str, Any],
    numbers: Mapping[str, int],
    traffic: Traffic,
    totals: Mapping[str, Any],
) -> int:
    """`found`: of instances, FIELDS by name: what has been added between two moments. `totals`: of
    all engines. Returns of how many something could be said."""
    judged, lost = 0, {}
    for name, row in sorted(found.items()):
        node = numbers.get(name)
        if node is None or not _fits(row):
            continue
        begin, end, rx_bytes, rx_packets, tx_bytes, tx_packets = (int(value) for value in row)
        span = begin - SLACK_NS, traffic.told_by(end) + SLACK_NS
        surely = traffic.told_by(begin) + SLACK_NS, end - SLACK_NS
        into = _apart(traffic.into, traffic.into_packets, node, *surely, rx_bytes)
        out = _apart(traffic.out, traffic.out_packets, node, *surely, tx_bytes)
        most = _between(traffic.into, node, *span)
        lost[name] = max(tx_packets - _between(traffic.out_packets, node, *span), 0), tx_packets
        seen = rx_bytes - ETHERNET_BYTES * rx_packets - SLACK_BYTES
        too_few = (seen - most) * 10**6 // seen if seen > LEAST_BYTES else None
        for what, figure in (
            ("more was counted as delivered to it than it received", into),
            ("more was counted as sent by it than it sent", out),
            ("it received more than was counted as delivered to it", too_few),
        ):
            if figure is not None:
                judged += 1
                _measure(judge, name, what, max(figure, 0), begin)
    if set(totals) >= UNPAIRED:
        _look_between(judge, lost, sum(int(totals[name]) for name in UNPAIRED))
    return judged


def _look_between(judge: Judge, lost: Mapping[str, tuple[int, int]], known: int) -> None:
    """`lost`: by instance what its eth0 sent that is of no pair, and how much it sent in all;
    `known` of that the engines have counted. A super-packet of a device is several of an engine, so
    there may be more than that."""
    count = sum(one for one, _ in lost.values()) - known
    whole = sum(sent for _, sent in lost.values())
    if whole < LEAST_PACKETS:
        return
    worst = max(lost, key=lambda name: (lost[name][0], name))
    text = (
        f"{max(count, 0):,} packets that eth0 had sent, most of {worst}, reached no engine:"
        " they were lost at the boundary between instances and the network"
    )
    judge.measure("counters", "the boundary", max(count, 0) * 10**6 // whole, None, text)


def _measure(judge: Judge, name: str, what: str, figure: int, at_ns: int) -> None:
    text = f"{name}: {what}, by {say.digits(figure / 1e4)} %"
    judge.measure("counters", f"{name}: {what}", figure, at_ns, text, invalid=True)


def _fits(row: object) -> bool:
    return isinstance(row, list) and len(row) == len(FIELDS) and all(type(v) is int for v in row)


def _apart(
    counted: ByteBuckets, packets: ByteBuckets, node: int, begin_ns: int, end_ns: int, device: int
) -> int | None:
    """By which part more was surely counted than the device has."""
    least = _inside(counted, node, begin_ns, end_ns)
    if least < LEAST_BYTES:
        return None
    saved = HEADERS_BYTES * _inside(packets, node, begin_ns, end_ns)
    saved = min(saved, least // 2)  # of packets that are hardly more than headers none are saved
    return (least - saved - SLACK_BYTES - device) * 10**6 // least


def _inside(series: ByteBuckets, key: int, begin_ns: int, end_ns: int) -> int:
    return sum(series.between(key, begin_ns, end_ns - series.bucket_ns + 1)[1])


def _between(series: ByteBuckets, key: int, begin_ns: int, end_ns: int) -> int:
    return sum(series.between(key, begin_ns - series.bucket_ns, end_ns + 1)[1])
