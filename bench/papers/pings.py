"""Table 3 of the Kollaps paper (jitter between regions) and Table 4.2 of the link emulator's (0 to
15 ms): round trips of ICMP echo, answered by the kernel of the other instance.

The paper's jitter is that of round trips, so here it is on the way there only. Netem is measured
under user-mode Linux, whose timers are some 0.3 ms late.
"""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from bench.errors import BenchError
from bench.papers.context import EXACT, HOSTS, Context
from bench.papers.rows import ABSOLUTE, RELATIVE, TOLD, VIRTUAL, fold, goal, row
from bench.papers.theory import jitter_ratio, middle_ratio
from bench.tables import Record
from tests.runs.runlog import RunLog

PROBES = 10_000
WITHIN = 0.02
MEAN_WITHIN_MS = 0.05
OUTLIER = 6  # of 10,000 draws of a normal distribution none is so far away (2 in 1e9)
# Round trip in ms, jitter in ms, and what Kollaps made of it.
TABLE_3 = (
    ("us-east-1", 6, 0.5607, 0.6367),
    ("us-east-2", 17, 1.2411, 1.4018),
    ("ca-central-1", 24, 1.2451, 1.3872),
    ("us-west-1", 70, 1.3627, 1.5438),
    ("eu-west-1", 78, 1.2000, 1.3684),
    ("eu-west-2", 85, 1.6609, 1.8592),
    ("eu-north-1", 119, 1.2850, 1.4479),
    ("ap-northeast-1", 170, 1.4217, 1.6031),
    ("ap-south-1", 194, 2.0233, 2.2758),
    ("ap-northeast-2", 200, 1.8364, 2.0888),
    ("ap-southeast-2", 208, 1.4277, 1.6290),
    ("ap-southeast-1", 249, 1.2111, 1.3728),
)
# Configured ms -> mean of the observed round trips in ms.
TABLE_42 = (
    1.67,
    2.80,
    3.80,
    4.44,
    5.77,
    6.81,
    7.81,
    8.81,
    9.80,
    10.82,
    11.82,
    12.77,
    13.81,
    14.81,
    15.76,
    16.83,
)
_STILL_RTT_MS = 6.0  # of the pair without jitter
_NETEM_ENDS = ("ap-south-1", "us-east-1")  # regions that netem has to do, too


def round_trips(run: Path, instance: str) -> list[float]:
    """In ms, those that came back. BenchError if 1 of 100 did not, on links that lose nothing."""
    probes = RunLog(run).probes(instance)
    found = [probe.rtt_ms for probe in probes if probe.rtt_ms is not None]
    if len(found) < max(0.99 * len(probes), 2):
        raise BenchError(f"{instance}: {len(found)} of {len(probes)} probes came back")
    return found


def table_3(context: Context) -> list[Record]:
    count = 200 if context.quick else PROBES
    peers = _netem(context, 100 if context.quick else 1500)
    rows: list[Record] = []
    for place in context.places(EXACT, HOSTS, VIRTUAL):
        with context.attempt(rows, "all regions", place):
            run = context.run(context.scene("jitter", probes=count), place)
            rows += _regions(run, place, context.why(run), peers if place == EXACT else {})
    return fold(rows, EXACT)


def _regions(
    run: Path, place: str, reason: str, peers: dict[str, dict[str, float]]
) -> list[Record]:
    """Two rows for each region, after one of the pair without jitter."""
    still = round_trips(run, f"source.{len(TABLE_3)}")
    rows = [_still(still, place)]
    for number, (region, rtt_ms, jitter_ms, theirs) in enumerate(TABLE_3):
        found = round_trips(run, f"source.{number}")
        causes = (reason or _stalled(found, rtt_ms, jitter_ms), _beside(still, jitter_ms))
        why = "; ".join(filter(None, causes))
        whole, middle = jitter_ratio(found, jitter_ms), middle_ratio(found, jitter_ms)
        ratio = row(
            f"{region}: jitter / {jitter_ms} ms",
            place,
            "",
            whole,
            1.0,
            shown=f"{whole:.4g}, by the middle half {middle:.4g}",
            goal=goal(RELATIVE, WITHIN),
            paper=f"{theirs / jitter_ms:.3f}",
            peers=peers.get(region, {}),
            why=why,
        )
        mean = row(
            f"{region}: mean round trip",
            place,
            "ms",
            statistics.fmean(found),
            float(rtt_ms),
            goal=goal(ABSOLUTE, MEAN_WITHIN_MS),
            why=why,
        )
        rows += [ratio, mean]
    return rows


