"""Intervals of statements that last: later beginnings and earlier ends.

Input: a script. Output: for each `from T1 to T2` whose targets stay what they are in a narrower
interval the ends that may be tried. A link that flaps keeps its beat: it begins after whole turns
of down and up, and ends after whole periods. Statements that draw moments are written out instead
(occurrences.py); where targets are drawn, their names take the place of the count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tdl import ast
from tstorm import units
from tstorm.shrink import occurrences
from tstorm.shrink.text import Place, Range, SourceText

if TYPE_CHECKING:
    from tstorm.shrink.script import Script, Written
    from tstorm.shrink.text_meaning import TextMeaning

_LASTING = (ast.Set, ast.SetClock, ast.SetDisk, ast.Background, ast.Flap, ast.Disconnect, ast.Pause)
_PARTS = 10  # of an interval: it is narrowed to within one of them
SHORTEST_NS = 10_000_000  # that is narrowed


@dataclass(frozen=True, slots=True)
class ShrunkWindow:
    """`text` makes the text with another interval. It begins whole `late_ns` later, and ends whole
    `early_ns` after its beginning."""

    at: Place
    start_ns: int
    end_ns: int
    late_ns: int
    early_ns: int
    text: Callable[[int, int], str | None]


def windows(script: Script, reading: TextMeaning) -> Iterator[ShrunkWindow]:
    for one in script.written.values():
        node = one.nodes[0]
        if not one.is_single or node.end_ns is None or not isinstance(node.action, _LASTING):
            continue
        if node.drawn is not None:
            continue
        end_ns = min(node.end_ns, script.end_ns or node.end_ns)
        length_ns = end_ns - node.start_ns
        if length_ns < SHORTEST_NS:
            continue
        step_ns: int = 10 ** (len(str(length_ns)) - 2)
        late_ns, early_ns = step_ns, step_ns
        if isinstance(node.action, ast.Flap):
            late_ns, early_ns = 2 * node.action.period_ns, node.action.period_ns
        text = _texts(script, reading, one)
        yield ShrunkWindow(one.place.begin, node.start_ns, end_ns, late_ns, early_ns, text)


def narrower(window: ShrunkWindow, fails: Callable[[str, str], bool]) -> None:
    """Halves from the end, then from the beginning. `fails` takes a text and words for it."""
    start_ns, end_ns = window.start_ns, window.end_ns

    def tried(start_ns: int, end_ns: int) -> bool:
        text = window.text(start_ns, end_ns)
        span = f"{units.duration(start_ns)} to {units.duration(end_ns)}"
        return text is not None and fails(text, f"line {window.at[0]} from {span}")

    whole = -(-(end_ns - start_ns) // window.early_ns)
    least = _halved(whole, lambda count: tried(start_ns, start_ns + count * window.early_ns))
    if least < whole:
        end_ns = start_ns + least * window.early_ns
    whole = -(-(end_ns - start_ns) // window.late_ns)  # so many steps later nothing is left
    _halved(whole, lambda left: tried(start_ns + (whole - left) * window.late_ns, end_ns))


def _halved(most: int, fails: Callable[[int], bool]) -> int:
    """The smallest number that fails, to within a tenth; `most` does."""
    little = 0
    while most - little > max(most // _PARTS, 1):
        middle = (little + most) // 2
        if fails(middle):
            most = middle
        else:
            little = middle
    return most


def _texts(script: Script, reading: TextMeaning, one: Written) -> Callable[[int, int], str | None]:
    """What makes texts in which it has another interval."""
    text, action = SourceText(script.text), one.nodes[0].action
    if isinstance(action, ast.Disconnect | ast.Pause) and action.count is not None:
        named = cache(lambda: occurrences.named(script, reading, one))

        def drawn(start_ns: int, end_ns: int) -> str | None:
            made = named()
            if made is None:
                return None
            rest = made.split(" ", 4)[4]  # behind `from T1 to T2`
            words = f"from {units.duration(start_ns)} to {units.duration(end_ns)} {rest}"
            return text.changed([(one.place, words)])

        return drawn
    times = Range.of([one.words[1], one.words[3]])

    def written(start_ns: int, end_ns: int) -> str:
        words = f"{units.duration(start_ns)} to {units.duration(end_ns)}"
        return text.changed([(times, words)])

    return written
