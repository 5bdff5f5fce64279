"""`tstorm plot --topology`: what is down or gone, what links carried, refusals."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source, write
from tests.cli.support import status, tstorm
from tests.reporting import support
from tests.runtime import recorded

pytest.importorskip("matplotlib")

from tstorm.plotting import canvas
from tstorm.plotting.subject import Subject, subject
from tstorm.plotting.topology_picture import Loads, loads

SOURCE = """\
service web img=x replicas=3
service db img=x
bridges a b
link web--a latency=1ms up=8Mb symmetric
link a--b latency=1ms up=80Mb symmetric
link db--b latency=1ms
at 1s web.0 crash
at 2s web.1 disconnect
at 3s a--b leave
at 4s b leave
at 5s b join
at 6s a--b join
at 50s quit
"""
SECOND_NS = 10**9
WEB_TO_A, A_TO_WEB, A_TO_B, DB_TO_B = 4, 5, 6, 8  # of web.2


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "net.tdl"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


def run(directory: Path, rows: list[tuple[int, list[list[int]]]]) -> str:
    """A run with these samples: (plan time, [link, out_bytes])."""
    directory.mkdir()
    for name, data in recorded.files().items():
        (directory / name).write_bytes(data)
    write(compile_source(SOURCE.encode(), filename="net.tdl", seed=None), directory / "plan")
    columns = {"links": ["link", "out_bytes"], "pairs": ["src", "dst"]}
    samples: list[dict[str, Any]] = [{"columns": columns, "interval_ns": 10**8}]
    samples += [
        {"at_ns": at_ns, "elapsed_ns": at_ns, "links": links, "pairs": []} for at_ns, links in rows
    ]
    (directory / "samples.jsonl").write_bytes(recorded.lines(samples))
    return str(directory)


def plotted(source: str, target: Path, *arguments: str) -> tuple[bytes, str]:
    """The picture and what was said."""
    result = tstorm("plot", source, "--topology", *arguments, "-o", str(target))
    assert status(result) == 0, result.output + repr(result.exception)
    return target.read_bytes(), result.output


def carried(*rates_bps: tuple[int, int], until_s: int = 50) -> list[tuple[int, list[list[int]]]]:
    """Samples of links that carry this much all the time."""
    return [
        (s * SECOND_NS, [[link, rate // 8 * s] for link, rate in rates_bps])
        for s in range(1, until_s + 1)
    ]


def test_the_same_moment_gives_the_same_bytes(source: str, tmp_path: Path) -> None:
    one, two = (plotted(source, tmp_path / f"{n}.svg", "--at", "10s")[0] for n in (1, 2))
    assert one == two
    assert ET.fromstring(one).tag.endswith("svg")
    assert plotted(source, tmp_path / "p.png", "--at", "10s")[0].startswith(b"\x89PNG\r\n\x1a\n")


def test_what_is_down_is_dashed_and_who_is_gone_hollow(source: str, tmp_path: Path) -> None:
    start, said = plotted(source, tmp_path / "0.svg")
    later, _ = plotted(source, tmp_path / "4.svg", "--at", "4500ms")
    assert b"stroke-dasharray" not in start
    assert b"stroke-dasharray" in later
    assert canvas.AMBER.lower().encode() not in start  # of what is cut off
    assert canvas.AMBER.lower().encode() in later
    assert "at 0s; --at T" in said


def test_an_experiment_that_is_over_is_drawn_as_it_ended(source: str, tmp_path: Path) -> None:
    end, _ = plotted(source, tmp_path / "e.svg", "--at", "50s")
    _, said = plotted(source, tmp_path / "f.svg", "--at", "51s")
    assert "the experiment ends at 50s" in said
    assert b"stroke-dasharray" in end


def test_links_of_a_run_have_the_colour_of_their_load(tmp_path: Path) -> None:
    path = run(tmp_path / "run", carried((WEB_TO_A, 7_900_000), (A_TO_B, 8_000_000)))
    data, said = plotted(path, tmp_path / "l.svg", "--at", "10s")
    for colour, wanted in ((canvas.ORANGE, True), (canvas.SKY, True), (canvas.BLUE, False)):
        assert (f"stroke: {colour.lower()}".encode() in data) == wanted
    assert "no colours" not in said


def measured(path: str, at_ns: int) -> Loads | str:
    what: Subject = subject(path)
    return loads(what, at_ns)


def test_a_rate_is_the_mean_between_two_samples(tmp_path: Path) -> None:
    rows = [*carried((A_TO_B, 8000), until_s=10), (11 * SECOND_NS, [[A_TO_B, 51_000]])]
    path = run(tmp_path / "run", [*rows, (12 * SECOND_NS, [])])
    found = measured(path, 10 * SECOND_NS)
    assert isinstance(found, Loads)
    assert (found.begin_ns, found.end_ns) == (10 * SECOND_NS, 11 * SECOND_NS)
    assert found.rates_bps == {A_TO_B: 8 * 41_000}
    before = measured(path, 0)
    assert isinstance(before, Loads)
    assert (before.begin_ns, before.rates_bps) == (0, {A_TO_B: 8000})
    after = measured(path, 11 * SECOND_NS)
    assert isinstance(after, Loads)
    assert after.rates_bps == {A_TO_B: 0}


def test_the_end_of_a_run_has_its_last_part(tmp_path: Path) -> None:
    found = measured(run(tmp_path / "run", carried((A_TO_B, 8000))), 50 * SECOND_NS)
    assert isinstance(found, Loads)
    assert (found.begin_ns, found.end_ns) == (49 * SECOND_NS, 50 * SECOND_NS)
    assert found.rates_bps == {A_TO_B: 8000}


@pytest.mark.parametrize(
    ("rows", "at_s", "said"),
    [
        (carried((A_TO_B, 8000), until_s=10), 20, "has recorded nothing then"),
        (carried((A_TO_B, 8000)), 60, "did not go on then"),
        ([], 10, "no counters of links"),
        ([(s * SECOND_NS, []) for s in range(1, 51)], 10, "no counters of links"),
    ],
)
def test_why_a_run_has_no_loads(
    tmp_path: Path, rows: list[tuple[int, list[list[int]]]], at_s: int, said: str
) -> None:
    path = run(tmp_path / "run", rows)
    found = measured(path, at_s * SECOND_NS)
    assert isinstance(found, str)
    assert said in found
    _, output = plotted(path, tmp_path / "n.svg", "--at", f"{at_s}s")
    assert f"links have no colours: {found}" in output


def test_a_run_whose_samples_are_damaged_is_refused(tmp_path: Path) -> None:
    path = support.make(tmp_path / "run")
    (path / "samples.jsonl").write_text(json.dumps({"links": "x", "pairs": []}) + "\n")
    target = tmp_path / "x.svg"
    result = tstorm("plot", str(path), "--topology", "-o", str(target))
    assert status(result) == 1
    assert "samples.jsonl:1" in str(result.exception)
    assert not target.exists()


def test_a_large_network_has_names_of_bridges_only(tmp_path: Path) -> None:
    path = tmp_path / "many.tdl"
    path.write_text("service n img=x replicas=300\nbridge s\nlink n--s latency=1ms\nat 1s quit\n")
    data, said = plotted(str(path), tmp_path / "m.svg")
    assert "the 300 instances have no names" in said
    assert len(data) < 500_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--topology", "--link", "a--b"], "say what to draw"),
        (["--topology", "--pair", "db", "web.0"], "say what to draw"),
        (["--link", "a--b", "--at", "1s"], "--at is for --topology"),
        (["--topology", "--at", "soon"], "--at"),
    ],
)
def test_wrong_usage(source: str, tmp_path: Path, arguments: list[str], said: str) -> None:
    target = tmp_path / "x.svg"
    result = tstorm("plot", source, *arguments, "-o", str(target))
    assert status(result) == 2
    assert said in re.sub(r"\s+", " ", result.output)
    assert not target.exists()


def test_each_epoch_has_a_picture_that_is_the_one_of_its_time(source: str, tmp_path: Path) -> None:
    def drawn(*arguments: str) -> tuple[int, str]:
        target = str(tmp_path / "net.svg")
        done = tstorm("plot", source, "--topology", "--epochs", "-o", target, *arguments)
        return status(done), done.output + str(done.exception)

    assert drawn()[0] == 0
    found = {path.name: path.read_bytes() for path in sorted((tmp_path / "net").iterdir())}
    times = ["0s", "1s", "2s", "3s", "4s", "5s", "6s", "50s"]
    assert list(found) == [f"{n:03}-{time}.svg" for n, time in enumerate(times)]
    assert found["003-3s.svg"] == plotted(source, tmp_path / "3.svg", "--at", "3s")[0]
    Path(source).write_text(SOURCE.replace("at 4s b leave\nat 5s b join\n", ""))
    assert "has 6 epochs" in drawn()[1]
    assert len(list((tmp_path / "net").iterdir())) == 6
    (tmp_path / "net" / "mine.svg").write_text("<svg/>")
    code, said = drawn()
    assert code == 1
    assert "holds 'mine.svg'" in said


def test_an_epoch_is_a_text_too_and_bounds_are_told(source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "texts.graphml")
    done = tstorm("plot", source, "--topology", "--epochs", "-o", target)
    assert status(done) == 0
    assert len(list((tmp_path / "texts").glob("*.graphml"))) == 8
    many = "".join(f"at {n}ms a--b set latency={n}us\n" for n in range(1, 600))
    Path(source).write_text(SOURCE + many)
    done = tstorm("plot", source, "--topology", "--epochs", "-o", target)
    assert status(done) == 1
    assert "epochs; at most 500 are drawn" in done.output + str(done.exception)
    for wrong in (["--at", "3s"], ["--timeline"]):
        done = tstorm("plot", source, "--topology", "--epochs", "-o", target, *wrong)
        assert status(done) == 2
