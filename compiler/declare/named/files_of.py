"""All that statements name files for: what links follow, what jitters are drawn from, what moves.

Input: the tree and where files come from. Output: the tree that the model is built of, with what
the files say in it, and what a plan keeps of them.
"""

from __future__ import annotations

from compiler.declare.named.named_files import follow, measure
from compiler.declare.nodes.mobile_links import move
from compiler.declare.topology import Recorded
from compiler.sources import Sources
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
