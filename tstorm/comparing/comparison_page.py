"""A comparison as one page: tables, and each interval as a picture."""

from __future__ import annotations

from collections.abc import Iterator

from tstorm import html_page
from tstorm.comparing import comparison_text
from tstorm.comparing.comparison_text import Comparison
from tstorm.comparing.differences import MetricDifference
from tstorm.html_page import paragraph, text

_WIDTH, _HEIGHT = 180, 16
_HEAD = ("figure", "of", "first", "second", "difference", "95 % interval", "", "p", "")


def render(found: Comparison) -> str:
    names = ", ".join(side.name for side in found.sides)
    parts = [
        "<h1>Comparison</h1>",
        *(paragraph(f"warning: {one}", "warning") for one in found.doubts),
        paragraph(found.closing),
        *(paragraph(f"note: {one}") for one in found.notes),
    ]
    for number in range(1, len(found.sides)):
        parts += _table(found, number)
    return html_page.page(f"Comparison of {names}", parts)


def _table(found: Comparison, number: int) -> Iterator[str]:
    first, second = found.sides[0], found.sides[number]
    yield f"<h2>{text(first.name)} and {text(second.name)}</h2>"
    rows = found.of_side(number)
    if first.is_campaign:
        yield paragraph(comparison_text.pairing(rows))
    yield from html_page.table(_HEAD, [_row(one) for one in rows], "figures: --format json has all")


def _row(row: MetricDifference) -> str:
    *values, probability, differs = comparison_text.cells(row)
    cells = [f"<td>{text(one)}</td>" for one in values[:2]]
    cells += [f'<td class="n">{text(one)}</td>' for one in values[2:]]
    cells += [f"<td>{_picture(row)}</td>", f'<td class="n">{probability}</td>']
    kind = ' class="differs"' if row.differs else ""
    return f"<tr{kind}>{''.join(cells)}<td>{differs}</td></tr>"


def _picture(row: MetricDifference) -> str:
    """The interval and the difference, about a line at zero, each on its own scale."""
    if row.interval is None:
        return ""
    low, high = row.interval
    reach = max(abs(low), abs(high), abs(row.change))
    if reach == 0:
        return ""

    def place(value: float) -> str:
        return f"{_WIDTH / 2 + value / reach * (_WIDTH / 2 - 6):.1f}"

    middle = _HEIGHT // 2
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        f'<line class="zero" x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="0" y2="{_HEIGHT}"/>'
        f'<line class="bar" x1="{place(low)}" x2="{place(high)}" y1="{middle}" y2="{middle}"/>'
        f'<circle class="value" cx="{place(row.change)}" cy="{middle}" r="4"/></svg>'
    )
