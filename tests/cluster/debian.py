"""The file system of the image in which the experiments with real programs run on the cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cluster.support import HERE
from tests.packing.debian import add_busybox, add_program

PROGRAMS = HERE / "programs"  # the experiment with real programs, and its scripts
PROGRAMS_IMAGE = "tsc.local/debian:1"
WORKER = "worker"  # a user of that image
REAL = ("redis-server", "redis-cli", "nginx", "ab", "iperf3")


def programs_rootfs(root: Path) -> Path:
    """Redis, nginx, ab and iperf3, and in /programs the scripts that start them."""
    add_busybox(root)
    for name in REAL:
        add_program(root, name)
    own = f"{WORKER}:x:1500:1500::/srv:/bin/sh\n"
    (root / "etc/passwd").write_text(f"root:x:0:0:root:/:/bin/sh\n{own}")
    (root / "etc/group").write_text(f"root:x:0:\n{WORKER}:x:1500:\n")
    (root / "programs").mkdir()
    for script in PROGRAMS.glob("*.sh"):
        shutil.copy(script, root / "programs")
    return root
