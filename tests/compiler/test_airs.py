"""`air`: radios of stations, what links at an air state, and what names of it stand for."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from compiler.analysis.history import History
from compiler.analysis.obstacles import obstacles
from compiler.pipeline import compile_source
from compiler.plan.format import PlanError
from compiler.plan.paths.path import path
from compiler.plan.reader import decode
from compiler.plan.rules.capabilities import COMPOSE, KUBERNETES, refusal, to_blame
from compiler.plan.rules.consistency import topology as check
from compiler.plan.rules.datapath_fit import misfit
from compiler.plan.rules.property_limits import HOP_EXACT, PATHS
from compiler.sources import RecordedFiles
from tests.compiler.test_movement import codes, compiled

# b hears both others, and c leaves at 5 s.
ROW = "time,node,x,y\n0,a,0,0\n0,b,100,0\n0,c,200,0\n4,c,200,0\n5,c,900,0\n9,a,0,0\n"
LOSSES = "distance,loss\n0,0\n90,10%\n190,100%\n"
TEXT = """\
service car
air wifi tags=radio
link car--wifi rate=6Mb queue=30KB address=10.0.0.1/24+
mobility row.csv nodes=car range=150m latency=1ms
"""


def _events(folder: Path, text: str) -> list[tuple[int, str, str]]:
    found = compiled(folder, text, row_csv=ROW).plan.events
    return [(one.at_ns // 10**9, one.kind, one.target) for one in found if one.kind != "join"]


def _both(kind: str, at_s: int, a: str, b: str) -> list[tuple[int, str, str]]:
    return [(at_s, kind, f"{a}->{b}"), (at_s, kind, f"{b}->{a}")]


def test_each_station_has_a_radio_and_sends_by_its_own_queue(tmp_path: Path) -> None:
    plan = compiled(tmp_path, TEXT, row_csv=ROW).plan
    nodes = plan.topology.nodes
    radios = ["car.0.wifi", "car.1.wifi", "car.2.wifi"]
    assert [node.name for node in nodes if node.air] == radios
    assert [nodes[node].name for node in plan.topology.mobility[0].nodes] == radios
    assert [node.ipv4 for node in nodes[:3]] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    states = {link.name: link.state for link in plan.topology.links}
    assert set(states) == {
        *(f"car.{k}->car.{k}.wifi" for k in range(3)),
        *(f"car.{k}.wifi->car.{k}" for k in range(3)),
        "car.0.wifi->car.1.wifi",
        "car.1.wifi->car.0.wifi",
        "car.1.wifi->car.2.wifi",
        "car.2.wifi->car.1.wifi",
    }
    sends, hears, between = (
        states[name]
        for name in ("car.0->car.0.wifi", "car.0.wifi->car.0", "car.0.wifi->car.1.wifi")
    )
    assert (sends.rate_bps, sends.queue_bytes, sends.delay_ns) == (6_000_000, 30_000, 0)
    assert (hears.rate_bps, hears.delay_ns, hears.loss_ppb) == (0, 0, 0)
    assert (between.rate_bps, between.delay_ns) == (0, 1_000_000)


def test_a_plan_with_an_air_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = compiled(tmp_path, TEXT, row_csv=ROW)
    again = decode(made.files)
    assert again.topology == made.topology
    assert compile_source(again.source, sources=RecordedFiles(again)).plan.digest == again.digest


def test_nothing_leads_over_a_third_radio(tmp_path: Path) -> None:
    plan = compiled(tmp_path, TEXT, row_csv=ROW).plan
    nodes, links = plan.topology.nodes, plan.topology.links
    for at_s in (0, 4, 6):
        state = plan.state_at(at_s * 10**9)
        up = {links[one].name for one, link in enumerate(state.links) if link.up}
        for a, b in combinations(range(3), 2):
            name = f"{nodes[a].name}.wifi->{nodes[b].name}.wifi"
            found = path(state, a, b)
            assert found.reachable == (name in up), (at_s, name)
            assert len(found.links) == (3 if name in up else 0)
    assert {name for name in up if name.count("wifi") == 2} == {
        "car.0.wifi->car.1.wifi",
        "car.1.wifi->car.0.wifi",
    }


def test_what_is_in_the_way_is_the_link_of_the_two(tmp_path: Path) -> None:
    plan = compiled(tmp_path, TEXT, row_csv=ROW).plan
    history = History(plan)
    last = len(plan.epochs) - 1
    (found,) = obstacles(history, 1, 2, last)
    assert (found.element, found.state) == ("car.1.wifi->car.2.wifi", "down")
    assert obstacles(history, 0, 2, 0) == ()  # there is no link between them at any time


def test_loss_by_distance_is_of_each_pair(tmp_path: Path) -> None:
    text = TEXT.replace("range=150m", "loss=loss.csv")
    plan = compiled(tmp_path, text, row_csv=ROW.splitlines()[0] + "\n" + "\n".join(
        ROW.splitlines()[1:4]) + "\n", loss_csv=LOSSES).plan  # fmt: skip
    lost = {link.name: link.state.loss_ppb for link in plan.topology.links}
    assert lost["car.0.wifi->car.1.wifi"] == 10**8
    assert lost["car.0.wifi->car.2.wifi"] == 10**9


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("car.0--car.1 leave", _both("link_down", 2, "car.0.wifi", "car.1.wifi")),
        ("wifi:car.0->car.1 leave", [(2, "link_down", "car.0.wifi->car.1.wifi")]),
        ("wifi leave", [(2, "bridge_down", f"car.{k}.wifi") for k in range(3)]),
        ("tags=radio leave", [(2, "bridge_down", f"car.{k}.wifi") for k in range(3)]),
        ("car--wifi set rate=1Mb", [(2, "set", f"car.{k}->car.{k}.wifi") for k in range(3)]),
        ("car.1--wifi set loss=5%", [(2, "set", "car.1->car.1.wifi")]),
        ("car.1--wifi leave", _both("link_down", 2, "car.1", "car.1.wifi")),
        ("partition car.0;car.1", _both("link_down", 2, "car.0.wifi", "car.1.wifi")),
        ("partition car.0 car.2;car.1", [
            *_both("link_down", 2, "car.0.wifi", "car.1.wifi"),
            *_both("link_down", 2, "car.1.wifi", "car.2.wifi"),
        ]),
    ],
)  # fmt: skip
def test_names_of_an_air_stand_for_its_radios(
    tmp_path: Path, said: str, found: list[tuple[int, str, str]]
) -> None:
    assert [one for one in _events(tmp_path, f"{TEXT}at 2s {said}\n") if one[0] == 2] == found


def test_parts_of_machines_are_stations_and_leave_with_them(tmp_path: Path) -> None:
    text = "node sat replicas=3 {\nservice gnab router\nservice app\nlink gnab--app\n}\nair sky\n"
    text += (
        "addresses auto\nlink sat.gnab--sky up=5Mb\nmobility row.csv nodes=sat.gnab range=150m\n"
    )
    found = _events(tmp_path, text + "at 2s sat.1 disconnect for 1s\n")
    assert [one for one in found if one[0] == 2] == _both(
        "link_down", 2, "sat.1.gnab.0", "sat.1.gnab.0.sky"
    )


@pytest.mark.parametrize("text", [TEXT, "bridge s\nmobility row.csv range=150m\n"])
def test_only_what_is_out_of_reach_at_first_has_an_event_then(tmp_path: Path, text: str) -> None:
    nearer = ROW.replace("0,c,200,0\n4,c,200,0\n5,c,900,0", "0,c,900,0\n4,c,900,0\n5,c,200,0")
    events = compiled(tmp_path, text, row_csv=nearer).plan.events
    moved = [(one.at_ns, one.kind) for one in events if one.kind.startswith("link_")]
    assert moved == [(0, "link_down")] * 2 + [(5 * 10**9, "link_up")] * 2


def test_two_airs_are_heard_apart(tmp_path: Path) -> None:
    text = TEXT.replace("service car", "service car router")
    text += "air slow\nlink car--slow rate=1Mb address=10.1.0.1/24+\n"
    plan = compiled(tmp_path, text, row_csv=ROW).plan
    names = {link.name for link in plan.topology.links}
    assert {"car.0.wifi->car.1.wifi", "car.0.slow->car.1.slow"} <= names
    assert not any("wifi" in name and "slow" in name for name in names)
    ups = {one.target for one in plan.events if one.kind == "link_down" and one.at_ns > 0}
    assert {"car.1.wifi->car.2.wifi", "car.1.slow->car.2.slow"} <= ups


MOVES = "mobility row.csv nodes=car range=150m\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("air w\nlink car--w\n", "TS0632"),
        (f"air w\n{MOVES}", "TS0632"),
        (f"air w\nservice still\nlink still--w\nlink car--w\n{MOVES}", "TS0632"),
        (f"air w\nlink car.0--w\n{MOVES}", "TS0632"),
        (f"air w\nlink cart--w\n{MOVES}", "TS0102"),
        (f"air w\nlink car--w\nlink car.0--w name=two\n{MOVES}", "TS0633"),
        (f"air w\nlink w--car\n{MOVES}", "TS0633"),
        (f"air w\nlink car->w\n{MOVES}", "TS0633"),
        (f"air w\nlink car--w down=5Mb\n{MOVES}", "TS0633"),
        (f"air w\nair v\nlink car--w\nlink w--v\n{MOVES}", "TS0633"),
        (f"air w\npath car--w abw=1Mb rtt=5ms\n{MOVES}", "TS0633"),
        ("air w\nlink car--w\nmobility row.csv nodes=car rate=5Mb\n", "TS0633"),
        (f"air w\nlink car--w\n{MOVES[:-1]} transceivers=1 allocate=nearest\n", "TS0633"),
        (f"air w\nair w\nlink car--w\n{MOVES}", "TS0101"),
        (f"air car\nlink car--car\n{MOVES}", "TS0101"),
        (f"node m {{\nservice p\nair w\n}}\nlink car--m.p\n{MOVES}", "TS0621"),
        (f"air w\nlink car--w\n{MOVES}at 2s car.0--car.2 leave\n", "TS0202"),
        (f"air w\nlink car--w address=10.0.0.1/24\n{MOVES}", "TS0602"),
    ],
)  # fmt: skip
def test_airs_that_cannot_be(tmp_path: Path, text: str, code: str) -> None:
    assert code in codes(tmp_path, "service car\n" + text, row_csv=ROW)


def test_only_one_engine_for_all_links_carries_it(tmp_path: Path) -> None:
    plan = compiled(tmp_path, TEXT, row_csv=ROW).plan
    assert misfit(plan, HOP_EXACT) is None
    for datapath in set(PATHS) - {HOP_EXACT}:
        found = misfit(plan, datapath)
        assert found is not None, datapath
        assert (found.line, "(air)" in found.what) == (2, True), datapath
    for target in (COMPOSE, KUBERNETES):
        blamed = to_blame(plan, target)
        assert blamed is not None
        assert (blamed.line, "air" in refusal(plan, target)) == (2, True)


def test_radios_of_no_station_are_no_plan(tmp_path: Path) -> None:
    found = compiled(tmp_path, TEXT, row_csv=ROW).topology
    check(found)
    radios = [number for number, node in enumerate(found.nodes) if node.air]
    for nodes in (
        [
            replace(one, air=one.air and number != radios[0])
            for number, one in enumerate(found.nodes)
        ],
        [replace(one, air=number == 0 or one.air) for number, one in enumerate(found.nodes)],
    ):
        with pytest.raises(PlanError, match="radio"):
            check(replace(found, nodes=tuple(nodes)))
