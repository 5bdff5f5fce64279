"""Waits until the pods of a run are where it can begin: placed, with addresses, and waiting for
their join; and the agents' pods on the same nodes running.

While it waits it says what for, with the reasons that the API server gives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from runtime.backend.base import RunContext
from runtime.backend.k8s.pods import GATE, INSTANCE, Pod, PodWatch
from runtime.errors import RunError
from runtime.say import some

SECONDS = 900.0  # images may have to be pulled
TELL_SECONDS = 5.0
LOOK_SECONDS = 0.1
NAMES = 3
CRASHES = 3  # restarts of a container that is to wait, until nobody waits for it any more


class PodReadiness:
    """`watching` is the task that keeps `watch` up to date."""

    def __init__(self, context: RunContext, watch: PodWatch, watching: asyncio.Task[None]) -> None:
        self._context = context
        self._watch = watch
        self._watching = watching

    async def instances(self) -> dict[str, Pod]:
        """The pods of all instances of the plan, by instance. RunError."""
        topology = self._context.plan.topology
        keeper = {
            node.name: INSTANCE if topology.services[node.service].entrypoint else GATE
            for node in topology.nodes
            if node.service >= 0
        }

        def missing() -> dict[str, str]:
            found = self._of_instances()
            return {
                name: why
                for name, container in keeper.items()
                if (why := self._lacks(found.get(name), container))
            }

        await self._until(missing, "pods")
        found = self._of_instances()
        return {name: found[name] for name in keeper}

    def _of_instances(self) -> dict[str, Pod]:
        return {pod.instance: pod for pod in self._watch.pods.values() if pod.instance}

    def _lacks(self, pod: Pod | None, container: str) -> str:
        """Why its instance cannot join yet, '' if it can."""
        if pod is None:
            return "there is no pod of it yet"
        digest = self._context.plan.digest
        if pod.digest != digest:
            raise RunError(
                f"pod {pod.name} is of another plan: {pod.digest!r:.80}, the run's is {digest}",
                "delete the namespace and run again",
            )
        if pod.node and pod.addresses and not pod.leaving and pod.running(container):
            return ""
        found = pod.containers.get(container)
        if found is not None and found.restarts >= CRASHES and found.state != "running":
            how = f"signal {found.signal}" if found.signal else f"status {found.status}"
            raise RunError(
                f"the container {container} of pod {pod.name} ends again and again, with {how}",
                f"look at its output: kubectl logs {pod.name} -c {container}",
            )
        return pod.waits() or f"its container {container} does not run yet"

    async def agents(self, nodes: Sequence[str]) -> dict[str, Pod]:
        """The agents' pods, by node. RunError."""

        def here() -> dict[str, Pod]:
            return {
                pod.node: pod
                for pod in self._watch.pods.values()
                if pod.component == "agent" and not pod.leaving
            }

        def missing() -> dict[str, str]:
            found = here()
            return {
                name: found[name].waits() or "it does not run yet"
                if name in found
                else "there is none: do its taints or --nodes keep it away?"
                for name in nodes
                if name not in found or not (found[name].addresses and found[name].running("agent"))
            }

        await self._until(missing, "agents")
        found = here()
        return {name: found[name] for name in nodes}

    async def _until(self, missing: Callable[[], Mapping[str, str]], what: str) -> None:
        loop = asyncio.get_running_loop()
        begin = told_at = loop.time()
        told: Mapping[str, str] = {}
        while True:
            if self._watching.done():
                self._watching.result()
            found = missing() if self._watch.listed.is_set() else {"all": "none is known yet"}
            if not found:
                return
            now = loop.time()
            if now - begin > SECONDS:
                raise RunError(
                    f"{_said(found, what)}, after {SECONDS / 60:.0f} minutes",
                    "kubectl describe pods tells more",
                )
            if now - told_at >= TELL_SECONDS and found != told:
                told, told_at = found, now
                self._context.notice(f"waiting for {_said(found, what)}")
            await asyncio.sleep(LOOK_SECONDS)


def _said(missing: Mapping[str, str], what: str) -> str:
    shown = some([f"{name}: {why}" for name, why in missing.items()], NAMES, "; ")
    return f"{len(missing)} {what}: {shown}"
