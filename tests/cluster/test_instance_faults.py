"""An instance loses its container, or its whole sandbox with the address: the run goes on, says so,
and the instance comes back when the timeline says so, over the network as planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.debian import PROGRAMS_IMAGE
from tests.cluster.experiments import compile_text
from tests.cluster.runs import ClusterRun
from tests.cluster.support import Cluster

pytestmark = pytest.mark.cluster

Start = Callable[[], ClusterRun]
ROUND_TRIP_MS = 20.0
TEXT = f"""
service a img="{PROGRAMS_IMAGE}" entrypoint=['/bin/sh', '-c',
    'while :; do ping -c 1 -W 1 b.1; sleep 0.2; done']
service b img="{PROGRAMS_IMAGE}" replicas=2 entrypoint=['/bin/sleep', '1000']
bridge s
link a--s latency=4ms
link b--s latency=6ms
at 0s a join
at 0s b join 2
at 26s b.0 crash
at 26s b.1 crash
at 28s b.0 join
at 28s b.1 join
at 38s quit
"""


@pytest.fixture
def start(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], tmp_path: Path
) -> Iterator[Start]:
    """Starts the run; returns when a.0 has seen b.1."""
    runs: list[ClusterRun] = []

    def begin() -> ClusterRun:
        plan = compile_text(TEXT, tmp_path)
        runs.append(ClusterRun(cluster, plan, next(namespaces), tmp_path))
        runs[-1].wait_for("join", 3)
        runs[-1].wait_answers("a.0")
        return runs[-1]

    yield begin
    for run in runs:
        print(run.log.read_text())
        run.end()


def test_an_instance_that_loses_its_container_or_its_address_joins_again(
    cluster: Cluster, start: Start
) -> None:
    run = start()
    before = cluster.pod(run.namespace, run.pod_of("b.1"))
    run.kill(r"tstorm-hold run ", run.pod_of("b.0"))
    assert run.wait_for("killed")["target"] == "b.0"
    run.kill(r"^/pause", before.name)
    moved = run.wait_for("moved")
    after = cluster.pod(run.namespace, before.name)
    assert (moved["target"], after.node, after.uid) == ("b.1", before.node, before.uid)
    run.wait_for("join", 5)
    again = run.events("join")[3:]
    assert sorted(event["target"] for event in again) == ["b.0", "b.1"]
    assert all(event["started_ns"] >= event["planned_ns"] for event in again)
    run.wait_answers("a.0")  # of b.1, at its new address
    assert run.ended()["outcome"] == "completed"
    assert min(run.round_trips("a.0")) >= ROUND_TRIP_MS - 0.5
