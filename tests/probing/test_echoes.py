"""Which pairs are probed in a cluster, how often, and what is kept of what agents tell."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from runtime.options import K8S, RunOptions
from runtime.probing.chosen import ECHO_BITS
from runtime.probing.echo_prober import Echo, EchoProber, Heard
from runtime.probing.probe_record import Probe, read
from runtime.probing.roundtrip import answer
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.rundir.runfiles import PROBES
from runtime.schedule import Schedule
from tests.waiting import until

S = 1_000_000_000
TEXT = """service a img=x
service b img=x
service c img=x
service d img=x
bridge s
link a--s latency=1ms up=1Mb symmetric
link b--s latency=2ms
link c--s latency=1ms
link d--s latency=1ms up=20Kb symmetric
expect rtt b a < 100ms
at 60s quit
"""


def test_each_two_are_probed_once_as_often_as_their_links_allow(tmp_path: Path) -> None:
    plan = compile_source(TEXT).plan
    numbers = {node.name: number for number, node in enumerate(plan.topology.nodes)}
    held = HeldDirectory.hold(tmp_path.resolve())
    notices: list[str] = []
    asked: list[Echo] = []

    async def play() -> None:
        async def send(echoes: Sequence[Echo], heard: Heard) -> None:
            asked.extend(echoes)
            heard([(0, 2 * S, 5), (1, S, None), (0, -1, 5), (9, S, 5)])

        timeline = Schedule(plan, RunOptions(backend=K8S))
        file = LineFile(held, PROBES, notices.append)
        prober = EchoProber(plan, timeline, file, send, notices.append, notices.append)
        await prober.start(io.BytesIO())
        prober.begin(time.monotonic_ns())
        prober.go()
        await until(lambda: len(asked) > 0, "an order")
        await prober.end()
        prober.close()

    asyncio.run(play())
    found = read(held)
    assert found is not None
    header = found.header
    assert (header.clock, header.measure, header.of) == ("each", "round-trip", 12)
    assert header.pairs == (("a.0", "c.0"), ("b.0", "a.0"), ("b.0", "c.0"))
    assert {end for pair in header.not_probed for end in pair} == {"a.0", "b.0", "c.0", "d.0"}
    assert [text.partition(" (")[0] for text in notices] == ["3 pairs of instances"]
    limited, _, free = header.intervals_ns
    assert free == 100_000_000  # ten times a second
    assert limited >= ECHO_BITS * 1000 * S // 1_000_000
    for echo, (src, dst), interval in zip(asked, header.pairs, header.intervals_ns, strict=True):
        assert (echo.src, echo.dst) == (numbers[src], numbers[dst])
        assert echo.count * interval >= 59 * S
        assert 0 <= echo.wait_ns < interval
    # what was sent before time 0, and of pairs that are none, is left out
    assert list(found.probes) == [Probe(1, S, None), Probe(0, 2 * S, 5)]


# The answer of a probe that has arrived, against the first of all that are nearest.

MOMENT = st.integers(0, 60)


@given(st.lists(st.tuples(MOMENT, MOMENT), unique_by=lambda one: one[0]), MOMENT, MOMENT)
def test_it_is_the_nearest_one_within_reach(
    back: list[tuple[int, int]], arrived_ns: int, reach_ns: int
) -> None:
    back.sort()
    near = [one for one in back if abs(one[0] - arrived_ns) <= reach_ns]
    near.sort(key=lambda one: (abs(one[0] - arrived_ns), one[0]))
    assert answer(back, arrived_ns, reach_ns) == (near[0][1] if near else None)
