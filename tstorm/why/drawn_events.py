"""Events of a run's plan whose draws lie between two moments: what chose them is drawn anew in
branches from the first moment, and no more in those from the second.

Input: the run's events, and what plans branches from a moment have. Such an event may itself be
later than both: its moment and its targets are drawn ahead (docs/draws.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tstorm.why.decision_search import SURE, Jump
from tstorm.why.happenings import DRAWN, Happening

if TYPE_CHECKING:
    from compiler.plan.types import Event

Planned = tuple[int, str, str]
# Of the branches from a moment: of each of the first ones, what its plan has.
BranchEvents = Callable[[int, int], Iterable[frozenset[Planned]]]


def planned(events: Iterable[Event]) -> frozenset[Planned]:
    return frozenset((one.at_ns, one.target, one.kind) for one in events)


def decided_in(
    jump: Jump, failed_ns: int, events: frozenset[Planned], of_branches: BranchEvents
) -> list[Happening]:
    """Those up to the failure, by their moments: in some plan of the branches before the jump they
    are missing, in all of those after it they are there."""
    later = {one for one in events if jump.before.at_ns < one[0] <= failed_ns}
    missing: set[Planned] = set()
    if later:
        for found in of_branches(jump.before.at_ns, SURE):
            missing |= later - found
    if missing and jump.after is not None:
        for found in of_branches(jump.after.at_ns, SURE):
            missing &= found
    return [
        Happening(at, DRAWN, f"{target} {kind}".strip(), at) for at, target, kind in sorted(missing)
    ]
