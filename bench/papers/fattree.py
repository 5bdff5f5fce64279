"""Equal paths of a fat tree (Yan, on virtual time): eight hosts send to the host four places on.

Which links a flow takes follows from the plan (compiler/plan/paths/flows.py), and from that what
each gets where links are shared fairly: max-min, found by filling all flows alike until a link is
full. Measured: real TCP through queues that drop their tail and through queues that serve flows in
turn, and UDP that sends as much as it should get, which gets all of it only if its links are those.
How much hashing costs on average is computed of many seeds, of which the
links' draws are made as the compiler makes them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.papers.context import Context, log
from bench.papers.rows import RELATIVE, VIRTUAL, goal, row
from bench.papers.theory import PAYLOAD
from bench.tables import Record
from compiler.draws import link_seed
from compiler.pipeline import compile_source
from compiler.plan.paths.flows import TCP, UDP, FlowTuple
from compiler.plan.paths.path import Paths
from compiler.plan.state import NetworkState

RATE_BPS = 10_000_000  # shares are the same at any rate, and packets take time
SENDERS, STRIDE = range(8), 4
PORTS = (5001, 7477)
SEEDS, MEAN, MEAN_WITHIN = 1000, 0.62, 0.03
TCP_WITHIN, UDP_WITHIN = 0.1, 0.01
PAPER = "less than 30 Mb/s on average at stride 4"
WHY = "a queue that drops its tail is not shared evenly; through fq_codel flows get their share"


@dataclass(frozen=True, slots=True)
class Traffic:
    protocol: int
    aqm: str = "none"

    @property
    def name(self) -> str:
        queues = f" through {self.aqm}" if self.aqm != "none" else ""
        return f"{'TCP' if self.protocol == TCP else 'UDP'}{queues}"

    @property
    def within(self) -> float:
        return TCP_WITHIN if self.protocol == TCP else UDP_WITHIN


def measure(context: Context) -> list[Record]:
    rows: list[Record] = []
    tree = compile_source(context.scene("fattree").read_text()).plan.state_at(0)
    means = [sum(shares(seeded(tree, seed), TCP)) / len(SENDERS) for seed in range(SEEDS)]
    mean = sum(means) / len(means)
    what = f"mean of a flow, {SEEDS:,} seeds, computed; worst seed {min(means):.2f}"
    near = goal(RELATIVE, MEAN_WITHIN)
    rows.append(row(what, "plan", "b/s", mean * RATE_BPS, MEAN * RATE_BPS, goal=near, paper=PAPER))
    for seed in (1,) if context.quick else (1, 2):
        for traffic in (Traffic(TCP), Traffic(TCP, "fq_codel"), Traffic(UDP)):
            for place in context.places(VIRTUAL):
                with context.attempt(rows, f"{traffic.name}, seed {seed}", place):
                    parts = shares(seeded(tree, seed), traffic.protocol)
                    wanted = [part * RATE_BPS for part in parts]
                    rows += _run(context, place, seed, traffic, wanted)
    return rows


def seeded(state: NetworkState, seed: int) -> NetworkState:
    """The same with the links' seeds that this seed of the experiment makes."""
    topology = state.topology
    links = tuple(replace(one, seed=link_seed(seed, one.name)) for one in topology.links)
    return replace(state, topology=replace(topology, links=links))


def shares(state: NetworkState, protocol: int) -> list[float]:
    """Of each sender's flow, in parts of a link's rate."""
    paths = Paths(state, FlowTuple(protocol, *PORTS))
    return fill([paths.path(host, host + STRIDE).links for host in SENDERS])


def fill(flows: Sequence[Sequence[int]]) -> list[float]:
    """Max-min shares of links with the rate 1."""
    found = [0.0] * len(flows)
    left = {link: 1.0 for links in flows for link in links}
    growing = set(range(len(flows)))
    while growing:
        load = {link: sum(link in flows[flow] for flow in growing) for link in left}
        step = min(left[link] / count for link, count in load.items() if count)
        for link, count in load.items():
            left[link] -= step * count
        for flow in growing:
            found[flow] += step
        growing = {flow for flow in growing if all(left[link] > 1e-9 for link in flows[flow])}
    return found


def _run(
    context: Context, place: str, seed: int, traffic: Traffic, wanted: Sequence[float]
) -> list[Record]:
    """What all flows get together, and the one that is farthest from its share."""
    values: dict[str, object] = {"seconds": 6 if context.quick else 20, "managed": traffic.aqm}
    if traffic.protocol == UDP:
        offers = " ".join(f"{round(one)}b" for one in wanted)
        values |= {"offers": f'"{offers}"', "more": '"--udp $1"'}
    source = context.scene("fattree", **values)
    run = context.run(source, place, "--seed", str(seed), "--no-probes")
    got = [_got_bps(run, host, traffic.protocol) for host in SENDERS]
    farthest = max(SENDERS, key=lambda host: abs(got[host] / wanted[host] - 1))
    why = WHY if traffic == Traffic(TCP) else ""
    near = goal(RELATIVE, traffic.within)
    figures = {
        "eight flows together": (sum(got), sum(wanted)),
        "the flow farthest from its share": (got[farthest], wanted[farthest]),
    }
    return [
        row(f"{traffic.name}, seed {seed}, {what}", place, "b/s", *one, goal=near, why=why)
        for what, one in figures.items()
    ]


def _got_bps(run: Path, host: int, protocol: int) -> float:
    """Of IP packets, as its receiver counted after the first seconds."""
    said = json.loads(log(run, f"host.{host}").splitlines()[-1])
    if protocol == TCP:
        return float(said["receiver"]["bps"]) / PAYLOAD
    return float(said["bps"])
