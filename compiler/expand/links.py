"""flap, set, ramp, background: what happens to links.

All of them hit every link of the selection; `set` and `ramp` check all their changes before they
make any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compiler.declare.steps import StatementStep
from compiler.expand import property_changes
from compiler.expand.walk import Walk
from compiler.expand.world import IntervalClaim, LinkNow
from compiler.phrases import moment
from compiler.plan.properties import LinkState
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
            lambda: _toggle(walk, step, directions, period_ns, end_ns, down=not down),
        )
    elif not down:
        walk.later(end_ns, step, lambda: _end_flap(walk, step, directions), closing=True)


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
    after = _changed(walk, step, action)
    changed = False
    for direction in sorted(after):
        _claim(walk, step, direction)
        changed |= _put(walk, direction, after[direction])
    if step.end_ns is not None:
        walk.later(step.end_ns, step, lambda: _set_back(walk, step, sorted(after)), closing=True)
    if after and not changed and step.order not in walk.traced:
        _nothing_changes(walk, step)


def _changed(walk: Walk, step: StatementStep, action: ast.Set | ast.Ramp) -> dict[int, LinkNow]:
    """What each direction is to become; {} after a report."""
    world = walk.world
    after: dict[int, LinkNow] = {}
    for link in step.chosen.links:
        for place, direction in enumerate(link):
            try:
                after[direction] = property_changes.apply(
                    world.links[direction], action, back=place == 1
                )
            except property_changes.Illegal as problem:
                _illegal(walk, step, direction, problem)
                return {}
    return after


def _illegal(
    walk: Walk, step: StatementStep, direction: int, problem: property_changes.Illegal
) -> None:
    name, now = walk.world.link_names[direction], moment(walk.world.now)
    message = f"{problem.what} of {name!r} {problem.why} at {now}"
    walk.error(step, problem.code, message, problem.hint)


def _nothing_changes(walk: Walk, step: StatementStep) -> None:
    message = f"nothing changes: these are the values at {moment(walk.world.now)} already"
    walk.warning(step, "TS0911", message)


def _put(walk: Walk, direction: int, link: LinkNow) -> bool:
    """Gives the direction other properties; whether they are others."""
    world = walk.world
    before, world.links[direction] = world.links[direction], link
    both = zip(LinkState._fields, before.own, link.own, strict=True)
    args: dict[str, Any] = {field: new for field, old, new in both if new != old}
    if args:
        world.emit("set", world.link_names[direction], args)
    return bool(args)


def _claim(walk: Walk, step: StatementStep, direction: int) -> None:
    """An interval remembers what it will set back. What `at T` sets stays: it ends all claims."""
    world, action = walk.world, step.statement.action
    assert isinstance(action, ast.Set)
    link = world.links[direction]
    for field in property_changes.fields(action, back=direction in _backs(step)):
        before = property_changes.remembered(link, field)
        if step.end_ns is None:
            world.claims.pop((direction, field), None)
        else:
            world.claims.setdefault((direction, field), []).append(
                IntervalClaim(step.order, before)
            )


def _backs(step: StatementStep) -> frozenset[int]:
    """The directions that `down` means."""
    return frozenset(link[1] for link in step.chosen.links if len(link) > 1)


def _set_back(walk: Walk, step: StatementStep, directions: list[int]) -> None:
    """The end of an interval: what it has set is again what it was before.

    Where a later interval has set the same, that one goes on, and at its end sets it back to what
    it was before this one.
    """
    world, action = walk.world, step.statement.action
    assert isinstance(action, ast.Set)
    backs = _backs(step)
    lost: list[int] = []
    for direction in directions:
        values: dict[str, int | str] = {}
        for field in property_changes.fields(action, back=direction in backs):
            claims = world.claims.get((direction, field), [])
            mine = next((i for i, one in enumerate(claims) if one.order == step.order), None)
            if mine is None:
                lost.append(direction)
                continue
            before = claims.pop(mine).before
            if mine < len(claims):
                claims[mine].before = before
            else:
                values[field] = before
        try:
            _put(walk, direction, property_changes.restore(world.links[direction], values))
        except property_changes.Illegal as problem:
            name, now = world.link_names[direction], moment(world.now)
            message = f"set back, {problem.what} of {name!r} {problem.why} at {now}"
            walk.error(step, problem.code, message, problem.hint)
            return
    if lost:
        name, now = world.link_names[lost[0]], moment(world.now)
        message = f"another statement has set {name!r} meanwhile, so it stays as it is at {now}"
        walk.warning(step, "TS0930", message, "check what is set in the meantime")


# --- ramp ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Slope:
    """Of one direction: what it was at T1, what it is to be at T2, and what the ramp has made of
    it last."""

    direction: int
    begin: LinkState
    end: LinkState
    fields: tuple[str, ...]
    last: LinkState

    def is_lost(self, walk: Walk) -> bool:
        """Whether another statement has set one of its properties."""
        own = walk.world.links[self.direction].own
        return any(getattr(own, field) != getattr(self.last, field) for field in self.fields)


def ramp(walk: Walk, step: StatementStep) -> None:
    """In steps from what the properties are at T1 to their targets at T2; there they stay. Each
    value is on the straight line, rounded half up."""
    world, action, end = walk.world, step.statement.action, step.end_ns
    assert isinstance(action, ast.Ramp)
    assert end is not None
    after, backs = _changed(walk, step, action), _backs(step)
    slopes: dict[int, _Slope] = {}
    for direction, target in sorted(after.items()):
        own = world.links[direction].own
        fields = tuple(property_changes.fields(action, back=direction in backs))
        try:
            property_changes.between(world.links[direction], own, target.own, fields, (1, 2))
        except property_changes.Illegal as problem:
            _illegal(walk, step, direction, problem)
            return
        for field in fields:
            world.claims.pop((direction, field), None)  # as `at T … set` does
        if any(getattr(own, field) != getattr(target.own, field) for field in fields):
            slopes[direction] = _Slope(direction, own, target.own, fields, own)
    if after and not slopes:
        _nothing_changes(walk, step)
    steps = -(-(end - world.now) // action.every_ns)
    if slopes and walk.fits(step, steps * len(slopes)):
        _climb(walk, step, slopes, (world.now, end, action.every_ns), 1)


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

    def go_on() -> None:
        lost = [direction for direction in sorted(slopes) if slopes[direction].is_lost(walk)]
        if lost:
            name = walk.world.link_names[lost[0]]
            message = f"another statement has set {name!r} meanwhile, so its ramp ends before"
            hint = "check what is set in the meantime"
            walk.warning(step, "TS0930", f"{message} {moment(walk.world.now)}", hint)
        for direction in lost:
            del slopes[direction]
        if _move(walk, step, slopes, (at_ns - begin, end - begin)) and at_ns < end:
            _climb(walk, step, slopes, when, number + 1)

    walk.later(at_ns, step, go_on, closing=at_ns == end)


def _move(
    walk: Walk, step: StatementStep, slopes: dict[int, _Slope], part: tuple[int, int]
) -> bool:
    """One step of all directions; False if nothing is left to move, or after a report."""
    for direction, slope in sorted(slopes.items()):
        now = walk.world.links[direction]
        try:
            moved = property_changes.between(now, slope.begin, slope.end, slope.fields, part)
        except property_changes.Illegal as problem:
            _illegal(walk, step, direction, problem)
            return False
        _put(walk, direction, moved)
        slope.last = moved.own
    return bool(slopes)


# --- background ---------------------------------------------------------------------------------


def background(walk: Walk, step: StatementStep) -> None:
    world, action = walk.world, step.statement.action
    assert isinstance(action, ast.Background)
    directions = sorted(direction for link in step.chosen.links for direction in link)
    for direction in directions:
        problem = _refuse(world.links[direction], action.rate_bps, step)
        if problem is not None:
            code, why, hint = problem
            name, now = world.link_names[direction], moment(world.now)
            walk.error(step, code, f"{name!r} {why} at {now}", hint)
            return
    changed = [_load(walk, d, action.rate_bps, step) for d in directions]
    if not any(changed) and step.order not in walk.traced:
        message = f"nothing changes: this is the background at {moment(world.now)} already"
        walk.warning(step, "TS0911", message)
    if step.end_ns is not None:
        walk.later(step.end_ns, step, lambda: _free(walk, step, directions), closing=True)


def _refuse(link: LinkNow, rate_bps: int, step: StatementStep) -> tuple[str, str, str] | None:
    if rate_bps and not link.own.rate_bps:
        return "TS0216", "has no rate that background traffic could take from", "give it a rate"
    if rate_bps and rate_bps >= link.own.rate_bps:
        why = (
            f"has {link.own.rate_bps:,} b/s, of which {rate_bps:,} b/s of background leave nothing"
        )
        return "TS0216", why, "the background must be below the link's rate"
    busy = link.background_bps and (step.end_ns is not None or link.background_owner >= 0)
    if rate_bps and busy:
        why = f"carries {link.background_bps:,} b/s of background already"
        return "TS0310", why, "end the first with `background 0`, or before this begins"
    return None


def _load(walk: Walk, direction: int, rate_bps: int, step: StatementStep) -> bool:
    world = walk.world
    link = world.links[direction]
    link.background_owner = step.order if step.end_ns is not None and rate_bps else -1
    if link.background_bps == rate_bps:
        return False
    link.background_bps = rate_bps
    world.emit("background", world.link_names[direction], {"rate_bps": rate_bps})
    return True


def _free(walk: Walk, step: StatementStep, directions: list[int]) -> None:
    """The end of an interval; links freed by `background 0` in the meantime stay as they are."""
    for direction in directions:
        if walk.world.links[direction].background_owner == step.order:
            _load(walk, direction, 0, step)
