"""Figs 8 (examples/dynamics.tdl, steps at half the length) and 10 of the Thunderstorm paper: one
TCP flow while links come and go, and a copy beside background traffic.

Levels of a step are the median of half seconds in its second half, from the run's counters; how
soon is when the counters show 90 % (or, where the rate falls, no more than 110 %) of the new rate.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench import ROOT
from bench.errors import BenchError
from bench.papers.context import EXACT, SCENES, Context, log
from bench.papers.flows import KERNEL, note_default
from bench.papers.rows import BELOW, RELATIVE, TOLD, VIRTUAL, fold, goal, row
from bench.papers.theory import copy_seconds
from bench.tables import Record, rate_text
from compiler.plan.reader import read_plan
from tests.runs.delivered import Delivered
from tests.runs.runlog import Planned, Stretch

ENDS = ("c1.0", "sv1.0")
WITHIN = 0.01
SOON_S = 2.0  # TCP opens its window for 1 Gb/s, or repairs a loss at 10 Mb/s
_WINDOW_S = 0.6  # of counters of 100 ms
COPY_BYTES = 1_250_000_000
BACKGROUND_MBPS = (0, 100, 200)


def figure_8(context: Context) -> list[Record]:
    rows: list[Record] = []
    source = context.folder / "dynamics.tdl"
    source.write_text(with_cubic((ROOT / "examples" / source.name).read_text()))
    for place in context.places(EXACT, VIRTUAL):
        with context.attempt(rows, "all steps", place):
            run = context.run(source, place)
            delivered = Delivered(run)
            planned = Planned(read_plan(run / "plan"), *ENDS).within(1.0, 40.0)
            for before, step in _pairs([one for one in planned if one.reachable]):
                rows += _step(delivered, before, step, place, context.why(run))
    return fold(rows, EXACT)


def with_cubic(text: str) -> str:
    """The example with the congestion control that both kernels have: it sends with the machine's,
    and BBR does not find from 1 Gb/s to 10 Mb/s within a step. BenchError if it has changed."""
    client = "iperf3 -c sv1.0 "
    if text.count(f'"{client}') != 1:
        raise BenchError("examples/dynamics.tdl has another client")
    return text.replace(f'"{client}', f'"{client}-C cubic ')


def _pairs(steps: Sequence[Stretch]) -> list[tuple[float, Stretch]]:
    """Each step with the rate before it; the flow begins in the first."""
    return list(zip([0.0, *(float(one.rate_bps) for one in steps)], steps, strict=False))


def _step(
    delivered: Delivered, before: float, step: Stretch, place: str, reason: str
) -> list[Record]:
    name = f"from {step.start_s:g} s, {rate_text(step.rate_bps)}"
    end = min(step.end_s, 38.5)  # iperf3 ends
    level = delivered.median_bps(ENDS, (step.start_s + end) / 2, end)
    rows = [
        row(
            f"{name}: level",
            place,
            "b/s",
            level,
            float(step.rate_bps),
            goal=goal(RELATIVE, WITHIN),
            paper="follows the topology",
            why=reason,
        )
    ]
    if step.start_s > 1:
        took = soon(delivered, step, before > step.rate_bps)
        rows.append(
            row(
                f"{name}: reached after",
                place,
                "s",
                took,
                None,
                goal=goal(BELOW, SOON_S),
                paper="at once, with TCP's slow start",
                why=reason,
            )
        )
    return rows


def soon(delivered: Delivered, step: Stretch, falls: bool) -> float:
    """Seconds from a change until the first window with the new rate, to its begin; the whole step
    where there is none."""
    at = step.start_s
    while at + _WINDOW_S <= step.end_s:
        part = delivered.mean_bps(ENDS, at, at + _WINDOW_S) / step.rate_bps
        if (falls and part <= 1.1) or (not falls and part >= 0.9):
            return round(at - step.start_s, 3)
        at += 0.05
    return step.end_s - step.start_s


def figure_10(context: Context) -> list[Record]:
    """Wanted is theory: the file through what the background leaves. The kernel has real traffic
    in the background, of datagrams, as the paper's bare metal has."""
    size = COPY_BYTES // (10 if context.quick else 1)
    rows: list[Record] = []
    note_default(context)
    for mbps in BACKGROUND_MBPS[1:2] if context.quick else BACKGROUND_MBPS:
        peer = _kernel_copy(context, size, mbps)
        source = context.scene("copy", bytes=size, taken=f"{mbps}Mb" if mbps else "0")
        for place in context.places(EXACT, VIRTUAL):
            what = f"copy beside {mbps} Mb/s"
            with context.attempt(rows, what, place):
                run = context.run(source, place)
                made = row(
                    what,
                    place,
                    "s",
                    seconds_of(log(run, "client.0")),
                    copy_seconds(size, 1e9, mbps * 1e6),
                    why=context.why(run),
                    goal=goal(TOLD if context.quick else RELATIVE, WITHIN),
                    paper="within 1 % of bare metal",
                    peers=peer if place == EXACT else {},
                )
                rows.append(made)
    context.cannot["scp and 22 GB"] = "the copy is over HTTP, of 1.25 GB, so that it takes 10 s"
    return fold(rows, EXACT)


def _kernel_copy(context: Context, size: int, mbps: int) -> dict[str, float]:
    """The copy from end 0 to end 1, the datagrams from end 2 to end 1."""
    curl = "curl --silent --output /dev/null --write-out %{{time_total}} http://{0}:8080/data"
    # iperf3 counts payload: 1,472 bytes of a packet of 1,500.
    offered = round(mbps * 1e6 * 1472 / 1500)
    programs = [
        {"end": 0, "argv": [str(SCENES / "web.sh"), str(size)], "at_s": 0, "serves": True},
        {"end": 1, "argv": ["iperf3", "-s", "-4"], "at_s": 0, "serves": True},
        {"end": 1, "argv": curl.split(), "at_s": 1.5},
    ]
    if mbps:
        argv = f"iperf3 -c {{1}} -4 -u -l 1472 -b {offered} -t 60"
        flow = {"end": 2, "argv": argv.split(), "at_s": 1, "serves": True}
        programs.insert(2, flow)
    task = {"ends": 3, "links": [[end, 10**9, ""] for end in range(3)], "programs": programs}
    took = context.peer(KERNEL, task, lambda said: seconds_of(said[-1]))
    return {} if took is None else {"kernel": took}


def seconds_of(text: str) -> float:
    """What curl says at its end. BenchError if it had no success."""
    try:
        return float(text.split()[-1])
    except (IndexError, ValueError) as error:
        raise BenchError(f"curl said no time: {text.strip()[-200:]}") from error
