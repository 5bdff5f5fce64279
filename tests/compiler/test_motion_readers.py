"""Files of movement: what each format says, what is wrong with it, and bytes of any kind."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.mobility import distance_tables, read_bonnmotion
from compiler.mobility.motion_formats import tracks_of
from compiler.mobility.read_gpx import centred
from compiler.mobility.tracks import BadMotion, Tracks, sample
from compiler.plan.parts import motion as plan_motion
from compiler.plan.parts.motion import Motion
from tdl import ast

NOWHERE = ast.Span(1, 1, 1, 2)
KINDS = ("visibility", "setdest", "bonnmotion", "csv", "gpx")


def said(kind: str, **more: Any) -> ast.Mobility:
    return ast.Mobility("file", NOWHERE, NOWHERE, kind, **more)


def tracks(kind: str, text: str | bytes, **more: Any) -> Tracks:
    data = text if isinstance(text, bytes) else text.encode()
    return tracks_of(data, said(kind, **more))


def wrong(kind: str, text: str | bytes, **more: Any) -> BadMotion:
    with pytest.raises(BadMotion) as caught:
        sample(tracks(kind, text, **more), None)
    return caught.value


def record(name: str, number: int, time: float, *place: float, sees: Any = ()) -> dict[str, Any]:
    axes = dict(zip(("PosX", "PosY", "PosZ"), place, strict=True))
    graph = [{"nodeID": other, "LoS": word} for other, word in sees]
    own = {"nodeName": name, "nodeID": number, "Time": time, "visibilityGraph": graph}
    return {**own, **axes}


def visibility(*records: Any, **more: Any) -> str:
    return json.dumps({"MobilecomScnDef": {"MobileNodeDaf": list(records), **more}})


# --- visibility graphs --------------------------------------------------------------------------

PAIR = (
    record("BIIF-1", 36585, 0.0, -15777.7685, -4847.7022, -21031.09029, sees=[(37753, True)]),
    record("BIIF-2", 37753, 0.0, 6908.7047, 25485.215, -1440.555, sees=[(36585, "True")]),
)


def test_the_example_of_the_paper() -> None:
    found = sample(tracks("visibility", visibility(*PAIR, simDuration=10.0)), None)
    assert found.end_ns == 10 * 10**9
    assert found.quits
    assert list(found.times) == [0]
    assert found.places[0] == [(-15_777_768_500, -4_847_702_200, -21_031_090_290)]
    assert found.sights == [frozenset({1})]


@pytest.mark.parametrize("word", [False, "false", "False", 0, "0"])
def test_a_sight_of_one_side_is_none(word: Any) -> None:
    one = record("a", 1, 0, 0.0, 0.0, 0.0, sees=[(2, True), (1, True)])
    other = record("b", 2, 0, 1.0, 0.0, 0.0, sees=[(1, word)])
    found = tracks("visibility", visibility(one, other))
    assert found.sights == [(0, frozenset())]
    assert [code for code, _, _ in found.warnings] == ["TS0982"]


def test_what_is_not_told_stays() -> None:
    records = [
        record("a", 1, 0, 0, 0, 0, sees=[(2, 1)]),
        record("b", 2, 0, 1, 0, 0, sees=[(1, 1)]),
        record("a", 1, 5, 2, 0, 0, sees=[(2, 1)]),
    ]
    found = tracks("visibility", visibility(*records), unit="m")
    assert [code for code, _, _ in found.warnings] == ["TS0981"]
    at = sample(found, None)
    assert list(at.times) == [0, 5 * 10**9]
    assert at.places[1] == [(1000, 0, 0), (1000, 0, 0)]
    assert at.sights == [frozenset({1})] * 2


def test_records_are_sorted_with_a_warning() -> None:
    found = tracks("visibility", visibility(record("a", 1, 5, 2, 0, 0), record("a", 1, 0, 1, 0, 0)))
    assert [code for code, _, _ in found.warnings] == ["TS0980"]
    assert [at for at, _ in found.points[0]] == [0, 5 * 10**9]


SEEN = {"nodeID": 1, "LoS": True}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "no object"),
        ('{"Other": {}}', "no visibility graph has"),
        ('{"MobilecomScnDef": {"more": 1}}', "no visibility graph has"),
        ('{"MobilecomScnDef": {}}', "has no MobileNodeDef"),
        ('{"MobilecomScnDef": {"MobileNodeDef": [1]}}', "no object"),
        ('{"MobilecomScnDef": {"MobileNodeDef": {}}}', "no list"),
        ('{"MobilecomScnDef": {"simDuration": -1}}', "no time"),
        ('{"MobilecomScnDef": {"simDuration": true}}', "no time"),
        (visibility(*[record("a", 1, 0, 1, 1, 1)] * 2), "two records"),
        (visibility(PAIR[0]), "of which there is no record"),
        (visibility(record("a", 1, 0, 1, 1, 1), record("b", 1, 1, 1, 1, 1)), "two names of"),
        (visibility(record("a", 1, 0, 1, 1, 1), record("a", 2, 0, 1, 1, 1)), "two ids of"),
        (visibility({**PAIR[0], "PosX": "1"}), "PosX that cannot be"),
        (visibility(PAIR[0]).replace("-15777.7685", "NaN"), "number that is none"),
        (visibility(PAIR[0]).replace("-15777.7685", "1e999"), "PosX that cannot be"),
        (visibility(PAIR[0]).replace("-15777.7685", "9" * 5000), "number that is none"),
        (visibility({k: v for k, v in PAIR[0].items() if k != "Time"}), "without Time"),
        (visibility({**PAIR[0], "visibilityGraph": [{"nodeID": 1, "LoS": []}]}), "without nodeID"),
        (visibility({**PAIR[0], "visibilityGraph": [SEEN, {**SEEN, "LoS": False}]}), "node twice"),
        ('{"MobilecomScnDef": {"MobileNodeDef": [' + "[" * 100_000, "nested deeper"),
        (visibility(*PAIR) + "x", "goes on after its end"),
    ],
)
def test_what_no_visibility_graph_has(text: str, why: str) -> None:
    bad = wrong("visibility", text)
    assert why in bad.why
    assert bad.line >= 1
    assert bad.column >= 1


def test_the_place_is_that_of_the_guilty_value() -> None:
    text = '{"MobilecomScnDef": {\n "MobileNodeDef": [\n  {"nodeName": "a", "PosX": 1}]}}'
    assert (wrong("visibility", text).line, wrong("visibility", text).column) == (3, 3)


def test_there_are_not_too_many_nodes() -> None:
    many = [record(f"n{i}", i, 0, i, 0, 0) for i in range(513)]
    assert wrong("visibility", visibility(*many)).code == "TS0192"


# --- setdest ------------------------------------------------------------------------------------

SETDEST = """
# nodes: 2
$node_(0) set X_ 100.0
$node_(0) set Y_ 0
$node_(0) set Z_ 0.0
$node_(1) set X_ 5
$god_ set-dist 0 1 1
$ns_ at 2.0 "$node_(0) setdest 100.0 50.0 10.0"
$ns_ at 4.0 "$node_(0) setdest 0.0 20.0 50.0"
$ns_ at 1.0 "$god_ set-dist 0 1 2"
"""


def test_setdest_goes_and_stands_and_turns() -> None:
    found = sample(tracks("setdest", SETDEST), 10**9)
    metres = [(x // 1000, y // 1000) for x, y, _ in found.places[0] if (x, y) is not None]  # type: ignore[misc]
    assert metres[:6] == [(100, 0), (100, 0), (100, 0), (100, 10), (100, 20), (50, 20)]
    assert found.end_ns == 6 * 10**9
    assert metres[6] == (0, 20)
    assert set(found.places[1]) == {(5000, 0, 0)}
    assert tracks("setdest", SETDEST).names == ["node-0", "node-1"]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("puts hello", 1),
        ("  $node_(0) set W_ 1", 3),
        ("$node_(0) set X_ 1.2.3", 18),
        ('$ns_ at 1 "$node_(0) setdest 1 2 -3"', 34),
        ('$ns_ at -1 "$node_(0) setdest 1 2 3"', 9),
        ("$node_(0) setdest 1 2 3", 1),
    ],
)
def test_a_line_of_setdest_that_is_none(line: str, column: int) -> None:
    bad = wrong("setdest", f"$node_(0) set X_ 1\n{line}\n")
    assert (bad.line, bad.column) == (2, column)


# --- BonnMotion ---------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_bonnmotion_has_two_dimensions_or_three(packed: bool) -> None:
    flat = b"0 0 0 10 100 50\n0 7 7\n"
    data = gzip.compress(flat) if packed else flat
    found = sample(tracks("bonnmotion", data), 5 * 10**9)
    assert found.places[0] == [(0, 0, 0), (50_000, 25_000, 0), (100_000, 50_000, 0)]
    solid = tracks("bonnmotion", "0 1 2 3 4 5 6 7\n0 1 1 1\n")
    assert solid.points[0] == [(0, (1000, 2000, 3000)), (4 * 10**9, (5000, 6000, 7000))]


def test_what_bonnmotion_does_not_write() -> None:
    assert wrong("bonnmotion", "0 1 2\n5 1 2 3 1 2\n").line == 2
    assert wrong("bonnmotion", "0 1 x\n").column == 3
    assert "gzip" in wrong("bonnmotion", gzip.compress(b"0 1 2\n")[:-3]).why
    with pytest.raises(BadMotion, match="unpacked"):
        read_bonnmotion.unpacked(gzip.compress(bytes(1 << 20)), 1000)


# --- CSV ----------------------------------------------------------------------------------------


def test_csv_is_linear_between_its_rows() -> None:
    found = sample(tracks("csv", "node,time,x,y\na,0,0,0\na,2,1.5,-1\nb,1s,9,9\n"), 10**9)
    assert found.places[0] == [(0, 0, 0), (750, -500, 0), (1500, -1000, 0)]
    assert found.places[1] == [(9000, 9000, 0)] * 3


def test_a_byte_order_mark_is_no_part_of_a_file() -> None:
    assert tracks("csv", "\ufefftime,node,x,y\n0,a,0,0\n").names == ["a"]
    assert (
        tracks("visibility", "\ufeff" + visibility(*PAIR)).names
        == tracks("visibility", visibility(*PAIR)).names
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("time,x,y\n0,1,1\n", (1, 1)),
        ("time,node,x,y\n0,a,1\n", (2, 1)),
        ("time,node,x,y\n0,a,1,nan\n", (2, 7)),
        ("time,node,x,y\n-1,a,1,1\n", (2, 1)),
        ("time,node,x,y\n1,,1,1\n", (2, 1)),
        ('time,node,x,y\n1,"a,1,1\n', (2, 1)),
    ],
)
def test_csv_that_is_no_movement(text: str, place: tuple[int, int]) -> None:
    bad = wrong("csv", text)
    assert (bad.line, bad.column) == place


def test_nodes_are_called_as_bridges_are() -> None:
    rows = "time,node,x,y\n0,7,0,0\n0,Car 1,0,0\n0,at,0,0\n"
    assert tracks("csv", rows).names == ["node-7", "Car-1", "node-at"]
    assert wrong("csv", "time,node,x,y\n0,a b,0,0\n0,a-b,0,0\n").code == "TS0193"
    assert "second place" in wrong("csv", "time,node,x,y\n0,a,0,0\n0,a,1,0\n").why


# --- GPX ----------------------------------------------------------------------------------------

GPX = """<?xml version="1.0"?>
<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><name>bus 7</name><trkseg>
<trkpt lat="0" lon="0"><ele>0</ele><time>2026-01-31T12:00:00Z</time></trkpt>
<trkpt lat="0" lon="90"><ele>1.5</ele><time>2026-01-31T13:00:04.5+01:00</time></trkpt>
</trkseg></trk></gpx>"""


def test_gpx_counts_from_its_first_time_and_from_the_centre_of_the_earth() -> None:
    found = tracks("gpx", GPX)
    assert found.names == ["bus-7"]
    assert found.points[0] == [
        (0, (6_378_137_000, 0, 0)),
        (4_500_000_000, (0, 6_378_138_500, 0)),
    ]


def test_the_earth_is_an_ellipsoid() -> None:
    assert centred(90 * 10**9, 0, 0) == (0, 0, 6_356_752_314)
    assert centred(-90 * 10**9, 5, 1000)[2] == -6_356_753_314
    # 45° N 45° E, as every converter has it: 3194419.145, 3194419.145, 4487348.409
    assert centred(45 * 10**9, 45 * 10**9, 0) == (3_194_419_145, 3_194_419_145, 4_487_348_409)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<gpx", "is not XML"),
        ("<kml></kml>", "is no GPX"),
        ('<!DOCTYPE gpx [<!ENTITY a "b">]><gpx></gpx>', "DOCTYPE"),
        (GPX.replace('lat="0"', 'lat="91"', 1), "without a lat"),
        (GPX.replace("2026-01-31T12:00:00Z", "noon"), "has a time"),
        (GPX.replace("<time>2026-01-31T12:00:00Z</time>", ""), "without a time"),
        (GPX.replace("1.5", "high"), "height"),
        (GPX.replace("<ele>1.5</ele>", ""), "with a height (<ele>) and without"),
    ],
)
def test_gpx_that_is_none(text: str, why: str) -> None:
    bad = wrong("gpx", text)
    assert why in bad.why
    assert bad.line >= 1


# --- all of them --------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        '{"MobilecomScnDef": {',
        '"MobileNodeDef": [',
        '"Time": 1e3,',
        "[[",
        "]}}",
        "$node_(0) set X_ 1\n",
        '$ns_ at 1 "$node_(0) setdest 1 2 3"\n',
        "0 1 2 ",
        "time,node,x,y\n",
        "1,a,2,3\n",
        "<gpx>",
        "<trk>",
        '<trkpt lat="1" lon="2">',
        "1e40 ",
        "-",
        '"',
        "\n",
        "\x00",
        "é",
    ]
)


@given(st.sampled_from(KINDS), st.lists(_PIECES, max_size=12).map("".join) | st.binary(max_size=60))
def test_any_bytes_are_a_movement_or_told_to_be_none(kind: str, text: str | bytes) -> None:
    try:
        found = sample(tracks(kind, text), None)
    except BadMotion as bad:
        assert bad.why
    else:
        assert plan_motion.decode(found.text) == found


@given(st.sampled_from(KINDS), st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_a_sound_file_with_other_bytes_in_it(kind: str, place: int, other: bytes) -> None:
    sound = {
        "visibility": visibility(*PAIR, simDuration=10),
        "setdest": SETDEST,
        "bonnmotion": "0 0 0 10 100 50\n0 7 7\n",
        "csv": "time,node,x,y\n0,a,1,1\n1,b,2,2\n",
        "gpx": GPX,
    }[kind].encode()
    place %= len(sound)
    try:
        sample(tracks(kind, sound[:place] + other + sound[place + 1 :]), None)
    except BadMotion as bad:
        assert bad.why


_points = st.tuples(*[st.integers(-(10**12), 10**12)] * 3)


@st.composite
def motions(draw: st.DrawFn) -> Motion:
    steps, nodes = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    times = sorted(draw(st.sets(st.integers(0, 10**12), min_size=steps, max_size=steps)))
    track = st.lists(st.none() | _points, min_size=steps, max_size=steps)
    places = draw(st.lists(track, min_size=nodes, max_size=nodes))
    pairs = st.frozensets(st.integers(0, nodes * nodes), max_size=4)
    sights = draw(st.none() | st.lists(pairs, min_size=steps, max_size=steps))
    rates = draw(st.lists(st.tuples(*[st.integers(0, 10**9)] * 3), max_size=2))
    losses = draw(st.lists(st.tuples(*[st.integers(0, 10**9)] * 2), max_size=2))
    end = draw(st.integers(0, 10**12))
    return Motion(times, places, sights, end, draw(st.booleans()), tuple(rates), tuple(losses))


@given(motions())
def test_a_plan_keeps_it_as_it_is(found: Motion) -> None:
    assert plan_motion.decode(found.text) == found


# --- tables of distances ------------------------------------------------------------------------


def test_a_table_has_steps() -> None:
    table = b"distance,rate,loss\n0,54Mb,0\n100,11Mb,1%\n1km,1000,0.05\n"
    assert distance_tables.rates(table) == (
        (0, 54_000_000, 0),
        (100_000, 11_000_000, 10_000_000),
        (1_000_000, 1000, 50_000_000),
    )
    assert distance_tables.losses(b"distance,loss\n0,0\n5,100%\n") == ((0, 0), (5000, 10**9))


@pytest.mark.parametrize(
    "text",
    ["", "distance\n", "distance,rate\n", "distance,rate\n5,1Mb\n", "distance,rate\n0,1Mb\n0,2Mb\n",
     "distance,rate\n0,fast\n", "distance,rate\n0,0\n", "distance,rate\n0,1Mb,7\n", "\xff"],
)  # fmt: skip
def test_a_table_that_is_none(text: str) -> None:
    with pytest.raises(BadMotion) as caught:
        distance_tables.rates(text.encode("latin-1"))
    assert caught.value.code == "TS0195"
