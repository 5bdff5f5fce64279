"""Nodes of the test cluster that are none: kwok answers for their kubelets, nothing runs on them.

They have a label of their own, for `--nodes`, and a taint, so that nobody else's pods land there:
`tolerant` lets those of an experiment do.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.support import Cluster, wait_until

LABEL = "thunderstorm.dev/fake"  # of nodes, and their taint
LEASE_SECONDS = 120  # renewed four times as often: a thousand nodes share one API server
PODS = 110


def kwok(cluster: Cluster) -> Path:
    """The program that `cluster build` has made."""
    return cluster.kubeconfig.parents[2] / "bin/kwok"


def name(run: str, number: int) -> str:
    return f"{run}-{number:04d}"


@contextmanager
def nodes(cluster: Cluster, run: str, count: int) -> Iterator[None]:
    """`count` nodes, Ready; all of them are deleted afterwards. `run` begins their names."""
    selector = f"{LABEL}={run}"
    words = [str(kwok(cluster)), "--kubeconfig", str(cluster.kubeconfig)]
    words += ["--manage-all-nodes=false"]
    words += [f"--manage-nodes-with-label-selector={selector}"]
    words += [f"--node-lease-duration-seconds={LEASE_SECONDS}"]
    with tempfile.TemporaryDirectory(prefix="tstorm-kwok-") as home:
        environment = {**os.environ, "HOME": home, "NO_PROXY": "*", "no_proxy": "*"}
        with (
            (Path(home) / "kwok.log").open("wb") as log,
            subprocess.Popen(words, env=environment, stdout=log, stderr=log) as process,
        ):
            try:
                listed = {
                    "apiVersion": "v1",
                    "kind": "List",
                    "items": [_node(run, number) for number in range(count)],
                }
                cluster.kubectl("create", "-f", "-", stdin=json.dumps(listed))
                wait_until(lambda: ready(cluster, selector) == count, "fake nodes that are Ready")
                yield
            finally:
                cluster.kubectl("delete", "nodes", "-l", selector, "--wait=false")
                wait_until(lambda: ready(cluster, selector) == 0, "the end of all fake nodes")
                process.terminate()
                process.wait()


def ready(cluster: Cluster, selector: str) -> int:
    shown = cluster.kubectl("get", "nodes", "-l", selector, "--no-headers", "--ignore-not-found")
    return sum(" Ready " in line for line in shown.splitlines())


def _node(run: str, number: int) -> dict[str, Any]:
    """With a network for its pods, which no real node has."""
    cidr = f"10.{200 + number // 256}.{number % 256}.0/24"
    room = {"cpu": "256", "memory": "1Ti", "pods": str(PODS)}
    labels = {
        LABEL: run,
        "kubernetes.io/hostname": name(run, number),
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name(run, number), "labels": labels},
        "spec": {
            "podCIDR": cidr,
            "podCIDRs": [cidr],
            "taints": [{"key": LABEL, "value": run, "effect": "NoSchedule"}],
        },
        "status": {"allocatable": room, "capacity": room},
    }


def tolerant(folder: Path) -> list[dict[str, Any]]:
    """Rendered objects whose pods may be on fake nodes; the coordinator's does not start, since its
    program would not run there."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.yaml")):
        found += [shown for shown in yaml.safe_load_all(path.read_text()) if shown]
    for shown in found:
        if shown["kind"] in ("DaemonSet", "StatefulSet"):
            spec = shown["spec"]["template"]["spec"]
            spec["tolerations"] = [
                *spec.get("tolerations", []),
                {"key": LABEL, "operator": "Exists"},
            ]
        if shown["kind"] == "Job":
            shown["spec"]["suspend"] = True
    return found
