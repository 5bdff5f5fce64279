"""ramp: properties of links change in steps, from what they are at T1 to their targets at T2.

A ramp owns what it moves until it is at its end or another statement sets one of its properties
(`World.ramps`). It checks all its changes before it makes any.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.declare.steps import StatementStep
from compiler.expand import links, property_changes
from compiler.expand.walk import Walk
from compiler.expand.world import LinkNow, RampClaim
from compiler.phrases import moment
from tdl import ast


@dataclass(slots=True)
class _Slope:
    """Of one direction: what it was at T1, and what it is to be at T2."""

    begin: LinkNow
    end: LinkNow
    fields: tuple[str, ...]
    claim: RampClaim


def ramp(walk: Walk, step: StatementStep) -> None:
    """In steps from what the properties are at T1 to their targets at T2; there they stay. Each
    value is on the straight line, rounded half up."""
    world, action, end = walk.world, step.statement.action, step.end_ns
    assert isinstance(action, ast.Ramp)
    assert end is not None
    slopes = _slopes(walk, step, action, f"in the ramp from {moment(world.now)} to {moment(end)}")
    if slopes is None:
        return
    ends_ramp = False
    for direction, slope in slopes.items():
        for field in slope.fields:
            world.claims.pop((direction, field), None)  # as `at T … set` does
            ends_ramp |= world.end_ramp(direction, field)
    moving = {direction: slope for direction, slope in slopes.items() if _moves(slope)}
    for direction, slope in moving.items():
        for field in slope.fields:
            world.ramps[direction, field] = slope.claim
    if slopes and not moving and not ends_ramp:
        links.nothing_changes(walk, step)
    steps = -(-(end - world.now) // action.every_ns)
    remedy = "shorten the interval, or make `every` longer"
    if moving and walk.fits(step, steps * len(moving), remedy):
        _climb(walk, step, moving, (world.now, end, action.every_ns), 1)


def _slopes(
    walk: Walk, step: StatementStep, action: ast.Ramp, when: str
) -> dict[int, _Slope] | None:
    """By direction, in order; None after a report."""
    after = links.new_values(walk, step, action, when)
    backs = links.back_directions(step)
    found: dict[int, _Slope] = {}
    for direction, target in sorted(after.items()):
        link = walk.world.links[direction]
        back, neck = direction in backs, step.chosen.neck
        fields = tuple(property_changes.fields(link, action, back=back, neck=neck))
        try:
            traces = walk.world.topology.traces
            property_changes.between(link, link, target, fields, (1, 2), traces)
        except property_changes.Illegal as problem:
            links.illegal(walk, step, direction, problem, when)
            return None
        found[direction] = _Slope(link, target, fields, RampClaim())
    return found


def _moves(slope: _Slope) -> bool:
    return any(
        property_changes.value(slope.begin, field) != property_changes.value(slope.end, field)
        for field in slope.fields
    )


def _climb(
    walk: Walk,
    step: StatementStep,
    slopes: dict[int, _Slope],
    when: tuple[int, int, int],
    number: int,
) -> None:
    """Schedules the step with this number. `when`: T1, T2 and how far steps are apart."""
    begin, end, every = when
    at_ns = min(begin + number * every, end)

    def go_on(_: Walk) -> None:
        _let_go(walk, step, [d for d, slope in slopes.items() if slope.claim.ended], slopes)
        if not _move(walk, step, slopes, (at_ns - begin, end - begin)):
            return
        if at_ns < end:
            _climb(walk, step, slopes, when, number + 1)
        else:
            _let_go(walk, step, list(slopes), slopes)

    walk.later(at_ns, step, go_on, closing=at_ns == end, bound=True)


def _let_go(
    walk: Walk, step: StatementStep, directions: list[int], slopes: dict[int, _Slope]
) -> None:
    """The ramp moves these no longer; says so once of those that another statement has set."""
    world, told = walk.world, False
    for direction in directions:
        slope = slopes.pop(direction)
        for field in slope.fields:
            if world.ramps.get((direction, field)) is slope.claim:
                del world.ramps[direction, field]
        if slope.claim.ended is not None and not told:
            place, at_ns = slope.claim.ended
            name, told = world.link_names[direction], True
            message = (
                f"{ast.said(place)} sets {name!r} at {moment(at_ns)}: this ramp of it ends there"
            )
            walk.warning(step, "TS0930", message, "check what is set in the meantime")


def _move(
    walk: Walk, step: StatementStep, slopes: dict[int, _Slope], part: tuple[int, int]
) -> bool:
    """One step of all directions; False if nothing is left to move, or after a report."""
    for direction, slope in slopes.items():
        now = walk.world.links[direction]
        try:
            moved = property_changes.between(
                now, slope.begin, slope.end, slope.fields, part, walk.world.topology.traces
            )
        except property_changes.Illegal as problem:
            links.illegal(walk, step, direction, problem, f"at {moment(walk.world.now)}")
            return False
        links.put(walk, direction, moved)
    return bool(slopes)
