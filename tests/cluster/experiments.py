"""Experiments as a user makes them: tstorm compile, tstorm render, kubectl apply."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from compiler.plan.reader import Plan, read_plan
from manifests.names import labels
from tests.cluster.support import NODES, ROOT, Cluster, Pod, run

KEY = "0123456789abcdef0123456789abcdef"  # for the tests; made at run otherwise


def tstorm(*arguments: str | Path, cwd: Path = ROOT) -> str:
    return run([sys.executable, "-m", "tstorm", *arguments], cwd)


@dataclass(frozen=True)
class Experiment:
    """A rendered plan. `folder` is what kubectl applies."""

    plan: Plan
    folder: Path
    namespace: str

    @property
    def pods(self) -> int:
        instances = sum(service.replicas for service in self.plan.topology.services)
        return instances + NODES + 1  # agents, coordinator

    def instances(self) -> dict[str, str]:
        """Pod by instance: `server.3` is `server-3`."""
        services = self.plan.topology.services
        named = labels(service.name for service in services)
        return {
            f"{service.name}.{index}": f"{named[service.name]}-{index}"
            for service in services
            for index in range(service.replicas)
        }

    def prepare(self, cluster: Cluster) -> None:
        """The namespace, and what a run would make: without it agents and coordinator wait."""
        cluster.kubectl("apply", "-f", str(self.folder / "00-namespace.yaml"))
        secret = ["create", "secret", "generic", "tstorm-auth", f"--from-literal=key={KEY}"]
        cluster.kubectl(*secret, "-n", self.namespace)
        options = ["create", "configmap", "tstorm-run", "--from-literal=run.json={}"]
        cluster.kubectl(*options, "-n", self.namespace)

    def apply(self, cluster: Cluster, *options: str) -> str:
        kustomized = (self.folder / "kustomization.yaml").exists()
        return cluster.kubectl("apply", *options, "-k" if kustomized else "-f", str(self.folder))

    def release(self, cluster: Cluster) -> None:
        """Tells the agents which pods are theirs, as a coordinator does once all are there."""
        found = cluster.wait_there(self.namespace, self.pods)
        uids = [pod.uid for pod in found if pod.component == "instance"]
        for pod in found:
            if pod.component == "agent":
                cluster.wait_pod_ready(pod)
                cluster.exec(self.namespace, pod.name, "/usr/bin/tstorm-agent", "pods", *uids)

    def ready(self, cluster: Cluster) -> list[Pod]:
        self.release(cluster)
        return cluster.wait_ready([self.namespace], self.pods)


def compile_text(text: str, folder: Path, name: str = "experiment") -> Path:
    source = folder / f"{name}.tdl"
    source.write_text(text)
    return compile_file(source, folder)


def compile_file(source: Path, folder: Path) -> Path:
    plan = folder / f"{source.stem}.plan"
    tstorm("compile", source, "-o", plan, "--no-manifests")
    return plan


def render(plan: Path, folder: Path, *options: str) -> Experiment:
    # Several experiments share the three nodes, which share the processors of this machine.
    tstorm("render", plan, "-o", folder, "--agent-cpu", "10m", *options)
    # Cluster-wide is nothing but the Namespace; its file says how it is called.
    first = (folder / "00-namespace.yaml").read_text().splitlines()
    (name,) = [line.split('"')[1] for line in first if line.startswith("  name:")]
    return Experiment(read_plan(plan), folder, name)
