"""A plan out of its shards: those of a folder, as a cluster mounts them, into a folder that can be
read; or those that come one after the other over a connection.

The folder of shards may hold other files; whoever mounts it decides
(compiler/plan/storage/plan_shards.py has the shards, rebuild() makes anew what a slim bundle leaves
out).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from compiler.plan import format as form
from compiler.plan.format import REBUILT, PlanError
from compiler.plan.reader import Plan
from compiler.plan.routes.routing import snapshots
from compiler.plan.storage import outdir, plan_shards
from compiler.plan.storage.files import Memory
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode_snapshots

# Makes snapshots.jsonl and routes.bin again from the topology and the timeline of a plan.
#
# Both are a function of the other files, so that a plan may travel without its largest parts;
# whoever receives it makes them here and compares them with the SHA-256 in plan.json.

_AS_THEY_ARE = (form.EXPECTATIONS, form.FIGURES, form.ATTACHED, form.TIMELINE, form.TOPOLOGY)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The bytes of the two files."""

    snapshots: bytes
    routes: bytes


def rebuild(topology: Topology, events: Iterable[Event]) -> Rebuilt:
    """Raises PlanError if an event is impossible in its state."""
    epochs, routes, _ = encode_snapshots(topology, snapshots(topology, events))
    return Rebuilt(epochs, routes)


class _Partial(Memory):
    """The files that are there; those to be made again have the size that plan.json says."""

    def size(self, name: str) -> int:
        return _wanted(self.files, name)[0] if name in REBUILT else super().size(name)


def _wanted(files: Mapping[str, bytes], name: str) -> tuple[int, str]:
    """Size and SHA-256 in a header that Plan has checked."""
    entry = form.parse(files[form.HEADER], form.HEADER, 1)["files"][name]
    return entry["size"], entry["sha256"]


def complete(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """All files of a plan, by name; REBUILT are made anew whether they are there or not.

    Raises PlanError if what is there is no plan, or if what is made is not what plan.json says.
    """
    plan = Plan(_Partial(files))
    made = rebuild(plan.topology, plan.events)
    whole = {form.HEADER: files[form.HEADER], form.SOURCE: plan.source}
    whole |= {name: plan.raw(name) for name in _AS_THEY_ARE}
    whole |= {form.SNAPSHOTS: made.snapshots, form.ROUTES: made.routes}
    for name in REBUILT:
        if (len(whole[name]), hashlib.sha256(whole[name]).hexdigest()) != _wanted(files, name):
            raise PlanError(
                name,
                f"made anew from {form.TOPOLOGY} and {form.TIMELINE}, it is not what "
                f"{form.HEADER} says (written by release {plan.tool_version})",
                "use the release that wrote the plan, or send the plan whole",
            )
    return whole


class ArrivingPlan:
    """A plan whose shards come one after the other. `digest` is that of the one that comes, '' for
    none: the first shard of another one takes the place of all that came before."""

    def __init__(self) -> None:
        self.digest = ""
        self._found: dict[int, bytes] = {}

    def take(self, digest: str, number: int, data: bytes) -> None:
        """Shard `number` of the plan with this digest."""
        if digest != self.digest:
            self.digest, self._found = digest, {}
        self._found[number] = data

    def files(self) -> dict[str, bytes]:
        """Of the whole plan, by name. PlanError unless all of it is here, byte for byte."""
        shards = plan_shards.named([self._found[number] for number in sorted(self._found)])
        return plan_shards.unpack(shards, self.digest)


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
        files = complete(files)
    outdir.put(target, files)


def _holds(target: Path, digest: str) -> bool:
    """put() makes it whole or not at all, so that the header stands for all of it."""
    try:
        header = (target / form.HEADER).read_bytes()
    except OSError:
        return False
    return hashlib.sha256(header).hexdigest() == digest
