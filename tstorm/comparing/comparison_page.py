"""A comparison as one page that needs no network: tables, and each interval as a picture.

All text is escaped: it comes from runs that anybody may have made.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tstorm.comparing import comparison_text
from tstorm.comparing.comparison_text import Comparison
from tstorm.comparing.differences import MetricDifference

MOST_ROWS = 2000
_WIDTH, _HEIGHT = 180, 16
_STYLE = """body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em}
table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{padding:.15em .7em;text-align:left;
border-bottom:1px solid #ddd}td.n{text-align:right;font-variant-numeric:tabular-nums}
.warning{color:#b00020}tr.differs td{font-weight:600}
svg .zero{stroke:#888}svg .bar{stroke:#36c;stroke-width:3}svg .value{fill:#36c}
tr.differs svg .bar{stroke:#b00020}tr.differs svg .value{fill:#b00020}
@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}td,th{border-color:#333}}"""
_HEAD = ("figure", "of", "first", "second", "difference", "95 % interval", "", "p", "")


def render(found: Comparison) -> str:
    names = ", ".join(side.name for side in found.sides)
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        f"<title>Comparison of {_text(names)}</title><style>{_STYLE}</style>",
        "<h1>Comparison</h1>",
        *(f'<p class="warning">warning: {_text(one)}</p>' for one in found.doubts),
        f"<p>{_text(found.closing)}</p>",
        *(f"<p>note: {_text(one)}</p>" for one in found.notes),
    ]
    for number in range(1, len(found.sides)):
        parts += _table(found, number)
    return "\n".join(parts) + "\n</html>\n"


def _table(found: Comparison, number: int) -> Iterator[str]:
    first, second = found.sides[0], found.sides[number]
    yield f"<h2>{_text(first.name)} and {_text(second.name)}</h2>"
    rows = found.of_side(number)
    if first.is_campaign:
        yield f"<p>{_text(comparison_text.pairing(rows))}</p>"
    yield "<table><tr>" + "".join(f"<th>{title}</th>" for title in _HEAD) + "</tr>"
    for row in rows[:MOST_ROWS]:
        yield _row(row)
    yield "</table>"
    if len(rows) > MOST_ROWS:
        yield f"<p>… and {len(rows) - MOST_ROWS} more figures: --format json has all</p>"


def _row(row: MetricDifference) -> str:
    *values, probability, differs = comparison_text.cells(row)
    cells = [f"<td>{_text(one)}</td>" for one in values[:2]]
    cells += [f'<td class="n">{_text(one)}</td>' for one in values[2:]]
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


def _text(text: str) -> str:
    from tstorm.output import visible

    return escape(visible(text))
