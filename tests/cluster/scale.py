"""An experiment of any size on fake nodes (tests/cluster/fakenodes.py): applied, watched, led by a
coordinator with simulated agents, deleted; and what each took."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.cluster import fakenodes
from tests.cluster.experiments import compile_text, tstorm
from tests.cluster.support import ROOT, Cluster, wait_until

SIMULATING = 4  # processes with nodes: one alone would be busy with long messages for seconds
SECONDS = 1800.0
PART_OF = "app.kubernetes.io/part-of=thunderstorm"


def text(instances: int) -> str:
    """Half of the instances on each side of a backbone whose delay changes."""
    held = "img=alpine:3 entrypoint=['/bin/sleep'] command=['60']"
    return f"""\
service client {held} replicas={instances // 2}
service server {held} replicas={instances - instances // 2}
bridges s1 s2
link client--s1 latency=1ms up=100Mb symmetric
link server--s2 latency=1ms up=100Mb symmetric
link s1--s2 latency=10ms up=1Gb symmetric
at 1s s1--s2 set latency=20ms
at 3s quit
"""


def measure(cluster: Cluster, run: str, hosts: int, instances: int) -> dict[str, Any]:
    """Seconds, MiB and MB of each part. `run` names the nodes and the namespace."""
    row: dict[str, Any] = {"hosts": hosts, "instances": instances}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tstorm-scale-")))
        plan = compile_text(text(instances), folder)
        where = ["--namespace", run, "--nodes", f"{fakenodes.LABEL}={run}"]
        tstorm("render", plan, "-o", folder / "objects", *where)
        with _timed(row, "nodes_s"):
            stack.enter_context(fakenodes.nodes(cluster, run, hosts))
        stack.callback(_delete, cluster, run)
        _apply(cluster, run, folder / "objects", row)
        with _timed(row, "pods_s"):
            wait_until(
                lambda: _running(cluster, run) == instances + hosts,
                lambda: f"{instances + hosts} pods that run; {_running(cluster, run)} do",
                seconds=SECONDS,
                pause=0.2 + instances / 1000,  # each look costs the API server seconds then
            )
        with _agents(plan, run, hosts):
            row |= _lead(cluster, run, folder, plan)
        with _timed(row, "deleted_s"):
            _delete(cluster, run)
    return row


def _delete(cluster: Cluster, run: str) -> None:
    cluster.kubectl("delete", "namespace", run, "--ignore-not-found", "--wait=false")
    wait_until(
        lambda: not cluster.kubectl("get", "namespace", run, "--ignore-not-found"),
        "the end of the namespace",
        seconds=SECONDS,
    )


@contextmanager
def _timed(row: dict[str, Any], key: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    row[key] = round(time.monotonic() - began, 1)


def _apply(cluster: Cluster, run: str, folder: Path, row: dict[str, Any]) -> None:
    """What is rendered, and what the command adds for a run, as it applies them."""
    objects = fakenodes.tolerant(folder)
    row["objects"] = len(objects)
    row["applied_mb"] = round(sum(map(len, map(json.dumps, objects))) / 1e6, 1)
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    with _timed(row, "applied_s"):
        cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))
    for kind, key in (("secret generic tstorm-auth", "key"), ("configmap tstorm-run", "run.json")):
        cluster.kubectl("create", *kind.split(), f"--from-literal={key}=x", "-n", run)


def _running(cluster: Cluster, run: str) -> int:
    shown = cluster.kubectl(
        *("get", "pods", "-n", run, "-l", PART_OF, "--no-headers", "--ignore-not-found")
    )
    return sum(" Running " in line for line in shown.splitlines())


@contextmanager
def _agents(plan: Path, run: str, hosts: int) -> Iterator[None]:
    words = [sys.executable, "-m", "tests.cluster.simulatednodes", str(plan), run]
    share = -(-hosts // SIMULATING)
    processes = [
        subprocess.Popen(
            [*words, str(first), str(min(share, hosts - first))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        for first in range(0, hosts, share)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _lead(cluster: Cluster, run: str, folder: Path, plan: Path) -> dict[str, Any]:
    directory = folder / "run"
    for name in ("logs", "instances"):
        (directory / name).mkdir(parents=True)
    shutil.copytree(plan, directory / "plan")
    token = folder / "token"
    token.write_text(cluster.kubectl("create", "token", "tstorm-coordinator", "-n", run))
    view = json.loads(cluster.kubectl("config", "view", "-o", "json"))
    server = view["clusters"][0]["cluster"]["server"]
    authority = cluster.kubeconfig.parent / "ca.crt"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.cluster.coordinating", directory, server, run),
            *(authority, token),
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        timeout=SECONDS,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
