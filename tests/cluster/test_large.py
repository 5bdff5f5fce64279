"""A plan of 20 MB travels in ConfigMaps, and every agent reads all of it; or a slim one."""

from __future__ import annotations

import hashlib
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
    agents = [pod for pod in made.ready(cluster) if pod.component == "agent"]
    assert len(agents) == NODES
    for agent in agents:
        assert cluster.read_plan(agent)["plan.json"] == made.plan.digest


def test_agents_compute_what_a_slim_plan_leaves_out(
    cluster: Cluster, plans: dict[str, Path], experiment: Make
) -> None:
    made = experiment(plans["quickstart"], "--slim")
    whole = {
        name: hashlib.sha256((plans["quickstart"] / name).read_bytes()).hexdigest()
        for name in ("plan.json", "snapshots.jsonl", "routes.bin")
    }
    for pod in made.ready(cluster):
        if pod.component == "agent":
            found = cluster.read_plan(pod)
            assert {name: found.get(name) for name in whole} == whole
