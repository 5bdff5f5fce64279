"""What can be chosen when a plan is rendered, and the defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.plan.format import TOOL_VERSION
from manifests import object_names
from manifests.bundle import Bundle
from manifests.refusal import ManifestError

DEFAULT_AGENT_IMAGE = f"docker.io/thunderstorm/tstorm:{TOOL_VERSION}"
NAMESPACE_DIGITS = 12  # of the digest
GRACE_SECONDS = 86_400  # beside the experiment itself: images come, results wait for who wants them
MOST_SECONDS = 2**31 - 1  # of what Kubernetes calls activeDeadlineSeconds

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Options:
    """`""` and 0 stand for the default, which depends on the plan: see resolve()."""

    namespace: str = ""
    agent_image: str = ""  # of agents, coordinator and what holds instances until they join
    kustomize: bool = False  # Kubernetes only: add kustomization.yaml
    nodes: str = ""  # a label selector; "": every node that an ordinary pod may run on
    agent_cpu_millis: int = 1000  # request of an agent: one processor for the packet engine
    deadline_seconds: int = 0  # after which the cluster ends the run

    def resolve(self, bundle: Bundle) -> Options:
        """The same without defaults. Raises ManifestError for what cannot be chosen."""
        namespace = self.namespace or f"tstorm-{bundle.digest[:NAMESPACE_DIGITS]}"
        image = self.agent_image or DEFAULT_AGENT_IMAGE
        longest = -(-bundle.plan.end_ns // _SECOND_NS) + GRACE_SECONDS
        deadline = self.deadline_seconds or min(longest, MOST_SECONDS)
        if not 0 < deadline <= MOST_SECONDS:
            raise ManifestError(
                f"a run cannot end after {deadline} seconds",
                f"give from 1 to {MOST_SECONDS} seconds",
            )
        if self.agent_cpu_millis < 1:
            raise ManifestError(
                f"an agent cannot ask for {self.agent_cpu_millis} thousandths of a processor",
                "give 1 or more; one processor is 1000",
            )
        name = object_names.namespace(namespace)
        return replace(self, namespace=name, agent_image=image, deadline_seconds=deadline)
