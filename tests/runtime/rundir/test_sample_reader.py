"""The one rule how counters grow between samples, and that all who tell a throughput keep it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from runtime.datapath.sampler import PAIR_COLUMNS
from runtime.errors import RunError
from runtime.options import DEFAULTS
from runtime.page.downsample import read_some
from runtime.page.grid import TimeGrid
from runtime.page.page_traffic import Flows
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import SAMPLES
from runtime.rundir.sample_reader import LINKS, PAIRS, CounterGrowth, CounterSample, SampleReader
from tests.certify.scene import MS, SECOND, Scene
from tests.expectations.support import expecting, finding
from tstorm.plotting.subject import Subject, bucketed
from tstorm.reporting.csv_tables import TABLES
from tstorm.reporting.run_facts import RunFacts
from tstorm.testing import pair_series

PAIR = ("a.0", "b.0")
HEADER = {"columns": {"links": ["link", "out_bytes"], "pairs": ["src", "dst"]}, "interval_ns": 10}

# When (ms), and bytes since the sample before: one is 300 ms late, and before one is a pause.
MOVED = (
    *((at, 1000) for at in range(100, 1001, 100)),
    (1400, 4000),
    *((at, 1000) for at in range(1500, 2001, 100)),
    (5000, 1500),
    *((at, 1000) for at in range(5100, 6001, 100)),
)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    found = Scene(tmp_path)
    found.probe()
    ends, rows, count = [found.numbers[name] for name in PAIR], [], 0
    for at_ms, moved in MOVED:
        count += moved
        row = [*ends, count // 500, count, count // 500, count, *[0] * (len(PAIR_COLUMNS) - 6)]
        times = {"at_ns": at_ms * MS, "elapsed_ns": at_ms * MS}
        rows.append({**times, "links": [], "pairs": [row]})
    found.sample(rows)
    return found


def held(scene: Scene) -> HeldDirectory:
    return HeldDirectory.hold(scene.place.resolve())


def expected(scene: Scene, from_ns: int, to_ns: int) -> int:
    wanted = expecting(scene, "throughput", *PAIR, op=">", from_ns=from_ns, to_ns=to_ns)
    return finding(scene, wanted)["figure"]


def drawn_on_the_page(scene: Scene, from_ns: int, to_ns: int) -> int:
    """By one bucket that is as long; there are others on both sides."""
    step_ns, pair = to_ns - from_ns, (scene.numbers[PAIR[0]], scene.numbers[PAIR[1]])
    axis = TimeGrid(from_ns - 10 * step_ns, step_ns, 30)
    flows = Flows(axis, [], [pair], some=False, pace=1)
    for record in read_some(held(scene), SAMPLES):
        flows.take(record)
    rate = flows.pair_record(pair)["rate"]
    return dict(zip(rate.get("i", range(30)), rate["v"], strict=True)).get(10) or 0


def plotted(scene: Scene, from_ns: int, to_ns: int) -> int:
    what = Subject("x", scene.plan, DEFAULTS, cast(RunDirectory, held(scene)))
    rows = what.rows(PAIRS, (scene.numbers[PAIR[0]], scene.numbers[PAIR[1]]))
    (count,) = bucketed(rows, "delivered_bytes", from_ns, to_ns, 1)
    return count * 8 * SECOND // (to_ns - from_ns)


def of_the_table(scene: Scene, from_ns: int, to_ns: int) -> int:
    """By the difference of two rows of the CSV."""
    facts = RunFacts(cast(RunDirectory, held(scene)), scene.plan, {}, {}, "", (), ())
    table = TABLES["pairs"]
    at, counter = table.columns.index("at_ns"), table.columns.index("delivered_bytes")
    told: dict[Any, Any] = {0: 0, **{row[at]: row[counter] for row in table.rows(facts)}}
    return (told[to_ns] - told[from_ns]) * 8 * SECOND // (to_ns - from_ns)


def of_the_series(scene: Scene, from_ns: int, to_ns: int) -> int:
    """Each value of pytest's is of the time since the one before."""
    found = pair_series.read(held(scene), scene.plan, PAIR, "throughput")
    bits, before_ns = 0, 0
    for at_ns, bps in zip(found.times_ns, found.values, strict=True):
        bits += (bps or 0) * (at_ns - before_ns) * (from_ns < at_ns <= to_ns)
        before_ns = at_ns
    return bits // (to_ns - from_ns)


