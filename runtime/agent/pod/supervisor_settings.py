"""Where a supervisor is and what it was given: from the environment that the manifests state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from compiler.plan.format import TOOL_VERSION
from runtime.agent.pod.pod_messages import SUPERVISOR_PORT
from runtime.errors import RunError

HERE = Path("/proc/self/ns/net")


@dataclass(frozen=True, slots=True)
class Settings:
    """`net` is a descriptor of the pod's network namespace. Folders are as the manifests mount
    them; tests have others."""

    name: str  # of the node
    address: str  # of the pod
    digest: str  # of the plan
    net: int
    port: int = SUPERVISOR_PORT
    shards: Path = Path("/plan")
    key: Path = Path("/auth/key")
    scratch: Path = Path("/tmp")

    @property
    def plan(self) -> Path:
        return self.scratch / "plan"

    @property
    def ports(self) -> Path:
        """Where the agent enters what it attaches. It outlives the container, as the scratch
        folder does, and so tells the next one what is left."""
        return self.scratch / "ports"

    @property
    def captures(self) -> Path:
        """Where the packet engine finds pipes for packets, and the agent is asked for them."""
        return self.scratch / "captures"


def read(variables: Mapping[str, str]) -> Settings:
    """RunError names the variable that is missing or wrong."""
    rendered = _variable(variables, "TSTORM_VERSION")
    if rendered != TOOL_VERSION:
        raise RunError(
            f"the manifests are of release {rendered}, and this image of {TOOL_VERSION}",
            "render with the release of the image, or give its own image by --agent-image",
        )
    address = _variable(variables, "TSTORM_POD_IP")
    try:
        ip_address(address)
    except ValueError as error:
        raise RunError(f"TSTORM_POD_IP is {address!r:.60}: an address is expected") from error
    return Settings(
        name=_variable(variables, "TSTORM_NODE"),
        address=address,
        digest=_variable(variables, "TSTORM_EXPERIMENT"),
        net=os.open(HERE, os.O_RDONLY | os.O_CLOEXEC),
    )


def _variable(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(name, "")
    if not value:
        raise RunError(f"the variable {name} is not set", "start it as the manifests do")
    return value
