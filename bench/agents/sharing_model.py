"""The sharing model: what it costs to compute, and what agents make of it in simulations.

No namespaces, no root: the solver and the agents' code run as they are, the network and the clock
are simulated (tests.simulation.simulation). Output: rows told apart by `part`:
solver     CPU time of one question, as an agent asks it: Python, C, Python;
tick       CPU time of one agent's tick, all flows its own: steady, and all changing;
shares     random networks and placements: worst error of a flow's rate, and limits set afterwards;
reaction   a flood beside two greedy flows: until all limits are within 5 % of the new shares;
soak       hours of changes: error at checkpoints, growth of objects, limits set.
"""

from __future__ import annotations

import random
import statistics
import time
from array import array
from collections.abc import Callable, Iterator

from bench.tables import Record, Table
from runtime.agent.share.sharing import Sharing
from runtime.agent.share.solver import UNLIMITED, Question
from runtime.agent.vocabulary import Usage
from tests.simulation.networks import MBIT, Network
from tests.simulation.planned import Planned, random_text
from tests.simulation.simulation import MS, NS_PER_S, Simulation
from tests.simulation.soak import TEXT, soak
from tests.simulation.sources import Constant, Tcp

PATH_LINKS = 8
PERIOD_NS = 25 * MS
NEAR = 0.05

Pair = tuple[int, int]


def _cost(row: Record) -> str:
    if row["part"] == "solver":
        return "solver: {flows} flows, {links} links, {full} of them full".format(**row)
    return f"tick: {row['flows']} own flows, {'steady' if row['steady'] else 'all changing'}"


def _lost(row: Record) -> str:
    return f"{row['lost_metadata'] * 100:.0f} % of metadata lost"


_SCENES: dict[str, Callable[[Record], str]] = {
    "shares": lambda row: f"shares on {row['networks']} random networks, {_lost(row)}",
    "reaction": lambda row: f"{row['newcomers']} newcomers, {row['hosts']} hosts, {_lost(row)}",
    "soak": lambda row: f"{row['seconds'] / 3600:g} h soak in {row['took_s']} s, 4 hosts",
}
_OUTCOMES: dict[str, Callable[[Record], str]] = {
    "shares": lambda row: (
        f"worst flow off by {row['worst_error'] * 100:.2f} %, median of networks "
        f"{row['median_error'] * 100:.2f} %; {row['limits_set_afterwards']} limits set "
        "after settling"
    ),
    "reaction": lambda row: (
        f"shares in force after {row['median_ms']:.0f} ms (median), "
        f"{row['p99_ms']:.0f} ms (p99), {row['max_ms']:.0f} ms (max)"
    ),
    "soak": lambda row: (
        f"shares off by {row['worst_error'] * 100:.2f} % at worst, "
        f"{row['last_error'] * 100:.2f} % at the end; objects {row['objects']} → "
        f"{row['objects_at_end']}; {row['ticks']} ticks, {row['limits_set']} limits"
    ),
}
TABLES = (
    Table(
        {"Cost in CPU time": _cost, "median / p99": "{median_ms:.2f} / {p99_ms:.2f} ms"},
        {"part": ["solver", "tick"]},
    ),
    Table(
        {
            "Simulated": lambda row: _SCENES[row["part"]](row),
            "result": lambda row: _OUTCOMES[row["part"]](row),
        },
        {"part": list(_SCENES)},
    ),
)


def measure(quick: bool) -> list[Record]:
    rows: list[Record] = []
    for flows, links in ((100, 500), (1000, 5000), (10_000, 5000)):
        rows.append(_solver(flows, links, 20 if quick else 200))
    for flows in (100, 1000):
        for steady in (True, False):
            rows.append(_tick(flows, steady=steady, ticks=40 if quick else 400))
    for loss in (0.0, 0.3):
        rows.append(_shares(5 if quick else 100, loss))
    for hosts in (1, 2, 4):
        for loss in (0.0, 0.3) if hosts > 1 else (0.0,):
            rows.append(_reaction(hosts, loss, 10 if quick else 300))
    rows.append(_soak(240 if quick else 7200, 4 if quick else 24))
    return rows


def _network(flows: int, links: int, source: random.Random) -> Network:
    """Paths of 8 links at random, from instance i to flows + i."""
    figures = {
        link: (source.choice((10, 100, 1000)) * MBIT, source.randint(1, 20) * MS, 100_000)
        for link in range(links)
    }
    routes = {(i, flows + i): tuple(source.sample(range(links), PATH_LINKS)) for i in range(flows)}
    return Network(2 * flows, figures, routes)


