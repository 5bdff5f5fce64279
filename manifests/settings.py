"""What can be chosen when a plan is rendered, and the defaults."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.plan.format import TOOL_VERSION
from manifests import names
from manifests.bundle import Bundle

DEFAULT_AGENT_IMAGE = f"docker.io/thunderstorm/tstorm:{TOOL_VERSION}"
NAMESPACE_DIGITS = 12  # of the digest


@dataclass(frozen=True, slots=True)
class Options:
    """`""` stands for the default, which depends on the plan: see resolve()."""

    namespace: str = ""
    agent_image: str = ""  # of agents, coordinator and what holds instances until they join
    kustomize: bool = False  # Kubernetes only: add kustomization.yaml

    def resolve(self, bundle: Bundle) -> Options:
        """The same without defaults. Raises ManifestError for what cannot name a namespace."""
        namespace = self.namespace or f"tstorm-{bundle.digest[:NAMESPACE_DIGITS]}"
        image = self.agent_image or bundle.plan.topology.bootstrapper or DEFAULT_AGENT_IMAGE
        return Options(names.namespace(namespace), image, self.kustomize)
