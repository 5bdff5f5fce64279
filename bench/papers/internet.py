"""Modeling and Emulation of Internet Paths: its Table 2, its Figures 5, 6, 8 and 9, with measured
paths (docs/tdl.md) and, where the paper has it, the link that others would write instead.

The paper ran Linux 2.6.12, whose windows of 128,000 bytes hold 96,000 bytes of payload; today's
flows are given as much (TCP_WINDOW_CLAMP), and the derivation 128,000, as there. It prints payload
over 60 s: the first queue passes at the capacity, and headers are 3.5 %. So a rate of ours is that
of IP packets after the first 5 s, against what is available; the paper's errors are beside those of
payload. Figures whose paths the paper does not print are made by a seeded generator.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.papers.context import EXACT, SCENES, Context, log
from bench.papers.rows import ABSOLUTE, HOLDS, LEAST, MOST, RELATIVE, VIRTUAL, goal, row
from bench.tables import Record
from compiler.path_queues import PathProblem, derive
from compiler.plan.parts import necks
from compiler.plan.reader import read_plan
from tdl.ast import PathTerms
from tests.runs.delivered import Delivered, Ends

SECONDS, OPEN_S, JOINED_S = 60, 5, 1
WINDOW, WMAX = 96_000, 128_000
PAYLOAD, PACKET = 1448, 1500
_KB, _MB, _MS = 1000, 1_000_000, 1_000_000
CAPACITY = 100 * _MB
_LINK_QUEUE_KB = 73  # of the paper's links
UP, DOWN = ("a.0", "b.0"), ("b.0", "a.0")


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of Table 2: available b/s up and down, delay of one direction in ms, queue in bytes;
    the paper's errors of the path and of the link, up and down, in percent (None: not printed)."""

    up_kbps: int
    down_kbps: int
    delay_ms: int
    queue_kb: int
    path: tuple[float, float]
    link: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        return f"{self.up_kbps} and {self.down_kbps} kb/s, {self.delay_ms} ms"

    @property
    def bad(self) -> bool:
        """Its queues are twice what the paper's equation allows."""
        return self.link is None


TABLE_2 = (
    Measured(2251, 2202, 64, 957, (2.1, 1.8), (8.0, 7.2)),
    Measured(4061, 2838, 29, 957, (5.8, 4.6), (31.7, 8.4)),
    Measured(6436, 2579, 12, 844, (4.1, 5.0), (50.6, 8.5)),
    Measured(25892, 17207, 4, 197, (10.2, 9.1), (20.4, 12.5)),
    Measured(8000, 8000, 45, 237, (6.3, 7.2), (22.0, 22.4)),
    Measured(12000, 12000, 30, 158, (6.5, 6.6), (21.5, 21.6)),
    Measured(10000, 3000, 30, 265, (8.5, 10.3), (66.5, 9.8)),
    Measured(25892, 17207, 4, 390, (18.8, 7.5)),
    Measured(10000, 3000, 30, 488, (23.6, 7.7)),
)


_OF_LINKS = "the paper does not say how long the queues of its links were"
_OF_TCP = "the paper's TCP is BIC of Linux 2.6.12, this one cubic of today"


def table_2(context: Context) -> list[Record]:
    rows: list[Record] = []
    for one in TABLE_2[2:4] if context.quick else TABLE_2:
        for place in context.places(EXACT, VIRTUAL):
            with context.attempt(rows, one.name, place):
                rows += _table_2_row(context, one, place)
    return rows


def _table_2_row(context: Context, one: Measured, place: str) -> list[Record]:
    run = both_ways(context, place, _path(one))
    rates = [_rate(run, ends) for ends in (UP, DOWN)]
    errors = [_payload_error(run, ends, one) for ends in (UP, DOWN)]
    if one.bad:
        holds = 1 - rates[0] / _kbps(one)[0] >= 0.08 and abs(1 - rates[1] / _kbps(one)[1]) <= 0.02
        shown = f"{errors[0]:.1f} and {errors[1]:.1f} %"
        paper = f"{one.path[0]} and {one.path[1]} %"
        what = f"{one.name}: queues of {one.queue_kb} KB are too long"
        return [row(what, place, "", int(holds), None, goal=goal(HOLDS), shown=shown, paper=paper)]
    within = goal(RELATIVE, 0.01 if place == VIRTUAL else 0.03)
    rows = [
        row(f"{one.name}: {way}", place, "b/s", rate, wanted, goal=within)
        for way, rate, wanted in zip(("up", "down"), rates, _kbps(one), strict=True)
    ]
    for way, error, printed in zip(("up", "down"), errors, one.path, strict=True):
        what = f"{one.name}: what payload {way} lacks over {SECONDS} s"
        rows.append(row(what, place, "%", error, printed, goal=goal(ABSOLUTE, 5), why=_OF_TCP))
    return [*rows, _link_row(context, one, place)]


def _link_row(context: Context, one: Measured, place: str) -> Record:
    """The same as a link of that rate and the usual queue, up."""
    assert one.link is not None
    run = both_ways(context, place, _link(one))
    error, what = _payload_error(run, UP, one), f"{one.name}: a link of that rate, up"
    least = goal(LEAST, 1 - 20 / one.link[0]) if one.link[0] > 20 else goal(ABSOLUTE, 5)
    return row(what, place, "%", error, one.link[0], goal=least, why=_OF_LINKS)


def _kbps(one: Measured) -> tuple[int, int]:
    return one.up_kbps * _KB, one.down_kbps * _KB


def _path(one: Measured) -> str:
    return (
        f"path a--b abw-up={one.up_kbps}Kb abw-down={one.down_kbps}Kb rtt={2 * one.delay_ms}ms"
        f" wmax={WMAX}B queue={one.queue_kb}KB"
    )


def _link(one: Measured) -> str:
    return (
        f"link a--b up={one.up_kbps}Kb down={one.down_kbps}Kb latency={one.delay_ms}ms"
        f" queue={_LINK_QUEUE_KB}KB"
    )


def both_ways(context: Context, place: str, network: str, seconds: int = SECONDS) -> Path:
    """The run of a flow each way between a.0 and b.0."""
    flow = f"1 {_shorter(context, seconds)} {WINDOW}"
    text = (
        f"network ipv4\nquit when all exit\n"
        f'service a files=stream.py exec="./stream.py b.0 {flow}"\n'
        f'service b files=stream.py exec="./stream.py a.0 {flow}"\n{network}\nat 1h quit\n'
    )
    return _run(context, place, text)


def _shorter(context: Context, seconds: int) -> int:
    return 12 if context.quick else seconds


def _run(context: Context, place: str, text: str) -> Path:
    stream = context.folder / "stream.py"
    stream.write_bytes((SCENES / "stream.py").read_bytes())
    stream.chmod(0o755)
    source = context.folder / "internet.tdl"
    source.write_text(text)
    return context.run(source, place, "--no-probes")


def _rate(run: Path, ends: Ends) -> float:
    """Of IP packets, once windows are open."""
    last = _said(run, "a.0")["seconds"] + JOINED_S
    return Delivered(run).slope_bps(ends, JOINED_S + OPEN_S, last - 0.5)


def _said(run: Path, instance: str) -> Record:
    """The line of a stream among those of other programs."""
    found: Record = json.loads(
        next(line for line in log(run, instance).splitlines() if line.startswith("{"))
    )
    return found


def _payload_error(run: Path, ends: Ends, one: Measured) -> float:
    """How much the payload of a flow is below what is available, in percent."""
    said = _said(run, ends[1])
    wanted = _kbps(one)[ends == DOWN]
    return 100 * (1 - said["bytes"] * 8 / said["seconds"] / wanted)


# --- Figures 5 and 6 ---------------------------------------------------------------------------

_FIG_5 = "abw-up=409Kb abw-down=4530Kb rtt=50ms queue=32KB"
_FIG_6_MBPS = (6.5, 7, 8, 10, 13, 20, 40, 60, 80, 100)


def figure_5(context: Context) -> list[Record]:
    """One flow up a slow path: the round trip that it makes, and the bandwidth that it gets."""
    rows: list[Record] = []
    kinds = {
        "path": (f"path a--b wmax={WMAX}B {_FIG_5}", 53.2, 1.75),
        "link": ("link a--b up=409Kb down=4530Kb latency=25ms queue=32KB", 629, 60),
    }
    for kind, (network, paper_ms, within_ms) in kinds.items():
        for place in context.places(EXACT, VIRTUAL):
            with context.attempt(rows, f"round trip over the {kind}", place):
                run = _one_way(context, place, network)
                trips = _round_trips_ms(run)
                printed = f"{paper_ms} ms; the real path 53.1 ms"
                what = f"mean round trip of pings beside a flow, {kind}"
                rows.append(
                    row(what, place, "ms", sum(trips) / len(trips), paper_ms,
                        goal=goal(ABSOLUTE, within_ms), paper=printed, why=_OF_TCP)
                )  # fmt: skip
                rows.append(
                    row(f"the flow's rate, {kind}", place, "b/s", _rate(run, UP), 409_000,
                        goal=goal(LEAST, 0.05))
                )  # fmt: skip
                if kind == "path":
                    p99 = sorted(trips)[int(0.99 * len(trips))]
                    what = "99 of 100 round trips, path; equation 1 for the queue of one flow"
                    wanted = 50 + 32_000 * 8 / 1e5
                    rows.append(row(what, place, "ms", p99, wanted, goal=goal(MOST, 0.5)))
    return rows


