"""A plan out of a folder of its shards, as a cluster mounts them, into a folder that can be read.

The folder of shards may hold other files; whoever mounts it decides (compiler/plan/plan_shards.py
has the shards, compiler/plan/rebuild.py makes anew what a slim bundle leaves out).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from compiler.plan import format as form
from compiler.plan import outdir, plan_shards, rebuild
from compiler.plan.format import PlanError

_SHARDS = "plan-*"


def receive(shards: Path, target: Path, digest: str) -> None:
    """`target` holds the whole plan with this digest; what is there already is not made again.

    It appears whole or not at all. Raises PlanError if the shards are not that plan's, OSError.
    """
    if _holds(target, digest):
        return
    found = {path.name: path.read_bytes() for path in sorted(shards.glob(_SHARDS))}
    if not found:
        raise PlanError(str(shards), "it has no shards", "render and apply the manifests again")
    files = plan_shards.unpack(found, digest)
    if len(files) <= len(form.FILES):
        files = rebuild.complete(files)
    outdir.put(target, files)


def _holds(target: Path, digest: str) -> bool:
    """put() makes it whole or not at all, so that the header stands for all of it."""
    try:
        header = (target / form.HEADER).read_bytes()
    except OSError:
        return False
    return hashlib.sha256(header).hexdigest() == digest
