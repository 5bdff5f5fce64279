"""`tstorm measure` with stand-ins for ping and iperf3: its files, going on, and what it refuses."""

from __future__ import annotations

import json
import math
import signal
from pathlib import Path

import pytest
from click.testing import Result

from compiler.pipeline import compile_source
from tests.cli.process import begun
from tests.cli.support import status
from tests.cli.support import tstorm as in_process
from tests.measuring.stand_ins import lay_out, put, report
from tests.waiting import wait_until
from tstorm.measuring import measure_pairs
from tstorm.measuring.remote_commands import GRACE_S

MB = 1_000_000
SHORT = ("--rtt", "1s", "--flows", "1..2", "--seconds", "12")
REPORTS = {"1 12": report([6 * MB] * 12), "2 12": report([9 * MB] * 12, flows=2)}


@pytest.fixture
def no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of stand-ins are of more seconds than have gone by."""
    monkeypatch.setattr(measure_pairs, "_FAST", math.inf)


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return lay_out(tmp_path, REPORTS, ("h0", "h1"))


def measure(hosts: Path, *more: str) -> Result:
    return in_process("measure", hosts.name, *SHORT, *more)


def calls(hosts: Path) -> list[list[str]]:
    lines = (hosts.parent / "programs/calls").read_text().splitlines()
    return [line.split() for line in lines]


@pytest.mark.usefixtures("no_clock")
def test_all_pairs_become_an_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hosts = lay_out(tmp_path, REPORTS, ("h0", "h1", "h2"))
    done = measure(hosts)
    assert status(done) == 0, done.output
    text = (tmp_path / "paths.tdl").read_text()
    assert compile_source(text).topology.routing == "direct"
    paths = [line for line in text.replace("\\\n    ", "").splitlines() if line[:4] == "path"]
    assert paths == [
        f"path {a}--{b} abw-flows=1:6Mb;2:9Mb rtt=210.123ms capacity=50Mb"
        for a, b in (("h0", "h1"), ("h0", "h2"), ("h1", "h2"))
    ]
    assert (
        "round trip at least 210.123ms, half of 4 within 212ms, 99 % within 230ms, 1 lost" in text
    )
    found = json.loads((tmp_path / "paths.json").read_text())
    assert (found["format"], found["version"]) == ("tstorm-paths", 1)
    first = found["paths"][0]
    assert (first["a"], first["b"], first["rtt_ns"]) == ("h0", "h1", 210_123_000)
    assert [row[::2] for row in first["up"]["abw"]] == [[1, 0], [2, 0]]
    assert [row[1] for row in first["up"]["abw"]] == pytest.approx([6 * MB, 9 * MB], rel=1e-4)
    assert not (tmp_path / "paths.state.json").exists()
    clients = [words for words in calls(hosts) if "-c" in words]
    assert len(clients) == 3 * 2 * 2 * 3
    assert all("-R" in words for words in clients)


@pytest.mark.usefixtures("no_clock")
def test_paths_for_another_file(hosts: Path, tmp_path: Path) -> None:
    assert status(measure(hosts, "--only-paths", "-o", "net.tdl")) == 0
    text = (tmp_path / "net.tdl").read_text()
    assert "service" not in text
    compile_source("service h0\nservice h1\n" + text)


@pytest.mark.usefixtures("no_clock")
def test_it_goes_on_where_it_failed(hosts: Path, tmp_path: Path) -> None:
    programs, state = tmp_path / "programs", tmp_path / "paths.state.json"
    (programs / "report 2 12").unlink()
    failed = measure(hosts)  # two flows: the stand-in ends with an error
    assert status(failed) == 1
    assert "go on with --resume" in failed.output
    before = json.loads(state.read_text())
    assert [row["flows"] for row in before["flows"]] == [1, 1, 1]
    assert "was not finished" in str(measure(hosts).exception)
    assert "another --rtt" in str(
        in_process("measure", hosts.name, *SHORT[2:], "--rtt", "2s", "--resume").exception
    )
    put(programs, REPORTS)
    (programs / "calls").unlink()
    assert status(measure(hosts, "--resume")) == 0
    clients = [words for words in calls(hosts) if "-c" in words]
    assert len(clients) == 2 * 2 * 3 - 3
    assert not state.exists()


@pytest.mark.usefixtures("no_clock")
def test_other_hosts_are_another_measurement(hosts: Path, tmp_path: Path) -> None:
    (tmp_path / "programs/refused").touch()
    failed = measure(hosts)
    assert "h0 to h1: iperf3: unable to connect" in str(failed.exception)
    hosts.write_text(hosts.read_text().replace('"h1"', '"h1.example.org"'))
    assert "another hosts file" in str(measure(hosts, "--resume").exception)


@pytest.mark.usefixtures("no_clock")
def test_slow_start_gets_more_time(hosts: Path, tmp_path: Path) -> None:
    rising = [2**n * 1000 for n in range(12)]
    reports = {
        "1 12": report(rising),
        "1 24": report([*rising, *[4 * MB] * 12]),
    }
    put(tmp_path / "programs", reports)
    done = in_process("measure", hosts.name, "--rtt", "1s", "--flows", "1", "--seconds", "12")
    assert status(done) == 0, done.output
    lengths = [words[words.index("-t") + 1] for words in calls(hosts) if "-c" in words]
    assert lengths.count("12") == 2  # once for each direction
    assert lengths.count("24") == 6
    assert "path h0--h1 abw=4Mb rtt" in (tmp_path / "paths.tdl").read_text()


@pytest.mark.usefixtures("no_clock")
def test_fast_paths_have_large_blocks(hosts: Path, tmp_path: Path) -> None:
    put(tmp_path / "programs", {"1 12": report([800 * MB] * 12)})
    done = in_process("measure", hosts.name, "--rtt", "1s", "--flows", "1", "--seconds", "12")
    assert status(done) == 0, done.output
    blocks = [words[words.index("-l") + 1] for words in calls(hosts) if "-c" in words]
    assert blocks == ["4096", *["131072"] * 6]


def test_a_clock_that_is_wrong(hosts: Path) -> None:
    """The stand-in counts 12 s at once."""
    failed = measure(hosts)
    assert status(failed) == 1
    assert "counts 12.0 s in a test of 12 s that took 0" in str(failed.exception)


def test_a_port_that_is_in_use(hosts: Path, tmp_path: Path) -> None:
    (tmp_path / "programs/in-use").touch()
    assert "h0: port 5201 is in use there" in str(measure(hosts).exception)


def test_a_host_without_iperf3(hosts: Path, tmp_path: Path) -> None:
    names = ("sh", "cat", "env", "timeout", "ping")
    (tmp_path / "bare").mkdir()
    for name in names:
        (tmp_path / "bare" / name).symlink_to(f"/usr/bin/{name}")
    text = hosts.read_text()
    cut = text.index("[hosts.h1]")
    bare = text[cut:].replace(f"{tmp_path}/programs:/usr/bin:/bin", f"{tmp_path}/bare")
    hosts.write_text(text[:cut] + bare)
    failed = measure(hosts)
    assert status(failed) == 3
    assert "h1 has no iperf3" in str(failed.exception)


def test_a_host_that_is_not_reached(hosts: Path) -> None:
    """No name below .invalid exists (RFC 2606)."""
    hosts.write_text(hosts.read_text() + '\n[hosts.h3]\nssh = "nobody@h3.invalid"\n')
    failed = measure(hosts)
    assert status(failed) in (1, 3)
    assert "h3" in str(failed.exception)
    assert "ssh" in str(failed.exception)


@pytest.mark.parametrize("name", ["paths.tdl", "paths.json"])
def test_files_of_others_stay(hosts: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    failed = measure(hosts)
    assert "was not written by tstorm measure" in str(failed.exception)
    assert (tmp_path / name).read_text() == "{}"


@pytest.mark.parametrize(
    "words",
    [("--flows", "2..4"), ("--flows", "1..33"), ("--seconds", "5"), ("--rtt", "10ms"),
     ("-o", "paths.txt")],
)  # fmt: skip
def test_wrong_usage(hosts: Path, words: tuple[str, str]) -> None:
    assert status(measure(hosts, *words)) == 2


def test_nothing_to_go_on_with(hosts: Path) -> None:
    assert "nothing to go on with" in str(measure(hosts, "--resume").exception)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_on_the_hosts(hosts: Path, tmp_path: Path, number: signal.Signals) -> None:
    """Also where the command itself had no time to clear up."""
    programs = tmp_path / "programs"
    (programs / "hangs").touch()
    with begun(tmp_path, "measure", hosts.name, *SHORT) as process:
        wait_until((programs / "testing").exists, "a test")
        assert ours(programs)
        process.send_signal(number)
        code = process.wait(timeout=2 * GRACE_S)
        wait_until(lambda: not ours(programs), lambda: f"the end of {ours(programs)}")
    assert code == (-number if number == signal.SIGKILL else 130)
    state = json.loads((tmp_path / "paths.state.json").read_text())
    assert len(state["pings"]) == 1
    assert {path.name for path in tmp_path.iterdir() if path.suffix == ".tdl"} == set()


def ours(programs: Path) -> list[str]:
    """Processes whose command has the folder in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(programs / "iperf3").encode() in words:
                found.append(entry.name)
    return found
