"""Which queue the directions of measured paths share.

Input: the bottlenecks of a file and its paths, one after the other. Output: the same paths with
what they share in their terms (ast.Neck). A bottleneck that paths name with `bottleneck=` has a
queue for each direction, NAME.up and NAME.down; with `bottleneck-up=` and `bottleneck-down=` it is
one queue. Source: docs/tdl.md, "Shared bottlenecks".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tdl import ast
from tdl.diagnostics import Sink

if TYPE_CHECKING:
    from compiler.declare.declared import Declared


@dataclass(slots=True)
class DeclaredBottleneck:
    statement: ast.Bottleneck
    paths: list[ast.LinkStatement] = field(default_factory=list)  # that name it


def through(found: Declared, path: ast.LinkStatement, sink: Sink) -> ast.LinkStatement:
    """The path with what its directions share. Reports what they cannot (TS0188)."""
    necks = [_neck(found, path, name, sink) for name in (path.neck_up, path.neck_down)]
    if path.path is None or necks == [None, None]:
        return path
    if _both(path):
        necks = [
            one and one._replace(name=f"{one.name}.{way}")
            for one, way in zip(necks, ("up", "down"), strict=True)
        ]
    return replace(path, path=path.path._replace(neck_up=necks[0], neck_down=necks[1]))


def _neck(
    found: Declared, path: ast.LinkStatement, name: ast.Name | None, sink: Sink
) -> ast.Neck | None:
    if name is None or (name is path.neck_down and _both(path) and name.text not in found.necks):
        return None  # reported with the other direction
    declared = found.necks.get(name.text)
    if declared is None:
        near = found.guesses.nearest(name.text, list(found.necks))
        hint = f"did you mean {near!r}?" if near else f"declare it: `bottleneck {name.text}`"
        sink.error("TS0188", name.span, f"there is no bottleneck {name.text!r}", hint)
        return None
    first = declared.paths[0] if declared.paths else path
    if _both(first) != _both(path):
        words = ("bottleneck=", "bottleneck-up= or bottleneck-down=")
        this, other = words if _both(path) else words[::-1]
        message = f"{name.text!r} is named with {other} on {ast.said(first.span.place)}"
        hint = f"it is {'one queue' if _both(path) else 'two queues'} there: not with {this} here"
        sink.error("TS0188", name.span, message, hint)
        return None
    if not declared.paths or declared.paths[-1] is not path:
        declared.paths.append(path)
    statement = declared.statement
    return ast.Neck(name.text, statement.capacity_bps, statement.queue_bytes)


def _both(path: ast.LinkStatement) -> bool:
    """Whether it names a bottleneck for both directions at once."""
    up, down = path.neck_up, path.neck_down
    return bool(up and down) and up == down


def check_shared(declared: Declared, replicas: Mapping[str, int], sink: Sink) -> None:
    """Reports bottlenecks that no two pairs of instances share (TS0953)."""
    for name, one in declared.necks.items():
        pairs = sum(_pairs(path, replicas) for path in one.paths)
        if pairs < 2:
            many = "one path leads" if pairs else "no path leads"
            message = f"{many} through the bottleneck {name!r}"
            hint = "name it in the paths that share it, or leave it out"
            sink.warning("TS0953", one.statement.span, message, hint)


def _pairs(path: ast.LinkStatement, replicas: Mapping[str, int]) -> int:
    """Of instances, that it stands for."""
    ends = ((path.a.text, path.a_index), (path.b.text, path.b_index))
    a, b = (replicas[name] if index is None else 1 for name, index in ends)
    return a * (a - 1) // 2 if path.is_mesh else a * b
