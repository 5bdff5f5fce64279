"""Experiments over hosts whose shares are known: random networks, and two destinations.

A random network is made so that its shares do not depend on the sender's congestion control: every
full link has one flow that takes what it can get, the others have constant rates that fit. Only
then do the model and a real drop-tail queue have to agree (docs/performance.md, Hosts).
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from compiler.pipeline import compile_source
from compiler.plan.reader import Plan
from runtime.agent.path.prefetcher import PlanView
from runtime.agent.share.solver import UNLIMITED, Flow, solve

MBIT = 1_000_000
SECONDS = 12  # of a random experiment, more than SETTLED_NS
SETTLED_NS = 5_000_000_000  # everybody is there since 1 s
TRIES = 2000

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Scene:
    """A random experiment and what the model says of it. Rates in b/s of IP bytes."""

    seed: int
    text: str
    shares: dict[str, int]  # client's service -> share
    elastic: frozenset[str]  # those that take what they can get
    full: int  # links that are full
    probe_waits: bool  # the probe's path, there or back, has a full link


def numbers(plan: Plan) -> dict[str, int]:
    return {node.name: index for index, node in enumerate(plan.topology.nodes)}


def model(plan: Plan, at_ns: int, demands: dict[Pair, int]) -> tuple[dict[Pair, int], set[int]]:
    """The model's share of each flow, and the links that are then full."""
    view = PlanView(plan.state_at(at_ns))
    pairs, flows, capacities = sorted(demands), [], {}
    for pair in pairs:
        path = view.path(*pair)
        assert path is not None
        flows.append(Flow(path.links, path.rtt_ns, demands[pair]))
        capacities |= {link: view.capacity(link) for link in path.links if view.capacity(link)}
    found = [share.allocation_bps for share in solve(flows, capacities).shares]
    full = {
        link
        for link, capacity in capacities.items()
        if sum(rate for flow, rate in zip(flows, found, strict=True) if link in flow.links)
        >= capacity * 0.999
    }
    return dict(zip(pairs, found, strict=True)), full


def random_scene(seed: int, seconds: int = SECONDS) -> Scene:
    """The first network of this seed's stream that has what is asked for."""
    source = random.Random(seed)
    for _ in range(TRIES):
        scene = _attempt(seed, source, seconds)
        if scene is not None:
            return scene
    raise AssertionError(f"seed {seed}: no such network in {TRIES} attempts")


def _attempt(seed: int, source: random.Random, seconds: int) -> Scene | None:
    count = source.randint(3, 6)
    kinds = [0 if source.random() < 0.5 else source.randint(3, 20) for _ in range(count)]
    text = _text(seed, source, kinds, seconds)
    plan = compile_source(text).plan
    at = numbers(plan)
    view = PlanView(plan.state_at(SETTLED_NS))
    ends = [(at[f"c{i}.0"], at[f"s{i}.0"]) for i in range(count)]
    demands = {
        pair: rate * MBIT if rate else UNLIMITED for pair, rate in zip(ends, kinds, strict=True)
    }
    shares, full = model(plan, SETTLED_NS, demands)
    links = {pair: set(_links(view, pair)) for pair in ends}
    elastic = {pair for pair in ends if demands[pair] == UNLIMITED}
    crowded = any(sum(link in links[pair] for pair in elastic) != 1 for link in full)
    unmet = any(shares[pair] != demands[pair] for pair in ends if pair not in elastic)
    together = any(sum(link in links[pair] for pair in ends) > 1 for link in full)
    tight = any(
        sum(demands[p] for p in ends if p not in elastic and link in links[p])
        > 0.6 * view.capacity(link)
        for link in full
    )
    if crowded or unmet or tight or not together:
        return None
    ways = (at["p.0"], at["q.0"]), (at["q.0"], at["p.0"])
    return Scene(
        seed=seed,
        text=text,
        shares={f"c{i}": shares[pair] for i, pair in enumerate(ends)},
        elastic=frozenset(f"c{i}" for i, pair in enumerate(ends) if pair in elastic),
        full=len(full),
        probe_waits=any(full & set(_links(view, way)) for way in ways),
    )


def _links(view: PlanView, pair: Pair) -> tuple[int, ...]:
    path = view.path(*pair)
    assert path is not None
    return path.links


def _text(seed: int, source: random.Random, kinds: list[int], seconds: int) -> str:
    """Bridges as a random tree with a few more links; clients and servers at random bridges."""
    bridges = source.randint(3, 7)
    lines = [f"seed {seed}", "bridges " + " ".join(f"b{n}" for n in range(bridges))]
    edges = {(source.randrange(n), n) for n in range(1, bridges)}
    for _ in range(source.randint(0, 2)):
        a, b = sorted(source.sample(range(bridges), 2))
        edges.add((a, b))
    for a, b in sorted(edges):
        rate, delay = source.choice((20, 30, 50, 80, 100)), source.randint(1, 12)
        lines.append(f"link b{a}--b{b} latency={delay}ms up={rate}Mb symmetric")
    programs = {}
    for number, rate in enumerate(kinds):
        how = f"--udp {rate}Mb" if rate else "--cc cubic"
        stream = f"tprobe stream s{number}.0 {how} --seconds {seconds} --interval 500ms"
        programs[f"s{number}"], programs[f"c{number}"] = "tprobe serve", stream
    programs["q"] = "tprobe serve"
    programs["p"] = "tprobe rtt q.0 --mode udp --count 100 --interval 100ms --each"
    for name, program in programs.items():
        home, delay = source.randrange(bridges), source.randint(1, 3)
        lines.append(f'service {name} img=x exec="{program}"')
        lines.append(f"link {name}--b{home} latency={delay}ms up=60Mb symmetric")
    servers = [name for name in programs if name[0] in "sq"]
    clients = [name for name in programs if name[0] in "cp"]
    lines += [f"at 0s {name} join" for name in servers]
    lines += [f"at 1s {name} join" for name in clients]
    return "\n".join([*lines, f"at {seconds}s quit", ""])


def two_destinations_text(seconds: int = 8) -> str:
    """One sender, two destinations over one link of 100 Mb/s, round trips of 20 and 100 ms."""
    stream = f"tprobe stream %s.0 --cc cubic --seconds {seconds}"
    both = f"sh -c '{stream % 'near'} & {stream % 'far'}; wait'"
    return f"""seed 2
bridges b1
service near img=x exec="tprobe serve"
service far img=x exec="tprobe serve"
service c img=x exec="{both}"
link c--b1 latency=5ms up=100Mb symmetric
link near--b1 latency=5ms
link far--b1 latency=45ms
at 0s near join
at 0s far join
at 500ms c join
at {seconds}s quit
"""
