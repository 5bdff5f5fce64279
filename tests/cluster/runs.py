"""Whole runs on the cluster as a user starts them, and what they have on the machine: processes of
their pods, and what datapaths have made in those pods' networks.

All nodes of the cluster share this machine, so that its /proc has the processes of every pod.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cli.process import called
from tests.cluster.support import DEADLINE_SECONDS, ROOT, Cluster, wait_until

PROC = Path("/proc")
# What the command lines of a run's processes have in them.
SUPERVISOR, AGENT, DATAPATH = r"/usr/bin/tstorm-agent$", r"-m runtime\.agent ", r"/pktd "
COORDINATOR = r"/usr/bin/tstorm-coordinator$"


class ClusterRun:
    """`tstorm run PLAN --backend k8s` in a namespace; `out` is its run directory."""

    def __init__(self, cluster: Cluster, plan: Path, namespace: str, folder: Path) -> None:
        self.cluster, self.namespace, self.out = cluster, namespace, folder / "out"
        self.log = folder / "command.log"
        words = ["run", str(plan), "--backend", "k8s", "--namespace", namespace]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tstorm", *words, "--agent-cpu", "10m", "--out", self.out],
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=environment(cluster),
            )

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        file = self.out / "events.jsonl"
        lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
        return [one for line in lines if (one := json.loads(line))["kind"] == kind or not kind]

    def wait_for(self, kind: str, count: int = 1) -> dict[str, Any]:
        """The newest of the events of a kind, once there are so many."""

        def there() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return len(self.events(kind)) >= count

        wait_until(there, lambda: f"{count} {kind}: {self.log.read_text()}")
        return self.events(kind)[-1]

    def wait_answers(self, instance: str, more: int = 5) -> None:
        """Until so many more of the pings of an instance have been answered."""
        wanted = len(self.round_trips(instance)) + more
        wait_until(
            lambda: len(self.round_trips(instance)) >= wanted or self.process.poll() is not None,
            lambda: f"{more} answers to {instance}: {self.log.read_text()}",
        )
        assert self.process.poll() is None, self.log.read_text()

    def round_trips(self, instance: str) -> list[float]:
        """Of the pings that the instance prints, ms."""
        file = self.out / f"logs/{instance}.log"
        text = file.read_text() if file.exists() else ""
        return [float(word) for word in re.findall(r"time=([\d.]+) ms", text)]

    def ended(self) -> dict[str, Any]:
        """The summary, once the command has ended by itself; its status is in `process`."""
        self.process.wait(DEADLINE_SECONDS)
        found: dict[str, Any] = json.loads((self.out / "summary.json").read_text())
        return found

    def measured_from(self, instance: str) -> list[int]:
        """When echoes of this instance that came back were sent, ns since time 0."""
        head, *reports = map(json.loads, (self.out / "probes.jsonl").read_bytes().splitlines())
        rows = [row for report in reports for row in report.get("probes", ())]
        return [
            sent_ns
            for pair, sent_ns, delay_ns in rows
            if head["pairs"][pair][0] == instance and delay_ns is not None
        ]

    def pod_of(self, instance: str) -> str:
        return instance.replace(".", "-")

    def agent_of(self, instance: str) -> str:
        """The agent's pod on the node of an instance."""
        pods = self.cluster.pods(self.namespace)
        node = next(pod.node for pod in pods if pod.name == self.pod_of(instance))
        return next(p.name for p in pods if p.component == "agent" and p.node == node)

    def node_of(self, instance: str) -> str:
        return self.cluster.pod(self.namespace, self.pod_of(instance)).node

    def processes(self, pattern: str = "", pod: str = "") -> list[int]:
        """Processes of the run's pods, or of one, whose command line has the pattern in it."""
        known = {one.uid.replace("-", "_"): one for one in self.cluster.pods(self.namespace)}
        return [
            pid
            for pid, uid, words in _in_pods()
            if uid in known and (not pod or known[uid].name == pod) and re.search(pattern, words)
        ]

    def kill(self, pattern: str, pod: str = "") -> None:
        found = self.processes(pattern, pod)
        assert len(found) == 1, (pattern, pod, found)
        os.kill(found[0], signal.SIGKILL)

    def networks(self) -> list[int]:
        """Descriptors of the networks of the instances' pods: they stay as long as these do."""
        names = [
            pod.name for pod in self.cluster.pods(self.namespace) if pod.component == "instance"
        ]
        found = [self.processes("", name)[0] for name in names]
        return [os.open(PROC / str(pid) / "ns/net", os.O_RDONLY) for pid in found]

    def end(self) -> None:
        """However the test ended."""
        self.process.kill()
        self.process.wait()
        self.cluster.delete(self.namespace)


def environment(cluster: Cluster) -> dict[str, str]:
    """Of a command that is to use the cluster."""
    return {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "NO_PROXY": "*", "no_proxy": "*"}


def command(cluster: Cluster, name: str, *arguments: str | Path) -> tuple[int, str, str]:
    """`tstorm NAME --backend k8s …` to its end: its status, product and words."""
    words = (name, "--backend", "k8s", *arguments)
    done = called(*words, cwd=ROOT, env=environment(cluster), timeout=DEADLINE_SECONDS)
    return done.returncode, done.stdout, done.stderr


def _in_pods() -> Iterator[tuple[int, str, str]]:
    """Every process of a pod: its number, the pod's UID with underlines, the command line."""
    for entry in PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            groups = (entry / "cgroup").read_text()
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # ended meanwhile
        found = re.search(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})", groups)
        if found is not None:
            yield int(entry.name), found[1].replace("-", "_"), words.removesuffix(" ")


def pods_with_processes(uids: set[str]) -> set[str]:
    """Those of the pods that have a process."""
    return {uid for uid in uids if uid.replace("-", "_") in {found for _, found, _ in _in_pods()}}


def traces(networks: list[int]) -> list[str]:
    """Devices of datapaths, and queueing disciplines at eth0, in networks held by descriptors."""
    found = []
    for descriptor in networks:
        links = _inside(descriptor, "ip", "-o", "link")
        found += re.findall(r"^\d+: (emu\d+)", links, re.MULTILINE)
        if "eth0" in links:
            disciplines = _inside(descriptor, "tc", "qdisc", "show", "dev", "eth0").splitlines()
            found += [line for line in disciplines if "noqueue" not in line]
    return found


def _inside(descriptor: int, *command: str) -> str:
    done = subprocess.run(
        ["nsenter", f"--net=/proc/self/fd/{descriptor}", *command],
        capture_output=True,
        text=True,
        pass_fds=[descriptor],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
