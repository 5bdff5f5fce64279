"""Hours of agents' work in minutes: flows come and go, links change, datagrams get lost.

Four hosts over the dumbbell of the paper, with the real metadata. Three flows stay; others come at
random for some seconds, UDP and TCP, on any path; the trunk changes its rate every minute. At
checkpoints everything but the three ends, and after some seconds the three must have the model's
shares (no drift) and agents no more objects and memory than at the checkpoint before (no leak).
"""

from __future__ import annotations

import gc
import random
import tracemalloc
from dataclasses import dataclass

from runtime.agent.share.solver import UNLIMITED
from tests.simulation.planned import Planned
from tests.simulation.simulation import Simulation
from tests.simulation.sources import Constant, Source, Tcp

MBIT = 1_000_000
NS_PER_S = 1_000_000_000
HOSTS = 4
LOSS = 0.02
QUIET_S = 20  # before a checkpoint nothing new comes, so that all is settled there
MEASURED_S = 10
TRUNKS = (50, 30, 80, 40)  # Mb/s, in turns

Pair = tuple[int, int]

_CLIENTS = "".join(
    f"service c{i} img=x\n"
    f"link c{i}--b{1 if i <= 3 else 2} latency={delay}ms up={rate}Mb symmetric\n"
    for i, (rate, delay) in enumerate(((50, 10), (50, 5), (10, 5)) * 2, 1)
)
TEXT = f"""seed 1
bridges b1 b2 b3
service s img=x replicas=6
link s--b3 latency=5ms up=50Mb symmetric
{_CLIENTS}link b1--b2 latency=10ms up={TRUNKS[0]}Mb symmetric
link b2--b3 latency=10ms up=100Mb symmetric
at 0s s join 6
{"".join(f"at 0s c{i} join" + chr(10) for i in range(1, 7))}{
    "".join(f"at {i}s set b1--b2 up={rate}Mb" + chr(10) for i, rate in enumerate(TRUNKS[1:], 1))
}at 10s quit
"""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What was found at one moment."""

    at_s: int
    objects: int  # that Python's collector knows
    memory_bytes: int  # allocated by Python, 0 if that was not traced
    worst_error: float  # of the three flows' rates against the model's
    changes: int  # limits set since the start
    ticks: int


def soak(seconds: int, checkpoints: int, *, seed: int = 1, trace: bool = False) -> list[Checkpoint]:
    """`trace` finds out the memory too, and takes some times as long."""
    planned = Planned(TEXT, HOSTS)
    sim = planned.simulate(loss=LOSS, seed=seed, keep_changes=False)
    staying = [(planned.names[f"c{i}.0"], planned.names[f"s.{i - 1}"]) for i in (1, 2, 5)]
    for pair in staying:
        sim.add(*pair, Tcp())
    source, found, step = random.Random(seed), [], seconds // checkpoints
    if trace:
        tracemalloc.start()
    for number in range(checkpoints):
        end_s = (number + 1) * step
        _busy(sim, planned, source, end_s - QUIET_S)
        found.append(_checkpoint(sim, planned, staying, end_s))
    if trace:
        tracemalloc.stop()
    return found


def _busy(sim: Simulation, planned: Planned, source: random.Random, until_s: int) -> None:
    """Flows come and go, and the trunk changes, until then; by then all of them have ended."""
    clients = [planned.names[f"c{i}.0"] for i in range(1, 7)]
    there = [(client, planned.names[f"s.{i % 2}"]) for i, client in enumerate(clients)]
    pairs = there + [(b, a) for a, b in there]
    until_ns = until_s * NS_PER_S
    while sim.now_ns < until_ns:
        minute = sim.now_ns // (60 * NS_PER_S)
        planned.change(sim, sim.now_ns, minute % len(TRUNKS) * NS_PER_S)
        for _ in range(12):
            pair = source.choice(pairs)
            start = sim.now_ns + source.randrange(60 * NS_PER_S)
            made: Source = Constant(source.randint(1, 80) * MBIT, 1500)
            made = Tcp() if source.random() < 0.5 else made
            end = min(start + source.randint(1, 20) * NS_PER_S, until_ns)
            if start < end:
                sim.add(*pair, made, start, end)
        sim.run(min(sim.now_ns + 60 * NS_PER_S, until_ns))


def _checkpoint(sim: Simulation, planned: Planned, staying: list[Pair], end_s: int) -> Checkpoint:
    sim.run((end_s - MEASURED_S) * NS_PER_S)
    want = planned.shares(sim.view, dict.fromkeys(staying, UNLIMITED))
    got = sim.rates(staying, MEASURED_S * NS_PER_S)
    gc.collect()
    return Checkpoint(
        at_s=end_s,
        objects=len(gc.get_objects()),
        memory_bytes=tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else 0,
        worst_error=max(abs(got[pair] / want[pair] - 1) for pair in staying),
        changes=sum(host.changed for host in sim.hosts),
        ticks=sum(host.sharing.counters()["ticks"] for host in sim.hosts),
    )
