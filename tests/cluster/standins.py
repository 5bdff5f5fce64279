"""Images that stand in for those of experiments and for Thunderstorm's own (tests/cluster/images).

They are packed here, without registry and without Docker, under the names that kubelet resolves, so
that the manifests are applied as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from compiler.plan.reader import Plan
from manifests.settings import DEFAULT_AGENT_IMAGE
from tests.cluster.mkimage import Image
from tests.cluster.support import HERE, ROOT, run

BY_HAND = "tsc.local/by-hand:1"  # an agent that releases instances only when told
WORKLOAD = "/usr/bin/workload"
HOLD = ROOT / "tcal_c/build/tstorm-hold"
FOLDERS = ("bin", "dev", "etc", "proc", "run", "sys", "tmp", "usr/bin", "usr/lib", "var/run")


def resolved(reference: str) -> str:
    """The whole reference, as container runtimes complete it: host, `library/`, tag."""
    host, slash, _ = reference.partition("/")
    if not slash or not re.search(r"[.:]|\Alocalhost\Z", host):
        reference = f"docker.io/{reference}" if slash else f"docker.io/library/{reference}"
    return reference if ":" in reference.rpartition("/")[2] else f"{reference}:latest"


def _busybox(root: Path) -> None:
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    for name in run(["/bin/busybox", "--list"], root).split():
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")


def _program(root: Path, name: str) -> None:
    """A program of this machine with the libraries that it needs."""
    found = shutil.which(name)
    assert found, f"{name} is not installed; tests/cluster/cluster deps installs it"
    target = root / "usr/bin" / name
    shutil.copy(found, target)
    (root / "bin" / name).unlink(missing_ok=True)
    for library in re.findall(r"/[^ ]+", run(["ldd", found], root)):
        copied = root / library.lstrip("/")
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copied)


def agent_rootfs(root: Path) -> Path:
    assert HOLD.exists(), f"{HOLD.relative_to(ROOT)} is missing: make -C tcal_c"
    _busybox(root)
    _program(root, "curl")
    _program(root, "date")  # busybox's knows no nanoseconds
    shutil.copy(HOLD, root / "usr/bin/tstorm-hold")
    for name in ("tstorm-agent", "tstorm-coordinator"):
        shutil.copy(HERE / "images/tstorm-agent", root / "usr/bin" / name)
    return root


def workload_rootfs(root: Path, plans: Iterable[Plan] = ()) -> Path:
    """The same program under every name that a plan's `entrypoint=` asks for."""
    _busybox(root)
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


def agents(root: Path) -> list[Image]:
    by_hand = Image((BY_HAND,), root, ("/bin/sh",), ("STANDIN=by-hand",))
    return [Image((resolved(DEFAULT_AGENT_IMAGE),), root, ("/bin/sh",)), by_hand]


def images_of(plans: Iterable[Plan], agent: Path, workload: Path) -> list[Image]:
    """One for each name in the plans; a workload listens on all ports that a plan gives it."""
    ports: dict[str, set[int]] = {}
    bootstrappers = set()
    for plan in plans:
        bootstrappers |= {plan.topology.bootstrapper} - {""}
        for service in plan.topology.services:
            ports.setdefault(resolved(service.image), set()).update(service.ports)
    workloads = [
        Image(
            (reference,),
            workload,
            (WORKLOAD,),
            ("STANDIN_PORTS=" + " ".join(str(port) for port in sorted(found)),),
        )
        for reference, found in sorted(ports.items())
    ]
    return workloads + [
        Image((resolved(reference),), agent, ("/bin/sh",)) for reference in sorted(bootstrappers)
    ]
