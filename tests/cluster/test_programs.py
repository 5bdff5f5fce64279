"""Real programs (tests/cluster/programs) on the cluster and spread over hosts of this machine.

Both do the same: the same events, and the same outcome of each program. Rates and times of both are
printed (`pytest -rP` shows them) and are no condition here: docs/kubernetes.md has figures.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import dropwhile, groupby
from pathlib import Path
from statistics import mean, median

import pytest

from runtime.results.event_comparison import differ, load
from runtime.rundir import logmarks
from runtime.rundir.runfiles import STACKS
from tests.cli.process import called
from tests.cluster.debian import PROGRAMS
from tests.cluster.support import ROOT, Cluster

pytestmark = pytest.mark.cluster

SOURCE = PROGRAMS / "programs.tdl"
RUN_SECONDS = 23
WAYS = ("cluster", "hosts")
PROGRAMS_KEPT = "programs"
AGENT_CPU = "500m"  # of the processors that all nodes share


def tstorm(cluster: Cluster, *arguments: str | Path) -> None:
    """A command that must succeed, with the test cluster's kubeconfig and past any proxy."""
    own = {"NO_PROXY": "*", "no_proxy": "*", "KUBECONFIG": str(cluster.kubeconfig)}
    done = called(*arguments, cwd=ROOT, env=os.environ | own)
    assert done.returncode == 0, done.stdout + done.stderr


def log(run: Path, instance: str) -> list[str]:
    """What the instance's program has said, by lines."""
    lines = (run / f"logs/{instance}.log").read_text().splitlines()
    return [line for line in lines if logmarks.parse(line) is None]


@pytest.fixture(scope="module")
def runs(
    cluster: Cluster,
    loaded: None,
    namespaces: Iterator[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    """The directories of both: the second repeats the first and ends with 1 if events differ."""
    folder = tmp_path_factory.mktemp("programs")
    found = {way: folder / way for way in WAYS}
    tstorm(cluster, "run", SOURCE, "--hosts", "3", "--out", found["hosts"])
    place = ["--backend", "k8s", "--namespace", next(namespaces), "--agent-cpu", AGENT_CPU]
    where = [*place, "--check", "--out", str(found["cluster"])]
    tstorm(cluster, "replay", found["hosts"], *where)
    return found


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest, runs: dict[str, Path]) -> Path:
    return runs[request.param]


def test_the_events_are_the_same(runs: dict[str, Path]) -> None:
    assert differ(load(runs["cluster"]), load(runs["hosts"])) == []
    for way, run in runs.items():
        late = json.loads((run / "summary.json").read_text())["events"]["start_lag"]
        figures = " ".join(f"{name[:3]} {late[name] / 1e6:.1f}" for name in ("p50_ns", "p99_ns"))
        print(f"\n{way}: programs started after their join, ms: {figures}")


def test_the_run_directory_has_the_same_files(runs: dict[str, Path]) -> None:
    """But for copies of programs of this machine, and what only a process beside the instances
    measures."""
    names = {
        way: {path.relative_to(run) for path in run.rglob("*") if "instances" not in path.parts}
        for way, run in runs.items()
    }
    assert names["cluster"] <= names["hosts"]
    only_here = {path.parts[0] for path in names["hosts"] - names["cluster"]}
    assert only_here == {PROGRAMS_KEPT, STACKS}


def test_redis_is_cut_off_and_killed_and_loses_nothing(run: Path) -> None:
    said = [line.split() for line in log(run, "writer.0")]
    tries = [words for words in said if words[0] in ("written", "refused")]
    # The primary may be there later than the writer; the last try ends with the writer's leave,
    # which may be in the middle of it.
    settled = dropwhile(lambda words: words[0] == "refused", tries[:-1])
    assert [word for word, _ in groupby(word for word, _ in settled)] == [
        "written",
        "refused",  # the partition
        "written",
        "refused",  # the crash
        "written",
    ]
    # That may have been carried out and not answered.
    last = [number for word, number in tries if word == "written"][-1]
    assert said[-2:] in ([["primary", n], ["replica", n]] for n in (last, tries[-1][1]))


def rates(run: Path) -> list[float]:
    """What the load found, kB/s of each round, in order."""
    said = [line.split() for line in log(run, "load.0")]
    assert {tuple(words) for words in said if words[0] != "kbytes_per_second"} == {
        ("complete", "40"),
        ("failed", "0"),
    }
    return [float(words[1]) for words in said if words[0] == "kbytes_per_second"]


def test_nginx_serves_every_request_as_fast_as_the_link_is(run: Path) -> None:
    found = rates(run)
    assert len(found) >= 4
    assert max(found) <= 20e6 / 8 / 1024
    assert found[-1] <= 5e6 / 8 / 1024 < max(found)


def received(run: Path, instance: str) -> list[float]:
    """Rates that an iperf3 server has seen, kbit/s of each second but the last part of one."""
    each = r" sec .* ([\d.]+) ([KM])bits/sec *$"
    found = [match for line in log(run, instance) if (match := re.search(each, line))]
    return [float(match[1]) * {"K": 1, "M": 1000}[match[2]] for match in found[:-1]]


def test_two_transfers_share_their_bottleneck(run: Path) -> None:
    first, second = received(run, "sink.0"), received(run, "sink.1")
    assert sum(first) > 0
    assert sum(second) > 0
    assert sum(first) + sum(second) <= 8000 * RUN_SECONDS


def test_both_ways_measured_the_same_rates(runs: dict[str, Path]) -> None:
    """Printed, to be compared by whoever has a quiet machine."""
    for way, run in runs.items():
        fast, slow = rates(run)[1:5], rates(run)[-2:]
        shares = [median(received(run, f"sink.{index}")[-8:]) for index in range(2)]
        figures = [mean(fast), mean(slow), *shares, sum(shares)]
        assert all(figure > 0 for figure in figures)
        print(f"\n{way}: nginx {figures[0]:.0f} then {figures[1]:.0f} kB/s; ", end="")
        print("transfers {:.0f} + {:.0f} = {:.0f} kbit/s".format(*figures[2:]))
