"""A plan of 20 MB travels in ConfigMaps, and every agent reads all of it; or a slim one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.cluster.conftest import Make
from tests.cluster.experiments import compile_text
from tests.cluster.support import NODES, Cluster

pytestmark = pytest.mark.cluster

BYTES = 20_000_000
EVENTS = 60_000


def large_text() -> str:
    """Few instances and many events, with values that do not compress well."""
    draw = random.Random(20)
    lines = ["service a img=alpine:3", "service b img=alpine:3", "bridge s"]
    lines += ["link a--s latency=1ms up=1Gb symmetric", "link b--s latency=1ms up=1Gb symmetric"]
    for index in range(EVENTS):
        delay, rate = draw.randrange(1, 10**9), draw.randrange(10**3, 10**9)
        lines.append(f"at {index + 1}ms a->s set latency={delay}ns up={rate}bps")
    return "\n".join([*lines, f"at {EVENTS + 1}ms quit", ""])


def test_a_plan_of_20_megabytes_is_carried(
    cluster: Cluster, experiment: Make, tmp_path: Path
) -> None:
    plan = compile_text(large_text(), tmp_path, "large")
    assert sum(path.stat().st_size for path in plan.iterdir()) >= BYTES
    made = experiment(plan)
    shards = cluster.get(
        "configmaps", "-n", made.namespace, "-l", "app.kubernetes.io/component=plan"
    )
    assert len(shards["items"]) > 10
    assert all(shard["immutable"] for shard in shards["items"])
    agents = [pod for pod in made.ready(cluster) if pod.component in ("agent", "coordinator")]
    assert len(agents) == NODES + 1
    for pod in agents:
        assert cluster.said(made.namespace, pod.name, "plan") == [made.plan.digest]


def test_a_slim_plan_leaves_out_what_agents_compute_again(
    cluster: Cluster, plans: dict[str, Path], experiment: Make
) -> None:
    """The stand-in computes nothing: it checks the digest and names what is not there."""
    made = experiment(plans["quickstart"], "--slim")
    for pod in made.ready(cluster):
        if pod.component in ("agent", "coordinator"):
            assert cluster.said(made.namespace, pod.name, "plan") == [made.plan.digest]
            left_out = cluster.said(made.namespace, pod.name, "left-out")
            assert left_out == ["snapshots.jsonl", "routes.bin"]
