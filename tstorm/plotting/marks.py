"""Events as marks over time: a line each, with the text of its statement where there is room.

Input: a plan, and the nodes and links that a picture is about. Output: (seconds, text) of events
that concern them; a statement has its text at its first event, later ones are marks alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from compiler.plan.reader import Plan
from tstorm.loading import included
from tstorm.plotting import canvas
from tstorm.plotting.canvas import GREY, label
from tstorm.plotting.subject import SECOND

ROWS = 4  # of text above a picture
ROW_POINTS = 11.0
LETTER_POINTS = 4.4  # width of one at 8 points, about


def of(plan: Plan, targets: Collection[str], end_ns: int) -> list[tuple[float, str]]:
    """Of statements, by time; joins that nobody wrote are none."""
    lines = {"": plan.source.decode("utf-8", "replace").splitlines()}
    for name, data in included(plan).items():
        lines[name] = data.decode("utf-8", "replace").splitlines()
    seen: set[tuple[str, int]] = set()
    found: dict[tuple[int, str], None] = {}
    for event in plan.events:
        if event.at_ns > end_ns or not event.line or event.target not in targets:
            continue
        text = ""
        if event.place not in seen:
            seen.add(event.place)
            known = lines.get(event.file, [])
            text = _without_time(known[event.line - 1]) if event.line <= len(known) else event.kind
        found[event.at_ns, text] = None
    return [(at_ns / SECOND, text) for at_ns, text in found]


def _without_time(statement: str) -> str:
    words = statement.partition("#")[0].split()
    skipped = {"at": 2, "from": 4}.get(words[0] if words else "", 0)
    return " ".join(words[skipped:]) or " ".join(words)


def draw(axes: Sequence[Any], found: Sequence[tuple[float, str]], points: float) -> int:
    """On all axes, with texts above the first, which is `points` wide. How many texts found no
    room."""
    low, high = axes[0].get_xlim()
    per_second = points / (high - low)
    ends = [float("-inf")] * ROWS
    left_out = 0
    for second, text in found:
        for one in axes:
            one.axvline(second, color=GREY, linewidth=0.6, zorder=1)
        if not text:
            continue
        shown = label(text, 48)
        width = LETTER_POINTS * len(shown)
        start = min((second - low) * per_second, points - width)
        row = next((number for number, end in enumerate(ends) if end <= start), -1)
        if row < 0:
            left_out += 1
            continue
        ends[row] = start + width + 8
        axes[0].annotate(
            shown,
            (0, 1),
            xytext=(start, 4 + row * ROW_POINTS),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=8,
            annotation_clip=False,
        )
    return left_out


# What pictures over time share: panels above each other, rates, and where a plan's values jump.

WIDTH_INCHES, PANEL_INCHES, LOWER_INCHES = 8.0, 2.4, 1.5
BUCKETS = 50  # of a rate over time: each long beside the time between two samples
_LEFT, _RIGHT, _BELOW, _ABOVE = 0.75, 0.15, 0.65, 0.95  # inches
_UNITS = ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s"))


def panels(
    figure_class: Any,
    title: str,
    lower: int,
    begin_s: float,
    end_s: float,
    upper: float = PANEL_INCHES,
) -> Any:
    """A figure and its axes, the upper one larger than the `lower` ones."""
    heights = [upper] + [LOWER_INCHES] * lower
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
    return draw(axes, found, (WIDTH_INCHES - _LEFT - _RIGHT) * 72)


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
