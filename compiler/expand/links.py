"""flap, set, background, and links between nodes that move; `ramp` is in ramp.py.

flap, set and background hit every link of the selection; `set` checks all its changes before it
makes any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from compiler.declare.steps import StatementStep
from compiler.expand import property_changes
from compiler.expand.walk import Walk
from compiler.expand.world import IntervalClaim, LinkNow
from compiler.phrases import moment
from compiler.plan.properties import LinkState, least_rate
from compiler.plan.types import direction_name
from tdl import ast

# --- flap ---------------------------------------------------------------------------------------


def flap(walk: Walk, step: StatementStep) -> None:
    """Down at T1, then a toggle every period before T2; at T2 it is up in any case.

    A flap is one reason for a link to be down: where there are others, it stays down.
    """
    world, action, end = walk.world, step.statement.action, step.end_ns
    assert isinstance(action, ast.Flap)
    assert end is not None
    directions = sorted(d for link in step.chosen.links for d in link if not world.left[d])
    if not directions:
        _all_left(walk, step)
        return
    last = end if walk.quit_ns is None else min(end, walk.quit_ns)
    toggles = max(last - world.now, 0) // action.period_ns
    if walk.fits(step, toggles * len(directions)):
        _toggle(walk, step, directions, action.period_ns, end, down=False)


def _toggle(
    walk: Walk,
    step: StatementStep,
    directions: list[int],
    period_ns: int,
    end_ns: int,
    *,
    down: bool,
) -> None:
    """Switches from `down` to the other state, and schedules the next time."""
    world = walk.world
    for direction in directions:
        if down:
            world.unblock(direction, step.order)
        else:
            world.block(direction)
    following = world.now + period_ns
    if following < end_ns:
        walk.later(
            following,
            step,
            lambda walk: _toggle(walk, step, directions, period_ns, end_ns, down=not down),
        )
    elif not down:
        walk.later(end_ns, step, lambda walk: _end_flap(walk, step, directions), closing=True)


def _end_flap(walk: Walk, step: StatementStep, directions: list[int]) -> None:
    for direction in directions:
        walk.world.unblock(direction, step.order)


def _all_left(walk: Walk, step: StatementStep) -> None:
    now = moment(walk.world.now)
    code = "TS0307" if step.chosen.single else "TS0302"
    message = f"{step.chosen.what} {'has' if step.chosen.single else 'have all'} left at {now}"
    walk.error(step, code, message, "only a link that is in place can flap")


# --- set ----------------------------------------------------------------------------------------


def set_properties(walk: Walk, step: StatementStep) -> None:
    action = step.statement.action
    assert isinstance(action, ast.Set)
    after = new_values(walk, step, action, f"at {moment(walk.world.now)}")
    changed = hold(walk, step, action, after, lasts=step.end_ns is not None)
    if step.end_ns is not None:
        walk.later(
            step.end_ns,
            step,
            lambda walk: set_back(walk, step, action, sorted(after), step.order),
            closing=True,
        )
    unread = any(one.delays and not one.delays.distribution for one in action.assignments)
    if after and not changed and step.order not in walk.traced and not unread:
        nothing_changes(walk, step)


def new_values(
    walk: Walk, step: StatementStep, action: ast.Set | ast.Ramp, when: str
) -> dict[int, LinkNow]:
    """What each direction is to become; {} after a report."""
    return changed_links(walk, step, action, step.chosen.links, when)


def changed_links(
    walk: Walk,
    step: StatementStep,
    action: ast.Set | ast.Ramp,
    chosen: Sequence[tuple[int, ...]],
    when: str,
) -> dict[int, LinkNow]:
    """The same of these links, each one direction or both."""
    world = walk.world
    after: dict[int, LinkNow] = {}
    for link in chosen:
        for place, direction in enumerate(link):
            try:
                after[direction] = property_changes.apply(
                    world.links[direction],
                    action,
                    world.topology.traces,
                    back=place == 1,
                    alone=len(link) == 1,
                    match=step.some,
                    neck=step.chosen.neck,
                )
            except property_changes.Illegal as problem:
                illegal(walk, step, direction, problem, when)
                return {}
    return after


def hold(
    walk: Walk,
    step: StatementStep,
    action: ast.Set,
    after: Mapping[int, LinkNow],
    *,
    lasts: bool,
) -> bool:
    """Gives each direction its new values, until set_back() where it `lasts`; whether anything is
    another, or a ramp ends."""
    changed = False
    for direction in sorted(after):
        changed |= _claim(walk, step, action, direction, lasts=lasts)
        changed |= put(walk, direction, after[direction])
    return changed


def illegal(
    walk: Walk, step: StatementStep, direction: int, problem: property_changes.Illegal, when: str
) -> None:
    name = walk.world.link_names[direction]
    message = f"{problem.what} of {name!r} {problem.why} {when}"
    walk.error(step, problem.code, message, problem.hint)


def nothing_changes(walk: Walk, step: StatementStep) -> None:
    message = f"nothing changes: these are the values at {moment(walk.world.now)} already"
    walk.warning(step, "TS0911", message)


def put(walk: Walk, direction: int, link: LinkNow) -> bool:
    """Gives the direction other properties; whether they are others."""
    world = walk.world
    before, world.links[direction] = world.links[direction], link
    both = zip(LinkState._fields, before.own, link.own, strict=True)
    args: dict[str, Any] = {field: new for field, old, new in both if new != old}
    if args:
        world.emit("set", world.link_names[direction], args)
    return bool(args)


def _claim(
    walk: Walk, step: StatementStep, action: ast.Set, direction: int, *, lasts: bool
) -> bool:
    """An interval remembers what it will set back. What `at T` sets stays: it ends all claims.
    Whether a ramp ends by it."""
    world = walk.world
    link = world.links[direction]
    ends_ramp = False
    back = direction in back_directions(step)
    for field in property_changes.fields(link, action, back=back, neck=step.chosen.neck):
        ends_ramp |= world.end_ramp(direction, field)
        before = property_changes.remembered(link, field)
        if lasts:
            world.claims.setdefault((direction, field), []).append(
                IntervalClaim(step.order, before)
            )
        else:
            world.claims.pop((direction, field), None)
    return ends_ramp


def back_directions(step: StatementStep) -> frozenset[int]:
    """The directions that `down` means."""
    return frozenset(link[1] for link in step.chosen.links if len(link) > 1)


def set_back(
    walk: Walk, step: StatementStep, action: ast.Set, directions: Sequence[int], by: int
) -> None:
    """The end of an interval, or of what the statement `by` has held: what it has set is again
    what it was before.

    Where a later interval has set the same, that one goes on, and at its end sets it back to what
    it was before this one.
    """
    world = walk.world
    backs = back_directions(step)
    lost: list[int] = []
    for direction in directions:
        values: dict[str, Any] = {}
        link = world.links[direction]
        neck, back = step.chosen.neck, direction in backs
        for field in property_changes.fields(link, action, back=back, neck=neck):
            claims = world.claims.get((direction, field), [])
            mine = next((i for i, one in enumerate(claims) if one.order == by), None)
            if mine is None:
                lost.append(direction)
                continue
            before = claims.pop(mine).before
            if mine < len(claims):
                claims[mine].before = before
            else:
                values[field] = before
        try:
            traces = world.topology.traces
            put(walk, direction, property_changes.restore(world.links[direction], values, traces))
        except property_changes.Illegal as problem:
            name, now = world.link_names[direction], moment(world.now)
            message = f"set back, {problem.what} of {name!r} {problem.why} at {now}"
            walk.error(step, problem.code, message, problem.hint)
            return
    if lost:
        name, now = world.link_names[lost[0]], moment(world.now)
        message = f"another statement has set {name!r} meanwhile, so it stays as it is at {now}"
        walk.warning(step, "TS0930", message, "check what is set in the meantime")


# --- background ---------------------------------------------------------------------------------


def background(walk: Walk, step: StatementStep) -> None:
    world, action = walk.world, step.statement.action
    assert isinstance(action, ast.Background)
    directions = sorted(direction for link in step.chosen.links for direction in link)
    for direction in directions:
        problem = _refuse(world.links[direction], action, step)
        if problem is not None:
            code, why, hint = problem
            name, now = world.link_names[direction], moment(world.now)
            walk.error(step, code, f"{name!r} {why} at {now}", hint)
            return
    changed = [_load(walk, d, action.rate_bps, step, action.flows) for d in directions]
    if not any(changed) and step.order not in walk.traced:
        message = f"nothing changes: this is the background at {moment(world.now)} already"
        walk.warning(step, "TS0911", message)
    if step.end_ns is not None:
        walk.later(step.end_ns, step, lambda walk: _free(walk, step, directions), closing=True)


def _refuse(
    link: LinkNow, action: ast.Background, step: StatementStep
) -> tuple[str, str, str] | None:
    rate_bps = action.rate_bps
    if action.flows and link.path is not None:
        hint = "write abw-flows=, or a background without flows="
        return "TS0243", "is a measured path, whose table says what flows get", hint
    if rate_bps and link.own.neck:
        hint = "lower what is available: set abw=RATE"
        return "TS0243", "shares a bottleneck, of which no background is taken", hint
    if rate_bps and link.own.trace:
        why = "follows a trace, of which background traffic takes nothing"
        return "TS0238", why, "write `set trace=none rate=RATE` first"
    if rate_bps and not link.own.rate_bps:
        return "TS0216", "has no rate that background traffic could take from", "give it a rate"
    least = least_rate(link.own)
    if rate_bps and rate_bps >= least:
        why = f"has {least:,} b/s, of which {rate_bps:,} b/s of background leave nothing"
        return "TS0216", why, "the background must be below the link's rate"
    if rate_bps and (link.own.aqm or link.own.queue_packets):
        what = "an aqm" if link.own.aqm else "a queue in packets"
        why = f"has {what}: nobody knows which packets of a background it would drop"
        return property_changes.AQM_TAKEN, why, "`set aqm=none` before, or send real traffic"
    busy = link.background_bps and (step.end_ns is not None or link.background_owner >= 0)
    if rate_bps and busy:
        why = f"carries {link.background_bps:,} b/s of background already"
        return "TS0310", why, "end the first with `background 0`, or before this begins"
    return None


def _load(walk: Walk, direction: int, rate_bps: int, step: StatementStep, flows: int = 0) -> bool:
    world = walk.world
    link = world.links[direction]
    owner = step.order if step.end_ns is not None and rate_bps else -1
    flows = flows if rate_bps else 0
    world.links[direction] = replace(
        link, background_bps=rate_bps, background_flows=flows, background_owner=owner
    )
    if (link.background_bps, link.background_flows) == (rate_bps, flows):
        return False
    args = {"rate_bps": rate_bps, "flows": flows} if flows else {"rate_bps": rate_bps}
    world.emit("background", world.link_names[direction], args)
    return True


def _free(walk: Walk, step: StatementStep, directions: list[int]) -> None:
    """The end of an interval; links freed by `background 0` in the meantime stay as they are."""
    for direction in directions:
        if walk.world.links[direction].background_owner == step.order:
            _load(walk, direction, 0, step)


# --- nodes that move ----------------------------------------------------------------------------

# All links between them are down at first, then up and down as they reach each other.


def move(walk: Walk, step: StatementStep) -> None:
    """Where nodes are is one reason for a link to be down; where there are others, it stays so."""
    action = step.statement.action
    assert isinstance(action, ast.Move)
    numbers = {name: number for number, name in enumerate(walk.world.link_names)}
    ways = [
        [numbers[name] for name in (direction_name(a, b), direction_name(b, a)) if name in numbers]
        for a, b in action.links
    ]
    first = [up for at, up, _ in action.changes if not at]
    at_first = {link for up in first for link in up}
    _change(walk, step, (), [way for i, way in enumerate(ways) if i not in at_first])
    for at_ns, up, down in action.changes:
        if at_ns and (walk.quit_ns is None or at_ns < walk.quit_ns):
            chosen = [ways[link] for link in up], [ways[link] for link in down]
            walk.later(at_ns, step, partial(_change, step=step, up=chosen[0], down=chosen[1]))


def _change(
    walk: Walk, step: StatementStep, up: Sequence[list[int]], down: Sequence[list[int]]
) -> None:
    for way in up:
        for direction in way:
            walk.world.unblock(direction, step.order)
    for way in down:
        for direction in way:
            walk.world.block(direction)
