"""Table 2 of the Kollaps paper (128 kb/s to 4 Gb/s) and Table 4.1 of the link emulator's (1 to 100
Mb/s): what a TCP flow of iperf3 gets of one link.

The papers give goodput as a part of the declared rate, headers not taken off. Here every figure is
the rate of IP packets, which is what a rate declares: of ours the counters of the run, as a
straight line through their samples after the first 2 s. iperf3's receiver counts whole blocks and
waits for its queue at the end, 1 % of 5 s at 128 Mb/s; its figure is in the JSON. Of peers it is
the figure from 10 Mb/s on, times 1500/1448, below that what the receiver's TCP has counted (ss). Of
the papers' figures the table has both, as printed and corrected in the same way. htb and tbf count
Ethernet's header, too, and get so much more; Mininet has no word for that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.papers.context import EXACT, HOSTS, ROOTLESS, Context, log
from bench.papers.kernel import MININET
from bench.papers.mininet_ends import MOST_BPS
from bench.papers.rows import RELATIVE, VIRTUAL, fold, goal, row
from bench.papers.said import iperf3_bps, received_bps
from bench.papers.theory import PAYLOAD, ethernet_bps
from bench.tables import Record, rate_text
from tests.runs.delivered import Delivered, Ends

WITHIN = 0.003
BY_COUNTERS_BPS = 10_000_000
OMIT_S = 2  # TCP opens its window
_JOINED_S = 1
_KB, _MB, _GB = 1000, 1_000_000, 1_000_000_000
# Of Table 2: declared b/s -> what the paper measured.
TABLE_2 = {
    128 * _KB: 122 * _KB,
    256 * _KB: 245 * _KB,
    512 * _KB: 490 * _KB,
    128 * _MB: 122 * _MB,
    256 * _MB: 245 * _MB,
    512 * _MB: 487 * _MB,
    1 * _GB: 954 * _MB,
    2 * _GB: 1910 * _MB,
    4 * _GB: 3790 * _MB,
}
TABLE_41 = {
    1: 0.96, 5: 4.78, 10: 9.56, 20: 19.1, 30: 28.7, 40: 38.2, 50: 47.8, 60: 57.4, 70: 66.9,
    80: 76.4, 90: 86.0, 100: 93.7,
}  # fmt: skip
# BBR where the datapaths differ only, since each run takes its seconds.
PLACES = {"cubic": (EXACT, HOSTS, ROOTLESS, VIRTUAL), "bbr": (EXACT, HOSTS)}
PEERS = ("htb", "tbf", MININET)
PEERS_NOT_MEASURED = {
    "mahimahi": "Debian has no package of it",
    "Mininet beyond 1 Gb/s": (
        "its links have no more; its delays need netem, which this kernel lacks"
    ),
    "peers with bbr": "their qdiscs do to it what they do to cubic; each run takes its seconds",
    "trickle": "it preloads a library into one program, and has no link that others could share",
}
_COUNT = "while :; do date +%s.%N; ss -Htin sport = :5201; sleep 0.1; done"
_QUICK = (512 * _KB, 128 * _MB)


def printed(declared_bps: float, measured_bps: float) -> str:
    """The paper's figure: as printed, and as a rate of IP packets."""
    of_ip = measured_bps / PAYLOAD / declared_bps - 1
    return (
        f"{rate_text(round(measured_bps))}, {(measured_bps / declared_bps - 1) * 100:+.1f} %; "
        f"of IP {of_ip * 100:+.1f} %"
    )


def table_2(context: Context) -> list[Record]:
    """Every rate with cubic and BBR in each place; with cubic, peers beside it. The low rates take
    longest, so they are measured at once."""
    slow = () if context.quick else tuple(rate for rate in TABLE_2 if rate < _MB)
    fast = _QUICK if context.quick else tuple(rate for rate in TABLE_2 if rate not in slow)
    rows: list[Record] = []
    for rates_bps in (slow, *((rate,) for rate in fast)):
        for control, places in PLACES.items():
            found = _peers(context, rates_bps) if control == "cubic" else {}
            for place in context.places(*places):
                for made in _attempted(context, rows, place, rates_bps, control):
                    peers = found.get(made["what"], {}) if place == EXACT else {}
                    rows.append({**made, "peers": peers})
    context.cannot |= PEERS_NOT_MEASURED
    return fold(rows, EXACT)


def _attempted(
    context: Context, rows: list[Record], place: str, rates_bps: Sequence[int], control: str
) -> list[Record]:
    """The rows of one run; what fails goes to `rows`."""
    made: list[Record] = []
    if len(rates_bps) == 1:
        [rate_bps] = rates_bps
        with context.attempt(rows, name(rate_bps, control), place):
            paper = printed(rate_bps, TABLE_2[rate_bps])
            made.append(one(context, place, rate_bps, control, paper))
    elif rates_bps:
        with context.attempt(rows, f"low rates, {control}", place):
            made += together(context, place, rates_bps, control)
    return made


