"""The model: a file checked as a whole and expanded, ready for the walk through time.

Input: the tree (tdl/ast.py). Output: `Model`. The passes: declared.py, replicas.py, topology.py,
selectors.py, steps.py, initial_state.py. Everything that is wrong goes to the sink; the model is
usable even then, so that the timeline can look for more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.declare import other_names
from compiler.declare import replicas as replicas_pass
from compiler.declare.bottlenecks import check_shared
from compiler.declare.common import with_common_links, with_one_each
from compiler.declare.declared import Declared, declare
from compiler.declare.initial_state import InitialState, find_beginning
from compiler.declare.nodes import externals, frame_checks
from compiler.declare.selectors import Resolver
from compiler.declare.steps import Doubt, StatementStep, build_steps
from compiler.declare.topology import NO_FILES, NOTHING_RECORDED, Layout, Recorded, expand
from compiler.plan.types import PlanFile, Topology
from tdl import ast
from tdl.diagnostics import Sink

DEFAULT_SEED = 0


@dataclass(frozen=True, slots=True)
class Model:
    seed: int
    declared: Declared
    layout: Layout
    steps: tuple[StatementStep, ...]
    doubts: tuple[Doubt, ...]
    beginning: InitialState
    oversized: bool  # reported; the layout is a stand-in, not to be walked through
    reseeds: tuple[tuple[int, int], ...] = ()  # moments from which on another seed draws

    @property
    def topology(self) -> Topology:
        return self.layout.topology

    @property
    def planned(self) -> Topology:
        """As the plan has it: an end point for each interface of an instance. Links, instances and
        services have the same indexes in both."""
        return self.layout.planned


def build(
    file: ast.File,
    sink: Sink,
    seed: int | None = None,
    raised: Mapping[str, int] | None = None,
    files: Mapping[str, tuple[PlanFile, ...]] = NO_FILES,
    recorded: Recorded = NOTHING_RECORDED,
    reseeds: tuple[tuple[int, int], ...] = (),
) -> Model:
    """`seed` wins over the file's. `raised`: replicas of services that do not declare them.
    `files`: what services get, by name (compiler/declare/named/files_of.py); `recorded`: what
    links follow and jitters are drawn from, to which the tree refers
    (compiler/declare/named/named_files.py).

    Without `raised` the number is what the joins of the file need at least; the timeline raises
    `NeedReplicas` (compiler/expand/world.py) where that is not enough, and pipeline.py tries with
    more.
    """
    declared = declare(with_common_links(with_one_each(file)), sink)
    if seed is None:
        seed = declared.seed.value if declared.seed else DEFAULT_SEED
    counts = replicas_pass.count(declared, raised or {})
    oversized = replicas_pass.too_many(declared, counts, sink)
    if oversized:
        counts = dict.fromkeys(counts, 1)
    else:
        replicas_pass.check_linked(declared, counts, sink)
        check_shared(declared, counts, sink)
        replicas_pass.check_published(declared.services, counts, sink)
    frame_checks.check(declared, sink)
    externals.check(declared, sink)
    layout = expand(declared, counts, seed, files, recorded)
    for problem in layout.frame_problems:
        frame_checks.report(problem, sink)
    if not oversized:
        other_names.check(declared, layout.planned, sink)
    resolver = Resolver(declared, layout, sink)
    steps, doubts = build_steps(declared, resolver, sink)
    beginning = find_beginning(declared, layout, steps, bool(doubts))
    return Model(seed, declared, layout, tuple(steps), tuple(doubts), beginning, oversized, reseeds)
