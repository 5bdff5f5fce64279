"""What so many flows of TCP get together, by iperf3's report, in bits of IP packets a second.

Input: the JSON of a client that receives (`-R`), so its intervals count what has arrived. Slow
start is over where the rate of 5 s is within 5 % of that of the 5 s that follow; from there on all
that came counts. The first second never does: connections are made in it. Payload becomes IP
packets by the size of segments: TCP_MAXSEG has no room for options in it, so the time stamps of RFC
7323 (12 bytes) are headers, as are 20 bytes of TCP and 20 of IPv4 or 40 of IPv6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from runtime.errors import RunError
from runtime.json_schema import COUNT, INTEGER, SCALAR, TEXT, Shape, check, parse

# iperf3 counts whole blocks. Its own are of 1 Mbit, too much for a path of some; small ones keep a
# processor busy where much arrives, so a test that gets more than so much is made again with large.
SMALL_BLOCK, LARGE_BLOCK = 4096, 131_072
SMALL_BLOCK_BPS = 500_000_000
WINDOW_S = 5
AGREE_PERCENT = 5
_TCP, _IPV4, _IPV6, _TIME_STAMPS = 20, 20, 40, 12
_PART = {"seconds": SCALAR, "bytes": INTEGER}
_SHAPE = Shape(
    {
        "start": {"tcp_mss_default": COUNT, "connected": [{"remote_host": TEXT}]},
        "intervals": [{"streams": [_PART], "sum": _PART}],
    }
)
_ERROR = Shape({"error": TEXT})


class FlowReport(NamedTuple):
    """`seconds` and `payload` of each interval, all flows together; `overhead`: IP bytes of a full
    packet, and the payload in it."""

    seconds: tuple[float, ...]
    payload: tuple[int, ...]
    overhead: tuple[int, int]


class AvailableRate(NamedTuple):
    """`steady`: slow start was over within the test; else it is the rate of the last half."""

    bps: int
    steady: bool


def server_command(port: int) -> list[str]:
    """Serves one test, without reports meanwhile; it says at once when it listens."""
    return ["iperf3", "-s", "-1", "-p", str(port), "-i", "0", "--forceflush"]


def client_command(address: str, port: int, flows: int, seconds: int, block: int) -> list[str]:
    far = ["-c", address, "-p", str(port), "-R", "-P", str(flows), "-l", str(block)]
    return ["iperf3", *far, "-t", str(seconds), "-i", "1", "-J"]


def read(data: bytes, flows: int, *, time_stamps: bool, who: str) -> FlowReport:
    """RunError that begins with `who`, also for what iperf3 itself says is wrong."""
    document = parse(data, f"{who}: the report of iperf3")
    if isinstance(document, dict) and _ERROR.fits(document):
        raise RunError(f"{who}: iperf3: {document['error'].strip()}", _remedy(document["error"]))
    check(
        document, _SHAPE, f"{who}: the report of iperf3", "it takes iperf3 of version 3.1 or more"
    )
    intervals = document["intervals"]
    carried = [0] * flows
    for interval in intervals:
        if len(interval["streams"]) != flows:
            found = len(interval["streams"])
            raise RunError(f"{who}: iperf3 reports {found} flows where {flows} were asked for")
        for number, stream in enumerate(interval["streams"]):
            carried[number] += stream["bytes"]
    if idle := carried.count(0):
        hint = "the host or a firewall lets fewer connections through: ask for fewer --flows"
        raise RunError(f"{who}: {idle} of {flows} flows carried nothing", hint)
    rows = [(float(one["sum"]["seconds"]), one["sum"]["bytes"]) for one in intervals]
    rows = [(seconds, count) for seconds, count in rows if seconds > 0]
    return FlowReport(
        tuple(seconds for seconds, _ in rows),
        tuple(count for _, count in rows),
        _overhead(document["start"], time_stamps=time_stamps, who=who),
    )


def available(report: FlowReport) -> AvailableRate:
    """RunError if the test was too short to tell."""
    rates = list(zip(report.seconds, report.payload, strict=True))[1:]
    if len(rates) < 2 * WINDOW_S:
        raise RunError(f"iperf3 reports {len(rates) + 1} s, too few to see slow start end")
    begun = steady_from(rates)
    counted = rates[len(rates) // 2 :] if begun is None else rates[begun:]
    packet, payload = report.overhead
    return AvailableRate(round(_bps(counted) * packet / payload), begun is not None)


def steady_from(rates: Sequence[tuple[float, int]]) -> int | None:
    """The first interval that belongs to no slow start any more. `rates`: seconds and bytes."""
    for first in range(len(rates) - 2 * WINDOW_S + 1):
        middle = first + WINDOW_S
        before, after = _bps(rates[first:middle]), _bps(rates[middle : middle + WINDOW_S])
        if before and abs(after - before) * 100 < AGREE_PERCENT * before:
            return first
    return None


def _bps(rates: Sequence[tuple[float, int]]) -> float:
    return 8 * sum(count for _, count in rates) / sum(seconds for seconds, _ in rates)


def _overhead(start: dict[str, Any], *, time_stamps: bool, who: str) -> tuple[int, int]:
    segment = start["tcp_mss_default"]
    if not 0 < segment < 1 << 16:
        raise RunError(f"{who}: iperf3 reports segments of {segment} bytes")
    remote = start["connected"][0]["remote_host"] if start["connected"] else ""
    is_six = ":" in remote and not remote.lower().startswith("::ffff:")
    headers = _TCP + (_IPV6 if is_six else _IPV4) + _TIME_STAMPS * time_stamps
    return segment + headers, segment


def _remedy(error: str) -> str:
    if "connect" in error:
        return "the port of iperf3 must be open to the other hosts, in firewalls, too (port = …)"
    return "it is busy with another test: wait for its end" if "busy" in error else ""
