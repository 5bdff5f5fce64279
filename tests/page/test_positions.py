"""Nodes that move: what the page and the table of contacts have of them, where they are drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler.pipeline import compile_source, write
from compiler.plan.reader import Plan
from compiler.sources import SourceFolder
from runtime.page import page_network
from runtime.page.page_data import gather
from runtime.page.page_file import page
from runtime.page.page_network import positions
from runtime.rundir import rundir
from tests.page.browser import Browser
from tests.runtime import recorded
from tstorm.reporting.csv_tables import TABLES, encoded
from tstorm.reporting.output_files import gathered

STEP = 10**8
# a stands, b goes away to 100 m at 1 s; a host is at each, another one hangs on a.
FILE = "time,node,x,y\n0,a,0,0\n0,b,20,0\n1,a,0,0\n1,b,100,0\n"
TEXT = """service host exec="sleep 9"
service other exec="sleep 9"
mobility m.csv nodes=host every=100ms range=60m latency=1ms
link other--a latency=1ms
at 1s quit
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "m.csv").write_text(FILE)
    return compile_source(TEXT, sources=SourceFolder(folder)).plan


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "m.csv").write_text(FILE)
    run = recorded.make(folder / "exp")
    write(compile_source(TEXT, sources=SourceFolder(folder)), run / "plan")
    return run


def test_the_page_has_places_in_metres(plan: Plan) -> None:
    found = positions(plan, range(len(plan.topology.nodes)))
    assert found is not None
    assert [plan.topology.nodes[node].name for node in found["nodes"]] == ["a", "b"]
    assert found["times"] == [at * STEP for at in range(11)]
    assert found["places"] == [[[0, 0, 0], [20 + 8 * at, 0, 0]] for at in range(11)]


def test_there_are_not_too_many_of_them(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_network, "MOST_PLACES", 8)
    found = positions(plan, range(len(plan.topology.nodes)))
    assert found is not None
    assert found["times"] == [0, 3 * STEP, 6 * STEP, 9 * STEP]


def test_the_page_has_by_what_nodes_reach_each_other(plan: Plan, tmp_path: Path) -> None:
    found = positions(plan, range(len(plan.topology.nodes)))
    assert found is not None
    assert found["reach"] == {"range_m": 60.0, "body_m": None, "bands": [], "sees": None}
    assert "asking" not in found
    record = {"nodeName": "a", "nodeID": 1, "PosX": 0, "PosY": 0, "PosZ": 0, "visibilityGraph": []}
    records: list[dict[str, object]] = []
    for at, sees in ((0, False), (1, True), (2, True), (3, False)):
        for name, number, other in (("a", 1, 2), ("b", 2, 1)):
            graph = [{"nodeID": other, "LoS": sees}]
            moved = {"nodeName": name, "nodeID": number, "Time": at, "visibilityGraph": graph}
            records.append({**record, **moved})
    document = {"MobilecomScnDef": {"simDuration": 4.0, "MobileNodeDef": records}}
    (tmp_path / "m.json").write_text(json.dumps(document))
    (tmp_path / "rates.csv").write_text("distance,rate\n0,1Mb\n50,0\n")
    text = "mobility m.json rate=rates.csv body=5m\n"
    plan = compile_source(text, sources=SourceFolder(tmp_path)).plan
    found = positions(plan, range(len(plan.topology.nodes)))
    assert found is not None
    assert found["reach"] == {
        "range_m": None,
        "body_m": 5.0,
        "bands": [[0.0, 1], [50.0, 0]],
        "sees": [[], [1], [], [1], []][: len(found["times"])],
    }


def test_contacts_are_the_times_of_links(run: Path) -> None:
    rows = b"".join(encoded(TABLES["contacts"], gathered(str(run)))).decode()
    assert rows == f"a,b,from_ns,to_ns\na,b,0,{6 * STEP}\n"


@pytest.mark.e2e
def test_nodes_are_drawn_where_they_are(browser: Browser, run: Path, tmp_path: Path) -> None:
    directory = rundir.recorded(run)
    data = gather(directory, directory.manifest(), directory.summary())
    written = tmp_path / "moving.html"
    written.write_text(page(data))
    browser.open(written)
    assert browser.problems == []
    assert browser.run("document.querySelector('#network .reach').hidden") is False
    far = []
    for at in (0, 0.5, 1):
        browser.run(f"thunderstorm.view.move({at}e9, true)")
        browser.settle()
        # What the pointer meets says where nodes are: the distance from a to b along the picture.
        met = browser.run(f"({_UNDER_POINTER})()")
        places = {name: xs for name, xs in met.items() if name in data["network"]["nodes"]}
        assert set(places) == set(data["network"]["nodes"])
        middle = {name: sum(xs) / len(xs) for name, xs in places.items()}
        assert abs(middle["host.0"] - middle["a"]) < 60
        far.append(middle["b"] - middle["a"])
    assert far[0] < far[1] < far[2]
    assert far[2] / far[0] == pytest.approx(5, rel=0.4)


