"""The state of the second implementation: names, reasons, candidates and draws. See oracle.py."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fractions import Fraction
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


class Direction(tuple[str, str]):
    """Both ends of a link, in one order, and what the link is called."""

    called: str

    def __new__(cls, a: str, b: str, called: str = "") -> Direction:
        made = super().__new__(cls, (a, b))
        made.called = called
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Direction) and (*self, self.called) == (*other, other.called)

    def __hash__(self) -> int:
        return hash((*self, self.called))

    def __repr__(self) -> str:
        return self.name

    @property
    def back(self) -> Direction:
        return Direction(self[1], self[0], self.called)

    @property
    def name(self) -> str:
        return f"{self.called}:{self[0]}->{self[1]}" if self.called else f"{self[0]}->{self[1]}"


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


class State:
    """Who and what is there, and the events so far."""

    def __init__(self, file: ast.File, seed: int, extra: dict[str, int]) -> None:
        self.seed = seed
        self.events: list[Primitive] = []
        self.problems: list[tuple[int, str]] = []  # (line, what), in order of time
        self.warned: list[int] = []  # lines
        self.now = 0
        self.services = {
            s.name.text: s for s in file.statements if isinstance(s, ast.ServiceStatement)
        }
        self.dynamics = [s for s in file.statements if isinstance(s, ast.Dynamic)]
        named = dict.fromkeys(self.services, 1)
        for link in (s for s in file.statements if isinstance(s, ast.LinkStatement)):
            for end, index in ((link.a, link.a_index), (link.b, link.b_index)):
                if index is not None:
                    named[end.text] = max(named[end.text], index + 1)
        self.wanted = {n: s.replicas or named[n] for n, s in self.services.items()}
        self.replicas = {n: max(extra.get(n, 1), self.wanted[n]) for n in self.services}
        self.tags: dict[str, tuple[str, ...]] = {}
        self.state: dict[str, str] = {}  # instances: never up cut up! cut! gone; bridges: up gone
        self.clocks: dict[str, list[tuple[int, int, int, int]]] = {}  # see Oracle.set_clock
        self.disks: dict[str, list[tuple[int, dict[str, Any]]]] = {}  # see Oracle.set_disk
        self.owner: dict[tuple[str, str], int] = {}  # who last changed what of it
        self.links: list[Direction] = []
        self.link_tags: dict[Direction, tuple[str, ...]] = {}
        self.down: dict[Direction, set[object]] = {}
        self.props: dict[Direction, dict[str, int | str]] = {}
        self.load: dict[Direction, tuple[int, int | None]] = {}
        self.own_queue: set[Direction] = set()
        # By direction and property: [who, what it was before], of intervals in force.
        self.intervals: dict[tuple[Direction, str], list[list[Any]]] = {}
        # By direction and property: the ramp that moves it. And ramps that have been ended.
        self.moved_by: dict[tuple[Direction, str], int] = {}
        self.ended: set[tuple[Direction, int]] = set()
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
            if isinstance(statement, ast.LinkStatement):
                self._link(statement)

    def _link(self, link: ast.LinkStatement) -> None:
        down = link.up_bps if link.symmetric else link.down_bps
        called = link.name.text if link.name else ""
        for a in self._nodes_of(link.a.text, link.a_index):
            for b in self._nodes_of(link.b.text, link.b_index):
                tags, there = tuple(t.text for t in link.tags), Direction(a, b, called)
                if link.directed and there.back in self.props:  # the way back of what is there
                    tags = (*self.link_tags[there.back], *tags)
                    self.link_tags[there] = self.link_tags[there.back] = tags
                    self._say(there, link, link.up_bps)
                    continue
                for ends, rate in ((there, link.up_bps), (there.back, down)):
                    self.links.append(ends)
                    self.link_tags[ends] = tags
                    self.down[ends] = set()
                    self.load[ends] = (0, None)
                    self._say(ends, link, rate)

    def _say(self, ends: Direction, link: ast.LinkStatement, rate: int | None) -> None:
        self.own_queue.discard(ends)
        assert link.queue is None or link.queue.unit == "bytes"
        if link.queue is not None:
            self.own_queue.add(ends)
        self.props[ends] = {
            "rate_bps": rate or 0,
            "delay_ns": link.latency_ns,
            "jitter_ns": link.jitter_ns,
            "loss_ppb": link.loss_ppb,
            "queue_bytes": link.queue.value if link.queue else default_queue(rate or 0),
            "distribution": str(link.distribution or "normal"),
        }

    def _nodes_of(self, name: str, index: int | None = None) -> list[str]:
        if index is not None:
            return [f"{name}.{index}"]
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
            if not isinstance(selector, ast.LinkSelector):
                if self._covers(selector, there.called or " ", self.link_tags[there]):
                    found.append((there, there.back))
                continue
            if selector.name and selector.name.text != there.called:
                continue
            for one in (there, there.back):
                if is_end(one[0], selector.a) and is_end(one[1], selector.b):
                    found.append((one,) if selector.directed else (one, one.back))
        return found

    # --- primitive changes ---

    def emit(self, kind: str, target: str, line: int, **args: int | str) -> None:
        event = Primitive(self.now, kind, target, tuple(sorted(args.items())), line)
        self.events.append(event)

    def move(self, node: str, state: str, kind: str, line: int) -> None:
        self.state[node] = state
        for what in ("network", "program", "life", "left"):
            self.owner.pop((what, node), None)
        self.emit(kind, node, line)

    def block(self, ends: Direction, why: object, line: int) -> None:
        if not self.down[ends]:
            self.emit("link_down", ends.name, line)
        self.down[ends].add(why)

    def unblock(self, ends: Direction, why: object, line: int) -> None:
        self.down[ends].remove(why)
        if not self.down[ends]:
            self.emit("link_up", ends.name, line)

    def in_order(self, directions: list[Direction]) -> list[Direction]:
        return [ends for ends in self.links if ends in directions]

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
            assert s.end_ns is not None
            return s.end_ns
        quits = [d.start_ns for d in self.dynamics if isinstance(d.action, ast.Quit)]
        return max(quits[0], s.start_ns + 1)


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
