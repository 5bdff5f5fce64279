"""`replay --check` in virtual time: all is the same, and what is not is told with its place."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.driver import driver
from runtime.rundir.pcapng import read_packets
from tests.cli.process import tstorm
from tests.pktd.reference_digest import digest
from tests.runs.layout import executables

TDL = """\
service server img=x exec="tprobe serve"
service client img=x exec="./client"
service reader img=x exec="./reader"
bridges s1
link server--s1 latency=1ms up=10Mb symmetric
link client--s1 latency=5ms jitter=1ms up=10Mb down=10Mb loss=10%
link reader--s1 latency=1ms
at 2s client crash
at 3s quit
"""
CLIENT = """\
#!/bin/sh
exec tprobe rtt server.0 --each --count "$(cat "$(dirname "$0")/count")"
"""
READER = """\
#!/bin/sh
cat "$(dirname "$0")/text"
exec sleep 60
"""

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in `r`, and what it was carried out from: one for all tests, which replay it."""
    place = tmp_path_factory.mktemp("recorded")
    (place / "x.tdl").write_text(TDL)
    executables(place, {"client": CLIENT, "reader": READER})
    _say(place)
    tstorm(place, "run", "x.tdl", "--time", "virtual", "--packets", "--quiet", "--out", "r")
    return place


@pytest.fixture
def place(recorded: Path) -> Iterator[Path]:
    """Whatever a test makes its programs say otherwise is as before for the next one."""
    yield recorded
    shutil.rmtree(recorded / "s", ignore_errors=True)
    _say(recorded)


def _say(place: Path, count: int = 30, text: str = "one\ntwo\nthree\n") -> None:
    (place / "count").write_text(f"{count}\n")
    (place / "text").write_text(text)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.ordinary
def test_a_run_is_repeated_to_the_last_packet(place: Path) -> None:
    done = tstorm(place, "replay", "r", "--check", "--quiet", "--out", "s")
    assert "check: everything is the same" in done.stderr
    assert "3 files of packets" in done.stderr
    for name in ("client.0--s1", "server.0--s1"):
        one, other = ((place / run / f"packets/{name}.pcapng").read_bytes() for run in "rs")
        assert one == other


def test_a_run_is_repeated_where_nobody_has_compiled_our_modules(place: Path) -> None:
    """A driver without bytecode takes another course: a run in real time, which leaves some behind,
    would change all later replays."""
    compiled = Path(importlib.util.cache_from_source(driver.__file__))
    for bytecode in compiled.parent.iterdir():
        bytecode.unlink()
    done = tstorm(place, "replay", "r", "--check", "--quiet", "--out", "s")
    assert "check: everything is the same" in done.stderr
    assert compiled.exists()


def test_digests_of_samples_are_those_of_the_kept_packets(place: Path) -> None:
    run = place / "r"
    manifest = json.loads((run / "manifest.json").read_text())
    links = [link["link"] for link in json.loads((run / "summary.json").read_text())["links"]]
    digests = {
        row[0]: row[1] for line in lines(run / "samples.jsonl")[1:] for row in line["digests"]
    }
    packets = []
    for path in sorted((run / "packets").iterdir()):
        with path.open("rb") as file:
            packets += list(read_packets(file, path.name))
    plan = json.loads((run / "plan/topology.json").read_text())
    assert digests.keys() == {
        number for number, link in enumerate(plan["links"]) if link["name"] in links
    }
    for number, value in digests.items():
        link = plan["links"][number]
        own = [one for one in packets if one.interface == link["name"]]
        hops = int(plan["nodes"][link["src"]]["service"] < 0)  # there is one bridge
        assert digest(own, manifest["start_unix_ns"], hops) == value


def test_the_first_line_that_a_program_says_otherwise_is_shown(place: Path) -> None:
    _say(place, text="one\nTWO\nthree\n")
    done = tstorm(place, "replay", "r", "--check", "--quiet", "--out", "s", code=1)
    assert "log reader.0.log:2: recorded: two; replayed: TWO\n" in done.stdout
    assert "check: the runs differ in one place" in done.stderr


def test_a_difference_has_its_moment_and_link(place: Path) -> None:
    # Which pings are lost is drawn; a program whose last one is lost ends later than others.
    said = (place / "r/logs/client.0.log").read_text().splitlines()
    answered = [json.loads(line)["seq"] for line in said if not line.startswith("[tstorm]")]
    last = max(seq for seq in answered if seq < 10)
    _say(place, count=last + 1)
    done = tstorm(place, "replay", "r", "--check", "--format", "json", "--out", "s", code=1)
    answer = json.loads(done.stdout)
    assert answer["compared"] == "everything"
    first = answer["differences"][0]
    assert first["what"] in ("event", "link", "packet")
    # An answer on its way takes 11 ms and more, and a program that has had its last one ends.
    assert last * 10**8 < first["at_ns"] < (last + 2) * 10**8
    assert {one["what"] for one in answer["differences"]} >= {"event", "packet", "log"}
