"""Holds what engines and agents have counted against what the instances' own devices have.

A device counts what its kernel saw, which nobody of the emulation can change. Readings are about a
second apart from samples, so bounds are compared: what was surely, and what was possibly, counted
between two readings of a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.certify.series import Series
from runtime.certify.traffic import Traffic
from runtime.judge.verdict import Judge

SLACK_NS = 1_000_000_000  # between a reading and the sample that belongs to it
HEADERS_BYTES = 80  # of a segment, that a device does not count where it has several as one packet
ETHERNET_BYTES = 14
LEAST_BYTES = 20_000  # of which something can be said
SLACK_BYTES = 4096
FIELDS = ("from_ns", "to_ns", "rx_bytes", "rx_packets", "tx_bytes", "tx_packets")


def look_at_interfaces(
    judge: Judge, found: Mapping[str, Any], numbers: Mapping[str, int], traffic: Traffic
) -> int:
    """`found`: of instances, FIELDS by name: what has been added between two moments. Returns of
    how many something could be said."""
    judged = 0
    for name, row in sorted(found.items()):
        node = numbers.get(name)
        if node is None or not _fits(row):
            continue
        begin, end, rx_bytes, rx_packets, tx_bytes, _ = (int(value) for value in row)
        surely = traffic.told_by(begin) + SLACK_NS, end - SLACK_NS
        into = _apart(traffic.into, traffic.into_packets, node, *surely, rx_bytes)
        out = _apart(traffic.out, traffic.out_packets, node, *surely, tx_bytes)
        most = _between(traffic.into, node, begin - SLACK_NS, traffic.told_by(end) + SLACK_NS)
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
    return judged


def _measure(judge: Judge, name: str, what: str, figure: int, at_ns: int) -> None:
    text = f"{name}: {what}, by {figure / 1e4:.3g} %"
    judge.measure("counters", f"{name}: {what}", figure, at_ns, text, invalid=True)


def _fits(row: object) -> bool:
    return isinstance(row, list) and len(row) == len(FIELDS) and all(type(v) is int for v in row)


def _apart(
    counted: Series, packets: Series, node: int, begin_ns: int, end_ns: int, device: int
) -> int | None:
    """By which part more was surely counted than the device has."""
    least = _inside(counted, node, begin_ns, end_ns)
    if least < LEAST_BYTES:
        return None
    saved = HEADERS_BYTES * _inside(packets, node, begin_ns, end_ns)
    saved = min(saved, least // 2)  # of packets that are hardly more than headers none are saved
    return (least - saved - SLACK_BYTES - device) * 10**6 // least


def _inside(series: Series, key: int, begin_ns: int, end_ns: int) -> int:
    return sum(series.between(key, begin_ns, end_ns - series.bucket_ns + 1)[1])


def _between(series: Series, key: int, begin_ns: int, end_ns: int) -> int:
    return sum(series.between(key, begin_ns - series.bucket_ns, end_ns + 1)[1])
