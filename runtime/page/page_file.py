"""report.html of a run: one file that needs no network and no other file.

Input: a run directory, its manifest and its summary, while a run is concluded or later. Output: the
page: its style, its scripts, and its data as JSON. The same input gives the same bytes.

The scripts are in runtime/page/web: libraries as they are published (vendor/), and the page's own
modules, which are joined in the order of _MODULES without their import and export words. A content
security policy forbids everything but these scripts and styles, by their SHA-256, and pictures that
are in the page itself (its icon); texts get into the page as text, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from runtime.judge.verdict import DEGRADED, INVALID, UNKNOWN, VALID
from runtime.options import FAILED, INTERRUPTED
from runtime.page.page_data import gather
from runtime.results.failed import told
from runtime.rundir.held_directory import HeldDirectory

_WEB = Path(__file__).resolve().parent / "web"
_LIBRARIES = ("d3-dispatch.js", "d3-quadtree.js", "d3-timer.js", "d3-force.js", "uplot.js")
_MODULES = ("dom.js", "format.js", "model.js", "csv.js", "clock.js", "table.js", "lives.js",
            "verdict.js", "timeline.js", "decision.js", "history.js", "network.js", "layout.js",
            "positions.js", "reach.js", "charts.js", "series.js", "spacetime.js", "programs.js",
            "logs.js", "spread.js", "sections.js", "live.js", "main.js")  # fmt: skip
_STYLES = ("vendor/uplot.css", "page.css")
_CROSS, _MARK, _TICK = "M4 4l8 8m0-8l-8 8", "M8 3v6.5m0 2v2", "M3.5 8.5l3 3 6-7"
_ICONS = {  # colours of the light theme, and paths
    FAILED: ("#b3261e", _CROSS),
    INVALID: ("#b3261e", _MARK),
    DEGRADED: ("#9a5b00", _MARK),
    INTERRUPTED: ("#9a5b00", _MARK),
    VALID: ("#11734b", _TICK),
    UNKNOWN: ("#626c78", _MARK),
}
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|async function|class|const)", re.MULTILINE)


def _read(name: str) -> str:
    return (_WEB / name).read_text(encoding="utf-8")


@cache
def _scripts() -> tuple[str, ...]:
    modules = "".join(_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in _MODULES)
    libraries = (_read(f"vendor/{name}") for name in _LIBRARIES)
    return (*libraries, f'"use strict";\n(() => {{\n{modules}}})();\n')


@cache
def _style() -> str:
    return "".join(_read(name) for name in _STYLES)


def _digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@cache
def _policy(connect: str = "") -> str:
    scripts = " ".join(_digest(one) for one in _scripts())
    return (
        f"default-src 'none'; script-src {scripts}; style-src {_digest(_style())};"
        f" img-src data:; base-uri 'none'; form-action 'none'{connect}"
    )


def _icon(data: Mapping[str, Any]) -> str:
    """A sign and a colour for the tab: whether the run failed, else whether to believe it."""
    result = data["result"]
    colour, sign = _ICONS.get(result["state"], _ICONS[UNKNOWN])
    if result["state"] == VALID and result["failures"]:
        colour, sign = _ICONS[DEGRADED]
    drawn = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16"'
        f' rx="4" fill="{colour}"/><path d="{sign}" stroke="#fff" stroke-width="2.4" fill="none"/>'
        "</svg>"
    )
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}"


def embedded(data: Mapping[str, Any]) -> str:
    """JSON that stands in a script element: no `<` in it could end it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page(data: Mapping[str, Any]) -> str:
    """The page of this data, of runtime.page.page_data."""
    title = escape(f"{data['run']['id']}: {data['result']['state'].upper()}")
    failed = list(map(told, data["result"]["failures"]))
    how = f"{data['run']['outcome']} {data['run']['message']}"
    lines = escape(chr(10).join([*failed, *data["verdict"]["lines"], how]))
    icon = f'<link rel="icon" href="{_icon(data)}">\n'
    absent = (
        f"<h1>{title}</h1><pre>{lines}</pre>"
        "<p>The rest of this page needs scripts; summary.json and the other files of the run have"
        " all of it.</p>"
    )
    return _document(_policy(), f"{icon}<title>{title}</title>", absent, embedded(data))


def live_page(api: str) -> str:
    """The same page without data, which is asked of the address `api` of where it came from."""
    absent = "<p>This page needs scripts.</p>"
    head = '<link rel="icon" href="data:,">\n<title>tstorm</title>'
    return _document(_policy("; connect-src 'self'"), head, absent, embedded({"api": api}))


def _document(policy: str, head: str, absent: str, data: str) -> str:
    scripts = "".join(f"<script>{one}</script>\n" for one in _scripts())
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"{head}\n<style>{_style()}</style>\n<body>\n"
        f"<noscript>{absent}</noscript>\n"
        f'<script type="application/json" id="data">{data}</script>\n{scripts}'
        "</body>\n</html>\n"
    )


def render(
    directory: HeldDirectory, manifest: Mapping[str, Any], summary: Mapping[str, Any]
) -> str:
    """The whole page. Never fails for what is in the files."""
    return page(gather(directory, manifest, summary))
