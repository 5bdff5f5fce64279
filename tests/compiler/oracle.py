"""A second, slow implementation of the timeline, to compare the compiler with.

It shares nothing with the compiler but the parser, the formatter (for the text that keys the draws)
and the Event type. Names instead of numbers, every statement one coroutine that yields the time it
wants to go on at, every question answered by looking at everything. Written from docs/tdl.md,
docs/timeline.md and docs/draws.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

from tdl import ast
from tdl.formatter import format_statement

SECOND = 10**9
KEYS = {
    "latency": "delay_ns",
    "jitter": "jitter_ns",
    "loss": "loss_ppb",
    "rate": "rate_bps",
    "queue": "queue_bytes",
}
Direction = tuple[str, str]
Target = str | tuple[Direction, ...]  # an instance or bridge, or a link


class Primitive(NamedTuple):
    at_ns: int
    kind: str
    target: str
    args: tuple[tuple[str, int | str], ...]
    line: int


class More(Exception):  # noqa: N818
    """The service needs one more instance: start again."""


class Problem(Exception):  # noqa: N818
    """The statement is not legal now."""


def expand(file: ast.File, seed: int, skip: frozenset[int] = frozenset()) -> Oracle:
    """Tries with one instance more until the joins are content. `skip`: lines to leave out."""
    statements = (s for s in file.statements if s.span.line not in skip)
    file = ast.File(tuple(statements))
    extra: dict[str, int] = {}
    while True:
        oracle = Oracle(file, seed, extra)
        try:
            oracle.run()
        except More as more:
            extra[str(more)] = extra.get(str(more), 1) + 1
            continue
        return oracle


class Draws:
    """docs/draws.md, once more."""

    def __init__(self, key: bytes, label: str) -> None:
        self.words = self._all(key + label.encode() + b"\n")

    @staticmethod
    def _all(prefix: bytes) -> Iterator[int]:
        block = 0
        while True:
            digest = hashlib.sha256(prefix + block.to_bytes(8, "big")).digest()
            for i in range(0, 32, 8):
                yield int.from_bytes(digest[i : i + 8], "big")
            block += 1

    def below(self, bound: int) -> int:
        if bound == 1:
            return 0
        bits = len(bin(bound - 1)) - 2
        while True:
            value = next(self.words) % 2**bits
            if value < bound:
                return value

    def sample(self, candidates: list[Target], legal: list[Target], count: int) -> list[Target]:
        chosen: list[Target] = []
        misses = 0
        while len(chosen) < count and misses < 64:
            drawn = candidates[self.below(len(candidates))]
            if drawn in legal and drawn not in chosen:
                chosen.append(drawn)
                misses = 0
            else:
                misses += 1
        while len(chosen) < count:
            rest = [c for c in candidates if c in legal and c not in chosen]
            chosen.append(rest[self.below(len(rest))])
        return chosen


class Oracle:
    def __init__(self, file: ast.File, seed: int, extra: dict[str, int]) -> None:
        self.seed = seed
        self.events: list[Primitive] = []
        self.problems: list[tuple[int, str]] = []  # (line, what), in order of time
        self.warned: list[int] = []  # lines
        self.now = 0
        self.services = {s.name.text: s for s in file.statements if isinstance(s, ast.Service)}
        self.dynamics = [s for s in file.statements if isinstance(s, ast.Dynamic)]
        self.replicas = {n: s.replicas or extra.get(n, 1) for n, s in self.services.items()}
        self.wanted = {n: s.replicas or 1 for n, s in self.services.items()}
        self.tags: dict[str, tuple[str, ...]] = {}
        self.state: dict[str, str] = {}  # instances: never up cut gone; bridges: up gone
        self.owner: dict[str, int] = {}  # who cut it
        self.links: list[Direction] = []
        self.link_tags: dict[Direction, tuple[str, ...]] = {}
        self.down: dict[Direction, set[object]] = {}
        self.props: dict[Direction, dict[str, int | str]] = {}
        self.load: dict[Direction, tuple[int, int | None]] = {}
        self.own_queue: set[Direction] = set()
        self.partitions: list[tuple[object, list[Direction]]] = []
        self._build(file)

    # --- static part ---

    def _build(self, file: ast.File) -> None:
        for name, service in self.services.items():
            for index in range(self.replicas[name]):
                self.state[f"{name}.{index}"] = "never"
            self.tags[name] = tuple(t.text for t in service.tags)
        for statement in file.statements:
            if isinstance(statement, ast.Bridges):
                for bridge in statement.names:
                    self.state[bridge.text] = "up"
                    self.tags[bridge.text] = tuple(t.text for t in statement.tags)
        for statement in file.statements:
            if isinstance(statement, ast.Link):
                self._link(statement)

    def _link(self, link: ast.Link) -> None:
        down = link.up_bps if link.symmetric else link.down_bps
        for a in self._nodes_of(link.a.text):
            for b in self._nodes_of(link.b.text):
                for ends, rate in (((a, b), link.up_bps), ((b, a), down)):
                    self.links.append(ends)
                    self.link_tags[ends] = tuple(t.text for t in link.tags)
                    self.down[ends] = set()
                    self.load[ends] = (0, None)
                    if link.queue_bytes is not None:
                        self.own_queue.add(ends)
                    self.props[ends] = {
                        "rate_bps": rate or 0,
                        "delay_ns": link.latency_ns,
                        "jitter_ns": link.jitter_ns,
                        "loss_ppb": link.loss_ppb,
                        "queue_bytes": link.queue_bytes or default_queue(rate or 0),
                        "distribution": link.distribution or "normal",
                    }

    def _nodes_of(self, name: str) -> list[str]:
        if name in self.services:
            return [f"{name}.{i}" for i in range(self.replicas[name])]
        return [name]

    def _bridges(self) -> list[str]:
        return [n for n in self.state if "." not in n]

    # --- selectors ---

    def _services(self, selector: ast.Selector) -> list[str]:
        match selector:
            case ast.Everything():
                return list(self.services)
            case ast.Tagged(tags=tags):
                words = {t.text for t in tags}
                return [n for n in self.services if words & set(self.tags[n])]
            case ast.Element(name=name, index=None):
                return [name.text] if name.text in self.services else []
        return []

    def candidates(
        self, selector: ast.Selector, kinds: str, *, every_link: bool = False
    ) -> list[Target]:
        """`kinds`: letters of s(ervice) b(ridge) l(ink)."""
        found: list[Target] = []
        if "s" in kinds:
            for name in self._services(selector):
                found += [f"{name}.{i}" for i in range(self.wanted[name])]
            if isinstance(selector, ast.Element) and selector.index is not None:
                found.append(f"{selector.name.text}.{selector.index}")
        if "b" in kinds:
            found += [b for b in self._bridges() if self._covers(selector, b, self.tags[b])]
        if "l" in kinds:
            links = self.links_of(selector)
            found += [link for link in links if every_link or all(map(self.asked, link[0]))]
        return found

    def asked(self, node: str) -> bool:
        service, dot, index = node.partition(".")
        return not dot or int(index) < self.wanted[service]

    def _covers(self, selector: ast.Selector, name: str, tags: tuple[str, ...]) -> bool:
        match selector:
            case ast.Everything():
                return True
            case ast.Tagged(tags=words):
                return any(t.text in tags for t in words)
            case ast.Element(name=word):
                return word.text == name
        return False

    def links_of(self, selector: ast.Selector) -> list[tuple[Direction, ...]]:
        found: list[tuple[Direction, ...]] = []
        for there in self.links[::2]:
            back = (there[1], there[0])
            if not isinstance(selector, ast.LinkSelector):
                if self._covers(selector, "", self.link_tags[there]):
                    found.append((there, back))
                continue
            for a, b in (there, back):
                if is_end(a, selector.a) and is_end(b, selector.b):
                    found.append(((a, b),) if selector.directed else ((a, b), (b, a)))
        return found

    # --- primitive changes ---

    def emit(self, kind: str, target: str, line: int, **args: int | str) -> None:
        event = Primitive(self.now, kind, target, tuple(sorted(args.items())), line)
        self.events.append(event)

    def move(self, node: str, state: str, kind: str, line: int) -> None:
        self.state[node] = state
        self.owner.pop(node, None)
        self.emit(kind, node, line)

    def block(self, ends: Direction, why: object, line: int) -> None:
        if not self.down[ends]:
            self.emit("link_down", f"{ends[0]}->{ends[1]}", line)
        self.down[ends].add(why)

    def unblock(self, ends: Direction, why: object, line: int) -> None:
        self.down[ends].remove(why)
        if not self.down[ends]:
            self.emit("link_up", f"{ends[0]}->{ends[1]}", line)

    def in_order(self, directions: list[Direction]) -> list[Direction]:
        return [ends for ends in self.links if ends in directions]

    # --- the walk ---

    def run(self) -> None:
        self._begin()
        waiting = []
        for order, statement in enumerate(self.dynamics):
            story = self.tell(order, statement)
            waiting.append([next(story), order, story])
        ended = False
        while waiting and not ended:
            entry = min(waiting, key=lambda e: (e[0], e[1]))
            self.now, order, story = entry
            statement = self.dynamics[order]
            try:
                entry[0] = next(story)
            except StopIteration:
                waiting.remove(entry)
                ended = isinstance(statement.action, ast.Quit)
            except Problem as problem:
                waiting.remove(entry)
                self.problems.append((statement.span.line, str(problem)))
        self.missed = [self.dynamics[e[1]].span.line for e in waiting]
        last = self.events[-1].at_ns if self.events else 0
        self.end_ns = last if ended else last + 10 * SECOND

    def tell(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        verbs: dict[type, Callable[[int, ast.Dynamic], Iterator[int]]] = {
            ast.Join: self.join,
            ast.Leave: self.take,
            ast.Crash: self.take,
            ast.Churn: self.churn,
            ast.Disconnect: self.disconnect,
            ast.Reconnect: self.reconnect,
            ast.Flap: self.flap,
            ast.Set: self.set,
            ast.Background: self.background,
            ast.Partition: self.partition,
            ast.Heal: self.heal,
            ast.Quit: self.quit,
        }
        yield s.start_ns
        yield from verbs[type(s.action)](order, s)

    def _begin(self) -> None:
        for bridge in self._bridges():
            if self._joins_first(self._names_bridge, bridge):
                self.move(bridge, "gone", "bridge_down", 0)
        for ends in self.links:
            if self._joins_first(self._names_link, ends):
                self.block(ends, "left", 0)
        for service in self.services:
            joins = [s for s in self.dynamics if isinstance(s.action, ast.Join)]
            if any(service in self._services(s.selector) for s in joins):
                continue
            for node in self._nodes_of(service):
                if not self._joins_first(self._names_instance, node):
                    self.move(node, "up", "join", 0)

    def _joins_first(self, names: Callable[[ast.Dynamic, Any], bool], what: object) -> bool:
        mine = [s for s in self.dynamics if names(s, what)]
        return bool(mine) and isinstance(min(mine, key=lambda s: s.start_ns).action, ast.Join)

    def _names_bridge(self, s: ast.Dynamic, bridge: str) -> bool:
        if isinstance(s.action, ast.Join) and isinstance(s.selector, ast.Everything):
            return False
        return isinstance(s.action, ast.Join | ast.Leave) and self._covers(
            s.selector, bridge, self.tags[bridge]
        )

    def _names_link(self, s: ast.Dynamic, ends: Direction) -> bool:
        if isinstance(s.action, ast.Join) and isinstance(s.selector, ast.Everything):
            return False
        if not isinstance(s.action, ast.Join | ast.Leave):
            return False
        return any(ends in link for link in self.links_of(s.selector))

    def _names_instance(self, s: ast.Dynamic, node: str) -> bool:
        if not isinstance(s.action, ast.Join | ast.Leave | ast.Crash | ast.Churn | ast.Disconnect):
            return False
        e = s.selector
        return isinstance(e, ast.Element) and f"{e.name.text}.{e.index}" == node

    # --- draws and counts ---

    def draws(self, order: int, label: str) -> Draws:
        text = format_statement(self.dynamics[order])
        same = [i for i, s in enumerate(self.dynamics) if format_statement(s) == text]
        head = f"thunderstorm draws 1\nstatement\n{self.seed}\n{same.index(order)}\n{text}"
        return Draws(hashlib.sha256(head.encode()).digest(), label)

    def number(self, count: ast.Count | None, legal: int) -> int:
        if count is None:
            return legal
        if count.unit is ast.Unit.NUMBER:
            return count.value
        return int(Fraction(legal) * Fraction(count.value, 10**9) + Fraction(1, 2))

    def legal(self, candidates: list[Target], states: str) -> list[Target]:
        """Nodes in one of the states; links that have (`gone` asked for) or have not left."""
        wants_left = "gone" in states
        return [
            c
            for c in candidates
            if (self.state[c] in states.split() if isinstance(c, str) else
                any(("left" in self.down[ends]) == wants_left for ends in c))
        ]  # fmt: skip

    def at_once(
        self, order: int, s: ast.Dynamic, candidates: list[Target], states: str
    ) -> list[Target]:
        legal = self.legal(candidates, states)
        wanted = self.number(s.action.count, len(legal))
        if not legal or wanted > len(legal):
            raise Problem(f"{wanted} of {len(legal)}")
        if wanted == 0:
            self.warned.append(s.span.line)
            return []
        if wanted == len(legal):
            return legal
        chosen = self.draws(order, "who").sample(candidates, legal, wanted)
        return [c for c in candidates if c in chosen]

    def moments(self, order: int, s: ast.Dynamic, legal: int) -> list[int]:
        count = s.action.count
        if legal == 0 and (count is None or count.unit is ast.Unit.PERCENT):
            raise Problem("none")
        wanted = self.number(count, legal)
        if wanted == 0:
            self.warned.append(s.span.line)
        when = self.draws(order, "when")
        return sorted(s.start_ns + when.below(self.end_of(s) - s.start_ns) for _ in range(wanted))

    def end_of(self, s: ast.Dynamic) -> int:
        if not s.open_ended:
            return s.end_ns
        quits = [d.start_ns for d in self.dynamics if isinstance(d.action, ast.Quit)]
        return max(quits[0], s.start_ns + 1)

    # --- members ---

    def own_service(self, s: ast.Dynamic) -> str | None:
        e = s.selector
        if isinstance(e, ast.Element) and e.index is None and e.name.text in self.services:
            return e.name.text
        return None

    def ask_for(self, service: str, count: int) -> None:
        if count <= self.wanted[service]:
            return
        if self.services[service].replicas is not None:
            raise Problem(f"{service} has no {count}")
        if count > self.replicas[service]:
            raise More(service)
        self.wanted[service] = count

    def bring(self, s: ast.Dynamic, target: Target) -> None:
        line = s.span.line
        if not isinstance(target, str):
            for ends in self.in_order(list(target)):
                if "left" in self.down[ends]:
                    self.unblock(ends, "left", line)
            return
        if "." not in target:
            self.move(target, "up", "bridge_up", line)
            return
        self.move(target, "up", "join", line)

    def join(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        service = self.own_service(s)
        e = s.selector
        if isinstance(e, ast.Element) and e.index is not None and not self.asked(named(e)):
            raise Problem("not asked for yet")
        if s.end_ns is None:
            count = s.action.count
            if service and count and count.unit is ast.Unit.NUMBER:
                mine = [f"{service}.{i}" for i in range(self.wanted[service])]
                joined = sum(self.state[n] in ("up", "cut") for n in mine)
                self.ask_for(service, joined + count.value)
            candidates = self.candidates(s.selector, "sbl", every_link=count is None)
            chosen = self.at_once(order, s, candidates, "never gone")
            for target in self.who_joins(s, chosen, candidates):
                self.bring(s, target)
            return
        who = self.draws(order, "who")
        legal = self.legal(self.candidates(s.selector, "sbl"), "never gone")
        for moment in self.moments(order, s, len(legal)):
            yield moment
            legal = self.legal(self.candidates(s.selector, "sbl"), "never gone")
            if not legal and service:
                self.ask_for(service, self.wanted[service] + 1)
            candidates = self.candidates(s.selector, "sbl")
            legal = self.legal(candidates, "never gone")
            if not legal:
                raise Problem("none")
            chosen = who.sample(candidates, legal, 1)
            self.bring(s, self.who_joins(s, chosen, candidates)[0])

    def who_joins(
        self, s: ast.Dynamic, chosen: list[Target], candidates: list[Target]
    ) -> list[Target]:
        """The same number of each service, those that never joined first."""
        found = [c for c in chosen if not isinstance(c, str) or "." not in c]
        for service in self.services:
            mine = [c for c in chosen if isinstance(c, str) and c.split(".")[0] == service]
            if service in self._services(s.selector):
                all_of_it = [f"{service}.{i}" for i in range(self.wanted[service])]
                never = [n for n in all_of_it if self.state[n] == "never"]
                gone = [n for n in all_of_it if self.state[n] == "gone"]
                found += [*never, *gone][: len(mine)]
            else:
                found += mine
        return [c for c in candidates if c in found]

    def remove(self, s: ast.Dynamic, target: Target) -> None:
        line = s.span.line
        if not isinstance(target, str):
            for ends in self.in_order(list(target)):
                if "left" not in self.down[ends]:
                    self.block(ends, "left", line)
        elif "." in target:
            self.move(target, "gone", "leave" if isinstance(s.action, ast.Leave) else "crash", line)
        else:
            self.move(target, "gone", "bridge_down", line)

    def take(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        kinds = "sbl" if isinstance(s.action, ast.Leave) else "s"
        every_link = s.end_ns is None and s.action.count is None
        candidates = self.candidates(s.selector, kinds, every_link=every_link)
        if s.end_ns is None:
            for target in self.at_once(order, s, candidates, "up cut"):
                self.remove(s, target)
            return
        who = self.draws(order, "who")
        for moment in self.moments(order, s, len(self.legal(candidates, "up cut"))):
            yield moment
            candidates = self.candidates(s.selector, kinds)
            legal = self.legal(candidates, "up cut")
            if not legal:
                raise Problem("none")
            self.remove(s, who.sample(candidates, legal, 1)[0])

    def churn(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        who, coin = self.draws(order, "who"), self.draws(order, "replace")
        legal = self.legal(self.candidates(s.selector, "s"), "up cut")
        for moment in self.moments(order, s, len(legal)):
            yield moment
            candidates = self.candidates(s.selector, "s")
            legal = self.legal(candidates, "up cut")
            if not legal:
                raise Problem("none")
            node = who.sample(candidates, legal, 1)[0]
            self.move(str(node), "gone", "crash", s.span.line)
            if coin.below(10**9) < s.action.replace_ppb:
                self.move(str(node), "up", "join", s.span.line)

    def disconnect(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        chosen = self.at_once(order, s, self.candidates(s.selector, "s"), "up")
        for node in chosen:
            self.move(str(node), "cut", "disconnect", s.span.line)
            self.owner[str(node)] = order
        if s.end_ns is None:
            self.owner = {n: o for n, o in self.owner.items() if o != order}
        elif chosen:
            yield s.end_ns
            for node in chosen:
                if self.owner.get(str(node)) == order:
                    self.move(str(node), "up", "reconnect", s.span.line)
                else:
                    self.warned.append(s.span.line)

    def reconnect(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        for node in self.at_once(order, s, self.candidates(s.selector, "s"), "cut"):
            self.move(str(node), "up", "reconnect", s.span.line)
        return
        yield

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

    def set(self, _order: int, s: ast.Dynamic) -> Iterator[int]:
        after: dict[Direction, dict[str, int | str]] = {}
        queues = set(self.own_queue)
        for link in self.links_of(s.selector):
            for place, ends in enumerate(link):
                after[ends] = self.changed(ends, s.action, ("up", "down")[place])
                if any(a.prop.text == "queue" for a in s.action.assignments):
                    queues.add(ends)
        self.own_queue = queues
        changed = False
        for ends in self.in_order(list(after)):
            args = {k: v for k, v in after[ends].items() if v != self.props[ends][k]}
            self.props[ends] = after[ends]
            if args:
                changed = True
                self.emit("set", f"{ends[0]}->{ends[1]}", s.span.line, **args)
        if not changed:
            self.warned.append(s.span.line)
        return
        yield

    def changed(self, ends: Direction, action: ast.Set, rate: str) -> dict[str, int | str]:
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
            self.emit("background", f"{ends[0]}->{ends[1]}", line, rate_bps=rate)
        self.load[ends] = (rate, owner)

    # --- partition, heal, quit ---

    def usable(self, ends: Direction) -> bool:
        return not self.down[ends] and all(self.state[n] == "up" for n in ends)

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
        free = [n for n in self.state if n not in side]
        free = [n for n in free if any(n in ends for ends in self.links)]
        best: tuple[tuple[int, int, int], dict[str, int]] | None = None
        for choice in product((0, 1), repeat=len(free)):
            trial = {**side, **dict(zip(free, choice, strict=True))}
            cut = [p for p in self.links[::2] if trial.get(p[0]) != trial.get(p[1])]
            good = [p for p in cut if self.usable(p) or self.usable((p[1], p[0]))]
            cost = (len(good), len(cut) - len(good), sum(choice))
            if best is None or cost < best[0]:
                best = (cost, trial)
        assert best is not None
        where = best[1]
        cut = [ends for ends in self.links if where.get(ends[0]) != where.get(ends[1])]
        if not best[0][0]:
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

    def quit(self, _order: int, s: ast.Dynamic) -> Iterator[int]:
        self.emit("quit", "", s.span.line)
        return
        yield


def is_end(node: str, element: ast.Element) -> bool:
    if element.index is not None:
        return node == f"{element.name.text}.{element.index}"
    return node.split(".")[0] == element.name.text


def named(element: ast.Element) -> str:
    return f"{element.name.text}.{element.index}"


def default_queue(rate_bps: int) -> int:
    """50 ms of the rate, from 30,000 bytes to 16 MiB."""
    if not rate_bps:
        return 16 * 2**20
    return max(30_000, min(16 * 2**20, rate_bps // 160))


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