def _stalled(found: list[float], rtt_ms: float, jitter_ms: float) -> str:
    """What a few round trips have made of the figures that no normal distribution has; else ''."""
    usual = [one for one in found if one - rtt_ms <= OUTLIER * jitter_ms]
    if len(usual) in (0, len(found)):
        return ""
    return (
        f"{len(found) - len(usual)} of {len(found)} round trips came more than {OUTLIER} times the "
        f"jitter late, the last {max(found) - rtt_ms:.1f} ms; of the others it is "
        f"{jitter_ratio(usual, jitter_ms):.3f} and the mean off by "
        f"{(statistics.fmean(usual) - rtt_ms) * 1000:+.0f} µs"
    )


def _still(found: list[float], place: str) -> Record:
    """A row of the pair without jitter: what its round trips vary by is the machine's doing."""
    mean_ms, deviation_ms = statistics.fmean(found), statistics.pstdev(found)
    return row(
        "a pair without jitter beside them",
        place,
        "ms",
        mean_ms,
        _STILL_RTT_MS,
        shown=f"{mean_ms:.4g} ms, deviation {deviation_ms:.3f} ms",
    )


def _beside(still: list[float], jitter_ms: float) -> str:
    """What the deviation of the pair without jitter makes of a region's, as independent ones add
    up."""
    own_ms = statistics.pstdev(still)
    made = math.hypot(jitter_ms, own_ms) / jitter_ms
    return (
        f"a pair without jitter had a deviation of {own_ms:.3f} ms in the same run, which makes "
        f"{made:.3f} of this jitter, and its mean was off by "
        f"{(statistics.fmean(still) - _STILL_RTT_MS) * 1000:+.0f} µs"
    )


def _netem(context: Context, count: int) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for region, rtt_ms, jitter_ms, _ in TABLE_3:
        if region not in _NETEM_ENDS:
            continue
        words = f"delay {rtt_ms}ms {jitter_ms}ms distribution normal"
        samples = context.peer("netem", echo(count, words), lambda said: _said(said[0]), netem=True)
        if samples:
            found[region] = {"netem under user-mode Linux": jitter_ratio(samples, jitter_ms)}
    return found


def echo(count: int, words: str) -> Record:
    """A task for kernel.py: round trips through netem on the way there."""
    argv = ["ping", "-n", "-c", str(count), "-i", "0.02", "{1}"]
    program = {"end": 0, "argv": argv, "at_s": 0.5}
    return {"ends": 2, "links": [[0, 0, words]], "programs": [program]}


def _said(text: str) -> list[float]:
    """Round trips in ms from ping(8)."""
    return [
        float(word.removeprefix("time="))
        for line in text.splitlines()
        for word in line.split()
        if word.startswith("time=")
    ]


def table_42(context: Context) -> list[Record]:
    """The paper's delays have those of its wires and its controller in them."""
    rows: list[Record] = []
    for place in context.places(EXACT, VIRTUAL):
        with context.attempt(rows, "0 to 15 ms", place):
            run = context.run(context.scene("delays", probes=20 if context.quick else 400), place)
            rows += [_delay(run, place, n, context.why(run)) for n in range(len(TABLE_42))]
    return fold(rows, EXACT)


def _floor(run: Path) -> str:
    """What is in each mean besides the delay."""
    found = statistics.fmean(round_trips(run, "client.0"))
    return f"a round trip without delay takes {found:.3f} ms here"


def _delay(run: Path, place: str, delay_ms: int, why: str) -> Record:
    return row(
        f"{delay_ms} ms",
        place,
        "ms",
        statistics.fmean(round_trips(run, f"client.{delay_ms}")),
        float(delay_ms),
        goal=goal(ABSOLUTE, MEAN_WITHIN_MS) if delay_ms else goal(TOLD),
        paper=f"{TABLE_42[delay_ms]:.2f} ms",
        why=why or _floor(run),
    )
