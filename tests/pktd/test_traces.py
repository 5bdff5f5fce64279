"""The queue of a link that follows a trace against a second model of mahimahi's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pktd.mahimahi import MS, departures

ROOT = Path(__file__).resolve().parents[2] / "tcal_c"
SOURCES = ("pktd/core/queue.c", "pktd/core/structures/trace.c")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


class Follower:
    def __init__(self, program: Path) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True)

    def departures(
        self, lines: Sequence[int], packets: Sequence[tuple[int, int]], limit: int
    ) -> list[int | None]:
        assert self._process.stdin
        assert self._process.stdout
        steps, last = [], 0
        for at, same in groupby(lines):
            steps.append(f"{at - last}x{len(list(same))}")
            last = at
        told = f"{lines[-1]} {len(steps)} {limit} {len(packets)}\n{' '.join(steps)}\n"
        self._process.stdin.write(told + "".join(f"{at} {size}\n" for at, size in packets))
        self._process.stdin.flush()
        found = [self._process.stdout.readline().strip() for _ in packets]
        return [None if one == "-" else int(one) for one in found]

    def end(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait() == 0


@pytest.fixture(scope="module")
def follower(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Follower]:
    program = tmp_path_factory.mktemp("follow") / "follow"
    sources = [Path(__file__).with_name("follow.c"), *(ROOT / name for name in SOURCES)]
    subprocess.run(["cc", "-std=c11", f"-I{ROOT}", "-o", program, *sources], check=True)
    found = Follower(program)
    yield found
    found.end()


@st.composite
def traces(draw: st.DrawFn) -> list[int]:
    gaps = draw(st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 5, 30, 700]), min_size=1, max_size=60))
    lines = list(accumulate(gaps))
    return lines if lines[-1] else [*lines, draw(st.integers(1, 50))]


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[int, int]]:
    gaps = st.one_of(st.just(0), st.integers(0, 3 * MS), st.integers(0, 40).map(lambda n: n * MS))
    sizes = st.one_of(st.integers(28, 1500), st.just(1500), st.integers(1501, 9000))
    packets = draw(st.lists(st.tuples(gaps, sizes), min_size=1, max_size=80))
    times = accumulate(gap for gap, _ in packets)
    return [(at, size) for at, (_, size) in zip(times, packets, strict=True)]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lines=traces(), packets=arrivals(), limit=st.integers(0, 60_000))
def test_packets_leave_to_the_nanosecond_when_the_model_says(
    follower: Follower, lines: list[int], packets: list[tuple[int, int]], limit: int
) -> None:
    assert follower.departures(lines, packets, limit) == departures(lines, packets, limit)


def test_a_day_of_rounds_loses_no_time(follower: Follower) -> None:
    lines = [3, 7, 7, 10]
    day = 86_400 * 1_000 * MS
    packets = [(day + 4 * MS, 1500), (day + 4 * MS, 700), (day + 4 * MS, 700)]
    found = follower.departures(lines, packets, 10_000)
    assert found == [day + 7 * MS, day + 7 * MS, day + 7 * MS]
