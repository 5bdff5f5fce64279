"""Where nodes are over time, as a plan has it (docs/plan.md, Movement).

Positions are integers in mm, of each node for each of the times; what holds at a time holds until
the next. `sights` are the pairs that see each other by the file's own word, which not every format
has. `rates` and `losses` are the tables by distance that links between them have.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from compiler.plan.format import ATTACHED, PlanError
from compiler.plan.parts.traces import filled

Point = tuple[int, int, int]
MOST_NODES, MOST_RECORDS = 512, 1_000_000
_NOWHERE = "-"  # of a node that is not there yet
_SAME = "="


@dataclass(frozen=True)
class Motion:
    """`places` by node and then by time. A pair i < j of n nodes has the number i × n + j. Rows of
    `rates` are a distance in mm, b/s and ppb of losses; of `losses` a distance and ppb."""

    times: Sequence[int]
    places: Sequence[Sequence[Point | None]]
    sights: Sequence[frozenset[int]] | None  # by time
    end_ns: int
    quits: bool  # the file says when it is over
    rates: tuple[tuple[int, int, int], ...] = ()
    losses: tuple[tuple[int, int], ...] = ()

    def step_at(self, at_ns: int) -> int:
        """The last time that is not later; -1 before the first."""
        return bisect_right(self.times, at_ns) - 1

    @cached_property
    def text(self) -> bytes:
        """The one way to write it."""
        return "".join(line + "\n" for line in _lines(self)).encode("ascii")


def _lines(motion: Motion) -> Iterator[str]:
    sees = motion.sights is not None
    head = (len(motion.places), len(motion.times), motion.end_ns, int(motion.quits), int(sees))
    yield "motion " + " ".join(map(str, head))
    yield " ".join(["rates", *(":".join(map(str, row)) for row in motion.rates)])
    yield " ".join(["losses", *(":".join(map(str, row)) for row in motion.losses)])
    yield from filled(str(b - a) for a, b in pairwise((0, *motion.times)))
    for track in motion.places:
        yield from filled(_moves(track))
    before: frozenset[int] = frozenset()
    for seen in motion.sights or ():
        yield " ".join(map(str, sorted(seen ^ before))) or _SAME
        before = seen


def _moves(track: Sequence[Point | None]) -> Iterator[str]:
    x = y = z = 0
    for point in track:
        if point is None:
            yield _NOWHERE
        elif point == (x, y, z):
            yield _SAME
        else:
            yield f"{point[0] - x}:{point[1] - y}:{point[2] - z}"
            x, y, z = point


def decode(data: bytes) -> Motion:
    """PlanError for anything but what `text` has."""
    try:
        found = _decoded(data.decode("ascii").split("\n"))
        same = found.text == data
    except (ValueError, IndexError):
        same = False
    if not same:
        raise PlanError(ATTACHED, "a movement is not as tstorm writes it")
    return found


def _decoded(lines: list[str]) -> Motion:
    nodes, steps, end_ns, quits, sees = map(int, lines[0].split(" ")[1:])
    if nodes > MOST_NODES or nodes * steps > MOST_RECORDS:
        raise ValueError
    rows = [tuple(map(int, word.split(":"))) for word in lines[1].split(" ")[1:]]
    falls = [tuple(map(int, word.split(":"))) for word in lines[2].split(" ")[1:]]
    rest = iter(lines[3:])
    times = list(accumulate(map(int, _words(rest, steps))))
    places = [_track(_words(rest, steps)) for _ in range(nodes)]
    sights: list[frozenset[int]] | None = [] if sees else None
    seen: frozenset[int] = frozenset()
    for _ in range(steps if sights is not None else 0):
        line = next(rest, "")
        seen ^= frozenset(() if line == _SAME else map(int, line.split(" ")))
        assert sights is not None
        sights.append(seen)
    rates = tuple((mm, bps, ppb) for mm, bps, ppb in rows)
    losses = tuple((mm, ppb) for mm, ppb in falls)
    return Motion(times, places, sights, end_ns, bool(quits), rates, losses)


def _words(lines: Iterator[str], count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        found += next(lines, "").split(" ")
    return found


def _track(words: Sequence[str]) -> list[Point | None]:
    found: list[Point | None] = []
    x = y = z = 0
    for word in words:
        if word == _NOWHERE:
            found.append(None)
            continue
        if word != _SAME:
            dx, dy, dz = map(int, word.split(":"))
            x, y, z = x + dx, y + dy, z + dz
        found.append((x, y, z))
    return found
