"""Storms: drawn within the bounds of a hunt, and written as statements of TDL.

Input: a StormSpace and a generator. Output: a Storm, whose text is the experiment's with the
storm's statements behind it, so that whatever it finds is a TDL file. Each storm is made of a drawn
subset of the kinds of faults: with all of them in each, what one needs is mostly undone by another.
Each is drawn from the hunt's seed and its number alone. To change storms that reached something new
takes more of them to a bug, not fewer (bench.virtual.hunt).
Source: A. Groce et al., "Swarm Testing", ISSTA 2012.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeVar

from tdl import quantities
from tdl.diagnostics import Sink
from tdl.preprocess.blocks import LoopBlock, blocks, is_hunt
from tdl.tokens.lexer import logical_lines
from tdl.tokens.words import HUNT_CLOCKS, HUNT_DISKS, HUNT_FAULTS, HUNT_POWER
from tstorm.shrink.text import Range, SourceText

if TYPE_CHECKING:
    from compiler.expect.storm_space import FaultKind, StormSpace

MS = 1_000_000
SEEDS = 1 << 31
HEAD = "# a storm of tstorm hunt"
_DIGITS = 3  # of drawn values
ATTEMPTS = 50  # storms in a row that are no experiment

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """From `begin_ns` to `end_ns`. `value`: ns of latencies and clocks, of disks
    which of HUNT_DISKS from 1 on, else ppb."""

    begin_ns: int
    end_ns: int
    word: str
    targets: tuple[str, ...]
    value: int = 0

    @property
    def kind(self) -> str:
        """In words: of a disk also what it does."""
        return f"disk={HUNT_DISKS[self.value - 1]}" if self.word == "disk" else self.word

    def statements(self, instances: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Each with its moment. `instances`: all that there are."""
        begin, end = quantities.time(self.begin_ns), quantities.time(self.end_ns)
        names = ";".join(self.targets)
        if self.word == "partition":
            others = (name for name in instances if name not in self.targets)
            cut = f"partition {' '.join(self.targets)};{' '.join(others)}"
            yield self.begin_ns, f"from {begin} to {end} {cut}"
        elif self.word == "crash":
            length = quantities.time(self.end_ns - self.begin_ns)
            yield self.begin_ns, f"at {begin} {names} restart after {length}"
        elif self.word in ("kill", HUNT_POWER):
            yield self.begin_ns, f"at {begin} {names} {self.word}"
            yield self.end_ns, f"at {end} {names} join"
        else:
            yield self.begin_ns, f"from {begin} to {end} {names} {self._action()}"

    def _action(self) -> str:
        if self.word == "latency":
            return f"set latency+={quantities.latency(self.value)}"
        if self.word == "clock":
            return f"set clock={quantities.signed_time(self.value)}"
        if self.word == "drift":
            return f"set drift={quantities.drift(self.value)}"
        if self.word == "disk":
            return f"set {self.kind}"
        if self.word in HUNT_FAULTS:
            return self.word
        return f"set {self.word}={quantities.share(self.value)}"


@dataclass(frozen=True, slots=True)
class Storm:
    """`number`: of it in its hunt; `seed`: of its run."""

    number: int
    seed: int
    faults: tuple[Fault, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those of its faults, each once."""
        return tuple(sorted({one.kind for one in self.faults}))


def text(base: str, faults: Sequence[Fault], instances: Sequence[str]) -> str:
    """The experiment's text with the statements of these faults, by their moments."""
    found = [line for one in sorted(faults) for line in one.statements(instances)]
    lines = [words for _, words in sorted(found, key=lambda one: one[0])]
    end = "" if base.endswith("\n") else "\n"
    return "\n".join([base + end + HEAD, *lines]) + "\n" if lines else base


def without_hunt(base: str) -> str:
    """The text without its own hunt, whose bounds say nothing about one storm: with an earlier end
    they may contradict. One in an included file stays."""
    taken = []
    for one in blocks(logical_lines(base, Sink()), Sink()):
        if isinstance(one, LoopBlock) and is_hunt(one.head) and one.end is not None:
            taken.append((Range.of([one.head.tokens[0], one.end.tokens[-1]]), ""))
    return SourceText(base).changed(taken)


def generator(*key: int) -> Random:
    """The same numbers for the same key. Only its `random()` is used: what else it offers may be
    drawn in another way by another release of Python."""
    digest = hashlib.sha256(" ".join(map(str, key)).encode()).digest()
    return Random(int.from_bytes(digest))


def below(random: Random, count: int) -> int:
    return min(int(random.random() * count), count - 1)


def one_of(random: Random, items: Sequence[Item]) -> Item:
    return items[below(random, len(items))]


def some_of(random: Random, items: Sequence[Item], count: int) -> list[Item]:
    """So many of them, in their order."""
    left = list(range(len(items)))
    chosen = [left.pop(below(random, len(left))) for _ in range(min(count, len(left)))]
    return [items[at] for at in sorted(chosen)]


class NoStormError(Exception):
    """With these bounds few storms are experiments. The text says why the last one is none."""


def drawn(space: StormSpace, seed: int, number: int, refused: Callable[[Storm], str]) -> Storm:
    """The storm of that number. `refused` says why one is no experiment, '' if it is one.
    NoStormError."""
    why = ""
    for attempt in range(ATTEMPTS):
        found = Drawing(space, generator(seed, number, attempt)).storm(number)
        why = refused(found)
        if not why:
            return found
    raise NoStormError(why)


@dataclass(frozen=True, slots=True)
class Drawing:
    """Draws within a space."""

    space: StormSpace
    random: Random

    def storm(self, number: int) -> Storm:
        """A new one: 1 to `most` faults, of a drawn subset of the kinds."""
        kinds = [one for one in self.space.kinds if self.random.random() < 0.5]
        kinds = kinds or [one_of(self.random, self.space.kinds)]
        count = 1 + below(self.random, self.space.most)
        faults = [self._fault(one_of(self.random, kinds)) for _ in range(count)]
        return Storm(number, below(self.random, SEEDS), tuple(sorted(faults)))

    def _fault(self, kind: FaultKind) -> Fault:
        space = self.space
        room_ns = space.end_ns - space.begin_ns - space.shortest_ns
        begin_ns = space.begin_ns + _whole(self.random.random() * max(room_ns, 0))
        end_ns = begin_ns + self._length(begin_ns)
        return Fault(begin_ns, end_ns, kind.word, self._targets(kind), self._value(kind))

    def _length(self, begin_ns: int) -> int:
        """As many short ones as long ones: each decade is as likely as another."""
        low = self.space.shortest_ns
        high = max(min(self.space.longest_ns, self.space.end_ns - begin_ns), low)
        return max(_whole(low * (high / low) ** self.random.random()), MS)

    def _targets(self, kind: FaultKind) -> tuple[str, ...]:
        return tuple(some_of(self.random, kind.targets, 1 + below(self.random, kind.count)))

    def _value(self, kind: FaultKind) -> int:
        if not kind.high:
            return 0
        drawn = kind.low + int(self.random.random() * (kind.high - kind.low + 1))
        scale = int(10 ** max(len(str(abs(drawn))) - _DIGITS, 0))
        rounded = max(min(round(drawn / scale) * scale, kind.high), kind.low)
        if not rounded and kind.word not in HUNT_CLOCKS:
            return max(kind.high // 100, 1)
        return rounded


def _whole(time_ns: float) -> int:
    """Of milliseconds, as statements say moments."""
    return int(time_ns) // MS * MS
