"""Experiments as a user makes them: tstorm compile, tstorm render, kubectl apply."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from compiler.plan.reader import Plan, read_plan
from manifests.object_names import labels
from tests.cli.process import called
from tests.cluster.support import HERE, NODES, ROOT, Cluster, Pod

KEY = "0123456789abcdef0123456789abcdef"  # for the tests; made at run otherwise


def tstorm(*arguments: str | Path, cwd: Path = ROOT) -> str:
    done = called(*arguments, cwd=cwd)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


@dataclass(frozen=True)
class Experiment:
    """A rendered plan, applied without a run. `folder` is what kubectl applies. The coordinator
    waits for what only a run makes; agents wait for the coordinator, and tests order instances
    about in their place."""

    plan: Plan
    folder: Path
    namespace: str

    @property
    def pods(self) -> int:
        instances = sum(service.replicas for service in self.plan.topology.services)
        return instances + NODES  # agents

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
        """The namespace, and the key that a run would make: without it agents wait."""
        cluster.kubectl("apply", "-f", str(self.folder / "00-namespace.yaml"))
        secret = ["create", "secret", "generic", "tstorm-auth", f"--from-literal=key={KEY}"]
        cluster.kubectl(*secret, "-n", self.namespace)

    def apply(self, cluster: Cluster, *options: str) -> str:
        kustomized = (self.folder / "kustomization.yaml").exists()
        return cluster.kubectl("apply", *options, "-k" if kustomized else "-f", str(self.folder))

    def release(self, cluster: Cluster) -> None:
        """Lets every instance join, as agents do at a step."""
        pods = cluster.wait_placed(self.namespace, self.pods)
        for agent in pods:
            if agent.component == "agent":
                near = [pod for pod in pods if pod.node == agent.node]
                uids = [pod.uid for pod in near if pod.component == "instance"]
                cluster.wait_pod_ready(agent)
                order(cluster, agent, "join", uids)

    def ready(self, cluster: Cluster) -> list[Pod]:
        """All pods but the coordinator's."""
        self.release(cluster)
        return cluster.wait_ready([self.namespace], self.pods)


def order(cluster: Cluster, agent: Pod, word: str, uids: Iterable[str]) -> list[int]:
    """When an agent's pod gave the orders, ns of the machine's clock."""
    text = (HERE / "order.py").read_text()
    command = ("/usr/bin/python3", "-P", "-c", text, word, *uids)
    return [int(at) for at in cluster.exec(agent.namespace, agent.name, *command).split()]


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
