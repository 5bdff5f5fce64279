"""What a hunt covered and found, as one page: page.html in its directory.

Its curve is the number of different things that the storms have reached, storm by storm; a line
stands at each storm that failed. Where it still rises, more storms may reach more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tstorm import html_page
from tstorm.html_page import paragraph, text
from tstorm.hunt import hunt_summary
from tstorm.hunt.hunt_results import FAILED, StormResult

_WIDTH, _HEIGHT, _MARGIN = 720, 160, 20
_FILES = ("repro.tdl", "command", "why.txt", "page.html")
_FINDS = ("find", "what fails", "by", "faults", "storms", "")


def render(summary: Mapping[str, Any], storms: Mapping[int, StormResult]) -> str:
    """`summary`: hunt_summary.gathered."""
    parts = [
        f"<h1>Hunt of {text(summary['experiment'])}</h1>",
        *map(paragraph, hunt_summary.counts(summary)),
        _curve(storms),
        "<h2>Finds</h2>",
        *_finds(summary),
    ]
    if "beside" in summary:
        parts += _beside(summary["beside"])
    if summary["rare"]:
        rare = f"Rare: reached by one storm each ({len(summary['rare'])})"
        parts += _words(rare, summary["rare"])
    return html_page.page(f"Hunt of {summary['experiment']}", parts)


def _finds(summary: Mapping[str, Any]) -> Iterator[str]:
    if not summary["finds"]:
        yield paragraph("none")
        return
    rows = [_find(one) for one in summary["finds"]]
    yield from html_page.table(_FINDS, rows, "finds: summary.json has all")


def _find(one: Mapping[str, Any]) -> str:
    folder = f"finds/{one['find']:04}"
    kinds = ", ".join(one["kinds"]) or "no fault"
    files = [name for name in _FILES if Path(one["folder"], name).exists()]
    links = " ".join(f'<a href="{folder}/{name}">{name}</a>' for name in files)
    note = f"<br>{text(one['note'])}" if one["note"] else ""
    return (
        f'<tr><td class="n">{one["find"]}</td><td>{text("; ".join(one["failures"]))}{note}</td>'
        f"<td>{text(kinds)}</td>"
        f'<td class="n">{one["faults_before"]} → {one["faults"]}</td>'
        f'<td class="n">{len(one["storms"])}</td><td>{links}</td></tr>'
    )


def _beside(beside: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2>Beside {beside['storms']} storms before</h2>"
    for name, words in beside["finds"].items():
        yield from _words(f"Finds, {'in both' if name == 'both' else name} ({len(words)})", words)
    for name in ("new", "gone"):
        yield from _words(f"Reached, {name} ({len(beside[name])})", beside[name])


def _words(title: str, words: Iterable[str]) -> Iterator[str]:
    rows = [f"<tr><td>{text(one)}</td></tr>" for one in words]
    if rows:
        yield f"<details><summary>{text(title)}</summary>"
        yield from html_page.table((), rows, "lines: summary.json has all")
        yield "</details>"
    else:
        yield paragraph(title)


def _curve(storms: Mapping[int, StormResult]) -> str:
    known: set[str] = set()
    counts = []
    for _, one in sorted(storms.items()):
        known.update(one.reached)
        counts.append((len(known), one.outcome == FAILED))
    if not counts:
        return ""
    most = max(counts[-1][0], 1)

    def across(at: int) -> float:
        return _MARGIN + at * (_WIDTH - 2 * _MARGIN) / len(counts)

    def up(count: int) -> float:
        return _HEIGHT - _MARGIN - count * (_HEIGHT - 2 * _MARGIN) / most

    points = [(0, 0), *((at + 1, count) for at, (count, _) in enumerate(counts))]
    curve = " ".join(f"{across(at):.1f},{up(count):.1f}" for at, count in points)
    fails = "".join(
        f'<line class="fail" x1="{across(at + 1):.1f}" x2="{across(at + 1):.1f}"'
        f' y1="{up(0):.1f}" y2="{up(0) - 8:.1f}"/>'
        for at, (_, failed) in enumerate(counts)
        if failed
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        f'<polyline class="curve" points="{curve}"/>{fails}'
        f'<text x="{_MARGIN}" y="12">{counts[-1][0]} things reached</text>'
        f'<text x="{_WIDTH - _MARGIN}" y="{_HEIGHT - 4}" text-anchor="end">'
        f"{len(counts)} storms; red: failed</text></svg>"
    )
