"""A running cluster as the tests see it: kubectl, the API, and what they wait for."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tests import waiting

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/cluster"
NODES = 3
DEADLINE_SECONDS = 300.0  # for all pods of all examples, on two busy processors
COMPONENT = "app.kubernetes.io/component"
COORDINATOR = "coordinator"


# Each look is a command that talks to the cluster.
wait_until = partial(waiting.wait_until, seconds=DEADLINE_SECONDS, pause=0.2)


def harness(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One command of the script `cluster`."""
    return subprocess.run(
        [HERE / "cluster", *arguments], capture_output=True, text=True, check=False
    )


@dataclass(frozen=True)
class Pod:
    """A pod, as the API shows it."""

    shown: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.shown["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.shown["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        return str(self.shown["metadata"]["uid"])

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.shown["metadata"]["labels"])

    @property
    def component(self) -> str:
        return self.labels.get(COMPONENT, "")

    @property
    def node(self) -> str:
        return str(self.shown["spec"].get("nodeName", ""))

    @property
    def ready(self) -> bool:
        conditions = self.shown["status"].get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    @property
    def leaving(self) -> bool:
        return "deletionTimestamp" in self.shown["metadata"]

    def restarts(self, container: str) -> int:
        return int(self._status(container).get("restartCount", 0))

    def running(self, container: str) -> bool:
        return "running" in self.state(container)

    def container_id(self, container: str) -> str:
        return str(self._status(container).get("containerID", ""))

    def state(self, container: str) -> dict[str, Any]:
        return dict(self._status(container).get("state", {}))

    def _status(self, container: str) -> dict[str, Any]:
        status = self.shown["status"]
        every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        return next((found for found in every if found["name"] == container), {})

    def summary(self) -> str:
        status = self.shown["status"]
        every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        states = {found["name"]: found["state"] for found in every}
        return f"{self.name} on {self.node or '?'}: {status.get('phase')} {json.dumps(states)}"


