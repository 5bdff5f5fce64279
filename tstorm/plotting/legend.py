"""What the marks of a picture mean, as rows of samples with a text, below it.

Input: samples with their texts, the width that there is. Output: the same in rows, which are drawn
on axes whose unit is the point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

ROW_POINTS = 15.0
FONT = 8.0
_LINE, _MARK, _BETWEEN = 22.0, 12.0, 14.0  # a sample with the space after it; between two

Width = Callable[[str, float], float]  # of a text in a size


@dataclass(frozen=True, slots=True)
class Item:
    """A line, or a mark: how matplotlib draws it."""

    text: str
    line: tuple[tuple[str, Any], ...] = ()
    mark: tuple[tuple[str, Any], ...] = ()

    @property
    def sample(self) -> float:
        return _LINE if self.line else _MARK


Rows = list[list[tuple[float, Item]]]  # from the top; in each where an item begins


def rows(items: Sequence[Item], points: float, width: Width) -> Rows:
    found: Rows = [[]]
    x = 0.0
    for item in items:
        taken = item.sample + width(item.text, FONT)
        if x and x + taken > points:
            found.append([])
            x = 0.0
        found[-1].append((x, item))
        x += taken + _BETWEEN
    return found


def draw(axes: Any, found: Rows, left: float, top: float) -> None:
    for number, row in enumerate(found):
        y = top - (number + 0.5) * ROW_POINTS
        for x, item in row:
            begin = left + x
            if item.line:
                axes.plot([begin, begin + _LINE - 6], [y, y], **dict(item.line))
            if item.mark:
                axes.plot([begin + 4], [y], linestyle="", **dict(item.mark))
            axes.text(begin + item.sample, y, item.text, fontsize=FONT, va="center_baseline")
