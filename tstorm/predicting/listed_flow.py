"""Flows that are asked about, and what must hold of one: both ends have a path in the plan that is
not up to programs, and the times are those of the experiment.

A list of them is CSV (flow_list.py) or TDL (flow_statements.py); docs/explain.md (What flows get)
describes both. Whatever is wrong has its line in the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import click

from compiler.plan.frame_domains import FrameDomains
from compiler.plan.types import owner_of
from tstorm import output, units
from tstorm.exit_codes import CommandError
from tstorm.instance_names import one_instance

if TYPE_CHECKING:
    from compiler.plan.paths.flows import FlowTuple
    from compiler.plan.reader import Plan

MAX_FLOWS = 10_000
MAX_WEIGHT = 1000
_SHOWN = 20  # problems


class ListedFlow(NamedTuple):
    line: int
    src: int  # node
    dst: int
    start_ns: int
    end_ns: int  # no later than the experiment's
    demand_bps: int  # UNLIMITED: as much as it can get
    weight: int  # as so many connections
    packets: FlowTuple | None  # None: not stated


class FlowProblem(NamedTuple):
    line: int
    message: str
    hint: str


class FlowError(Exception):
    """A flow is: message and hint."""


def refusal(file: str, problems: Sequence[FlowProblem]) -> CommandError:
    """All of them by line, as the end of the command."""
    said = []
    for line, message, hint in sorted(problems)[:_SHOWN]:
        said.append(output.visible(f"error: {file}:{line}: {message}"))
        said += [output.visible(f"hint: {hint}")] if hint else []
    if len(problems) > _SHOWN:
        said.append(f"error: … and {len(problems) - _SHOWN:,} more errors in {file}")
    return CommandError("\n".join(said))


class FlowEnds:
    """The ends and times that flows may have in a plan. Methods raise FlowError."""

    def __init__(self, plan: Plan) -> None:
        self.topology = plan.topology
        self.end_ns = plan.end_ns
        self._domains = FrameDomains.of(plan.topology)
        self._node = cache(self._found)

    def pair(self, names: Sequence[str], words: Sequence[str]) -> tuple[int, int]:
        """The nodes of both ends. `words`: what the list calls each of them."""
        src, dst = (self._end(*both) for both in zip(names, words, strict=True))
        self._check_pair(src, dst)
        return src, dst

    def times(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        """Of a flow that lasts until the experiment's end at most."""
        if start_ns >= self.end_ns:
            ends = units.duration(self.end_ns)
            message = f"the flow starts at {units.duration(start_ns)}, when all is over"
            raise FlowError(message, f"the experiment ends at {ends}")
        if end_ns <= start_ns:
            both = f"{units.duration(end_ns)} is not after its start at {units.duration(start_ns)}"
            raise FlowError(f"the flow's end at {both}", "'end' is a time, not a length")
        return start_ns, min(end_ns, self.end_ns)

    def _end(self, name: str, word: str) -> int:
        node = self._node(name)
        if isinstance(node, str):
            message, _, hint = node.partition(". ")
            raise FlowError(f"{word}: {message.rstrip('.')}", hint)
        return node

    def _found(self, name: str) -> int | str:
        """Or what is wrong."""
        try:
            return one_instance(self.topology.services, self.topology.nodes, name, "--flows")
        except click.BadParameter as error:
            return error.message

    def _check_pair(self, src: int, dst: int) -> None:
        nodes = self.topology.nodes
        if owner_of(nodes, src) == owner_of(nodes, dst):
            why = "what an instance sends to itself does not leave it"
            raise FlowError(f"'{nodes[src].name}' has no path to itself", why)
        if self._domains.by_programs(src, dst):
            both = f"{nodes[src].name} to {nodes[dst].name}"
            hint = "a plan knows paths up to the routers, not beyond them"
            raise FlowError(f"programs of routers decide the way from {both}", hint)