# Three in a row, each of which reaches its neighbours until the last goes away; a program of the
# first asks for a link.
ROW = "time,node,x,y\n0,a,0,0\n0,b,50,0\n0,c,100,0\n0.8,c,100,0\n0.9,c,400,0\n1,a,0,0\n1,b,50,0\n"
ASKED = """service car router exec="sleep 9"
mobility row.csv nodes=car every=100ms range=60m latency=1ms transceivers=2 allocate=program
at 1s quit
"""


@pytest.mark.e2e
def test_links_are_those_that_were_granted_and_dots_the_others(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "row.csv").write_text(ROW)
    run = recorded.make(tmp_path / "exp")
    write(compile_source(ASKED, sources=SourceFolder(tmp_path)), run / "plan")
    args = {"up": 1, "why": "asked", "radio": 0, "other": 0}
    granted = {"kind": "radio", "target": "car.0--car.1", "args": args, "origin": "car.0"}
    times = {"planned_ns": 5 * STEP, "applied_ns": 5 * STEP}
    out_of_reach, taken = (
        {**recorded.EVENTS[0], "kind": "link_down", "target": target, "line": line, "seq": seq}
        for seq, target, line in ((2, "car.0->car.2", 2), (3, "car.1->car.2", 3))
    )
    with (run / "events.jsonl").open("ab") as log:
        log.write(recorded.lines([out_of_reach, taken, {**granted, **times}]))
    directory = rundir.recorded(run)
    data = gather(directory, directory.manifest(), directory.summary())
    written = tmp_path / "asked.html"
    written.write_text(page(data))
    browser.open(written)
    assert browser.problems == []
    assert data["network"]["positions"]["line"] == 2
    found: list[object] = []
    for at in (0.2, 0.8):
        browser.run(f"thunderstorm.view.move({at}e9, true)")
        browser.settle()
        found.append(set(browser.run(f"({_UNDER_POINTER})()")) - set(data["network"]["nodes"]))
    assert found == [set(), {"car.0->car.1", "car.1->car.0"}]
    said = browser.run("document.body.innerText")
    assert "car.1->car.2 down from" in said  # which the mobility has not done
    assert "car.0->car.2 down" not in said
    drawn = [browser.run("document.querySelector('.drawing canvas').toDataURL()")]
    browser.run("document.querySelector('#network .reach input').click()")
    browser.settle()
    drawn.append(browser.run("document.querySelector('.drawing canvas').toDataURL()"))
    assert drawn[0] != drawn[1]


# Machines of a router and another part, each with a radio on one channel.
MACHINES = """node sat replicas=2 {
    service gnab router exec="sleep 9"
    service part exec="sleep 9"
    lan inner
    link gnab--inner
    link part--inner
}
air wifi
link sat.gnab--wifi rate=1Mb
mobility m.csv nodes=sat.gnab every=100ms range=60m latency=1ms
at 1s quit
"""


@pytest.mark.e2e
def test_a_machine_has_one_name_and_stands_where_its_radio_is(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "m.csv").write_text(FILE)
    run = recorded.make(tmp_path / "exp")
    write(compile_source(MACHINES, sources=SourceFolder(tmp_path)), run / "plan")
    directory = rundir.recorded(run)
    data = gather(directory, directory.manifest(), directory.summary())
    written = tmp_path / "machines.html"
    written.write_text(page(data))
    browser.open(written)
    browser.run(_NOTE_TEXTS)
    browser.run("thunderstorm.view.move(0.4e9, true)")
    browser.settle()
    assert {text for text in browser.run("noted") if "sat" in text} == {"sat.0", "sat.1"}
    met = browser.run(f"({_UNDER_POINTER})()")
    there, back = (f"sat.{a}.gnab.0.wifi->sat.{b}.gnab.0.wifi" for a, b in ((0, 1), (1, 0)))
    routers = {"sat.0.gnab.0", "sat.1.gnab.0"}
    assert {one for one in met if "gnab" in one and "inner" not in one} == {there, back, *routers}
    assert browser.problems == []


_NOTE_TEXTS = """(() => {
  window.noted = [];
  const draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    noted.push(text);
    draw.call(this, text, ...place);
  };
})()"""
_UNDER_POINTER = """() => {
  const [canvas, tip] = document.querySelectorAll(".drawing canvas, .drawing .tip");
  const box = canvas.getBoundingClientRect(), found = {};
  for (let x = 0; x < box.width; x += 2)
    for (let y = 0; y < box.height; y += 2) {
      const at = { clientX: box.left + x, clientY: box.top + y };
      canvas.dispatchEvent(new PointerEvent("pointermove", at));
      if (!tip.hidden) (found[tip.querySelector("b").textContent] ??= []).push(x);
    }
  return found;
}"""