def _times(values: list[float]) -> Record:
    values = sorted(values)
    return {
        "median_ms": round(statistics.median(values) * 1e3, 3),
        "p99_ms": round(values[len(values) * 99 // 100] * 1e3, 3),
    }


def _solver(flows: int, links: int, turns: int) -> Record:
    """Seven flows in ten greedy, the others want up to 10 Mb/s."""
    source = random.Random(1)
    network = _network(flows, links, source)
    asked = []
    for pair in sorted(network.routes):
        path = network.path(*pair)
        assert path is not None
        demand = UNLIMITED if source.random() < 0.7 else source.randint(1, 10 * MBIT)
        asked.append((array("I", path.links), path.rtt_ns, demand))
    numbers = sorted(network.links)
    capacities = array("Q", [network.capacity(link) for link in numbers])
    taken, full = [], 0
    for _ in range(turns):
        began = time.thread_time()
        question = Question()
        for flow in asked:
            question.add(*flow)
        full = len(question.ask(capacities, numbers).levels_bits)
        taken.append(time.thread_time() - began)
    return {"part": "solver", "flows": flows, "links": links, "full": full, **_times(taken)}


def _tick(flows: int, *, steady: bool, ticks: int) -> Record:
    source = random.Random(2)
    network = _network(flows, 5 * flows, source)
    sharing = Sharing(PERIOD_NS)
    sharing.epoch(network, 0)
    sent = dict.fromkeys(sorted(network.routes), 0)
    rates = {pair: source.randint(1, 9) * MBIT for pair in sent}
    taken = []
    for tick in range(1, ticks + 20):
        for pair, rate in rates.items():
            part = 1.0 if steady else source.uniform(0, 2)
            sent[pair] += round(part * rate * PERIOD_NS / 8 / NS_PER_S)
        usage = [Usage(*pair, 1, count, 0, 0, 0) for pair, count in sent.items()]
        began = time.thread_time()
        sharing.tick(tick * PERIOD_NS, usage, [])
        if tick >= 20:
            taken.append(time.thread_time() - began)
    return {"part": "tick", "flows": flows, "steady": steady, **_times(taken)}


def _shares(networks: int, loss: float) -> Record:
    """12 instances over 2 to 6 hosts, 14 TCP flows, real metadata; 12 s to settle, 5 s measured."""
    worst, limits = [], 0
    for seed in range(networks):
        source = random.Random(seed)
        planned = Planned(random_text(seed, 12, 6), source.choice((2, 3, 4, 6)))
        sim = planned.simulate(loss=loss, seed=seed)
        everyone = [(a, b) for a in range(12) for b in range(12) if a != b]
        pairs = sorted(source.sample(everyone, 14))
        for pair in pairs:
            sim.add(*pair, Tcp(), source.randrange(2 * NS_PER_S))
        sim.run(12 * NS_PER_S)
        before = sum(host.changed for host in sim.hosts)
        got = sim.rates(pairs, 5 * NS_PER_S)
        limits += sum(host.changed for host in sim.hosts) - before
        want = planned.shares(planned.view(), dict.fromkeys(pairs, UNLIMITED))
        worst.append(max(abs(got[pair] / want[pair] - 1) for pair in pairs))
    return {
        "part": "shares",
        "networks": networks,
        "lost_metadata": loss,
        "worst_error": round(max(worst), 5),
        "median_error": round(statistics.median(worst), 5),
        "limits_set_afterwards": limits,
    }


def _reaction(hosts: int, loss: float, newcomers: int) -> Record:
    """c1 and c2 are greedy TCP; c3 floods for a second, every three seconds or so."""
    planned = Planned(TEXT, hosts)
    pairs = [(planned.names[f"c{i}.0"], planned.names[f"s.{i - 1}"]) for i in (1, 2, 3)]
    sim = planned.simulate(loss=loss, seed=hosts)
    source = random.Random(hosts)
    for pair in pairs[:2]:
        sim.add(*pair, Tcp())
    sim.run(8 * NS_PER_S)
    want = planned.shares(planned.view(), dict.fromkeys(pairs, UNLIMITED))
    took = []
    for _ in range(newcomers):
        start_ns = sim.now_ns + source.randrange(PERIOD_NS)
        sim.add(*pairs[2], Constant(200 * MBIT), start_ns, start_ns + NS_PER_S)
        sim.run(start_ns)
        took.append(_settled(sim, want, start_ns) / NS_PER_S)
        sim.run(start_ns + 3 * NS_PER_S)
    row = _times(took)
    return {"part": "reaction", "hosts": hosts, "lost_metadata": loss, "newcomers": newcomers} | {
        **row,
        "max_ms": round(max(took) * 1e3, 3),
    }


def _settled(sim: Simulation, want: dict[Pair, int], start_ns: int) -> int:
    """When all limits were near, for the rest of the flood (its length if they never were)."""
    right_ns = 0
    for now_ns in _milliseconds(start_ns, NS_PER_S):
        sim.run(now_ns)
        limits = sim.limits(sorted(want))
        near = all(abs(limits[pair] - share) <= NEAR * share for pair, share in want.items())
        right_ns = (right_ns or now_ns) if near else 0
    return (right_ns - start_ns) if right_ns else NS_PER_S


def _milliseconds(start_ns: int, for_ns: int) -> Iterator[int]:
    return iter(range(start_ns + MS, start_ns + for_ns, MS))


def _soak(seconds: int, checkpoints: int) -> Record:
    began = time.monotonic()
    found = soak(seconds, checkpoints)
    second, last = found[1], found[-1]
    return {
        "part": "soak",
        "seconds": seconds,
        "took_s": round(time.monotonic() - began),
        "checkpoints": checkpoints,
        "worst_error": round(max(each.worst_error for each in found), 5),
        "last_error": round(last.worst_error, 5),
        "objects": second.objects,
        "objects_at_end": last.objects,
        "limits_set": last.changes,
        "ticks": last.ticks,
    }
