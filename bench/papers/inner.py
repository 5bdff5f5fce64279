"""Tables 3.2 to 3.7 and Fig. 3.16 of NestedNet: traffic inside of machines and between them.

The paper has as much as its processors carry over links without limit, of which two processors
here say nothing; what it shows is that neither the number of machines nor other connections change
what one gets. So links have rates and delays here, in virtual time, and every flow and every round
trip has to be that of its links, whatever goes on beside it. What more machines cost is told in
processor time.

With several connections at once over one link (Tables 3.4, 3.5) it is their sum that is the link's.

In each machine radios send to its router, and a radio of every second machine to the same one of
the machine before it; first all of them ping at once.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, stdev

from bench.errors import BenchError
from bench.papers.children import computed_s
from bench.papers.context import Context
from bench.papers.rows import ABSOLUTE, BELOW, RELATIVE, VIRTUAL, goal, row
from bench.tables import Record
from tests.runs.delivered import Delivered, Ends

MACHINES = (6, 12, 16, 24, 31)
CONNECTIONS = (1, 2, 4)  # of Tables 3.4, 3.5, over one link
RADIOS = (1, 5, 25)  # of Fig. 3.16, in each of two machines
WORST = 12, 4, 5_000_000  # Tables 3.6, 3.7: machines, radios, b/s of each flow
RATE_BPS = 5_000_000
DELAY_US = 15  # one way, inside and between
PING_BYTES = 84  # of a ping's IP packet
WITHIN, NEAR_US, DEVIATION = 0.01, 1.0, 8.0
LOW_S, HIGH_S, END_S = 2.5, 4.8, 5
_COUNT = 20
_TURNS = (
    "all ping at one moment, and programs take turns at the one processor of virtual time, where "
    "looks at clocks take some"
)
_RADIO = f"""\
#!/bin/sh
number=${{TSTORM_MACHINE##*.}}
router=$TSTORM_MACHINE.gnab.0
before=sat.$((number - 1)).iphy.$TSTORM_INDEX
connect() {{
    for _ in $(seq $CONNECTIONS); do tprobe stream $1 --seconds 60 -4 & done
}}
tprobe serve &
sleep 0.5
pings="--mode icmp --count {_COUNT} --interval 50ms --each -4"
tprobe rtt $router $pings &
waited=$!
if [ $((number % 2)) = 1 ]; then
    tprobe rtt $before $pings
    connect $before
fi
wait $waited
connect $router
wait
"""


def text(machines: int, radios: int, rate_bps: int, connections: int = 1) -> str:
    """`connections`: from each radio to its router, and to the machine before."""
    pairs = [(at, radio) for at in range(1, machines, 2) for radio in range(radios)]
    links = [
        f"link sat.{at}.iphy.{radio}--sat.{at - 1}.iphy.{radio} "
        f"latency={DELAY_US}us rate={rate_bps // 1000}kb"
        for at, radio in pairs
    ]
    return f"""\
seed 3
network ipv4
node sat replicas={machines} {{
    service gnab exec="tprobe serve"
    service iphy replicas={radios} env=CONNECTIONS:{connections} exec="./radio.sh"
    bridge inner
    link gnab--inner latency=5us
    link iphy--inner latency={DELAY_US - 5}us rate={rate_bps // 1000}kb
}}
{chr(10).join(links)}
at {END_S}s quit
"""


def measure(context: Context) -> list[Record]:
    rows: list[Record] = []
    for place in context.places(VIRTUAL):
        with context.attempt(rows, "Tables 3.2, 3.3", place):
            rows += _flat(context, place)
        for connections in CONNECTIONS:
            with context.attempt(rows, f"Tables 3.4, 3.5: {connections} connections", place):
                rows += _several(context, place, connections)
        with context.attempt(rows, "Tables 3.6, 3.7", place):
            rows += _worst(context, place)
        for radios in RADIOS[:2] if context.quick else RADIOS:
            what = f"Fig. 3.16: {radios} radios in each of two machines, deviation of a flow"
            with context.attempt(rows, what, place):
                run = _run(context, 2, radios, RATE_BPS)
                rates = [part for ends, part in _parts(run, RATE_BPS) if ends[1].endswith("gnab.0")]
                value = 100 * stdev(rates) / fmean(rates)
                rows.append(row(what, place, "%", value, None, goal=goal(BELOW, DEVIATION),
                                paper="3 to 8 %, ContainerNet 5 to 13 %"))  # fmt: skip
    return rows


def _run(context: Context, machines: int, radios: int, rate_bps: int, connections: int = 1) -> Path:
    folder = context.folder / f"inner-{machines}-{radios}-{connections}"
    folder.mkdir(exist_ok=True)  # several tables have the same one
    (folder / "radio.sh").write_text(_RADIO)
    (folder / "radio.sh").chmod(0o755)
    source = folder / "inner.tdl"
    source.write_text(text(machines, radios, rate_bps, connections))
    return context.run(source, VIRTUAL, "--no-probes")


def _parts(run: Path, rate_bps: int) -> list[tuple[Ends, float]]:
    """Of each flow, what part of its link's rate it got."""
    delivered = Delivered(run)
    found = [
        (ends, delivered.slope_bps(ends, LOW_S, HIGH_S) / rate_bps) for ends in delivered.pairs()
    ]
    return [(ends, part) for ends, part in found if part > 0.2]  # else acknowledgements


def _round_trips_us(run: Path) -> list[float]:
    found: list[float] = []
    for log in sorted((run / "logs").glob("sat.*.iphy.*.log")):
        for line in log.read_text().splitlines():
            said = json.loads(line) if line.startswith("{") else {}
            if said.get("lost") and "seq" in said:
                raise BenchError(f"{log.name}: a ping was lost")
            if "seq" in said:
                found.append(said["rtt_us"])
    if not found:
        raise BenchError("no ping came back")
    return found


def _farthest(found: list[float], wanted: float) -> float:
    return max(found, key=lambda one: abs(one - wanted))


def _trip_us(rate_bps: int) -> float:
    return 2 * (DELAY_US + 8e6 * PING_BYTES / rate_bps)


def _flat(context: Context, place: str) -> list[Record]:
    rows: list[Record] = []
    costs: list[float] = []
    sizes = MACHINES[:2] if context.quick else MACHINES
    for machines in sizes:
        before = computed_s()
        run = _run(context, machines, 1, RATE_BPS)
        costs.append((computed_s() - before) / machines)
        flows = _parts(run, RATE_BPS)
        part = _farthest([one for _, one in flows], 1.0)
        paper = "33.8 to 34.5 and 34.4 to 35.0 Gb/s, flat"
        what = f"Table 3.2: {machines} machines, {len(flows)} flows, the one farthest from its link"
        rows.append(row(what, place, "", part, 1.0, goal=goal(RELATIVE, WITHIN), paper=paper))
        trip = _farthest(_round_trips_us(run), _trip_us(RATE_BPS))
        what = f"Table 3.3: {machines} machines, the round trip farthest from its links"
        rows.append(row(what, place, "µs", trip, _trip_us(RATE_BPS), goal=goal(ABSOLUTE, NEAR_US),
                        paper="29.3 to 30.5 µs, flat", why=_TURNS))  # fmt: skip
    what = f"Table 3.2: processor time for a machine, of {sizes[-1]} against {sizes[0]} machines"
    rows.append(row(what, place, "", costs[-1] / costs[0], None))
    return rows


_OF_PAPER = {  # NestedNet, and ContainerNet
    1: ("31.76 Gb/s, ContainerNet 30.36", "32.05 Gb/s, ContainerNet 26.92"),
    2: ("26.29 Gb/s, ContainerNet 27.46", "25.42 Gb/s, ContainerNet 24.11"),
    4: ("19.58 Gb/s, ContainerNet 17.57", "15.74 Gb/s, ContainerNet 14.19"),
}


def _several(context: Context, place: str, connections: int) -> list[Record]:
    """Connections over one link inside of a machine (Table 3.4) and between two (Table 3.5)."""
    run = _run(context, 2, 1, RATE_BPS, connections)
    parts = dict(_parts(run, RATE_BPS))
    tables = (
        ("Table 3.4", "inside", "sat.1.gnab.0"),
        ("Table 3.5", "between", "sat.0.iphy.0"),
    )
    rows: list[Record] = []
    for (table, where, end), paper in zip(tables, _OF_PAPER[connections], strict=True):
        several = f"{connections} connection{'s' if connections > 1 else ''}"
        what = f"{table}: {several} {where}, together, of their link"
        part = parts["sat.1.iphy.0", end]
        rows.append(row(what, place, "", part, 1.0, goal=goal(RELATIVE, WITHIN), paper=paper))
    return rows


def _worst(context: Context, place: str) -> list[Record]:
    machines, radios, rate_bps = WORST
    run = _run(context, machines, radios, rate_bps)
    flows = _parts(run, rate_bps)
    part = _farthest([one for _, one in flows], 1.0)
    what = f"Table 3.6: {len(flows)} flows at once, the one farthest from its link"
    paper = "861 ± 165 inside, 1340 ± 325 Mb/s between; ContainerNet 1384 ± 88, 1828 ± 251"
    rows = [row(what, place, "", part, 1.0, goal=goal(RELATIVE, WITHIN), paper=paper)]
    trips = _round_trips_us(run)
    what = f"Table 3.7: {len(flows)} pairs ping at once, the round trip farthest from its links"
    paper = "91 ± 6 inside, 90 ± 7 µs between; ContainerNet 42 ± 7, 81 ± 20"
    wanted = _trip_us(rate_bps)
    rows.append(row(what, place, "µs", _farthest(trips, wanted), wanted,
                    goal=goal(ABSOLUTE, NEAR_US), paper=paper, why=_TURNS))  # fmt: skip
    return rows
