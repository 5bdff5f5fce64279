"""What happens to links in the second implementation. See oracle.py."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from tdl import ast
from tests.compiler.oracle_state import KEYS, Direction, Problem, State, default_queue


class Links(State):
    """Every statement is a coroutine that yields the time it wants to go on at."""

    # --- links ---

    def flap(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        all_of_them = [ends for link in self.links_of(s.selector) for ends in link]
        mine = self.in_order([ends for ends in all_of_them if "left" not in self.down[ends]])
        if not mine:
            raise Problem("all left")
        end, toggles = self.end_of(s), 0
        while True:
            for ends in mine:
                (self.unblock if toggles % 2 else self.block)(ends, order, s.span.line)
            toggles += 1
            if s.start_ns + toggles * s.action.period_ns >= end:
                break
            yield s.start_ns + toggles * s.action.period_ns
        if toggles % 2:
            yield end
            for ends in mine:
                self.unblock(ends, order, s.span.line)

    def set(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        after: dict[Direction, dict[str, int | str]] = {}
        assert isinstance(s.action, ast.Set)
        queues = set(self.own_queue)
        before = {ends: dict(props) for ends, props in self.props.items()}
        owned = set(self.own_queue)
        for link in self.links_of(s.selector):
            for place, ends in enumerate(link):
                after[ends] = self.changed(ends, s.action, ("up", "down")[place])
                if any(a.prop.text == "queue" for a in s.action.assignments):
                    queues.add(ends)
        self.own_queue = queues
        mine = [(ends, key) for ends in after for key in self.keys(s, ends)]
        changed = self.take_over(mine)
        for ends, key in mine:
            if s.end_ns is None:
                self.intervals.pop((ends, key), None)
                continue
            old = "follows" if key == "queue_bytes" and ends not in owned else before[ends][key]
            self.intervals.setdefault((ends, key), []).append([order, old])
        for ends in self.in_order(list(after)):
            args = {k: v for k, v in after[ends].items() if v != self.props[ends][k]}
            self.props[ends] = after[ends]
            if args:
                changed = True
                self.emit("set", ends.name, s.span.line, **args)
        if not changed:
            self.warned.append(s.span.line)
        if s.end_ns is not None:
            yield s.end_ns
            self.set_back(order, s, mine)

    def ramp(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        line, begin, end = s.span.line, s.start_ns, self.end_of(s)
        assert isinstance(s.action, ast.Ramp)
        goal: dict[Direction, dict[str, int | str]] = {}
        for link in self.links_of(s.selector):
            for place, ends in enumerate(link):
                goal[ends] = self.changed(ends, s.action, ("up", "down")[place])
        mine = {ends: self.keys(s, ends) for ends in goal}
        for ends, keys in mine.items():
            rates = [int(props["rate_bps"]) for props in (self.props[ends], goal[ends])]
            if "rate_bps" in keys and min(rates) == 0 < max(rates):
                raise Problem("illegal value")
        first = {ends: dict(self.props[ends]) for ends in goal}
        for one in ((ends, key) for ends, keys in mine.items() for key in keys):
            self.intervals.pop(one, None)
        moving = [e for e in goal if any(first[e][key] != goal[e][key] for key in mine[e])]
        taken = self.take_over([(ends, key) for ends, keys in mine.items() for key in keys])
        if not moving and not taken:
            self.warned.append(line)
        for ends in moving:
            self.moved_by.update({(ends, key): order for key in mine[ends]})
        at = begin
        while moving and at < end:
            at = min(at + s.action.every_ns, end)
            yield at
            for ends in self.in_order(moving):
                if any(self.moved_by.get((ends, key)) != order for key in mine[ends]):
                    self.warned.append(line)
                    moving.remove(ends)
                    self.let_go(order, ends, mine[ends])
                    continue
                self.go_to(
                    ends,
                    mine[ends],
                    first[ends],
                    goal[ends],
                    Fraction(at - begin, end - begin),
                    line,
                )
        for ends in moving:
            self.let_go(order, ends, mine[ends])

    def take_over(self, mine: list[tuple[Direction, str]]) -> bool:
        """A statement sets these; whether a ramp ends by it, one that had not been ended before."""
        found = [(one, self.moved_by[one]) for one in mine if one in self.moved_by]
        for one, _ in found:
            del self.moved_by[one]
        fresh = {(ends, order) for (ends, _), order in found} - self.ended
        self.ended |= fresh
        return bool(fresh)

    def let_go(self, order: int, ends: Direction, keys: list[str]) -> None:
        for key in keys:
            if self.moved_by.get((ends, key)) == order:
                del self.moved_by[ends, key]

    def go_to(
        self,
        ends: Direction,
        keys: list[str],
        first: dict[str, int | str],
        goal: dict[str, int | str],
        part: Fraction,
        line: int,
    ) -> None:
        new = dict(self.props[ends])
        for key in keys:
            exact = int(first[key]) + (int(goal[key]) - int(first[key])) * part
            new[key] = int((exact + Fraction(1, 2)) // 1)
        if "queue_bytes" in keys:
            self.own_queue.add(ends)
        elif new["rate_bps"] != self.props[ends]["rate_bps"] and ends not in self.own_queue:
            new["queue_bytes"] = default_queue(int(new["rate_bps"]))
        taken = self.load[ends][0]
        if int(new["jitter_ns"]) > int(new["delay_ns"]):
            raise Problem("illegal value")
        if taken and int(new["rate_bps"]) <= taken:
            raise Problem("background")
        args = {key: value for key, value in new.items() if value != self.props[ends][key]}
        self.props[ends] = new
        if args:
            self.emit("set", ends.name, line, **args)

    def keys(self, s: ast.Dynamic, ends: Direction) -> list[str]:
        """What the statement sets of this direction."""
        found = []
        for link in self.links_of(s.selector):
            for place, one in enumerate(link):
                for a in s.action.assignments if one == ends else ():
                    key = {**KEYS, ("up", "down")[place]: "rate_bps", "dist": "distribution"}
                    if a.prop.text in key:
                        found.append(key[a.prop.text])
        return found

    def set_back(self, order: int, s: ast.Dynamic, mine: list[tuple[Direction, str]]) -> None:
        """Of those that set a property one after the other, the last one's value holds."""
        missing = False
        for ends in self.in_order([ends for ends, _ in mine]):
            new, queue = dict(self.props[ends]), ends in self.own_queue
            for key in [key for one, key in mine if one == ends]:
                stack = self.intervals.get((ends, key), [])
                place = (
                    [entry[0] for entry in stack].index(order)
                    if any(entry[0] == order for entry in stack)
                    else None
                )
                if place is None:
                    missing = True
                    continue
                old = stack.pop(place)[1]
                if place < len(stack):
                    stack[place][1] = old
                elif old == "follows":
                    queue = False
                else:
                    new[key] = old
                    queue = queue or key == "queue_bytes"
            rated = new["rate_bps"] != self.props[ends]["rate_bps"]
            if not queue and (rated or ends in self.own_queue):
                new["queue_bytes"] = default_queue(int(new["rate_bps"]))
            taken = self.load[ends][0]
            if int(new["jitter_ns"]) > int(new["delay_ns"]):
                raise Problem("illegal value")
            if taken and int(new["rate_bps"]) <= taken:
                raise Problem("background")
            (self.own_queue.add if queue else self.own_queue.discard)(ends)
            args = {k: v for k, v in new.items() if v != self.props[ends][k]}
            self.props[ends] = new
            if args:
                self.emit("set", ends.name, s.span.line, **args)
        if missing:
            self.warned.append(s.span.line)

    def changed(
        self, ends: Direction, action: ast.Set | ast.Ramp, rate: str
    ) -> dict[str, int | str]:
        new = dict(self.props[ends])
        queue = ends in self.own_queue
        for a in action.assignments:
            key = {**KEYS, rate: "rate_bps"}.get(a.prop.text)
            if a.prop.text == "dist":
                new["distribution"] = str(a.word)
            elif key is not None:
                new[key] = relative(int(self.props[ends][key]), a, key)
                queue = queue or key == "queue_bytes"
        if new["rate_bps"] != self.props[ends]["rate_bps"] and not queue:
            new["queue_bytes"] = default_queue(int(new["rate_bps"]))
        taken = self.load[ends][0]
        jitter_ok = int(new["jitter_ns"]) <= int(new["delay_ns"])
        if not jitter_ok or int(new["loss_ppb"]) > 10**9 or int(new["queue_bytes"]) < 1:
            raise Problem("illegal value")
        if taken and int(new["rate_bps"]) <= taken:
            raise Problem("background")
        return new

    def background(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        rate, line = s.action.rate_bps, s.span.line
        mine = self.in_order([ends for link in self.links_of(s.selector) for ends in link])
        for ends in mine:
            load, owner = self.load[ends]
            if rate and rate >= int(self.props[ends]["rate_bps"]):
                raise Problem("no rate left")
            if rate and load and (s.end_ns is not None or owner is not None):
                raise Problem("loaded already")
        before = len(self.events)
        for ends in mine:
            self.put(ends, rate, order if s.end_ns is not None and rate else None, line)
        if len(self.events) == before:
            self.warned.append(line)
        if s.end_ns is not None:
            yield s.end_ns
            for ends in mine:
                if self.load[ends][1] == order:
                    self.put(ends, 0, None, line)

    def put(self, ends: Direction, rate: int, owner: int | None, line: int) -> None:
        if self.load[ends][0] != rate:
            self.emit("background", ends.name, line, rate_bps=rate)
        self.load[ends] = (rate, owner)

    # --- partition, heal, quit ---

    def usable(self, ends: Direction) -> bool:
        return not self.down[ends] and all(self.state[n] in ("up", "up!") for n in ends)

    def partition(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        """Two groups only. Tries every way to place the others."""
        side: dict[str, int] = {}
        for number, group in enumerate(s.action.groups):
            for member in group:
                found = self._services(member)
                nodes = [n for name in found for n in self._nodes_of(name)]
                nodes += [b for b in self._bridges() if self._covers(member, b, self.tags[b])]
                side.update(dict.fromkeys(nodes, number))
        for number, group in enumerate(s.action.groups):
            for member in group:
                if isinstance(member, ast.Element) and member.index is not None:
                    side[f"{member.name.text}.{member.index}"] = number
        assert len(s.action.groups) == 2
        free = [n for n in self._bridges() if n not in side]  # instances forward nothing
        free = [n for n in free if any(n in ends for ends in self.links)]
        best: tuple[tuple[int, int, int], dict[str, int]] | None = None
        for choice in product((0, 1), repeat=len(free)):
            trial = {**side, **dict(zip(free, choice, strict=True))}
            cut = [p for p in self.links[::2] if apart(trial, p)]
            good = [p for p in cut if self.usable(p) or self.usable(p.back)]
            cost = (len(good), len(cut) - len(good), sum(choice))
            if best is None or cost < best[0]:
                best = (cost, trial)
        assert best is not None
        where = best[1]
        cut = [ends for ends in self.links if apart(where, ends)]
        if s.action.one_way:
            cut = [ends for ends in cut if where[ends[0]] == 0]
        if not any(self.usable(ends) for ends in cut):
            self.warned.append(s.span.line)
        for ends in cut:
            self.block(ends, ("partition", order), s.span.line)
        self.partitions.append((("partition", order), cut))
        return
        yield

    def heal(self, _order: int, s: ast.Dynamic) -> Iterator[int]:
        if not self.partitions:
            raise Problem("nothing to heal")
        for ends in self.links:
            for why, cut in self.partitions:
                if ends in cut:
                    self.unblock(ends, why, s.span.line)
        self.partitions.clear()
        return
        yield


def apart(side: dict[str, int], ends: Direction) -> bool:
    """Whether a link leads from one side to another; instances of no group are on none."""
    return all(n in side for n in ends) and side[ends[0]] != side[ends[1]]


def relative(old: int, a: ast.Assignment, key: str) -> int:
    if a.op is ast.Op.ASSIGN:
        return a.value or 0
    assert a.value is not None
    if key == "rate_bps" and old == 0:
        raise Problem("unlimited")
    if a.op is ast.Op.SCALE:
        new = int(Fraction(old) * Fraction(a.value, 10**9) + Fraction(1, 2))
    else:
        new = old + a.value if a.op is ast.Op.ADD else old - a.value
    if new < 0 or (new == 0 and key in ("rate_bps", "queue_bytes")):
        raise Problem("out of range")
    return new