class Cluster:
    """The administrator's view."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": str(kubeconfig.parents[1] / "kubectl-cache"),
            "GOGC": "off",  # it ends before that pays
            "NO_PROXY": "*",
            "no_proxy": "*",
        }
        self._kubectl = kubeconfig.parents[2] / "bin/kubectl"

    def kubectl_raw(self, *arguments: str, check: bool = True, stdin: str = "") -> bytes:
        done = subprocess.run(
            [self._kubectl, *arguments],
            input=stdin.encode(),
            capture_output=True,
            env=self._environment,
            check=False,
            timeout=DEADLINE_SECONDS,
        )
        assert not check or done.returncode == 0, (arguments, done.stdout, done.stderr.decode())
        return done.stdout if done.returncode == 0 else done.stderr

    def kubectl(self, *arguments: str, check: bool = True, stdin: str = "") -> str:
        """What it prints; what it says on stderr if it may fail and does."""
        return self.kubectl_raw(*arguments, check=check, stdin=stdin).decode()

    def get(self, *arguments: str) -> Any:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    # By the Python client, which takes a tenth of a kubectl's processor time. Its own types are
    # passed over: what the API server says is what is tested.

    def pods(self, namespace: str = "") -> list[Pod]:
        """All of the cluster without a namespace."""
        if namespace:
            answer = self.core.list_namespaced_pod(namespace, _preload_content=False)
        else:
            answer = self.core.list_pod_for_all_namespaces(_preload_content=False)
        return [Pod(shown) for shown in json.loads(answer.data)["items"]]

    def pod(self, namespace: str, name: str) -> Pod:
        answer = self.core.read_namespaced_pod(name, namespace, _preload_content=False)
        return Pod(json.loads(answer.data))

    def logs(self, namespace: str, pod: str, **container: str) -> str:
        answer = self.core.read_namespaced_pod_log(
            pod, namespace, **container, _preload_content=False
        )
        return str(answer.data.decode())

    def wait_placed(self, namespace: str, count: int) -> list[Pod]:
        """All `count` pods of a namespace but the coordinator's, once they have nodes."""
        seen: list[Pod] = []

        def placed() -> bool:
            seen[:] = [pod for pod in self.pods(namespace) if pod.component != COORDINATOR]
            return len(seen) == count and all(pod.node and not pod.leaving for pod in seen)

        wait_until(placed, lambda: "\n".join([f"{count} pods:", *(p.summary() for p in seen)]))
        return seen

    def wait_pod_ready(self, pod: Pod) -> None:
        wait_until(
            lambda: self.pod(pod.namespace, pod.name).ready,
            lambda: self.pod(pod.namespace, pod.name).summary(),
        )

    def wait_ready(self, namespaces: Iterable[str], count: int) -> list[Pod]:
        """All `count` pods of the namespaces but coordinators', once all of them are ready."""
        wanted = set(namespaces)
        seen: list[Pod] = []

        def ready() -> bool:
            found = [pod for pod in self.pods() if pod.namespace in wanted]
            seen[:] = [pod for pod in found if pod.component != COORDINATOR]
            return len(seen) == count and all(pod.ready and not pod.leaving for pod in seen)

        def missing() -> str:
            late = [pod.summary() for pod in seen if not pod.ready]
            return f"{count} pods ready, {len(seen)} are there; not ready:\n" + "\n".join(late)

        wait_until(ready, missing)
        return seen

    def read_plan(self, agent: Pod) -> dict[str, str]:
        """SHA-256 of each file of the plan that an agent has unpacked, by name."""
        text = (
            "import hashlib, pathlib, sys\n"
            "for path in sorted(pathlib.Path('/tmp/plan').iterdir()):\n"
            "    print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())"
        )
        command = ("/usr/bin/python3", "-P", "-c", text)
        said = self.exec(agent.namespace, agent.name, *command).decode()
        return dict(line.split() for line in said.splitlines())

    def exec(self, namespace: str, pod: str, *command: str) -> bytes:
        return self.kubectl_raw("exec", "-n", namespace, pod, "--", *command)

    def environment(self, namespace: str, pod: str) -> dict[str, str]:
        """The variables of a pod's container, byte for byte."""
        words = self.exec(namespace, pod, "cat", "/proc/self/environ").rstrip(b"\0").split(b"\0")
        return dict(word.decode().split("=", 1) for word in words)

    def arguments(self, namespace: str, pod: str) -> list[str]:
        """What the stand-in for the workload was started with, without its own name."""
        for line in self.logs(namespace, pod, container="instance").splitlines():
            if line.startswith('{"standin":"workload"'):
                return [bytes.fromhex(word).decode() for word in json.loads(line)["argv"][1:]]
        raise AssertionError(f"{pod} has not said its arguments")

    def delete(self, *namespaces: str, wait: bool = False) -> None:
        """Without `wait`, nothing else may use their names afterwards."""
        self.kubectl("delete", "namespace", *namespaces, "--ignore-not-found", f"--wait={wait}")

    def status_of(self, path: str, token: str) -> int:
        """How the API server answers a GET below /api/v1 of whoever has the token."""
        from kubernetes.client import Configuration

        server = self.api.configuration
        assert isinstance(server, Configuration)
        request = urllib.request.Request(
            f"{server.host}/api/v1/{path}", headers={"Authorization": f"Bearer {token}"}
        )
        trusted = ssl.create_default_context(cafile=server.ssl_ca_cert)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted)
        )
        try:
            with opener.open(request) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            refused.close()
            return refused.code

    @cached_property
    def api(self) -> Any:
        """The Python client."""
        from kubernetes import client, config

        os.environ["NO_PROXY"] = "*"
        config.load_kube_config(config_file=str(self.kubeconfig))  # type: ignore[no-untyped-call]
        return client.ApiClient()

    @cached_property
    def core(self) -> Any:
        from kubernetes import client

        return client.CoreV1Api(self.api)


def run(argv: Sequence[str | Path], cwd: Path) -> str:
    """A command that must succeed."""
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout
