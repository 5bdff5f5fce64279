"""The phases of examples/demo.tdl: what was planned in each, what was measured, and is it far off?

The bounds are wide: no figure of a healthy run comes near them, on a busy machine either. They tell
a network that does what was planned from one that does not; how exact it is, `make bench` measures.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from compiler.plan.reader import Plan, read_plan
from tests.runs.runlog import NS_PER_S, Planned, Probe, RunLog

PEERS = tuple(f"peer.{index}" for index in range(5))

# A probe counts when nothing changes from this long before it is sent until this long after it is
# answered: a packet under way during a change belongs to neither side.
CLEAR_S = 0.06
START_S = 0.5  # programs start in this time
SETTLE_S = 2.0  # TCP needs this long to fill a changed path, or to find it again
RTT_SLACK_MS, RTT_SLACK_SHARE = 3.0, 0.05
RATE_SLACK_SHARE = 0.15
ANSWER_SLACK = 0.05

HEAD: tuple[str, ...] = (
    *("phase", "time", "RTT: planned", "measured", "answered: planned", "measured"),
    *("rate: planned", "measured", "peers: planned", "measured"),
)


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of demo.tdl under a name. `rate`: a stream can settle in it."""

    name: str
    start_s: float
    end_s: float
    rate: bool = True


PHASES = (
    Phase("as declared", 0, 5),
    Phase("latency: edge--north 20 ms", 5, 10),
    Phase("failure: north--core down", 10, 15),
    Phase("flap: server--core", 15, 20, rate=False),
    Phase("rate: streamer--edge 8 Mb/s", 20, 25),
    Phase("churn: 60 % of the peers", 25, 33),
    Phase("partition: edge; core", 33, 38),
    Phase("healed", 38, 43),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One phase as text; `wrong` says what is far off."""

    cells: tuple[str, ...]
    wrong: tuple[str, ...]


def judge(directory: Path) -> list[Row]:
    """A row for each phase of a finished run of demo.tdl."""
    plan, log = read_plan(directory / "plan"), RunLog(directory)
    pings = Planned(plan, "pinger.0", "server.0")
    stream = Planned(plan, "streamer.0", "server.0")
    rows: list[Row] = []
    for phase in PHASES:
        wrong: list[str] = []
        cells = (
            *(phase.name, f"{phase.start_s:g}-{phase.end_s:g} s"),
            *_round_trips(phase, log.probes("pinger.0"), pings, wrong),
            *_rate(phase, log, stream, wrong),
            *_peers(phase, log, plan, wrong),
        )
        rows.append(Row(cells, tuple(wrong)))
    return rows


def _clear(probe: Probe, planned: Planned) -> bool:
    stretch = planned.at(probe.sent_s)
    end = probe.sent_s + stretch.rtt_ms / 1e3 + CLEAR_S
    return (stretch.start_s == 0 or probe.sent_s - CLEAR_S >= stretch.start_s) and (
        end <= stretch.end_s
    )


def _round_trips(
    phase: Phase, probes: Iterable[Probe], planned: Planned, wrong: list[str]
) -> tuple[str, ...]:
    start = max(phase.start_s, START_S)
    inside = [p for p in probes if start <= p.sent_s < phase.end_s and _clear(p, planned)]
    if not inside:
        wrong.append("no probe was sent")
        return ("–", "–", "–", "–")
    reachable = [p for p in inside if planned.at(p.sent_s).reachable]
    answered = [p.rtt_ms for p in inside if p.rtt_ms is not None]
    late = [p for p in inside if p.rtt_ms is not None and not planned.at(p.sent_s).reachable]
    if late:
        wrong.append(f"{len(late)} probes were answered while there was no path")
    share, got = len(reachable) / len(inside), len(answered) / len(inside)
    if abs(share - got) > ANSWER_SLACK:
        wrong.append(f"{got:.0%} of the probes were answered instead of {share:.0%}")
    want_ms = statistics.median(planned.at(p.sent_s).rtt_ms for p in reachable) if reachable else 0
    have_ms = statistics.median(answered) if answered else 0
    if reachable and abs(have_ms - want_ms) > RTT_SLACK_MS + want_ms * RTT_SLACK_SHARE:
        wrong.append(f"the round trip took {have_ms:.2f} ms instead of {want_ms:.2f} ms")
    return (
        f"{want_ms:.2f} ms" if reachable else "–",
        f"{have_ms:.2f} ms" if answered else "–",
        f"{share:.0%}",
        f"{got:.0%}",
    )


def _rate(phase: Phase, log: RunLog, planned: Planned, wrong: list[str]) -> tuple[str, str]:
    if not phase.rate:
        return ("–", "–")
    want = planned.at(phase.end_s - 0.001)
    start = phase.start_s + SETTLE_S
    found = [
        interval
        for interval in log.intervals("streamer.0")
        if interval.start_s >= start and interval.end_s <= phase.end_s
    ]
    seconds = sum(interval.end_s - interval.start_s for interval in found)
    if seconds <= 0:
        wrong.append("the stream reported nothing")
        return (f"{want.rate_bps / 1e6:.2f} Mb/s", "–")
    have_bps = sum(i.ip_bps * (i.end_s - i.start_s) for i in found) / seconds
    want_bps = want.rate_bps if want.reachable else 0
    if abs(have_bps - want_bps) > want_bps * RATE_SLACK_SHARE:
        wrong.append(f"the stream got {have_bps / 1e6:.2f} Mb/s instead of {want_bps / 1e6:.2f}")
    return (f"{want_bps / 1e6:.2f} Mb/s", f"{have_bps / 1e6:.2f} Mb/s")


def _peers(phase: Phase, log: RunLog, plan: Plan, wrong: list[str]) -> tuple[str, str]:
    """How many peers are joined, and how many sent probes, in the phase's last second."""
    names = [node.name for node in plan.topology.nodes]
    state = plan.state_at(int(phase.end_s * NS_PER_S) - 1)
    want = sum(state.nodes[names.index(peer)] == "up" for peer in PEERS)
    have = 0
    for peer in PEERS:
        sent = [probe.sent_s for probe in log.probes(peer)]
        have += any(phase.end_s - 1.0 <= at_s <= phase.end_s - 0.2 for at_s in sent)
    if want != have:
        wrong.append(f"{have} peers are alive instead of {want}")
    return (str(want), str(have))


def table(rows: Sequence[Row]) -> str:
    """The rows under HEAD, in columns."""
    lines = [HEAD, *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    text = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
    text.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in text)