def _one_way(context: Context, place: str, network: str, seconds: int = 30) -> Path:
    seconds = _shorter(context, seconds)
    flow = f"./stream.py b.0 1 {seconds} {WINDOW}"
    ping = f"ping -i 0.2 -c {5 * (seconds - 9)} b.0"
    text = (
        f"network ipv4\nquit when a;b exit\n"
        f"service a files=stream.py exec=\"sh -c '{flow} & sleep 8; {ping}; wait'\"\n"
        f'service b files=stream.py exec="./stream.py - 0 {seconds} {WINDOW}"\n{network}\n'
        f"at 1h quit\n"
    )
    return _run(context, place, text)


def _round_trips_ms(run: Path) -> list[float]:
    said = log(run, "a.0")
    return [float(found) for found in re.findall(r"time=([\d.]+) ms", said)]


def figure_6(context: Context) -> list[Record]:
    """What a flow each way gets, by the capacity that is assumed: too little below some three times
    what is available, and no matter beyond."""
    rows: list[Record] = []
    one = Measured(6500, 2579, 12, 200, (0, 0))
    capacities = _FIG_6_MBPS[::3] if context.quick else _FIG_6_MBPS
    for place in context.places(EXACT, VIRTUAL):
        with context.attempt(rows, "errors by capacity", place):
            errors = []
            for mbps in capacities:
                run = both_ways(context, place, f"{_path(one)} capacity={int(mbps * 1000)}Kb")
                errors.append(_payload_error(run, UP, one))
            falls = all(after <= before + 0.5 for before, after in itertools.pairwise(errors))
            far = [error for error, mbps in zip(errors, capacities, strict=True) if mbps >= 20]
            shown = " ".join(f"{error:.1f}" for error in errors) + " %"
            what = "error up by capacity, " + " ".join(str(mbps) for mbps in capacities) + " Mb/s"
            holds = falls and errors[0] > 20 and max(far) - min(far) <= 1
            rows.append(row(what, place, "", int(holds), None, goal=goal(HOLDS), shown=shown))
    return rows


# --- Figure 8 ----------------------------------------------------------------------------------

_PATHS, _MOST_FLOWS, _FIG_8_S = 30, 8, 12
_MOST_BPS, _MOST_QUEUE = 78 * _MB, 1_000_000


def figure_8(context: Context) -> list[Record]:
    """Trials of 1 to 8 flows over paths whose available bandwidth grows with them."""
    numbers = (1, 4) if context.quick else range(1, _MOST_FLOWS + 1)
    what = f"trials at {CAPACITY // _MB} Mb/s, queues of at most 1 MB, those within 20 %"
    return _shares(
        context, what, _generated(CAPACITY, cut=True), numbers, (0.20, 80, "80 % within 20 %")
    )


def figure_8_whole(context: Context) -> list[Record]:
    """The same with queues as long as they are derived, at a capacity beside which what is
    available is little. A run takes a quarter of an hour."""
    paths = _generated(1000 * _MB, cut=False)
    return _shares(context, "trials at 1000 Mb/s, those within 5 %", paths, (1, 4), (0.05, 95, "–"))


def _shares(
    context: Context,
    what: str,
    paths: Sequence[_Path],
    numbers: Iterable[int],
    wanted: tuple[float, float, str],
) -> list[Record]:
    """`wanted`: how far off a trial may be, how many of 100 are no further, and what the paper
    has."""
    rows: list[Record] = []
    within, share, paper = wanted
    for place in context.places(VIRTUAL):
        with context.attempt(rows, what, place):
            off = _trials(context, place, paths, numbers)
            good = 100 * sum(one <= within for one in off) / len(off)
            told = f"{len(off)} {what}"
            rows.append(row(told, place, "%", good, share, goal=goal(LEAST, 0), paper=paper))
    return rows


