"""What an event did: to its own target, and, with all others of its instant, to the paths.

Input: a plan and one of its events. Output: `Effects`. An epoch becomes effective as a whole, so
that paths change by instants and not by events. What lasts for no time (a `quit`, whatever comes
at the same time) still has effects here: they are those of the epoch as the plan records it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.analysis.network_diff import own_pairs, side_at
from compiler.analysis.path_diff import (
    ONLY_A,
    ONLY_B,
    ROUTE,
    Contrast,
)
from compiler.plan.paths.collapse import Collapse
from compiler.plan.properties import shown
from compiler.plan.state import Fold
from compiler.plan.types import Event

if TYPE_CHECKING:
    from compiler.plan.reader import Plan

KINDS = ("lost", "gained", "other_route", "other_properties")  # of changes of pairs


@dataclass(frozen=True, slots=True)
class Pairs:
    """Directed pairs of instances, by name."""

    count: int
    examples: tuple[tuple[str, str], ...]  # the first by node


@dataclass(frozen=True, slots=True)
class Effects:
    target_before: Mapping[str, int | str]  # {} for quit
    target_after: Mapping[str, int | str]
    together: int  # events of the same instant
    changed: Mapping[str, Pairs]  # by KINDS
    pairs: int  # all that there are


EXAMPLES = 20


def effects(plan: Plan, event: Event) -> Effects:
    """Raises PlanError."""
    index = next(e.index for e in plan.epochs if e.first_seq <= event.seq < e.last_seq)
    before, after = _target(plan, event)
    epoch = plan.epochs[index]
    count = plan.core.endpoints
    return Effects(
        before,
        after,
        epoch.last_seq - epoch.first_seq,
        _paths(plan, index),
        count * (count - 1) - len(own_pairs(plan.topology.nodes, count)),
    )


def _target(plan: Plan, event: Event) -> tuple[Mapping[str, int | str], Mapping[str, int | str]]:
    """The state of the target just before and just after, other events of the instant applied."""
    fold = Fold(plan.topology)
    for earlier in plan.events[: event.seq]:
        fold.apply(earlier)
    before = _own_state(fold, event.target)
    fold.apply(event)
    return before, _own_state(fold, event.target)


def _own_state(fold: Fold, target: str) -> Mapping[str, int | str]:
    """Of a node its word; of a link what has been made of the link itself, whatever its ends."""
    if target in fold.node_index:
        return {"state": fold.nodes[fold.node_index[target]]}
    if target not in fold.links.index:
        return {}
    link = fold.links.index[target]
    own = fold.links.own[link]
    return {
        "state": "up" if own.up else "down",
        **shown(own),
        "background_bps": fold.links.background[link],
        **({"background_flows": fold.links.reacting[link]} if link in fold.links.reacting else {}),
    }


def _kind(mask: int) -> str:
    if mask & (ONLY_A | ONLY_B):
        return "lost" if mask & ONLY_A else "gained"
    return "other_route" if mask & ROUTE else "other_properties"


def _paths(plan: Plan, index: int) -> Mapping[str, Pairs]:
    """Pairs whose path in this epoch is another than in the one before."""
    if index == 0:
        return _first_paths(plan)
    found = {kind: array("Q") for kind in KINDS}
    count = plan.core.endpoints
    own = own_pairs(plan.topology.nodes, count)
    contrast = Contrast(side_at(plan, index - 1), side_at(plan, index))
    for column in sorted(contrast.start()):
        masks = {src * count + dst: mask for src, dst, mask in contrast.column(column)}
        for pair, mask in masks.items():
            if mask and pair not in own:
                found[_kind(mask)].append(pair)
    for (src, dst), mask in contrast.irregular_pairs().items():  # only where flows are shared out
        found[_kind(mask)].append(src * count + dst)
    return {
        kind: _pairs(plan, len(pairs), [divmod(pair, count) for pair in sorted(pairs)[:EXAMPLES]])
        for kind, pairs in found.items()
    }


def _pairs(plan: Plan, count: int, first: Sequence[tuple[int, int]]) -> Pairs:
    nodes = plan.topology.nodes
    return Pairs(count, tuple((nodes[src].name, nodes[dst].name) for src, dst in first))


def _first_paths(plan: Plan) -> Mapping[str, Pairs]:
    """Before epoch 0 there is nothing: whatever path there is in it is gained."""
    count, first = 0, list[tuple[int, int]]()
    everyone = range(plan.core.endpoints)
    own = own_pairs(plan.topology.nodes, len(everyone))
    for row in Collapse(plan.topology).rows(plan.state_at(0), everyone):
        there = [dst for dst, hops in enumerate(row.hops) if hops]
        pairs = [(row.source, dst) for dst in there if row.source * len(everyone) + dst not in own]
        count += len(pairs)
        first += pairs[: max(EXAMPLES - len(first), 0)]
    nothing = Pairs(0, ())
    return {**dict.fromkeys(KINDS, nothing), "gained": _pairs(plan, count, first[:EXAMPLES])}
