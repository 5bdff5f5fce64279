"""Events as marks over time: a line each, with the text of its statement where there is room.

Input: a plan, and the nodes and links that a picture is about. Output: (seconds, text) of events
that concern them; a statement has its text at its first event, later ones are marks alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from compiler.plan.reader import Plan
from tstorm.loading import included
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