@dataclass(frozen=True, slots=True)
class _Path:
    """`window`: payload of a flow on its way, with whose headers it is what the queues are for; 0:
    the kernel's own, where queues are cut and lose all the same."""

    terms: PathTerms
    window: int
    queues: tuple[int, ...]  # bytes on the way up, by number of flows less one

    def rate(self, flows: int) -> int:
        return self.terms.abw_up[flows - 1][1]

    def seconds(self, flows: int) -> tuple[int, int]:
        """When windows are open and queues are full, and the end. A derived queue of 1 Gb/s takes
        minutes of what is available; meanwhile flows get more than that."""
        if not self.window:
            return OPEN_S, _FIG_8_S
        filled = OPEN_S + math.ceil(2 * 8 * self.queues[flows - 1] / self.rate(flows))
        return filled, filled + SECONDS


def _generated(capacity_bps: int, cut: bool) -> list[_Path]:
    """A(n) = A(1) n^alpha, of paths that are possible."""
    rnd = random.Random(8)
    found: list[_Path] = []
    while len(found) < _PATHS:
        first = 0.5 * (40 / 0.5) ** rnd.random() * _MB
        power, rtt = rnd.uniform(0.2, 0.8), rnd.randint(8, 200) * _MS
        rates = [min(_MOST_BPS, round(first * n**power)) for n in range(1, _MOST_FLOWS + 1)]
        table = tuple((n, bps) for n, bps in enumerate(rates, 1))
        terms = PathTerms(table, table, capacity_bps, None, rtt, None, None)
        try:
            derived = derive(terms)
        except PathProblem:
            continue
        longest = max(max(one.queue_bytes) for one in derived.rows)
        if cut and longest > _MOST_QUEUE:
            terms = terms._replace(queue_up=_MOST_QUEUE, queue_down=_MOST_QUEUE)
        window = 0 if cut else derived.wmax_bytes * PAYLOAD // PACKET
        found.append(_Path(terms, window, tuple(one.queue_bytes[0] for one in derived.rows)))
    return found


def _trials(
    context: Context, place: str, paths: Sequence[_Path], numbers: Iterable[int]
) -> list[float]:
    """How far off each trial is, of so many flows each, as a part of what is available."""
    off = []
    for flows in numbers:
        run = _run(context, place, _many(paths, flows))
        delivered = Delivered(run)
        for number, path in enumerate(paths):
            ends = (f"a{number}.0", f"b{number}.0")
            begin, end = path.seconds(flows)
            got = delivered.mean_bps(ends, JOINED_S + begin, JOINED_S + end - 0.5)
            off.append(abs(got / path.rate(flows) - 1))
    return off


def _many(paths: Sequence[_Path], flows: int) -> str:
    lines = ["network ipv4", "quit when all exit"]
    for number, path in enumerate(paths):
        terms, a, b = path.terms, f"a{number}", f"b{number}"
        table = ";".join(f"{n}:{bps}b" for n, bps in terms.abw_up)
        size = f"{path.seconds(flows)[1]} {path.window}"
        queue = "" if terms.queue_up is None else f" queue={terms.queue_up}B"
        lines += [
            f'service {a} files=stream.py exec="./stream.py {b}.0 {flows} {size}"',
            f'service {b} files=stream.py exec="./stream.py - 0 {size}"',
            f"path {a}--{b} abw-flows={table} rtt={terms.rtt_ns}ns"
            f" capacity={terms.capacity_bps}b{queue}",
        ]
    return "\n".join([*lines, "at 1h quit", ""])


# --- Figure 9 ----------------------------------------------------------------------------------

_SITES, _FIG_9_S = 8, SECONDS
_SHARED = 3  # destinations that a site reaches through its bottleneck
_MOST_SHARED_KB = 957  # where the paper cuts its queues; it fills before rates are counted


def figure_9(context: Context) -> list[Record]:
    """All ordered pairs of sites at once, a flow each: what the flows through each bottleneck get
    together, beside what there is for so many; and what each of them gets where it has a link for
    itself, of what its path has for one flow."""
    rows: list[Record] = []
    sites = 4 if context.quick else _SITES
    between = _between(sites)
    for place in context.places(VIRTUAL):
        with context.attempt(rows, f"bottlenecks of {sites} sites", place):
            shared = [f"bottleneck n{site} queue={_MOST_SHARED_KB}KB" for site in range(sites)]
            paths = [*shared, *map(_Between.path, between)]
            run = _run(context, place, _mesh(sites, paths))
            got = _through_bottlenecks(run)
            off = 100 * max(abs(rate / there_is - 1) for rate, there_is in got)
            what = f"{sites * (sites - 1)} flows between {sites} sites: what those through each"
            what += " bottleneck get together is off what there is, the worst of all"
            rows.append(row(what, place, "%", off, 0, goal=goal(MOST, 3), paper="–"))
            ends = [ends for one in between for ends in one.shared()]
            linked = _run(context, place, _mesh(sites, map(_Between.link, between)))
            rows.append(_beside_links(_rates(run, ends), _rates(linked, ends), place))
    return rows


