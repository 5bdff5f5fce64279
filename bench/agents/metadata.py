"""Metadata between agents: how many bytes, how much CPU time, and how both grow.

Four parts, all with the real code of runtime.agent over a simulated network and clock:

target      160 instances, 80 flows, 4 agents against their bounds (tests.simulation.volume);
growth      2 to 64 agents, 80 to 10,000 flows that all share one link, so that everybody has to
            know of every flow: without change, and with every flow told anew in every tick.
            CPU time is that of one agent, host 0, alone in its process by then;
refusal     what a datagram costs that is not taken;
interest    who shares which links, in the networks of tests.plan.topologies.

Bytes are UDP payload; with headers, 28 more a datagram (IPv4 and UDP).
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

from bench.tables import Cell, Record, Table
from compiler.pipeline import compile_source
from runtime.agent.metadata.codec import MAX_DATAGRAM
from runtime.agent.metadata.interest import Interest
from runtime.agent.metadata.metadata import Metadata
from runtime.coordinator.placement import place
from tests.plan.topologies import scale_free
from tests.simulation.planned import RUN, Planned
from tests.simulation.simulation import NS_PER_S, PERIOD_NS
from tests.simulation.volume import HEADER_BYTES, SECOND_TICKS, WARM_TICKS, Fleet, targets, text

SIDE = 200  # instances on each side, for growth


def amount(per_second: float) -> str:
    """Three digits, in kB/s or MB/s."""
    value, unit = (per_second / 1e6, "MB/s") if per_second >= 1e6 else (per_second / 1e3, "kB/s")
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def _amount(name: str) -> Cell:
    return lambda row: amount(row[name])


_PAYLOAD, _WITH_HEADERS = _amount("payload_bytes_s"), _amount("with_headers_bytes_s")


def _growing(what: str, change: bool) -> Table:
    return Table(
        {
            f"Agents, flows: {what}": "{hosts}, {flows}",
            "all agents": _PAYLOAD,
            "with headers": _WITH_HEADERS,
            "each agent": _amount("agent_bytes_s"),
            "datagrams/s": "{datagrams_s}",
            "CPU a tick: in / asked / out": "{in_ms:.2f} / {remote_ms:.2f} / {out_ms:.2f} ms",
            "all, mean / max": "{tick_ms_mean:.2f} / {tick_ms_max:.2f} ms",
        },
        {"part": ["growth"], "change": [change]},
    )


TABLES = (
    Table(
        {
            "Instances, flows, agents": "{instances}, {flows}, {hosts}: {what}",
            "UDP payload": _PAYLOAD,
            "with headers": _WITH_HEADERS,
            "datagrams/s": "{datagrams_s:.0f}",
            "bound": _amount("bound_bytes_s"),
            "met": lambda row: "yes" if row["met"] else "**no**",
        },
        {"part": ["target"]},
    ),
    _growing("nothing changes", False),
    _growing("every flow told anew in every tick", True),
    Table(
        {"Datagram that is refused": "{what}", "CPU time": "{us:.1f} µs"},
        {"part": ["refusal"]},
    ),
    Table(
        {
            "Who shares which links, 64 hosts: elements": "{size}",
            "first": "{first_ms:.1f} ms",
            "next epoch": "{epoch_ms:.1f} ms",
            "of 10,000 flows": "{flows_10000_ms:.1f} ms",
        },
        {"part": ["interest"]},
    ),
)


def missed(rows: Sequence[Record]) -> list[str]:
    """Targets that were missed."""
    return [
        f"{row['what']}: {row['with_headers_bytes_s']} bytes/s, the bound is {row['bound_bytes_s']}"
        for row in rows
        if row["part"] == "target" and not row["met"]
    ]


def measure(quick: bool) -> list[Record]:
    """All rows; `part` says of which part."""
    grid = [(h, f) for h in (2, 4, 8, 16, 32, 64) for f in (80, 1000, 10_000)]
    if quick:
        grid = [(4, 80), (8, 1000)]
    rows = list(targets(2 if quick else 10))
    for hosts, flows in grid:
        for change in (False, True):
            rows.append(_growth(hosts, flows, change))
    rows += _refusals(1000 if quick else 20_000)
    rows += [_interest(size) for size in ((1000,) if quick else (1000, 2000, 4000))]
    return rows


def _growth(hosts: int, flows: int, change: bool) -> Record:
    ticks = 10 if change else SECOND_TICKS
    fleet = Fleet(SIDE, hosts, flows, change=change)
    fleet.run(WARM_TICKS)
    fleet.run(ticks)
    seconds = ticks * PERIOD_NS / NS_PER_S
    size, datagrams = fleet.bytes, fleet.datagrams
    return {
        "part": "growth",
        "hosts": hosts,
        "flows": flows,
        "change": change,
        "payload_bytes_s": round(size / seconds),
        "with_headers_bytes_s": round((size + HEADER_BYTES * datagrams) / seconds),
        "agent_bytes_s": round(size / seconds / hosts),
        "datagrams_s": round(datagrams / seconds),
        **_cpu(fleet),
    }


def _cpu(fleet: Fleet) -> Record:
    """CPU time of host 0 a tick: for what it says, for what it hears, for who asks what it knows.

    The same ticks once more, with the datagrams that were kept. The others are gone, because the
    garbage collector would look at all of them too.
    """
    agent, received, ticks = fleet.agents[0], fleet.received, len(fleet.received)
    first = fleet._tick + 1
    flows = [fleet.flows(0, first + tick) for tick in range(ticks)]
    now_ns = fleet.now_ns
    del fleet.agents[1:]
    gc.collect()
    gc.freeze()  # as an agent does when it begins
    spent: list[tuple[float, float, float]] = []
    for mine, datagrams in zip(flows, received, strict=True):
        now_ns += PERIOD_NS
        times = [time.thread_time()]
        for datagram in datagrams:
            agent.incoming(now_ns, datagram)
        times.append(time.thread_time())
        known = agent.remote(now_ns)
        times.append(time.thread_time())
        agent.outgoing(now_ns, mine)
        times.append(time.thread_time())
        spent.append((times[1] - times[0], times[2] - times[1], times[3] - times[2]))
    gc.unfreeze()
    totals = [sum(tick) * 1e3 for tick in spent]
    names = ("in_ms", "remote_ms", "out_ms")
    means = [statistics.fmean(column) * 1e3 for column in zip(*spent, strict=True)]
    return {
        **{name: round(value, 3) for name, value in zip(names, means, strict=True)},
        "tick_ms_mean": round(statistics.fmean(totals), 3),
        "tick_ms_max": round(max(totals), 3),
        "known": len(known),
    }


# --- refusals and interest ---------------------------------------------------------------------


def _refusals(count: int) -> Iterator[Record]:
    planned = Planned(text(SIDE), 2)
    me, other = planned.exchange(1), Metadata(bytes([1]) * 32, RUN, 0, [1, 1])
    planned.met(other, planned.plan.state_at(0), 0)
    [(_, forged)] = other.outgoing(0, [])
    [(_, genuine)] = planned.exchange(0).outgoing(0, [])
    me.incoming(0, genuine)
    long = forged[:-16] + bytes(MAX_DATAGRAM - len(forged)) + forged[-16:]
    cases = {
        "garbage": random.Random(1).randbytes(1000),
        "forged": forged,
        "forged, 1,400 bytes": long,
        "replayed": genuine,
    }
    for what, datagram in cases.items():
        before = time.thread_time()
        for _ in range(count):
            me.incoming(0, datagram)
        spent = time.thread_time() - before
        assert me.counters()[what.split(",")[0]] >= count
        yield {"part": "refusal", "what": what, "us": round(spent / count * 1e6, 2)}
    assert me.remote(0) == []


def _interest(size: int) -> Record:
    hosts = 64
    plan = compile_source(scale_free(size, events=2)).plan
    placement, states = place(plan.topology, hosts), [plan.state_at(at) for at in (0, NS_PER_S)]
    times = [time.thread_time()]
    first = Interest(states[0], placement, hosts)
    times.append(time.thread_time())
    again = Interest(states[1], placement, hosts, first)
    times.append(time.thread_time())
    rnd, count = random.Random(1), first.instances
    again.of_flows([rnd.randrange(count) * count + rnd.randrange(count) for _ in range(10_000)])
    times.append(time.thread_time())
    spent = [round((b - a) * 1e3, 2) for a, b in pairwise(times)]
    return {
        "part": "interest",
        "size": size,
        "hosts": hosts,
        "first_ms": spent[0],
        "epoch_ms": spent[1],
        "flows_10000_ms": spent[2],
    }
