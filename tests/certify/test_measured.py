"""Runs on links whose jitter was measured are judged by what their delays make of probes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from compiler.plan.parts.delay_tables import ONE, PARTS, decode
from runtime.certify.expected_delay import expected, ways
from runtime.certify.planned_paths import Planned
from runtime.probing.probe_intervals import least
from tests.certify.scene import MS, Fault, Scene, whats

TDL = """service a img=x
service b img=x
bridges s
link a->s dist=delays.txt
link s->a latency=5ms
link b--s latency=5ms
at 60s quit
"""
ONE_WAY = (("a.0", "b.0"),)


def scene(place: Path, delays: list[float]) -> Scene:
    (place / "delays.txt").write_text("".join(f"{ms:.4f}\n" for ms in delays))
    return Scene(place, TDL, pairs=ONE_WAY)


def lognormal() -> list[float]:
    draws = random.Random(1)
    return [8 + draws.lognormvariate(0, 0.4) for _ in range(4000)]


def drawn(made: Scene, *, stretched: float = 1.0, later_ns: int = 0) -> Fault:
    """Of the table of the plan, anew for each."""
    draws = random.Random(2)
    [content] = made.plan.attached.delays.values()
    table = decode(content)

    def fault(_sent: int, _delay: int | None) -> int:
        place = draws.random() * PARTS
        low, high = table.points[int(place) : int(place) + 2]
        deviation = (low + (high - low) * (place - int(place))) / ONE * stretched
        late = round(table.mean_ns + deviation * table.deviation_ns) + later_ns
        return late + 5 * MS + 50_000

    return fault


def test_a_run_with_the_delays_of_the_file_is_valid(tmp_path: Path) -> None:
    found = scene(tmp_path, lognormal())
    found.probe(drawn(found))
    verdict = found.judged()
    assert (verdict["state"], verdict["reasons"]) == ("valid", [])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"later_ns": 3 * MS}, "path_late"),
        ({"later_ns": -3 * MS}, "path_early"),
        ({"stretched": 4.0}, "path_jitter"),
    ],
)
def test_other_delays_are_found(tmp_path: Path, change: dict[str, int], what: str) -> None:
    found = scene(tmp_path, lognormal())
    found.probe(drawn(found, **change))
    assert whats(found.judged()) == [what]


def test_few_probes_tell_nothing_of_delays_that_change_rarely(tmp_path: Path) -> None:
    """Two humps far from each other: 70 jitters of some 2 s from one probe to the next."""
    draws = random.Random(4)
    found = scene(tmp_path, [draws.choice([1000, 5000]) + draws.random() for _ in range(4000)])
    found.probe(drawn(found))
    assert found.judged()["state"] == "unknown"


def test_what_is_expected_follows_from_the_table(tmp_path: Path) -> None:
    made = scene(tmp_path, [10.0] * 998 + [40.0] * 2)
    planned = Planned(made.plan, made.timeline, [(0, 1)], {})
    found = expected(ways(planned.stretches[0, 1][-1], both=False))
    assert found.heavy
    assert found.kurtosis > 300
    assert found.apart > 24
    assert found.deviation_ns == pytest.approx(found.jitter_ns)
    assert not found.cut
    assert least([made.plan.topology.links[0].state]) == 200


def test_delays_down_to_nothing_are_judged(tmp_path: Path) -> None:
    """What a table rounds is no delay that would be below 0."""
    draws = random.Random(3)
    delays = [0.0] * 300 + [draws.uniform(0, 10) for _ in range(3000)]
    found = scene(tmp_path, delays)
    found.probe(drawn(found))
    verdict = found.judged()
    assert (verdict["state"], verdict["reasons"]) == ("valid", [])


def test_delays_that_the_latency_has_no_room_for_are_not(tmp_path: Path) -> None:
    (tmp_path / "delays.txt").write_text("1\n" + "20\n" * 5)
    made = Scene(tmp_path, TDL.replace("dist=", "latency=4ms jitter=3.9ms dist="))
    planned = Planned(made.plan, made.timeline, [(0, 1)], {})
    assert expected(ways(planned.stretches[0, 1][-1], both=False)).cut
