"""Figs 4.12 to 4.15 of the link emulator's paper: two clients reach one server over a common trunk
of 4.77 Gb/s, each over a link of its own with a delay of 1 ms on the way there.

4.12: round trips of one client while the other one's TCP has 1, 10, … 100 Mb/s. 4.13: a flow of
each client while both links have the same rate, which rises in ten steps. 4.15: the same with a
flow each way. 4.14: several flows of each client at 2 Gb/s. The paper sets its own links anew for
each point; here the rate is changed beneath flows that go on (`set`), and of each step the last
seven tenths count, in which TCP has followed.

A rate is that of IP packets, by the counters of the run. The paper's margin of error is read as
that of a mean at 95 %: 1.96 standard errors of the flows' rates, in parts of their mean.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Sequence

from bench.errors import BenchError
from bench.papers.context import EXACT, Context, log
from bench.papers.rows import ABSOLUTE, BELOW, RELATIVE, VIRTUAL, fold, goal, row
from bench.tables import Record, rate_text
from tests.runs.delivered import Delivered, Ends
from tests.runs.runlog import RunLog

TRUNK_BPS = 4_770_000_000
WITHIN = 0.005
FLAT_MS = 0.05
MARGIN = 0.07
STEPS = 10
# By what a step adds, in kb/s: how long it lasts. A hundred kb/s are eight packets a second.
SECONDS = {100: 10, 1000: 4, 10_000: 4, 500_000: 1}
STREAMS = (1, 2, 5, 10, 20)
STREAMS_BPS = 2_000_000_000
_STREAM_S, _JOINED_S = 4, 1
_SETTLED = 0.3  # of a step, until TCP has followed
_FLOW = "iperf3 -c server -4 -p 520{} -C cubic -t 1000{}"
_PINGS = "tprobe rtt server -4 --mode icmp --count 100000 --interval 20ms --each"
_PAPER_RTT = {2: "3.6 ms, flat", 5: "6.6 ms, flat"}
_BOTH_WAYS = (
    "TCP both ways, not the links: acknowledgements wait behind the other flow's data, in queues "
    "of 50 ms and 30 KB at least, and windows are small for that after a loss; paced UDP fills both"
)
_SATURATED = "saturates at 2.3 Gb/s each"


def measure(context: Context) -> list[Record]:
    rows: list[Record] = []
    for place in context.places(EXACT, VIRTUAL):
        for delay_ms in _PAPER_RTT:
            with context.attempt(rows, f"Fig. 4.12, {delay_ms} ms", place):
                rows.append(_round_trips(context, place, delay_ms))
        for figure, both_ways in (("4.13", False), ("4.15", True)):
            for unit_kbps in (1000,) if context.quick else SECONDS:
                with context.attempt(rows, f"Fig. {figure}, {_rates(unit_kbps)}", place):
                    rows += _rising(context, place, figure, unit_kbps, both_ways=both_ways)
        for streams in (1, 5) if context.quick else STREAMS:
            with context.attempt(rows, f"Fig. 4.14, {streams} streams", place):
                rows += _streams(context, place, streams)
    return fold(rows, EXACT)


def _rates(unit_kbps: int) -> str:
    """The steps, for people."""
    return f"{rate_text(unit_kbps * 1000)} to {rate_text(STEPS * unit_kbps * 1000)}"


# --- Fig. 4.12 ----------------------------------------------------------------------------------


def _round_trips(context: Context, place: str, delay_ms: int) -> Record:
    """The step whose mean is farthest from what was set."""
    seconds = 2 if context.quick else 3
    values = {
        "two": f'"{_PINGS}"',
        "of_two": f'"latency={delay_ms}ms"',
        "unit": 10_000,
        "seconds": seconds,
    }
    run = context.run(context.scene("trunk", **values), place)
    probes = RunLog(run).probes("two.0")
    begins = [_JOINED_S + step * seconds for step in range(STEPS + 2)]
    means = [
        _mean([one.rtt_ms for one in probes if low <= one.sent_s < high])
        for low, high in itertools.pairwise(begins)
    ]
    farthest = max(means, key=lambda mean: abs(mean - delay_ms))
    return row(
        f"Fig. 4.12: round trip over {delay_ms} ms beside 1 to 100 Mb/s, the farthest step",
        place,
        "ms",
        farthest,
        float(delay_ms),
        goal=goal(ABSOLUTE, FLAT_MS),
        paper=_PAPER_RTT[delay_ms],
        why=context.why(run),
        steps_ms=means,
    )


def _mean(found: Sequence[float | None]) -> float:
    """BenchError where round trips are missing: nothing is lost on these links."""
    came = [one for one in found if one is not None]
    if not came or len(came) < 0.99 * len(found):
        raise BenchError(f"{len(came)} of {len(found)} round trips came back")
    return statistics.fmean(came)


# --- Figs 4.13 and 4.15 -------------------------------------------------------------------------


def _rising(
    context: Context, place: str, figure: str, unit_kbps: int, *, both_ways: bool
) -> list[Record]:
    """The flow that is farthest from its link's rate, and what a full trunk carries."""
    seconds = SECONDS[unit_kbps]
    link = f'"latency=1ms rate={unit_kbps}Kb tags=rising"'
    more = " --bidir" if both_ways else ""
    flows = {"one": f'"{_FLOW.format(1, more)}"', "two": f'"{_FLOW.format(2, more)}"'}
    values = {"of_one": link, "of_two": link, "unit": unit_kbps, "seconds": seconds}
    run = context.run(context.scene("trunk", **flows, **values), place)
    delivered, why = Delivered(run), context.why(run) or _BOTH_WAYS * both_ways
    there: list[Ends] = [("one.0", "server.0"), ("two.0", "server.0")]
    ways = [there, [ends[::-1] for ends in there]] if both_ways else [there]
    free: list[tuple[float, int]] = []  # part of the rate, and which
    full: list[float] = []  # b/s of both clients, in one direction
    for step in range(1, STEPS + 1):
        rate_bps = step * unit_kbps * 1000
        low = _JOINED_S + (step + _SETTLED) * seconds
        high = _JOINED_S + (step + 1) * seconds
        for pair in ways:
            got = [delivered.slope_bps(ends, low, high) for ends in pair]
            if 2 * rate_bps <= TRUNK_BPS:
                free += [(one / rate_bps, rate_bps) for one in got]
            else:
                full.append(sum(got))
    part, rate_bps = max(free, key=lambda one: abs(one[0] - 1))
    last_bps = max(rate for _, rate in free)
    what = f"Fig. {figure}: {rate_text(unit_kbps * 1000)} to {rate_text(last_bps)}"
    near = goal(RELATIVE, WITHIN)
    shown = f"{part:.4f} at {rate_text(rate_bps)}"
    what += " of each client, the flow farthest from its rate"
    rows = [row(what, place, "", part, 1.0, goal=near, paper="as set", shown=shown, why=why)]
    if full:
        farthest = max(full, key=lambda one: abs(one - TRUNK_BPS))
        what = f"Fig. {figure}: more than the trunk has, both clients, the farthest step"
        rows.append(row(what, place, "b/s", farthest, TRUNK_BPS, goal=near, paper=_SATURATED,
                        why=why))  # fmt: skip
    return rows


