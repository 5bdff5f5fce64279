"""`mobility`: links, events and traces of a plan beside what its file says, counted anew."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.extension import extend
from compiler.mobility import sight
from compiler.mobility.link_rows import latency_ns
from compiler.pipeline import Compilation, compile_source
from compiler.plan.parts import traces
from compiler.plan.parts.led_links import led_links
from compiler.plan.parts.motion import Motion, Point
from compiler.plan.paths.path import path
from compiler.plan.properties import LinkState
from compiler.plan.reader import Plan
from compiler.plan.rules import capabilities
from compiler.plan.rules.datapath_fit import misfit
from compiler.plan.rules.property_limits import HOP_EXACT
from compiler.sources import RecordedFiles, SourceFolder
from tdl.diagnostics import TdlError
from tests.mobility_model import Radios, square_apart

LIGHT = 299_792_458
SECOND = 10**9


def compiled(folder: Path, text: str, **files: str) -> Compilation:
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    return compile_source(text, sources=SourceFolder(folder))


def codes(folder: Path, text: str, **files: str) -> list[str]:
    try:
        return [one.code for one in compiled(folder, text, **files).diagnostics]
    except TdlError as error:
        return [one.code for one in error.diagnostics if one.severity.value == "error"]


# --- who is linked ------------------------------------------------------------------------------

_axis = st.integers(-30, 30)
_tracks = st.integers(2, 7).flatmap(
    lambda nodes: st.integers(1, 6).flatmap(
        lambda steps: st.lists(
            st.lists(st.tuples(_axis, _axis, _axis), min_size=steps, max_size=steps),
            min_size=nodes,
            max_size=nodes,
        )
    )
)


def _nearest_to_origin(one: Point, two: Point) -> Fraction:
    """The square of the distance from the origin to the segment, in fractions."""
    way = [b - a for a, b in zip(one, two, strict=True)]
    length = sum(d * d for d in way)
    share = (
        Fraction(0)
        if not length
        else Fraction(-sum(a * d for a, d in zip(one, way, strict=True)), length)
    )
    share = max(Fraction(0), min(Fraction(1), share))
    return sum(((a + share * d) ** 2 for a, d in zip(one, way, strict=True)), Fraction(0))


@given(_tracks, st.none() | st.integers(0, 60), st.none() | st.integers(0, 25), st.integers(1, 4))
def test_links_are_those_of_the_algorithm(
    tracks: list[list[Point]], reach: int | None, body: int | None, count: int
) -> None:
    steps = len(tracks[0])
    motion = Motion(range(steps), tracks, None, steps, False)
    seen = list(sight.seen(motion, reach, body))
    found = sight.nearest(seen, len(tracks), count)
    radios = Radios(len(tracks), count)
    for step, links in enumerate(found):
        at = [track[step] for track in tracks]
        visible = {
            (a, b)
            for a, b in combinations(range(len(at)), 2)
            if (reach is None or square_apart(at[a], at[b]) <= reach**2)
            and (body is None or _nearest_to_origin(at[a], at[b]) >= body**2)
        }
        assert {(pair.a, pair.b) for pair in seen[step]} == visible
        assert set(links) == radios.step(visible, at)
        assert links == {(a, b): square_apart(at[a], at[b]) for a, b in links}
        used = Counter(node for pair in links for node in pair)
        assert max(used.values(), default=0) <= count


def test_the_example_of_the_paper() -> None:
    one, two = (
        (-15_777_768_500, -4_847_702_200, -21_031_090_290),
        (
            6_908_704_700,
            25_485_215_000,
            -1_440_555_000,
        ),
    )
    square = square_apart(one, two)
    assert latency_ns(square) == 142_246_648
    motion = Motion([0], [[one], [two]], None, 1, False)
    assert list(sight.seen(motion, None, 6_371_000_000)) == [[sight.Pair(square, 0, 1)]]
    assert list(sight.seen(motion, None, 15_887_000_000)) == [[]]
    assert list(sight.seen(motion, 42_644_000_000, None)) == [[]]


# --- the plan -----------------------------------------------------------------------------------

# Three in a row: the last one goes away and comes back.
ROW = "time,node,x,y\n" + "".join(
    f"{t},a,0,0\n{t},b,3000000,0\n{t},c,{3_000_000 + 1_000_000 * (1 + min(t, 8 - t))},0\n"
    for t in range(9)
)
EXPERIMENT = """service host exec="tprobe serve"
mobility row.csv nodes=host range=3000km rate=10Mb
at 20s quit
"""


def _up(plan: Plan, at_ns: int) -> set[str]:
    down: set[str] = set()
    for event in plan.events:
        if event.at_ns <= at_ns:
            if event.kind == "link_down":
                down.add(event.target)
            elif event.kind == "link_up":
                down.discard(event.target)
    return {link.name for link in plan.topology.links} - down


def test_nodes_become_bridges_with_an_instance_each(tmp_path: Path) -> None:
    plan = compiled(tmp_path, EXPERIMENT, row_csv=ROW).plan
    assert [node.name for node in plan.topology.nodes] == [
        "host.0",
        "host.1",
        "host.2",
        "a",
        "b",
        "c",
    ]
    names = [link.name for link in plan.topology.links]
    assert names[::2] == ["host.0->a", "host.1->b", "host.2->c", "a->b", "b->c"]
    assert [plan.topology.nodes[node].name for node in plan.topology.mobility[0].nodes] == [
        "a",
        "b",
        "c",
    ]


def test_links_come_and_go_with_the_line_of_the_statement(tmp_path: Path) -> None:
    plan = compiled(tmp_path, EXPERIMENT, row_csv=ROW).plan
    changes = [
        (e.at_ns // SECOND, e.kind, e.target, e.line) for e in plan.events if "link" in e.kind
    ]
    assert changes == [
        (3, "link_down", "b->c", 2),
        (3, "link_down", "c->b", 2),
        (6, "link_up", "b->c", 2),
        (6, "link_up", "c->b", 2),
    ]


def test_delays_are_those_of_light_within_a_step(tmp_path: Path) -> None:
    plan = compiled(tmp_path, EXPERIMENT, row_csv=ROW).plan
    link = next(one for one in plan.topology.links if one.name == "b->c")
    _, trace = traces.of_plan(plan).content(link.state.trace)
    assert trace.fields == ("delay_ns",)
    for t in (0, 1, 2, 6, 7, 8):
        metres = 1_000_000 * (1 + min(t, 8 - t))
        delay = trace.at(t * SECOND, holds=True)["delay_ns"]  # type: ignore[union-attr]
        assert abs(Fraction(metres * SECOND, LIGHT) - delay) <= Fraction(1, 2)
    # Of the time in which it is up: 1, 2, 3 Mm at 1 s each, 3, 2, and then 1 from 8 s to 20 s.
    up = [latency_ns((10**9 * far) ** 2) for far in (1, 2, 3, 3, 2, *[1] * 12)]
    assert link.state.delay_ns == sum(up) // 17
    assert link.state.rate_bps == 10**7


# --- how it ends --------------------------------------------------------------------------------

GRAPH = """{"MobilecomScnDef": {"simDuration": 7.5, "MobileNodeDef": [
    {"nodeName": "a", "nodeID": 1, "PosX": 0, "PosY": 0, "PosZ": 0, "Time": 0},
    {"nodeName": "b", "nodeID": 2, "PosX": 9, "PosY": 0, "PosZ": 0, "Time": 0},
    {"nodeName": "a", "nodeID": 1, "PosX": 0, "PosY": 0, "PosZ": 0, "Time": 7.2,
        "visibilityGraph": [{"nodeID": 2, "LoS": true}]},
    {"nodeName": "b", "nodeID": 2, "PosX": 9, "PosY": 0, "PosZ": 0, "Time": 7.2,
        "visibilityGraph": [{"nodeID": 1, "LoS": true}]},
    {"nodeName": "a", "nodeID": 1, "PosX": 0, "PosY": 0, "PosZ": 0, "Time": 7.8}]}}"""
LAST_STEPS = {
    "csv": ("time,node,x,y\n0,a,0,0\n0,b,1000,0\n10.3,b,199,0\n", 11),
    "setdest": (
        '$node_(0) set X_ 0\n$node_(1) set X_ 1000\n$ns_ at 10.1 "$node_(1) setdest 199 0 4005"\n',
        11,
    ),
    "bonnmotion": ("0 0 0\n0 1000 0 10.3 199 0\n", 11),
    "gpx": (
        "<gpx><trk><name>a</name><trkseg>"
        '<trkpt lat="0" lon="0"><ele>0</ele><time>2026-01-01T00:00:00Z</time></trkpt>'
        "</trkseg></trk><trk><name>b</name><trkseg>"
        '<trkpt lat="0" lon="0"><ele>1000</ele><time>2026-01-01T00:00:00Z</time></trkpt>'
        '<trkpt lat="0" lon="0"><ele>199</ele><time>2026-01-01T00:00:10.3Z</time></trkpt>'
        "</trkseg></trk></gpx>",
        11,
    ),
    "visibility": (GRAPH, 8),  # what is later than its end is none of it
}


def _state(plan: Plan, name: str) -> LinkState:
    return next(one.state for one in plan.topology.links if one.name == name)


def _changes(plan: Plan) -> list[tuple[int, str, str]]:
    return [(e.at_ns // SECOND, e.kind, e.target) for e in plan.events if "link" in e.kind]


@pytest.mark.parametrize("kind", LAST_STEPS)
def test_what_is_after_the_last_whole_step_happens_at_the_next(tmp_path: Path, kind: str) -> None:
    content, second = LAST_STEPS[kind]
    far = "10km" if kind == "visibility" else "200m"
    reach = f"every=1s range={far} latency=5ms"
    text = f"service s\nmobility m.x nodes=s format={kind} {reach}\nat 20s quit\n"
    found = [one[:2] for one in _changes(compiled(tmp_path, text, m_x=content).plan)]
    assert found == [(0, "link_down")] * 2 + [(second, "link_up")] * 2


def test_who_leaves_the_range_after_the_last_whole_step_is_gone(tmp_path: Path) -> None:
    rows = "time,node,x,y\n0,a,0,0\n0,b,100,0\n10.3,b,200,0\n10.6,b,201,0\n"
    text = "service s\nmobility m.csv nodes=s range=200m latency=5ms\nat 20s quit\n"
    plan = compiled(tmp_path, text, m_csv=rows).plan
    assert _changes(plan) == [(11, "link_down", "a->b"), (11, "link_down", "b->a")]


AWAY = "time,node,x,y\n0,a,0,0\n0,b,1000,0\n{last},b,300000000,0\n"
HELD = latency_ns((300_000_000 * 1000) ** 2)
NEAR = latency_ns((1000 * 1000) ** 2)
ROUND = """service s exec="tprobe serve"
bridge r
mobility m.csv nodes=s
link r--a latency=10ms
link r--b latency=10ms
"""


def test_the_last_place_is_reached_and_held(tmp_path: Path) -> None:
    text = "service s\nmobility m.csv nodes=s\nat 20s quit\n"
    plan = compiled(tmp_path, text, m_csv=AWAY.format(last="0.9")).plan
    _, trace = traces.of_plan(plan).content(_state(plan, "a->b").trace)
    found = [trace.at(t * SECOND, holds=True) for t in (0, 1, 19, 99)]  # type: ignore[union-attr]
    assert [one["delay_ns"] for one in found] == [NEAR, HELD, HELD, HELD]


@pytest.mark.parametrize(
    ("ends", "mean", "over"),
    [
        ("at 60s quit", (NEAR + 59 * HELD) // 60, "r"),
        ("at 1s quit", NEAR, "b"),  # what the file has behind it never is
        ("", HELD, "r"),  # nobody knows when it ends
        ("quit when s exits", HELD, "r"),
        ("quit when s exits\nat 60s quit", (NEAR + 59 * HELD) // 60, "r"),
    ],
)
def test_means_are_of_the_time_until_the_experiment_ends(
    tmp_path: Path, ends: str, mean: int, over: str
) -> None:
    plan = compiled(tmp_path, f"{ROUND}{ends}\n", m_csv=AWAY.format(last=1)).plan
    assert _state(plan, "a->b").delay_ns == mean
    names = {node.name: number for number, node in enumerate(plan.topology.nodes)}
    for at_ns in (0, plan.end_ns - 1):
        found = path(plan.state_at(at_ns), names["s.0"], names["s.1"])
        assert found.links is not None
        assert plan.topology.links[found.links[1]].dst == names[over]


def test_a_stretch_of_the_whole_has_the_mean_of_the_link(tmp_path: Path) -> None:
    """What `explain` says of the trace is what its table has."""
    text = "service s\nmobility m.csv nodes=s\nat 60s quit\n"
    plan = compiled(tmp_path, text, m_csv=AWAY.format(last=1)).plan
    state = _state(plan, "a->b")
    followed = traces.of_plan(plan).between(state, 0, plan.end_ns)
    assert followed is not None
    assert followed.ranges["delay_ns"] == (state.delay_ns, NEAR, HELD)


def test_who_ends_a_run_by_hand_changes_no_link(tmp_path: Path) -> None:
    plan = compiled(tmp_path, ROUND, m_csv=AWAY.format(last=1)).plan
    longer = extend(plan, 1, "quit", 5 * SECOND).plan
    assert longer.end_ns == 5 * SECOND
    assert longer.topology == plan.topology


def test_a_link_that_comes_after_the_quit_never_is(tmp_path: Path) -> None:
    rows = "time,node,x,y\n0,a,0,0\n0,b,9000,0\n8,b,1000,0\n9,b,100,0\n"
    text = "service s\nmobility m.csv nodes=s range=5km latency-step=1ns\nat 2s quit\n"
    plan = compiled(tmp_path, text, m_csv=rows).plan
    assert not plan.topology.traces
    assert "a->b" not in _up(plan, plan.end_ns)


# --- values by distance -------------------------------------------------------------------------


def test_a_latency_that_is_said_needs_no_trace(tmp_path: Path) -> None:
    text = EXPERIMENT.replace("rate=", "latency=7ms loss=1% rate=")
    plan = compiled(tmp_path, text, row_csv=ROW).plan
    link = next(one for one in plan.topology.links if one.name == "b->c")
    assert not plan.topology.traces
    assert (link.state.delay_ns, link.state.loss_ppb, link.state.trace) == (
        7_000_000,
        10_000_000,
        0,
    )


def test_rates_and_losses_follow_thesquare_apart(tmp_path: Path) -> None:
    text = EXPERIMENT.replace("rate=10Mb", "rate=radio.csv latency=1ms")
    table = "distance,rate,loss\n0,9Mb,0\n2000km,4Mb,5%\n2500km,0,0\n"
    plan = compiled(tmp_path, text, row_csv=ROW, radio_csv=table).plan
    link = next(one for one in plan.topology.links if one.name == "b->c")
    _, trace = traces.of_plan(plan).content(link.state.trace)
    assert trace.at(0, holds=True) == {"rate_bps": 9_000_000, "loss_ppb": 0}  # type: ignore[union-attr]
    assert trace.at(SECOND, holds=True) == {"rate_bps": 4_000_000, "loss_ppb": 50_000_000}  # type: ignore[union-attr]
    assert "b->c" not in _up(plan, 2 * SECOND)  # its rate is 0 there


def test_steps_of_less_than_is_asked_for_are_left_out(tmp_path: Path) -> None:
    fine = compiled(tmp_path, EXPERIMENT, row_csv=ROW).plan
    coarse = compiled(
        tmp_path, EXPERIMENT.replace("rate", "latency-step=1s rate"), row_csv=ROW
    ).plan
    sizes = [sum(map(len, plan.attached.traces.values())) for plan in (fine, coarse)]
    assert sizes[0] > sizes[1]


def test_a_plan_compiles_again_without_its_file(tmp_path: Path) -> None:
    one = compiled(tmp_path, EXPERIMENT, row_csv=ROW)
    again = compile_source(one.plan.source, sources=RecordedFiles(one.plan))
    assert again.files == one.files


def test_the_end_of_a_file_is_that_of_the_experiment(tmp_path: Path) -> None:
    graph = """{"MobilecomScnDef": {"simDuration": 7.5, "MobileNodeDef": [
        {"nodeName": "a", "nodeID": 1, "PosX": 1, "PosY": 0, "PosZ": 0, "Time": 0},
        {"nodeName": "b", "nodeID": 2, "PosX": 2, "PosY": 0, "PosZ": 0, "Time": 0}]}}"""
    text = 'service s exec="true"\nmobility m.json nodes=s\n'
    plan = compiled(tmp_path, text, m_json=graph).plan
    assert (plan.end_ns, plan.events[-1].kind) == (7_500_000_000, "quit")
    assert compiled(tmp_path, text + "at 9s quit\n", m_json=graph).plan.end_ns == 9 * SECOND


def test_other_statements_hold_a_link_down_beside_its_nodes(tmp_path: Path) -> None:
    plan = compiled(tmp_path, EXPERIMENT + "from 5s to 7s b--c leave\n", row_csv=ROW).plan
    changes = [(e.at_ns // SECOND, e.kind) for e in plan.events if e.target == "b->c"]
    assert changes == [(3, "link_down"), (7, "link_up")]


def test_a_bridge_may_be_declared_with_tags(tmp_path: Path) -> None:
    plan = compiled(tmp_path, "bridge b tags=middle\n" + EXPERIMENT, row_csv=ROW).plan
    tags = {node.name: node.tags for node in plan.topology.nodes}
    assert (tags["a"], tags["b"]) == ((), ("middle",))


def test_nobody_is_told_that_nodes_go_away(tmp_path: Path) -> None:
    away = ROW.replace("7,c,5000000", "7,c,99000000").replace("8,c,4000000", "8,c,99000000")
    assert codes(tmp_path, EXPERIMENT, row_csv=away) == []


# --- routers that move --------------------------------------------------------------------------

CARS = "node car replicas=3 {\n    service gw router\n}\nmobility row.csv nodes=car.gw"


@pytest.mark.parametrize("text", ["service car router\nmobility row.csv nodes=car", CARS])
def test_routers_are_the_nodes_themselves(tmp_path: Path, text: str) -> None:
    plan = compiled(
        tmp_path, f"{text} range=3000km transceivers=2 allocate=nearest\n", row_csv=ROW
    ).plan
    nodes = plan.topology.nodes
    assert all(node.service >= 0 for node in nodes)
    assert [nodes[node].name for node in plan.topology.mobility[0].nodes] == [
        node.name for node in nodes if node.is_instance
    ]
    assert all(nodes[end].frames for link in plan.topology.links for end in (link.src, link.dst))
    ups = [(event.at_ns, event.target) for event in plan.events if event.kind == "link_up"]
    bridges = compiled(
        tmp_path,
        "service host\nmobility row.csv nodes=host range=3000km transceivers=2 allocate=nearest\n",
        row_csv=ROW,
    ).plan
    named = dict(zip("abc", (nodes[n].name for n in plan.topology.mobility[0].nodes), strict=True))
    for one in bridges.events:
        if one.kind == "link_up":
            a, b = one.target.split("->")
            assert (one.at_ns, f"{named[a]}->{named[b]}") in ups


def test_programs_are_left_all_links_that_can_be(tmp_path: Path) -> None:
    text = "service car router\nmobility row.csv nodes=car range=3000km"
    free, led = (
        compiled(tmp_path, text + more + "\n", row_csv=ROW).plan
        for more in ("", " transceivers=1 allocate=program")
    )
    planned = (*free.topology.mobility, *led.topology.mobility)
    assert [one.transceivers for one in planned] == [0, 1]
    assert [(one.range_mm, one.body_mm) for one in planned] == [(3 * 10**9, None)] * 2
    assert led.events == free.events
    assert not led_links(free.topology)
    assert len(led_links(led.topology)) == len(led.topology.links)
    again = compile_source(led.source, sources=RecordedFiles(led)).plan
    assert again.digest == led.digest


def test_nothing_is_expected_of_links_that_programs_ask_for(tmp_path: Path) -> None:
    text = "service car router\naddresses auto\nmobility row.csv nodes=car range=3000km"
    text += " transceivers=1 allocate=program\nexpect rtt car.0 car.1 < 1s\nat 5s quit\n"
    assert "TS0609" in codes(tmp_path, text, row_csv=ROW)


# --- what cannot be -----------------------------------------------------------------------------

MOBILITY = "mobility row.csv nodes=host"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("mobility none.csv", "TS0190"),
        ("mobility .", "TS0125"),
        (MOBILITY + " rate=none.csv", "TS0190"),
        (MOBILITY + " format=gpx", "TS0191"),
        (MOBILITY + " every=1us", "TS0192"),
        ("mobility row.csv nodes=other:a", "TS0193"),
        ("mobility row.csv nodes=host:x", "TS0193"),
        ("mobility row.csv nodes=host:a;second", "TS0193"),
        ("mobility row.csv nodes=fixed", "TS0193"),
        ("mobility row.dat", "TS0194"),
        (MOBILITY + " format=kml", "TS0194"),
        (MOBILITY + " transceivers=3", "TS0194"),
        (MOBILITY + " allocate=nearest", "TS0194"),
        (MOBILITY + " transceivers=0 allocate=nearest", "TS0194"),
        (MOBILITY + " transceivers=3 allocate=program", "TS0631"),
        (MOBILITY + " transceivers=3 allocate=programs", "TS0194"),
        ("mobility row.csv nodes=router:a", "TS0630"),
        ("mobility row.csv nodes=router:a;host:b", "TS0630"),
        ("mobility row.csv nodes=car.routers", "TS0193"),
        (MOBILITY + " latency=far", "TS0194"),
        (MOBILITY + " latency=1ms latency-step=1ms", "TS0194"),
        (MOBILITY + "\n" + MOBILITY, "TS0194"),
        (MOBILITY + " rate=row.csv", "TS0195"),
        (MOBILITY + " range=5", "TS0022"),
        (MOBILITY + " range=0m", "TS0113"),
        (MOBILITY + " rate=0", "TS0104"),
        (MOBILITY + " speed=5", "TS0012"),
        (MOBILITY + " range=1m range=2m", "TS0013"),
    ],
)
def test_mobility_that_cannot_be(tmp_path: Path, text: str, code: str) -> None:
    services = 'service host exec="true"\nservice second\nservice fixed replicas=2\n'
    services += "service router router\nnode car replicas=3 {\n    service part router\n}\n"
    assert code in codes(tmp_path, services + text + "\n", row_csv=ROW, row_dat=ROW)


def test_the_message_has_the_place_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(TdlError) as caught:
        compiled(tmp_path, "service a\nmobility m.csv\n", m_csv="time,node,x,y\n0,a,1,oops\n")
    one = caught.value.diagnostics[0]
    assert one.message == "line 2, column 7 of 'm.csv' has no number in column y"
    assert (one.span.line, one.span.col) == (2, 10)


def test_messages_have_no_words_of_the_file(tmp_path: Path) -> None:
    """Who can name a file need not be somebody who may read it."""
    for kind in ("visibility", "setdest", "bonnmotion", "csv", "gpx"):
        for secret in ('{"SECRET": 1}', "SECRET:x:1\n", "<SECRET/>"):
            with pytest.raises(TdlError) as caught:
                compiled(tmp_path, f"mobility m.x format={kind}\n", m_x=secret)
            said: Any = [(d.message, d.hint) for d in caught.value.diagnostics]
            assert "SECRET" not in str(said)


@pytest.mark.parametrize(
    "mobility", ["mobility row.csv nodes=host range=3000km", "mobility row.csv nodes=host range=3"]
)
def test_nobody_misses_what_only_the_file_has(tmp_path: Path, mobility: str) -> None:
    """Beside other errors the file is not read."""
    text = f"service host\nservice s\n{mobility}\nlink s--a\nat 1s a--b leave\nlink\n"
    found = codes(tmp_path, text, row_csv=ROW)
    assert set(found) <= {"TS0010", "TS0022"}


@pytest.mark.parametrize(
    ("datapath", "carries"), [(HOP_EXACT, True), ("user", False), ("kernel", False)]
)
def test_what_follows_the_distance_is_for_one_engine(
    tmp_path: Path, datapath: str, carries: bool
) -> None:
    follows = compiled(tmp_path, EXPERIMENT, row_csv=ROW).plan
    fixed = compiled(tmp_path, EXPERIMENT.replace("rate", "latency=5ms rate"), row_csv=ROW).plan
    assert (misfit(follows, datapath, 0) is None) == carries
    assert misfit(fixed, datapath, 0) is None
    assert (capabilities.refusal(follows, "k8s") is None) is False
    assert not capabilities.refusal(fixed, "k8s")
