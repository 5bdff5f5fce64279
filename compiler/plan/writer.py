"""Writes a plan: in memory, or as a directory that appears whole or not at all.

Output is a function of the contents alone: no clock, host, path or hash order enters it.
Format in docs/plan.md.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from compiler.plan import format as form
from compiler.plan.encoding import epoch_to_json, event_line, topology_to_json
from compiler.plan.format import Place, PlanError
from compiler.plan.parts import attached, expectations, figures
from compiler.plan.parts.expectations import PlannedExpectation
from compiler.plan.parts.figures import PlannedFigure
from compiler.plan.routes.core import Core
from compiler.plan.routes.table import RouteDelta, RouteWriter
from compiler.plan.rules import consistency
from compiler.plan.storage import outdir
from compiler.plan.types import Epoch, Event, Topology


@dataclass(frozen=True, slots=True)
class PlanContents:
    """Everything a plan says. `snapshots` is what snapshots() of routes/routing.py yields."""

    source: bytes
    seed: int
    topology: Topology
    events: Sequence[Event]
    end_ns: int
    snapshots: Iterable[tuple[Epoch, RouteDelta]]
    tool_version: str = form.TOOL_VERSION
    attached: Collection[bytes] = ()  # what the files of services hold
    traces: Collection[bytes] = ()  # what links follow
    delays: Collection[bytes] = ()  # what jitters are drawn from
    motions: Collection[bytes] = ()  # where nodes are
    includes: Mapping[str, bytes] = field(default_factory=dict)  # included texts, by path
    expectations: Sequence[PlannedExpectation] = ()
    figures: Sequence[PlannedFigure] = ()
    params: Mapping[str, str] = field(default_factory=dict)  # values of the source's parameters


def encode(contents: PlanContents) -> dict[str, bytes]:
    """All files of the plan by name, plan.json among them.

    Raises PlanError for contents that the reader would refuse.
    """
    _check(contents)
    epochs, routes, count = encode_snapshots(contents.topology, contents.snapshots)
    files = {
        form.EXPECTATIONS: form.canonical(expectations.to_json(contents.expectations)),
        form.FIGURES: form.canonical(figures.to_json(contents.figures)),
        form.ATTACHED: _attached(contents),
        form.SOURCE: contents.source,
        form.TOPOLOGY: form.canonical(topology_to_json(contents.topology)),
        form.TIMELINE: b"".join(map(event_line, contents.events)),
        form.SNAPSHOTS: epochs,
        form.ROUTES: routes,
    }
    header = _header(contents, files, count)
    return {form.HEADER: form.canonical(header), **files}


def _check(contents: PlanContents) -> None:
    consistency.topology(contents.topology)
    last = None
    for event in contents.events:
        consistency.event(event, last, contents.end_ns, Place(form.TIMELINE, event.seq + 1))
        last = event
    expectations.check(contents.expectations, contents.end_ns)
    figures.check(contents.figures)
    consistency.params(contents.params, Place(form.HEADER, 1))


def _attached(contents: PlanContents) -> bytes:
    data = attached.encode(
        contents.attached, contents.includes, contents.traces, contents.delays, contents.motions
    )
    attached.read(data).check(contents.topology)
    return data


def encode_snapshots(
    topology: Topology, snapshots: Iterable[tuple[Epoch, RouteDelta]]
) -> tuple[bytes, bytes, int]:
    """snapshots.jsonl, routes.bin and the number of epochs."""
    table = RouteWriter(Core(topology))
    lines: list[bytes] = []
    for epoch, delta in snapshots:
        lines.append(_kept_line(epoch) if len(epoch.links) <= _FEW else _line(epoch))
        table.add(delta)
    return b"".join(lines), table.encode(), len(lines)


def _line(epoch: Epoch) -> bytes:
    return form.canonical(epoch_to_json(epoch))


_FEW = 64  # changes of links
_kept_line = lru_cache(1024)(_line)  # a plan that grows has all lines before again


def _header(contents: PlanContents, files: Mapping[str, bytes], epochs: int) -> dict[str, object]:
    topology = contents.topology
    return {
        "counts": {
            "epochs": epochs,
            "events": len(contents.events),
            "expectations": len(contents.expectations),
            "instances": sum(node.is_instance for node in topology.nodes),
            "links": len(topology.links),
            "nodes": len(topology.nodes),
            "services": len(topology.services),
        },
        "end_ns": contents.end_ns,
        "files": {name: form.digest_and_size(data) for name, data in files.items()},
        "format": form.FORMAT_NAME,
        "params": dict(contents.params),
        "routing": topology.routing,
        "seed": contents.seed,
        "tool": contents.tool_version,
        "version": form.FORMAT_VERSION,
    }


def write_plan(
    directory: str | Path,
    contents: PlanContents | Mapping[str, bytes],
    beside: Mapping[str, bytes] | None = None,
) -> str:
    """Makes or replaces the plan `directory`; returns the plan's digest.

    `contents` may be what encode() returned; `beside` are rendered files for its folder manifests,
    which are no part of the plan. Raises PlanError if the directory cannot be written or is
    something else than a plan; then whatever was there is still there.
    """
    files = encode(contents) if isinstance(contents, PlanContents) else dict(contents)
    target = Path(directory)
    try:
        if target.is_symlink():
            target = Path(os.path.realpath(target))
        refusal = outdir.refusal(target, _not_a_plan)
        if refusal:
            raise PlanError(str(target), refusal, "choose another -o or move it away")
        rendered = {f"{form.MANIFESTS}/{name}": data for name, data in (beside or {}).items()}
        outdir.put(target, {**files, **rendered})
    except OSError as error:
        reason = error.strerror or str(error)
        raise PlanError(
            str(target), f"cannot write the plan: {reason}", "choose another -o"
        ) from error
    return hashlib.sha256(files[form.HEADER]).hexdigest()


def _not_a_plan(directory: Path) -> str:
    """Why this is neither a plan nor an empty directory, `""` if it is."""
    if not directory.is_dir():
        return "is a file, not a plan"
    found = sorted(entry.name for entry in directory.iterdir())
    if found and form.HEADER not in found:
        return "is a directory, but not a plan (no plan.json)"
    strange = next(filter(None, (_strange(directory / name) for name in found)), "")
    return strange and f"holds {strange!r}, which is no part of a plan"


def _strange(path: Path) -> str:
    """What in a plan at this place is not from us: its name, or one in its folder, or nothing."""
    folder = path.is_dir() and not path.is_symlink()
    if path.name == form.MANIFESTS and folder:
        inner = outdir.stranger(path)
        return inner and f"{path.name}/{inner}"
    return path.name if folder or path.name not in {form.HEADER, *form.FILES} else ""
