"""What can be chosen when a plan is rendered, and the defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compiler.plan.format import TOOL_VERSION
from manifests import names
from manifests.bundle import Bundle
from manifests.errors import ManifestError

DEFAULT_AGENT_IMAGE = f"docker.io/thunderstorm/tstorm:{TOOL_VERSION}"
NAMESPACE_DIGITS = 12  # of the digest


@dataclass(frozen=True, slots=True)
class Options:
    """`""` stands for the default, which depends on the plan: see resolve()."""

    namespace: str = ""
    agent_image: str = ""  # of agents, coordinator and what holds instances until they join
    kustomize: bool = False  # Kubernetes only: add kustomization.yaml

    def resolve(self, bundle: Bundle) -> Options:
        """The same without defaults, checked. Raises ManifestError."""
        namespace = self.namespace or f"tstorm-{bundle.digest[:NAMESPACE_DIGITS]}"
        image = self.agent_image or bundle.plan.topology.bootstrapper or DEFAULT_AGENT_IMAGE
        if not re.fullmatch(r"[!-~]+", image):
            raise ManifestError(f"{image!r:.80} is not an image reference", "give --agent-image")
        return Options(names.namespace(namespace), image, self.kustomize)
