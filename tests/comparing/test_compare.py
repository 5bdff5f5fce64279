"""`tstorm compare` of runs and campaigns that were made up: what differs, what is said first."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest

from compiler.pipeline import compile_source, write
from runtime.probing.probe_record import Probe, RecordedProbes
from tests.cli.support import status, tstorm
from tests.comparing.made import (
    EVENTS,
    HEADER,
    MS,
    SECOND,
    campaign,
    expectation,
    rows,
    run,
)
from tests.runtime.recorded import TDL
from tstorm.comparing import run_metrics
from tstorm.comparing.metrics import Metric, MetricKind

TEXT = "at 5s expect rtt a b < 5ms"
HOSTILE = "<script>alert(1)</script>\x1b[2J"


def slow(draw: Random, middle_ms: int) -> list[int | None]:
    return [round(draw.gauss(middle_ms, 0.2) * MS) for _ in range(30)]


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    """The second one is 4 ms slower, and its expectation fails in each run."""
    draw = Random(3)
    first = [
        {"delays_ns": slow(draw, 10), "expectations": [expectation(TEXT, "passed", 4 * MS, "ns")]}
        for _ in range(8)
    ]
    second = [
        {"delays_ns": slow(draw, 14), "expectations": [expectation(TEXT, "failed", 9 * MS, "ns")]}
        for _ in range(8)
    ]
    one = campaign(tmp_path / "v1", first, delivered_bytes=2_500_000)
    other = campaign(tmp_path / "v2", second, delivered_bytes=2_500_000)
    return str(one), str(other)


def test_campaigns_that_differ(two: tuple[str, str]) -> None:
    found = tstorm("compare", *two, "--format", "json")
    assert status(found) == 0, found.output
    figures = rows(found.stdout)
    trip = figures["rtt_median", "a.0 <-> b.0"]
    assert trip["values"] == pytest.approx([11 * MS, 15 * MS], rel=0.02)
    assert trip["interval"][0] > 3.5 * MS
    assert trip["interval"][1] < 4.5 * MS
    assert (trip["counts"], trip["differs"]) == ([8, 8], True)
    assert figures["expectation", TEXT]["values"] == [0, 1]
    assert figures["expectation", TEXT]["differs"]
    assert figures["figure", TEXT]["difference"] == 5 * MS
    assert figures["throughput", "a.0 -> b.0"]["values"] == [10_000_000, 10_000_000]
    assert not figures["throughput", "a.0 -> b.0"]["differs"]
    assert figures["throughput", "a.0 -> b.0"]["p_holm"] == 1.0


def test_the_same_input_gives_the_same_bytes(two: tuple[str, str]) -> None:
    for form in ("json", "html", "table"):
        assert tstorm("compare", *two, "--format", form).stdout == (
            tstorm("compare", *two, "--format", form).stdout
        )


def test_check_ends_with_1_where_something_differs(two: tuple[str, str]) -> None:
    assert status(tstorm("compare", *two, "--check")) == 1
    same = tstorm("compare", two[0], two[0], "--check")
    assert status(same) == 0, same.output
    assert "0 of 8 figures differ significantly" in same.stdout


def test_the_table_has_what_differs_first(two: tuple[str, str]) -> None:
    found = tstorm("compare", *two, "--limit", "5").stdout.splitlines()
    assert [line.endswith("differs") for line in found[4:9]] == [True] * 4 + [False]
    assert "… and 3 more figures" in found[9]
    assert re.search(
        r"RTT, median +a\.0 <-> b\.0 +1[01]\.\d+ms +1[45](\.\d+)?ms +\+[34]\.\d+ms", found[6]
    )


def test_too_few_runs_are_told_to_be_too_few(tmp_path: Path) -> None:
    figures = [{"delays_ns": [10 * MS]}, {"delays_ns": [11 * MS]}]
    slower = [{"delays_ns": [20 * MS]}, {"delays_ns": [21 * MS]}]
    sides = campaign(tmp_path / "a", figures), campaign(tmp_path / "b", slower)
    found = tstorm("compare", *map(str, sides))
    assert "2 and 2 runs are too few for 2 figures" in found.stderr
    assert "(7 may be enough)" in found.stderr
    assert "0 of 6 figures differ" in found.stdout


def test_parameters_are_compared_like_with_like(tmp_path: Path) -> None:
    figures = [{"delays_ns": [10 * MS]}]
    one = campaign(tmp_path / "a", figures, ["5ms", "9ms"])
    other = campaign(tmp_path / "b", figures, ["9ms", "20ms"])
    found = tstorm("compare", str(one), str(other), "--format", "json")
    assert {key[1] for key in rows(found.stdout)} > {"x=9ms", "x=9msa.0 <-> b.0"}
    assert all(key[1].startswith("x=9ms") for key in rows(found.stdout))
    (note,) = json.loads(found.stdout)["notes"]
    assert "only one of" in note
    assert "x=20ms; x=5ms" in note


def test_two_values_of_a_parameter_are_compared_where_each_side_has_one(tmp_path: Path) -> None:
    one = str(campaign(tmp_path / "a", [{"delays_ns": [9 * MS]}] * 6, ["5ms"]))
    other = str(campaign(tmp_path / "b", [{"delays_ns": [19 * MS]}] * 6, ["9ms"]))
    found = tstorm("compare", one, other, "--format", "json")
    trip = rows(found.stdout)["rtt_median", "a.0 <-> b.0"]
    assert (trip["difference"], trip["paired"]) == (10 * MS, True)
    assert (
        json.loads(found.stdout)["notes"][0] == f"x=5ms of {one} is compared with x=9ms of {other}"
    )


def test_two_runs_are_compared_by_their_probes(tmp_path: Path) -> None:
    draw = Random(4)
    lost: list[int | None] = [None] * 12
    one = run(tmp_path / "a", delays_ns=slow(draw, 10) + slow(draw, 10))
    other = run(tmp_path / "b", delays_ns=slow(draw, 11) + slow(draw, 11)[12:] + lost)
    found = tstorm("compare", str(one), str(other), "--format", "json")
    figures = rows(found.stdout)
    assert figures["rtt_median", "a.0 <-> b.0"]["differs"]
    assert figures["rtt_median", "a.0 <-> b.0"]["counts"] == [60, 48]
    assert figures["loss", "a.0 -> b.0"]["values"] == [0, 200_000_000]
    assert figures["loss", "a.0 -> b.0"]["differs"]
    assert not figures["loss", "b.0 -> a.0"]["differs"]
    assert figures["throughput", "a.0 -> b.0"]["p"] is None
    assert "one run a side says nothing about other seeds" in found.stderr


def of_seeds(place: Path, middles: list[int]) -> str:
    """Runs that are apart by far more than the two sides are."""
    return str(campaign(place, [{"delays_ns": [one * MS] * 9} for one in middles]))


SEEDS = [10, 30, 90, 270, 15, 45, 130, 400, 22, 66]


def test_each_seed_is_compared_with_itself(tmp_path: Path) -> None:
    """Medians of runs that differ so much would hide a millisecond."""
    one = of_seeds(tmp_path / "a", SEEDS)
    other = of_seeds(tmp_path / "b", [middle + 1 for middle in SEEDS])
    found = tstorm("compare", one, other, "--format", "json")
    trip = rows(found.stdout)["rtt_median", "a.0 <-> b.0"]
    assert (trip["paired"], trip["differs"], trip["difference"]) == (True, True, MS)
    assert trip["p"] == 2 / 2 ** len(SEEDS)
    assert trip["interval"] == [MS, MS]
    shown = tstorm("compare", one, other).stdout
    assert "paired: each run is compared with the one of its seed" in shown.splitlines()[1]


def test_other_seeds_are_compared_as_two_samples(tmp_path: Path) -> None:
    one = of_seeds(tmp_path / "a", SEEDS)
    other = of_seeds(tmp_path / "b", [middle + 1 for middle in SEEDS[:9]])
    found = tstorm("compare", one, other, "--format", "json")
    trip = rows(found.stdout)["rtt_median", "a.0 <-> b.0"]
    assert (trip["paired"], trip["differs"]) == (False, False)
    shown = tstorm("compare", one, other).stdout
    assert shown.splitlines()[1] == "unpaired: the sides have other seeds"


def test_a_figure_that_a_seed_lacks_is_not_paired(tmp_path: Path) -> None:
    sides = [
        campaign(tmp_path / name, [{"delays_ns": given} for given in delays])
        for name, delays in (("a", [[MS]] * 4), ("b", [[MS], [MS], [], [MS]]))
    ]
    shown = tstorm("compare", *map(str, sides)).stdout
    assert "paired by seed, but for 4 of 6 figures, which are not there for all seeds" in shown


def test_the_moment_at_which_something_happened_is_a_figure(tmp_path: Path) -> None:
    def at(seconds: int, state: str = "passed") -> list[dict[str, object]]:
        text = 'expect log a "leader" within 9s'
        return [{**expectation(text, state, None, ""), "kind": "log", "at_ns": seconds * 10**9}]

    one = campaign(tmp_path / "a", [{"expectations": at(n)} for n in range(8)])
    other = campaign(tmp_path / "b", [{"expectations": at(n + 3)} for n in range(8)])
    found = rows(tstorm("compare", str(one), str(other), "--format", "json").stdout)
    row = found["moment", 'expect log a "leader" within 9s']
    assert (row["difference"], row["differs"]) == (3 * 10**9, True)
    failed = str(campaign(tmp_path / "c", [{"expectations": at(9, "failed")}] * 3))
    kinds = {key[0] for key in rows(tstorm("compare", failed, failed, "--format", "json").stdout)}
    assert "moment" not in kinds
    assert "expectation" in kinds


def test_a_run_that_was_put_in_another_ones_place_is_named(tmp_path: Path) -> None:
    """Its seed would pair it with a run that it has nothing to do with."""
    side = campaign(tmp_path / "c", [{}, {}])
    (side / "seed-2").rename(tmp_path / "gone")
    run(side / "seed-2", seed=7)
    found = tstorm("compare", str(side), str(side))
    assert status(found) == 1
    assert "seed-2 has seed 7" in str(found.exception)


def test_a_value_that_stands_twice_is_no_grid(tmp_path: Path) -> None:
    side = campaign(tmp_path / "c", [{}, {}], ["1ms", "2ms"])
    record = (side / "campaign.json").read_text()
    (side / "campaign.json").write_text(record.replace("2ms", "1ms"))
    found = tstorm("compare", str(side), str(side))
    assert status(found) == 1
    assert "'x' has a value twice" in str(found.exception)


@pytest.mark.parametrize(
    "words", [("report",), ("shrink",), ("replay",), ("plot", "--topology", "-o", "x.svg")]
)
def test_commands_for_runs_say_that_this_is_a_campaign(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    place = str(campaign(tmp_path / "c", [{}]))
    found = tstorm(words[0], place, *words[1:])
    assert status(found) == 1
    assert f"{place} is a campaign\nhint: name one of its runs" in str(found.exception)


def test_doubts_come_first(tmp_path: Path) -> None:
    one = run(tmp_path / "a", verdict="degraded")
    found = tstorm("compare", str(one), str(run(tmp_path / "b")))
    assert found.stderr.splitlines()[0] == f"warning: {one} is DEGRADED, not VALID"
    figures = [{}, {"verdict": "invalid"}]
    side = str(campaign(tmp_path / "c", figures))
    found = tstorm("compare", side, side)
    assert "1 of 2 runs are not VALID: seed 2 INVALID" in found.stderr.splitlines()[0]


def test_other_congestion_control_is_told_before_any_figure(tmp_path: Path) -> None:
    """A machine whose default is bbr gives other figures than one whose default is cubic, and than
    virtual time. How much memory it has makes no difference."""
    control = "net.ipv4.tcp_congestion_control"
    one, two, like = (
        str(run(tmp_path / name, settings={control: value, "net.ipv4.tcp_mem": name}))
        for name, value in (("a", "bbr"), ("b", "cubic"), ("c", "bbr"))
    )
    said = tstorm("compare", one, two).stderr.splitlines()[0]
    assert said == (
        f"warning: programs of {two} had other network settings of their machine than those of"
        f" {one}, where their service says none (sysctl=): {control} cubic in place of bbr"
    )
    for others in ((one, like), (one, str(run(tmp_path / "d")))):
        assert "network settings" not in tstorm("compare", *others).stderr


def test_a_program_that_failed_on_one_side_only(tmp_path: Path) -> None:
    good = campaign(tmp_path / "a", [{}] * 6)
    bad = campaign(tmp_path / "b", [{"failures": ["a.0"]}] * 6)
    row = rows(tstorm("compare", str(good), str(bad), "--format", "json").stdout)["program", "a.0"]
    assert (row["values"], row["unit"], row["differs"]) == ([0, 1], "share", True)


def test_round_trips_are_composed_whatever_the_pace(tmp_path: Path) -> None:
    """Moments of probes go by sixty times as fast as what they measure and how often they are
    sent."""
    places = [run(tmp_path / name, delays_ns=[10 * MS] * 20, pace=60) for name in ("a", "b")]
    found = tstorm("compare", *map(str, places), "--format", "json")
    trip = rows(found.stdout)["rtt_median", "a.0 <-> b.0"]
    assert (trip["counts"], trip["values"]) == ([20, 20], [11 * MS, 11 * MS])


def test_a_probe_is_followed_by_the_one_that_was_sent_when_it_arrived() -> None:
    there = Probe(0, 0, 400 * MS)  # 24 s of the plan
    back = [Probe(1, 1 * SECOND, 9 * MS), Probe(1, 25 * SECOND, 5 * MS)]
    for pace, trip in ((1, 409 * MS), (60, 405 * MS)):
        found = run_metrics.gather(RecordedProbes(HEADER, iter([there, *back])), pace)
        assert found.round_trips == {("a.0", "b.0"): [trip]}


def test_a_run_that_was_cut_short_is_told_to_be_a_part(tmp_path: Path) -> None:
    """Its last probe was sent at 3.5 s; programs that did not fail until then might have."""
    whole = str(run(tmp_path / "a", delays_ns=[MS] * 9, delivered_bytes=9, failures=["a.0"]))
    events = [{"kind": "start", "target": "a.0", "applied_ns": 1 * SECOND}, EVENTS[1]]
    given: dict[str, Any] = {"delays_ns": [MS] * 4, "delivered_bytes": 3_500_000, "events": events}
    for outcome, words in (("interrupted", "was interrupted"), ("failed", "failed")):
        part = str(run(tmp_path / outcome, outcome=outcome, **given))
        found = tstorm("compare", whole, part, "--format", "json")
        said = f"warning: {part} {words} at 3.5s: its figures are of a part of the timeline"
        assert found.stderr.splitlines()[0] == said
        figures = rows(found.stdout)
        assert ("program", "a.0") not in figures
        assert figures["throughput", "a.0 -> b.0"]["values"][1] == 8_000_000
        assert json.loads(found.stdout)["sides"][1]["runs"][0]["outcome"] == outcome


def test_runs_of_campaigns_that_were_cut_short_are_left_out_and_counted(tmp_path: Path) -> None:
    cut = {"delays_ns": [90 * MS], "outcome": "failed"}
    one = str(campaign(tmp_path / "a", [{"delays_ns": [10 * MS]}] * 3))
    other = str(campaign(tmp_path / "b", [{"delays_ns": [10 * MS]}, cut, {"delays_ns": [10 * MS]}]))
    found = tstorm("compare", one, other, "--format", "json")
    assert found.stderr.splitlines()[0] == (
        f"warning: {other}: 1 of 3 points have no run to its end and are left out: seed 2 failed"
    )
    assert json.loads(found.stdout)["sides"][1]["without_result"] == 1
    trip = rows(found.stdout)["rtt_median", "a.0 <-> b.0"]
    assert (trip["counts"], trip["values"]) == ([3, 2], [11 * MS, 11 * MS])
    none = str(campaign(tmp_path / "c", [cut, cut]))
    refused = tstorm("compare", one, none)
    assert status(refused) == 1
    assert "no run that came to its end: seed 1 failed; seed 2 failed" in str(refused.exception)


def test_throughput_is_of_the_timeline_without_the_end_of_programs(tmp_path: Path) -> None:
    """No event says when `--until` has ended a run."""
    place = run(tmp_path / "a", delivered_bytes=2_500_000, events=EVENTS[1:], until_ns=SECOND // 2)
    write(compile_source(TDL, filename="e.tdl", seed=None), place / "plan")
    other = run(tmp_path / "b", delivered_bytes=2_500_000)
    found = rows(tstorm("compare", str(place), str(other), "--format", "json").stdout)
    assert found["throughput", "a.0 -> b.0"]["values"] == [40_000_000, 10_000_000]


def test_figures_that_are_the_same_for_each_seed_are_no_tests(tmp_path: Path) -> None:
    sides = []
    for more in (0, 1):
        runs = [
            {
                "delays_ns": [(10 + more) * MS] * 3,
                "expectations": [expectation(f"e{n}", "passed", seed) for n in range(55)],
            }
            for seed in range(8)
        ]
        sides.append(str(campaign(tmp_path / str(more), runs)))
    found = tstorm("compare", *sides, "--format", "json")
    figures = rows(found.stdout)
    trip = figures["rtt_median", "a.0 <-> b.0"]
    assert (trip["differs"], trip["p_holm"]) == (True, 2 * trip["p"])
    assert (figures["figure", "e7"]["p"], figures["figure", "e7"]["p_holm"]) == (1.0, 1.0)
    assert json.loads(found.stdout)["notes"] == []


def test_the_note_counts_all_tests_also_those_that_show_nothing(tmp_path: Path) -> None:
    """Half of the seeds are one more, half one less: P is 1, and yet each is a test."""
    sides = []
    for more in (0, 1):
        runs = [
            {"expectations": [expectation(f"e{n}", "passed", (seed + more) % 2) for n in range(60)]}
            for seed in range(8)
        ]
        sides.append(str(campaign(tmp_path / str(more), runs)))
    found = tstorm("compare", *sides, "--format", "json")
    assert rows(found.stdout)["figure", "e7"]["p"] == 1.0
    assert "8 and 8 runs are too few for 60 figures" in found.stderr


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_the_page_escapes_what_it_shows_and_needs_no_network(tmp_path: Path) -> None:
    figures = [{"failures": [HOSTILE], "delays_ns": [n * MS, 20 * MS]} for n in (10, 12, 14)]
    side = str(campaign(tmp_path / "<b>", figures))
    page = tstorm("compare", side, side, "--format", "html").stdout
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.names
    assert "b" not in tags.names
    assert not {"src", "href"} & set(tags.attributes)
    assert "svg" in tags.names
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"expectations": [{"text": 5, "state": "failed"}]}, "expectations"),
        ({"expectations": {}}, "expectations"),
        ({"verdict": {"state": 3}}, "verdict"),
        ({"pairs": 3}, "pairs"),
    ],
)
def test_damage_is_told_with_its_place(tmp_path: Path, change: object, words: str) -> None:
    place = run(tmp_path / "a")
    summary = json.loads((place / "summary.json").read_text())
    assert isinstance(change, dict)
    (place / "summary.json").write_text(json.dumps({**summary, **change}))
    found = tstorm("compare", str(place), str(run(tmp_path / "b")))
    assert status(found) == 1
    assert f"{place}/summary.json: {words}" in str(found.exception.message)  # type: ignore[union-attr]


def test_what_cannot_be_compared_is_refused(tmp_path: Path, two: tuple[str, str]) -> None:
    single = str(run(tmp_path / "a"))
    assert status(tstorm("compare", single)) == 2
    mixed = tstorm("compare", single, two[0])
    assert (status(mixed), "campaigns with campaigns" in mixed.exception.message) == (1, True)  # type: ignore[union-attr]
    assert status(tstorm("compare", single, str(tmp_path / "none"))) == 1
    (tmp_path / "a/summary.json").unlink()
    assert "has not ended" in tstorm("compare", single, single).exception.message  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("unit", "value", "said"),
    [
        ("ns", 31_920_451.5, "31.92ms"),
        ("ns", 0.4, "0s"),
        ("bps", 9_999_999.7, "10Mb"),
        ("bps", 0, "0b"),
        ("ppb", 12_345_678, "1.235%"),
        ("", 3.5, "3.5"),
    ],
)
def test_figures_are_said_with_four_digits(unit: str, value: float, said: str) -> None:
    metric = Metric(MetricKind.FIGURE, "x", unit)
    assert metric.said(value) == said
    assert metric.said(-value) in (f"-{said}", said)


# -- figures of the experiment's own --------------------------------------------------------------


@pytest.fixture
def grid(tmp_path: Path) -> str:
    """With x=off each seed loses 40 more than with x=on."""
    runs = [{"by": {"on": [f"{seed}.5"], "off": [f"{seed + 40}.5"]}} for seed in range(8)]
    return str(campaign(tmp_path / "grid", runs, params=("on", "off")))


def test_values_of_a_parameter_are_sides_of_one_campaign(grid: str) -> None:
    found = tstorm("compare", grid, "--by", "x", "--format", "json")
    assert status(found) == 0, found.output
    document = json.loads(found.stdout)
    assert [side["path"] for side in document["sides"]] == ["x=on", "x=off"]
    own = rows(found.stdout)["own", "lost of a.0"]
    assert (own["values"], own["difference"], own["paired"]) == ([4, 44], 40, True)
    assert own["differs"]
    table = tstorm("compare", grid, "--by", "x").stdout
    assert "first: x=on (8 runs); second: x=off (8 runs)" in table
    assert re.search(r"figure +lost of a.0 +4 +44 +\+40 ", table)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("GRID", "--by", "y"), "no parameter 'y' of several values"),
        (("GRID", "GRID", "--by", "x"), "name one"),
        (("GRID",), "name two runs or two campaigns"),
        (("RUN", "--by", "x"), "is no campaign"),
    ],
)
def test_what_has_no_values_is_refused(
    grid: str, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    known = {"GRID": grid, "RUN": str(run(tmp_path / "run"))}
    found = tstorm("compare", *(known.get(one, one) for one in arguments))
    assert status(found) in (1, 2)
    assert words in found.output + repr(found.exception)


def test_a_figure_that_was_not_measured_is_not_compared(tmp_path: Path) -> None:
    one = run(tmp_path / "a", figures={"lost": "3", "p99": "12.5"})
    other = run(tmp_path / "b", figures={"lost": None, "p99": "2e1"})
    figures = rows(tstorm("compare", str(one), str(other), "--format", "json").stdout)
    assert figures["own", "p99 of a.0"]["values"] == [12.5, 20]
    assert ("own", "lost of a.0") not in figures


HALF_LOST: list[int | None] = [MS, None] * 20


@pytest.mark.parametrize(
    ("open_", "told", "counted", "differs"),
    [(0, True, 0, True), (4, True, 4, True), (60, True, 60, False), (60, False, 5, True)],
    ids=["none", "some", "so many that they decide", "untold"],
)
def test_a_loss_differs_only_whatever_became_of_open_probes(
    tmp_path: Path, open_: int, told: bool, counted: int, differs: bool
) -> None:
    one = run(tmp_path / "a", delays_ns=[MS] * 40, open_=open_, told=told)
    other = run(tmp_path / "b", delays_ns=HALF_LOST)
    found = json.loads(tstorm("compare", str(one), str(other), "--format", "json").stdout)
    (loss,) = (
        row for row in found["figures"] if row["of"] == "a.0 -> b.0" and row["unit"] == "ppb"
    )
    assert (loss["values"], loss["counts"]) == ([0, 500_000_000], [40, 40])
    assert (loss.get("open", [0, 0]), loss["differs"]) == ([counted, 0], differs)
    low, high = loss["interval"]
    assert (low < 0 < high) != differs
    said = f"of {counted} and 0 probes nobody knows whether they were lost"
    assert any(said in note for note in found["notes"]) == bool(counted)


def test_open_probes_of_campaigns_are_told(tmp_path: Path) -> None:
    runs = [{"delays_ns": [MS] * 9, "open_": 2}] * 3
    sides = [str(campaign(tmp_path / name, runs)) for name in "ab"]
    found = json.loads(tstorm("compare", *sides, "--format", "json").stdout)
    assert found["notes"][0].startswith("of 6 and 6 probes nobody knows whether they were lost")
    (loss,) = (row for row in found["figures"] if "open" in row)
    assert (loss["of"], loss["values"], loss["open"]) == ("a.0 -> b.0", [0, 0], [6, 6])