# --- Fig. 4.14 ----------------------------------------------------------------------------------


def _streams(context: Context, place: str, streams: int) -> list[Record]:
    """What each client's flows get together, and how far single ones are from their share."""
    source = context.scene("streams", streams=streams, seconds=_STREAM_S)
    run = context.run(source, place)
    delivered, why = Delivered(run), context.why(run)
    low, high = _JOINED_S + 2, _JOINED_S + 1 + _STREAM_S - 0.2
    clients = [f"client.{n}" for n in (0, 1)]
    got = [delivered.slope_bps((client, "server.0"), low, high) for client in clients]
    farthest = max(got, key=lambda one: abs(one - STREAMS_BPS))
    what = f"Fig. 4.14: {streams} streams of each client"
    near = goal(RELATIVE, WITHIN)
    rows = [
        row(f"{what}, the client farthest from 2 Gb/s", place, "b/s", farthest, STREAMS_BPS,
            goal=near, paper="2 Gb/s", why=why)
    ]  # fmt: skip
    if streams > 1:
        rates = [rate for client in clients for rate in stream_rates(log(run, client))]
        rows.append(row(f"{what}, margin of error of a stream", place, "%", 100 * margin(rates),
                        None, goal=goal(BELOW, 100 * MARGIN), paper="5 to 10 %, at most 7 %",
                        why=why))  # fmt: skip
    return rows


def stream_rates(text: str) -> list[float]:
    """Of each flow of `iperf3 -P --json`, as its receiver has counted."""
    try:
        found = json.loads(text[text.index("{") :])["end"]["streams"]
        return [float(one["receiver"]["bits_per_second"]) for one in found]
    except (ValueError, KeyError) as error:
        raise BenchError(f"iperf3 said no streams: {text.strip()[-200:]}") from error


def margin(rates: Sequence[float]) -> float:
    """Of the mean of a sample at 95 %, in parts of it."""
    error = statistics.stdev(rates) / math.sqrt(len(rates))
    return 1.96 * error / statistics.fmean(rates)
