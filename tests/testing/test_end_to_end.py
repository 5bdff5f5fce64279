"""The plugin in a project of its own, with real runs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import ended, environment, tstorm
from tests.intime import environment as kernel
from tests.runtime.support import processes_with
from tests.waiting import wait_until

PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
NETWORK = '''
PING = """
service server img=x exec="tprobe serve"
service client img=x exec="tprobe rtt server.0 --count 20 --each"
bridge s
link server--s latency=20ms up=20Mb symmetric
link client--s latency=5ms up=20Mb symmetric
at 1s server crash
at 2s server join
at 3s quit
"""
'''
TESTS = """
def test_good(tstorm):
    experiment = tstorm.run(PING)
    answer = experiment.exec("client.0", ["ping", "-c1", "server.0"])
    assert (answer.returncode, "1 received" in answer.stdout) == (0, True)
    assert experiment.exec("client.0", ["sh", "-c", "cat; exit 7"], text="in").stdout == "in"
    assert experiment.wait_for("crash")["target"] == "server.0"
    experiment.wait_until("2.1s")
    assert experiment.at_ns >= 2_100_000_000
    run = experiment.finish()
    assert run.series(("client.0", "server.0"), "rtt").between("0s", "1s").least() > 50_000_000
    assert run.log("client.0").count("rtt_us") > 0

def test_bad(tstorm):
    run = tstorm.run(PING, until="1s").finish()
    assert run.series(("client.0", "server.0"), "rtt").least() < 50_000_000, "too far away"
"""
VIRTUAL = """
def test_virtual(tstorm):
    run = tstorm.run(PING).finish()
    assert run.summary["verdict"]["time"] == "virtual"
    assert run.series(("client.0", "server.0"), "rtt").values[0] // 10**6 == 50

def test_long(tstorm):
    with tstorm.run(PING.replace("3s", "9000h")) as experiment:  # or it is over before it is asked
        experiment.wait_until("2s")
        assert experiment.at_ns >= 2_000_000_000
        assert "1 received" in experiment.exec("client.0", ["ping", "-c1", "server.0"]).stdout
"""
OPEN = """
def test_open(tstorm):
    tstorm.run("service a img=x exec='sleep 61'\\nbridge s\\nlink a--s\\nat 1m quit\\n").finish()
"""


def project(place: Path, test: str) -> None:
    (place / "test_it.py").write_text(NETWORK + test)


def session(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ended(
        [*PYTEST, "-rA", "-W", "error", *arguments],
        cwd=place,
        env={**environment(place), **kernel()},
    )


@pytest.mark.e2e
def test_a_project_that_only_installs_the_package(tmp_path: Path) -> None:
    project(tmp_path, TESTS)
    done = session(tmp_path, "--tstorm-artifacts", "kept", "--tstorm-seeds", "5..5")
    assert "PASSED test_it.py::test_good[seed5]" in done.stdout, done.stdout
    assert "FAILED test_it.py::test_bad[seed5] - AssertionError: too far away" in done.stdout
    run = tmp_path / "kept/test_it.py-test_bad-seed5/run"
    assert (
        f"page: file://{run}/report.html\nverdict: UNKNOWN: " in done.stdout
    )  # half a second is short
    assert f"the same run: tstorm replay {run}\n" in done.stdout
    assert "<html" in (run / "report.html").read_text()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [run.parent.name]


@pytest.mark.virtual
def test_virtual_time(tmp_path: Path) -> None:
    project(tmp_path, VIRTUAL)
    done = session(tmp_path, "--tstorm-time", "virtual")
    assert done.returncode == 0, done.stdout


@pytest.mark.e2e
def test_a_session_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    project(tmp_path, OPEN)
    process = subprocess.Popen(
        PYTEST, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.DEVNULL
    )
    try:
        events = wait_until(lambda: next(tmp_path.rglob("events.jsonl"), None), "the run")
        run = str(events.parent)
        wait_until(lambda: len(processes_with(f"TSTORM_RUN_DIR={run}")) > 0, "the program")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until(lambda: not processes_with(run), "the end of every process")
    assert run not in Path("/proc/self/mountinfo").read_text()
    tstorm(tmp_path, "destroy", "--all")
    assert list((tmp_path / "state/tstorm/active").iterdir()) == []
