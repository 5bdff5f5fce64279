"""Images that stand in for those of experiments: a workload that says how it was started.

They are packed here, without registry and without Docker, under the names that kubelet resolves, so
that the manifests are applied as they are. Agents and coordinators have their own image, the real
one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from compiler.plan.reader import Plan
from manifests.images import resolved
from tests.cluster.mkimage import Image
from tests.cluster.support import HERE
from tests.packing.debian import add_busybox

WORKLOAD = "/usr/bin/workload"


def workload_rootfs(root: Path, plans: Iterable[Plan] = ()) -> Path:
    """The same program under every name that a plan's `entrypoint=` asks for."""
    add_busybox(root)
    source = HERE / "images/workload.c"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-static"]
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, *flags, "-o", root / WORKLOAD.lstrip("/"), source], check=True)
    for program in {s.entrypoint[0] for p in plans for s in p.topology.services if s.entrypoint}:
        target = root / (program.lstrip("/") if "/" in program else f"usr/bin/{program}")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(WORKLOAD)
    return root


def images_of(plans: Iterable[Plan], workload: Path) -> list[Image]:
    """One for each name in the plans; a workload listens on all ports that a plan gives it."""
    ports: dict[str, set[int]] = {}
    for plan in plans:
        for service in plan.topology.services:
            ports.setdefault(resolved(service.image), set()).update(service.ports)
    return [
        Image(
            (reference,),
            workload,
            (WORKLOAD,),
            ("STANDIN_PORTS=" + " ".join(str(port) for port in sorted(found)),),
        )
        for reference, found in sorted(ports.items())
    ]
