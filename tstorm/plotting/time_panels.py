"""What pictures over time share: panels above each other, rates, and where a plan's values jump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tstorm.plotting import canvas, marks

WIDTH_INCHES, PANEL_INCHES, LOWER_INCHES = 8.0, 2.4, 1.5
BUCKETS = 50  # of a rate over time: each long beside the time between two samples
_LEFT, _RIGHT, _BELOW, _ABOVE = 0.75, 0.15, 0.65, 0.95  # inches
_UNITS = ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s"))


def panels(figure_class: Any, title: str, lower: int, begin_s: float, end_s: float) -> Any:
    """A figure and its axes, the upper one larger than the `lower` ones."""
    heights = [PANEL_INCHES] + [LOWER_INCHES] * lower
    whole = sum(heights) + _BELOW + _ABOVE
    figure = figure_class(figsize=(WIDTH_INCHES, whole))
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
    figure.subplots_adjust(
        left=_LEFT / WIDTH_INCHES,
        right=1 - _RIGHT / WIDTH_INCHES,
        bottom=_BELOW / whole,
        top=1 - _ABOVE / whole,
        hspace=0.42,
    )
    figure.text(_LEFT / WIDTH_INCHES, 1 - 0.22 / whole, canvas.label(title, 90), weight="bold")
    found = [row[0] for row in axes]
    found[0].set_xlim(begin_s, max(end_s, begin_s + 1e-9))
    found[-1].set_xlabel("time in the experiment, s", loc="left")
    return figure, found


def mark(axes: Sequence[Any], found: Sequence[tuple[float, str]]) -> int:
    """Events on all panels; how many texts found no room."""
    return marks.draw(axes, found, (WIDTH_INCHES - _LEFT - _RIGHT) * 72)


def rate_unit(most_bps: float) -> tuple[float, str]:
    return next((size, name) for size, name in _UNITS if most_bps >= size or size == 1.0)


def jumps(
    stretches: Sequence[tuple[float, float, float | None]],
) -> tuple[list[float], list[float]]:
    """A line that is level within a stretch and has gaps where there is no value."""
    xs: list[float] = []
    ys: list[float] = []
    for begin, end, value in stretches:
        xs += [begin, end]
        ys += [float("nan") if value is None else value] * 2
    return xs, ys


def edges(begin_s: float, end_s: float, count: int) -> list[float]:
    """Of `count` equal parts."""
    return [begin_s + (end_s - begin_s) * number / count for number in range(count + 1)]


def legend(axes: Any) -> None:
    """Below the panel, where it hides nothing; none if nothing in it has a name."""
    if axes.get_legend_handles_labels()[0]:
        below = -0.2 if axes.get_subplotspec().is_last_row() else -0.03  # the scale is there
        place = {"bbox_to_anchor": (1.0, below), "borderaxespad": 0}
        axes.legend(loc="upper right", ncols=4, fontsize=8, **place)