def table_41(context: Context) -> list[Record]:
    """The window of 85 KB as there (of the receiver's buffer)."""
    rows: list[Record] = []
    for mbps in (10,) if context.quick else tuple(TABLE_41):
        rate_bps, paper = mbps * _MB, printed(mbps * _MB, TABLE_41[mbps] * 1e6)
        for place in context.places(EXACT):
            with context.attempt(rows, name(rate_bps, "cubic"), place):
                rows.append(one(context, place, rate_bps, "cubic", paper, "-w 85K", shorter=True))
    return rows


def name(rate_bps: int, control: str) -> str:
    """Of a row."""
    return f"{rate_text(rate_bps)}, {control}"


def _seconds(rate_bps: int, quick: bool, shorter: bool = False) -> int:
    if quick:
        return 4
    return 12 if rate_bps < _MB else 4 if shorter else 5


def one(
    context: Context,
    place: str,
    rate_bps: int,
    control: str,
    paper: str,
    more: str = "",
    *,
    shorter: bool = False,
) -> Record:
    """A row for one rate in one place."""
    seconds = _seconds(rate_bps, context.quick, shorter)
    values = {"rate": f"{rate_bps // 1000}Kb", "cc": control, "seconds": seconds}
    source = context.scene("rates", **values, more=f'"-O {OMIT_S} {more}"')
    run = context.run(source, place)
    ends = ("client.0", "server.0")
    return _row(run, ends, place, rate_bps, control, seconds, paper, context.why(run))


def together(context: Context, place: str, rates_bps: Sequence[int], control: str) -> list[Record]:
    """A row for each of the rates of slow.tdl, in its order."""
    seconds = _seconds(rates_bps[0], context.quick)
    source = context.scene("slow", cc=control, seconds=seconds, more=f'"-O {OMIT_S}"')
    run = context.run(source, place)
    return [
        _row(
            run,
            (f"client.{n}", f"server.{n}"),
            place,
            rate_bps,
            control,
            seconds,
            printed(rate_bps, TABLE_2[rate_bps]),
            context.why(run),
        )
        for n, rate_bps in enumerate(rates_bps)
    ]


def _row(
    run: Path,
    ends: Ends,
    place: str,
    rate_bps: int,
    control: str,
    seconds: int,
    paper: str,
    why: str,
) -> Record:
    said = log(run, ends[0])
    retransmits = _retransmits(said)
    low = _JOINED_S + OMIT_S
    return row(
        name(rate_bps, control),
        place,
        "b/s",
        Delivered(run).slope_bps(ends, low, low + seconds - 0.5),
        rate_bps,
        goal=goal(RELATIVE, WITHIN),
        paper=paper,
        iperf3_bps=iperf3_bps(said) / PAYLOAD,
        why=why or (f"TCP sent {retransmits} packets again" if retransmits else ""),
        retransmits=retransmits,
    )


def _retransmits(text: str) -> int | None:
    try:
        return int(json.loads(text[text.index("{") :])["end"]["sum_sent"]["retransmits"])
    except (ValueError, KeyError):
        return None


def _peers(context: Context, rates_bps: Sequence[int]) -> dict[str, dict[str, float]]:
    """By a row's name: rates of IP packets through htb, tbf and Mininet's link, between two
    namespaces, with cubic. Several rates are low ones, and measured at once."""
    if not rates_bps:
        return {}
    found: dict[str, dict[str, float]] = {name(rate, "cubic"): {} for rate in rates_bps}
    for kind in PEERS:
        todo = [rate for rate in rates_bps if kind != MININET or rate <= MOST_BPS]
        with ThreadPoolExecutor(max_workers=len(rates_bps)) as pool:
            rates = list(pool.map(lambda rate, kind=kind: _peer(context, kind, rate), todo))
        for rate_bps, payload_bps in zip(todo, rates, strict=True):
            if payload_bps is not None:
                found[name(rate_bps, "cubic")][kind] = payload_bps / PAYLOAD
    return found


def _peer(context: Context, kind: str, rate_bps: int) -> float | None:
    seconds = _seconds(rate_bps, context.quick)
    task = shaped(kind, rate_bps, "cubic", seconds)
    return context.peer(kind, task, lambda said: _peers_rate(said, rate_bps, seconds))


def _peers_rate(said: list[str], rate_bps: int, seconds: int) -> float:
    """Of the task's programs."""
    if rate_bps < BY_COUNTERS_BPS:
        return received_bps(said[2], OMIT_S, seconds)
    return iperf3_bps(said[1])


def shaped(kind: str, rate_bps: int, control: str, seconds: int) -> Record:
    """A task for kernel.py: one flow through a qdisc between two ends. At low rates the receiver's
    counters are written all the time, and nobody waits until a long queue is empty."""
    client = f"iperf3 -c {{1}} -4 -C {control} -t {seconds} -O {OMIT_S} --json"
    server = {"end": 1, "argv": ["iperf3", "-s", "-4"], "at_s": 0, "serves": True}
    sender: Record = {"end": 0, "argv": client.split(), "at_s": 0.5}
    programs = [server, sender]
    if rate_bps < BY_COUNTERS_BPS:
        sender["for_s"] = OMIT_S + seconds + 0.5
        programs.append({"end": 1, "argv": ["sh", "-c", _COUNT], "at_s": 0.4, "serves": True})
    declared = rate_bps if kind == MININET else ethernet_bps(rate_bps)
    return {"between": [kind, declared], "programs": programs}