@pytest.mark.parametrize(
    ("from_ms", "to_ms", "bps"),
    [
        (500, 1000, 80_000),
        (1000, 2000, 80_000),  # the late one
        (2000, 5000, 4000),  # the pause
        (0, 6000, 42_000),
    ],
)
def test_all_tell_the_same_throughput(scene: Scene, from_ms: int, to_ms: int, bps: int) -> None:
    ways = (expected, drawn_on_the_page, plotted, of_the_table, of_the_series)
    told = {way.__name__: way(scene, from_ms * MS, to_ms * MS) for way in ways}
    assert told == dict.fromkeys(told, bps)


@pytest.mark.parametrize(
    ("from_ms", "to_ms", "bps"),
    [
        (1100, 1700, 80_000),  # from the middle of what the late one tells
        (4000, 4900, 0),
        (4450, 4950, 12_000),  # half of what ended the pause
    ],
)
def test_between_samples_there_is_one_rule(
    scene: Scene, from_ms: int, to_ms: int, bps: int
) -> None:
    ways = (expected, drawn_on_the_page, plotted)
    told = {way.__name__: way(scene, from_ms * MS, to_ms * MS) for way in ways}
    assert told == dict.fromkeys(told, bps)


def line(at_ns: int, *links: list[int], **more: object) -> dict[str, Any]:
    return {"at_ns": at_ns, "elapsed_ns": at_ns, "links": links, "pairs": [], **more}


def samples(reader: SampleReader, *lines: dict[str, Any]) -> list[CounterSample]:
    return [sample for sample in map(reader.sample, lines) if sample is not None]


def test_each_host_has_a_sample_before_of_its_own() -> None:
    lines = [HEADER, line(10, host="x"), line(15, host="y"), line(40, host="x"), line(91, host="x")]
    found = [(one.host, one.since_ns, one.until_ns) for one in samples(SampleReader(), *lines)]
    assert found == [("x", 0, 10), ("y", 0, 15), ("x", 10, 40), ("x", 81, 91)]
    some = samples(SampleReader(some=True), *lines)
    assert some[-1].since_ns == 40, "lines were left out, so it was no pause"


def test_plan_time_goes_as_fast_as_the_pace() -> None:
    (sample,) = samples(SampleReader(), HEADER, {**line(8), "at_ns": 580})
    assert (sample.plan_since_ns(60), sample.at_ns) == (100, 580)


@pytest.mark.parametrize("times", [{}, {"at_ns": 1}, {"at_ns": -1, "elapsed_ns": 1}])
def test_a_line_without_times_is_counted_or_refused(times: dict[str, int]) -> None:
    timeless = {"links": [[0, 1]], "pairs": [], **times}
    reader = SampleReader()
    assert [one.until_ns for one in samples(reader, HEADER, timeless, line(5))] == [5]
    assert reader.timeless == 1
    with pytest.raises(RunError, match=SAMPLES):
        samples(SampleReader(strict=True), HEADER, timeless)


def test_rows_of_another_width_are_counted() -> None:
    reader = SampleReader()
    early, late = line(1, [0, 1]), line(2, [0, 7], [1, 8], [0], [], [0, 1, 2])
    before, after = samples(reader, early, HEADER, late)
    assert list(after.rows(LINKS)) == [
        (0, {"link": 0, "out_bytes": 7}),
        (1, {"link": 1, "out_bytes": 8}),
    ]
    assert reader.misshapen == 3
    assert [key for key, _ in after.rows(LINKS, {1})] == [1]
    assert before.host == ""


def test_a_counter_that_fell_has_begun_anew() -> None:
    counter = CounterGrowth()
    for since_ns, until_ns, count in ((0, 10, 100), (10, 20, 30), (5, 15, 99), (15, 30, 31)):
        counter.add(since_ns, until_ns, count)
    assert [counter.by(at_ns) for at_ns in (-1, 0, 5, 10, 20, 25, 99)] == [
        *(0, 0, 50, 100, 130, 130, 131)
    ]
    assert counter.bps(0, 20) == 130 * 8 * SECOND // 20
