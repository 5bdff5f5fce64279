"""Verdicts of paths through a bottleneck: probes of one wait behind the traffic of the other, and a
path may get more than its own table has."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from runtime.certify.expected_delay import queues
from runtime.certify.planned_paths import Planned
from runtime.datapath.sampler import LINK_COLUMNS
from runtime.options import DEFAULTS
from runtime.schedule import Schedule
from tests.certify.scene import MS, SECOND, Scene, whats

TEXT = """service a img=x
service b img=x
service c img=x
bottleneck west
path a--b abw=2Mb rtt=20ms {first}
path a--c abw=16Mb rtt=20ms {second}
at 30s a--c set abw=12Mb
at 60s quit
"""
SHARED = {"first": "bottleneck-up=west", "second": "bottleneck-up=west"}
APART = {"first": "", "second": ""}


def scene(place: Path, words: dict[str, str], to: str, bps: int) -> Scene:
    """A flow from a to one of the others, while pairs of a and b are probed."""
    made = Scene(place, TEXT.format(**words), pairs=(("a.0", "b.0"),))
    links = {link.name: number for number, link in enumerate(made.plan.topology.links)}
    rows = []
    for tick in range(10, 600):
        at = (tick + 1) * 100 * MS
        count = int(bps / 8 * (at / SECOND - 1))
        rest = [0] * (len(LINK_COLUMNS) - 5)
        link = [links[f"a.0->{to}"], count // 1000, count, count // 1000, count, *rest]
        pair = [made.numbers["a.0"], made.numbers[to], count // 1000, count, count // 1000, count]
        rows.append(
            {"at_ns": at, "elapsed_ns": at, "links": [link], "pairs": [[*pair, 0, 0, 0, 0]]}
        )
    made.sample(rows)
    return made


@pytest.mark.parametrize(("words", "found"), [(SHARED, []), (APART, ["path_tail"])])
def test_probes_wait_behind_the_traffic_of_another_path(
    tmp_path: Path, words: dict[str, str], found: list[str]
) -> None:
    made = scene(tmp_path, words, "c.0", 10_000_000)

    def behind(sent_ns: int, delay_ns: int | None) -> int | None:
        busy = sent_ns > 2 * SECOND and sent_ns % (3 * SECOND) < SECOND
        return delay_ns if delay_ns is None or not busy else delay_ns + 30 * MS

    made.probe(behind)
    assert whats(made.judged()) == found


@pytest.mark.parametrize(("words", "found"), [(SHARED, []), (APART, ["path_rate"])])
def test_a_path_may_get_of_what_there_is_for_another(
    tmp_path: Path, words: dict[str, str], found: list[str]
) -> None:
    made = scene(tmp_path, words, "b.0", 14_000_000)
    made.probe()
    assert [what for what in whats(made.judged()) if what == "path_rate"] == found


def test_a_change_of_one_path_is_one_of_all() -> None:
    plan = compile_source(TEXT.format(**SHARED)).plan
    planned = Planned(plan, Schedule(plan, DEFAULTS), [(0, 1)], {})
    stretches = [one for one in planned.stretches[0, 1] if one.there is not None]
    rates = []
    for one in stretches:
        assert one.there is not None
        [queue] = queues((one.there,), draws=False)
        assert queue.beside == (0, 2)
        [state] = one.there.states
        rates.append((state.rate_bps, int(state.flow_rates.split(":")[1])))
    assert rates == [(2_000_000, 16_000_000), (2_000_000, 12_000_000)]
