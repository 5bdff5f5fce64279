"""What pages of tables share: a head that needs no network, and text that is escaped, since it
comes from runs that anybody may have made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from tstorm.output import visible

MOST_ROWS = 2000
_STYLE = """body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em}
table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{padding:.15em .7em;text-align:left;
border-bottom:1px solid #ddd}td.n{text-align:right;font-variant-numeric:tabular-nums}
.warning{color:#b00020}tr.differs td{font-weight:600}
svg .zero{stroke:#888}svg .bar{stroke:#36c;stroke-width:3}svg .value{fill:#36c}
svg .curve{stroke:#36c;stroke-width:1.5;fill:none}svg .fail{stroke:#b00020}svg text{font-size:11px}
tr.differs svg .bar{stroke:#b00020}tr.differs svg .value{fill:#b00020}
@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}td,th{border-color:#333}
svg text{fill:#ddd}}"""


def page(title: str, parts: Iterable[str]) -> str:
    """`parts`: HTML."""
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8">\n'
        f"<title>{text(title)}</title><style>{_STYLE}</style>"
    )
    return "\n".join([head, *parts]) + "\n</html>\n"


def text(words: str) -> str:
    return escape(visible(words))


def paragraph(words: str, kind: str = "") -> str:
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def table(head: Sequence[str], rows: Sequence[str], more: str) -> Iterator[str]:
    """`rows`: HTML, of which MOST_ROWS are shown; `more` says of what there are more, and where."""
    yield "<table><tr>" + "".join(f"<th>{title}</th>" for title in head) + "</tr>"
    yield from rows[:MOST_ROWS]
    yield "</table>"
    if len(rows) > MOST_ROWS:
        yield f"<p>… and {len(rows) - MOST_ROWS} more {more}</p>"
