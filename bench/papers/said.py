"""What programs said at their end, as numbers: iperf3, wrk, curl, pgbench, tprobe."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Sequence

from bench.errors import BenchError
from bench.tables import Record

_CONTROL_BYTES = 10_000
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}  # wrk's are powers of 1024


def iperf3_bps(text: str) -> float:
    """Payload that the receiver counted, per second, without what -O left out."""
    try:
        found = json.loads(text[text.index("{") :])
        return float(found["end"]["sum_received"]["bits_per_second"])
    except (ValueError, KeyError) as error:
        raise BenchError(f"iperf3 said no result: {text.strip()[-200:]}") from error


def iperf3_intervals(text: str) -> list[tuple[float, float, float]]:
    """(from s, to s, b/s) since the client's start."""
    try:
        found = json.loads(text[text.index("{") :])["intervals"]
    except (ValueError, KeyError) as error:
        raise BenchError(f"iperf3 said no intervals: {text.strip()[-200:]}") from error
    return [
        (one["sum"]["start"], one["sum"]["end"], one["sum"]["bits_per_second"]) for one in found
    ]


def received_bps(text: str, omit_s: float, seconds: float) -> float:
    """Payload per second that TCP counted (ss, after a line with the time each), as a straight line
    through what was counted after the first `omit_s` of the flow."""
    times: list[float] = []
    counts: list[int] = []
    for part in re.split(r"^(?=\d+\.\d+$)", text, flags=re.MULTILINE):
        got = max((int(one) for one in re.findall(r"bytes_received:(\d+)", part)), default=0)
        if got > _CONTROL_BYTES:  # the connection that iperf3 speaks over has less
            times.append(float(part.split()[0]))
            counts.append(got)
    inside = [n for n, at in enumerate(times) if omit_s <= at - times[0] <= omit_s + seconds - 0.5]
    if len(inside) < 3 or times[inside[-1]] - times[inside[0]] < 0.7 * seconds:
        raise BenchError("the receiver's TCP was counted for too short a time")
    low, after = inside[0], inside[-1] + 1
    return 8 * statistics.linear_regression(times[low:after], counts[low:after]).slope


def wrk_bps(text: str) -> float:
    """What was transferred per second, headers of HTTP included."""
    found = re.search(r"^Transfer/sec:\s+([0-9.]+)([KMG]?)B", text, re.MULTILINE)
    if not found:
        raise BenchError(f"wrk said no rate: {text.strip()[-200:]}")
    return float(found[1]) * _SCALE[found[2]] * 8


def curl_bps(texts: Sequence[str], begin_s: float, end_s: float) -> float:
    """Of clients that wrote a line `END_S BYTES` (epoch seconds) for each answer, within."""
    total = 0
    for text in texts:
        for line in text.splitlines():
            match line.split():
                case [at, size] if size.isdigit() and begin_s <= float(at) < end_s:
                    total += int(size)
    return total * 8 / (end_s - begin_s)


def curl_span(texts: Sequence[str]) -> tuple[float, float]:
    """From when on all clients had answers, until when."""
    times = [
        [float(line.split()[0]) for line in text.splitlines() if re.match(r"[0-9.]+ \d+$", line)]
        for text in texts
    ]
    if not all(len(one) > 1 for one in times):
        raise BenchError("a client of curl got less than two answers")
    return max(one[0] for one in times), min(one[-1] for one in times)


def pgbench(text: str) -> list[Record]:
    """One record for each pgbench that ran: clients, tps, latency_ms, failed; with `-P`, latency_ms
    is the median of its seconds: the first commits after a pause take a round trip more."""
    found: list[Record] = []
    for part in re.split(r"(?=^pgbench \()", text, flags=re.MULTILINE):
        numbers = {
            name: re.search(pattern, part, re.MULTILINE)
            for name, pattern in (
                ("clients", r"^number of clients: (\d+)"),
                ("tps", r"^tps = ([0-9.]+) \(without"),
                ("latency_ms", r"^latency average = ([0-9.]+) ms"),
                ("failed", r"^number of failed transactions: (\d+)"),
            )
        }
        if all(numbers.values()):
            record = {name: float(one[1]) for name, one in numbers.items() if one}
            if seconds := [ms for _, ms in pgbench_progress(part)]:
                record["latency_ms"] = statistics.median(seconds)
            found.append(record)
    return found


def pgbench_progress(text: str) -> list[tuple[float, float]]:
    """(seconds since its start, mean latency in ms) of each line of `-P`; idle seconds left out."""
    lines = re.finditer(
        r"^progress: ([0-9.]+) s, ([0-9.]+) tps, lat ([0-9.]+) ms", text, re.MULTILINE
    )
    return [(float(one[1]), float(one[3])) for one in lines if float(one[2]) > 0]
