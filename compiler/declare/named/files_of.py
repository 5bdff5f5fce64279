"""All that statements name files for: what links follow, what jitters are drawn from, what moves,
what services get.

Input: the tree and where files come from. Output: the tree that the model is built of, with what
the files say in it, and what a plan keeps of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from compiler.declare.named.named_files import follow, measure
from compiler.declare.nodes.mobile_links import move
from compiler.declare.topology import Recorded
from compiler.plan.parts.services import plain_path
from compiler.plan.types import PlanFile
from compiler.sources import Content, Sources
from tdl import ast
from tdl.diagnostics import Sink


class FilesOf:
    """What is wrong with files goes to the sink."""

    def __init__(self, file: ast.File, sources: Sources, sink: Sink) -> None:
        told, followed = follow(file, sources, sink)
        told, self.delays = measure(told, sources, sink)
        self.file, self.traces, self.moving = move(told, sources, followed, sink)
        moves = any(isinstance(one, ast.Mobility) for one in told.statements)
        self.unknown = moves and self.moving is None  # nobody knows what is linked

    @property
    def recorded(self) -> Recorded:
        return Recorded(self.traces.planned, self.delays.planned, self.moving)


# The files that services get: read once, named by the digest of what they hold. Reports files that
# cannot be read and places where none can be.


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """`files` by service, each by path; `contents` is what they hold."""

    files: Mapping[str, tuple[PlanFile, ...]]
    contents: tuple[bytes, ...]


def attach(file: ast.File, sources: Sources, sink: Sink) -> ServiceFiles:
    files: dict[str, tuple[PlanFile, ...]] = {}
    contents: dict[str, bytes] = {}
    for service in file.statements:
        if not isinstance(service, ast.ServiceStatement) or not service.files:
            continue
        found: dict[str, PlanFile] = {}
        for one in sources.files(service, sink):
            if _fits(service, one, found, sink):
                digest = hashlib.sha256(one.data).hexdigest()
                contents[digest] = one.data
                found[one.path] = PlanFile(one.path, one.mode, digest)
        files[service.name.text] = tuple(found[path] for path in sorted(found))
    return ServiceFiles(files, tuple(contents.values()))


def _fits(
    service: ast.ServiceStatement, one: Content, found: Mapping[str, PlanFile], sink: Sink
) -> bool:
    """Whether the file has a place of its own, which is reported if not."""
    name = service.name.text
    if not plain_path(one.path) or _not_text(one.path):
        hint = "give it another one: files=NAME:PATH"
        sink.error("TS0125", one.span, f"{one.path!r} is not a place for a file", hint)
    elif (one.path.startswith("/") or service.cwd) and not service.image and not service.fs:
        where = one.path if one.path.startswith("/") else f"{service.cwd}/{one.path}"
        message = f"instances of {name!r} have no file system of their own for {where!r}"
        hint = "add fs=private, or write a path that does not begin with '/'"
        sink.error("TS0125", one.span, message, hint if where == one.path else "add fs=private")
    elif one.path in found:
        message = f"two files are to be {one.path!r}"
        sink.error("TS0135", one.span, message, "give one of them another place: files=NAME:PATH")
    else:
        return True
    return False


def _not_text(path: str) -> bool:
    return not path.isprintable()