def _beside_links(paths: Sequence[float], links: Sequence[float], place: str) -> Record:
    """The distributions: "failure to model shared bottlenecks results in higher bandwidth"."""
    lower = sum(path < link for path, link in zip(sorted(paths), sorted(links), strict=True))
    middle, more = statistics.median(paths) / 1e6, statistics.median(links) / 1e6
    shown = f"{middle:.2f} and {more:.2f} Mb/s; less at {lower} of {len(paths)} ranks"
    what = f"the {len(paths)} flows through bottlenecks, median rate over paths and over links"
    what += " of what a path has for one flow; ranks at which paths give less"
    holds = middle < more and sum(paths) < sum(links)
    return row(what, place, "", int(holds), None, goal=goal(HOLDS), shown=shown, paper="less")


def _rates(run: Path, pairs: Iterable[Ends]) -> list[float]:
    delivered = Delivered(run)
    return [
        delivered.mean_bps(pair, JOINED_S + OPEN_S, JOINED_S + _FIG_9_S - 0.5) for pair in pairs
    ]


def _through_bottlenecks(run: Path) -> list[tuple[float, int]]:
    """The rate of all flows through each, and what there is for one on each path."""
    topology = read_plan(run / "plan").topology
    found = []
    for numbers in necks.members(topology.links).values():
        links = [topology.links[number] for number in numbers]
        ends = [(topology.nodes[link.src].name, topology.nodes[link.dst].name) for link in links]
        there_is = necks.available([(link.state, 1) for link in links]).rate_bps
        found.append((sum(_rates(run, ends)), there_is))
    return found


@dataclass(frozen=True, slots=True)
class _Between:
    """Two sites: Mb/s for one flow each way, round trip in ms, and the ways that share a queue with
    others of the site where they begin."""

    a: int
    b: int
    up: float
    down: float
    rtt_ms: int
    ways: tuple[str, ...]

    def path(self) -> str:
        up, down = (
            ";".join(f"{n}:{round(1000 * one * n**0.6)}Kb" for n in (1, 2, 4, 8))
            for one in (self.up, self.down)
        )
        sources = {"up": self.a, "down": self.b}
        shared = "".join(f" bottleneck-{way}=n{sources[way]}" for way in self.ways)
        return (
            f"path h{self.a}--h{self.b} abw-flows-up={up} abw-flows-down={down}"
            f" rtt={self.rtt_ms}ms{shared}"
        )

    def link(self) -> str:
        up, down = (f"{round(1000 * one)}Kb" for one in (self.up, self.down))
        return (
            f"link h{self.a}--h{self.b} up={up} down={down} latency={self.rtt_ms * 500}us"
            f" queue={_LINK_QUEUE_KB}KB"
        )

    def shared(self) -> list[Ends]:
        ends = {"up": (self.a, self.b), "down": (self.b, self.a)}
        return [(f"h{ends[way][0]}.0", f"h{ends[way][1]}.0") for way in self.ways]


def _between(sites: int) -> list[_Between]:
    """What a site sends to the next ones in a circle shares a queue there."""
    rnd = random.Random(9)
    found = []
    for a, b in itertools.combinations(range(sites), 2):
        first, ratio = 0.5 * 8 ** rnd.random(), rnd.uniform(0.5, 2)
        ways = tuple(
            way
            for way, source, dest in (("up", a, b), ("down", b, a))
            if (dest - source) % sites <= _SHARED
        )
        found.append(_Between(a, b, first, first * ratio, rnd.randint(8, 80), ways))
    return found


def _mesh(sites: int, between: Iterable[str]) -> str:
    """A flow from each site to each other one."""
    lines = ["network ipv4", "quit when all exit"]
    for site in range(sites):
        others = (to for to in range(sites) if to != site)
        flows = "".join(f"./stream.py h{to}.0 1 {_FIG_9_S} {WINDOW} & " for to in others) + "wait"
        lines.append(f"service h{site} files=stream.py exec=\"sh -c '{flows}'\"")
    return "\n".join([*lines, *between, "at 1h quit", ""])
