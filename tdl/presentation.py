"""Diagnostics as text for people, JSON for scripts and SARIF 2.1.0 for tools.

All three are pure functions; printing is the caller's. JSON and SARIF are one canonical document
(sorted keys, newline at the end).
"""

from __future__ import annotations

import json
import posixpath
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tdl.ast import Span
from tdl.codes.catalogue import CODES
from tdl.diagnostics import Diagnostic, Severity, sort
from tdl.tokens.lexer import source_lines

NOTHING: Mapping[str, bytes] = MappingProxyType({})
_WINDOW = 110  # columns of a source line that are shown
_BOLD, _RED, _YELLOW, _BLUE, _RESET = "\x1b[1m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[34m", "\x1b[0m"


def render_text(
    diagnostics: Iterable[Diagnostic],
    filename: str,
    text: str | bytes,
    *,
    includes: Mapping[str, bytes] = NOTHING,
    colour: bool = False,
) -> str:
    """Each diagnostic with its place, the source line, a caret span and the hint.

    `text` is the source, `includes` are the texts that it includes; columns are characters. Ends
    with a newline unless it is empty.
    """
    found = sort(diagnostics)
    last: dict[str, int] = {}  # line of each file that is shown; a file may have millions after it
    for item in found:
        last[item.span.file] = max(item.span.line, last.get(item.span.file, 1))
    texts = {
        file: source_lines(includes.get(file, b"") if file else text, line)
        for file, line in last.items()
    }
    blocks = []
    for item in found:
        file = item.span.file
        blocks.append(_block(item, named(filename, file), texts[file], colour))
    return "\n".join(blocks)


def named(filename: str, include: str) -> str:
    """What a file is called that `filename` includes; "" is itself."""
    return (
        posixpath.normpath(posixpath.join(posixpath.dirname(filename), include))
        if include
        else (filename)
    )


def first(diagnostics: Iterable[Diagnostic], most: int) -> tuple[Diagnostic, ...]:
    """At most so many, errors before warnings, by place. 0: all of them."""
    found = sort(diagnostics)
    if not most or len(found) <= most:
        return found
    return sort(sorted(found, key=lambda item: item.severity is Severity.WARNING)[:most])


def _block(item: Diagnostic, filename: str, lines: Sequence[str], colour: bool) -> str:
    span = item.span
    tint = _RED if item.severity is Severity.ERROR else _YELLOW
    kind = _paint(f"{item.severity.value} {item.code}", tint, colour)
    place = _paint(f"{filename}:{span.line}:{span.col}:", _BOLD, colour)
    out = [f"{place} {kind}: {visible(item.message)}"]
    margin = " " * (len(str(span.line)) + 1)
    bar = _paint("|", _BLUE, colour)
    line = lines[span.line - 1] if 1 <= span.line <= len(lines) else ""
    if line.strip() and "\0" not in line:  # of what is no text there is nothing to show
        shown, marks = excerpt(line, span)
        number = _paint(str(span.line), _BLUE, colour)
        out.append(f" {number} {bar} {shown}")
        out.append(f"{margin} {bar} {_paint(marks, tint, colour)}")
    if span.note:
        out.append(f"{margin} {_paint('=', _BLUE, colour)} note: with {span.note}")
    if item.hint:
        out.append(f"{margin} {_paint('=', _BLUE, colour)} help: {visible(item.hint)}")
    return "\n".join(out) + "\n"


def _paint(text: str, code: str, colour: bool) -> str:
    return f"{code}{text}{_RESET}" if colour else text


def excerpt(line: str, span: Span) -> tuple[str, str]:
    """The part of a line around the span that fits on a screen, and the carets below it."""
    start = min(span.col - 1, len(line))
    stop = span.end_col - 1 if span.end_line == span.line else len(line)
    stop = max(stop, start + 1)
    first = 0
    if len(line) > _WINDOW:
        first = max(0, min(start - 20, len(line) - _WINDOW))
    cut = line[first : first + _WINDOW]
    head = "…" if first else ""
    tail = "…" if first + _WINDOW < len(line) else ""
    before = line[first:start]
    marked = line[start : min(stop, first + _WINDOW)]
    marks = " " * (len(head) + _width(before)) + "^" * max(1, _width(marked))
    return head + visible(cut) + tail, marks


def visible(text: str) -> str:
    """Without characters that would move the cursor: tabs become spaces, others are marked."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "\ufffd" for c in text)


def _width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def rest(diagnostics: Sequence[Diagnostic], shown: Sequence[Diagnostic]) -> str:
    """`42,367 more errors, 1 more warning`: what is not among those shown, or nothing."""
    parts = []
    for severity in (Severity.ERROR, Severity.WARNING):
        count = sum(item.severity is severity for item in sort(diagnostics))
        count -= sum(item.severity is severity for item in shown)
        if count:
            parts.append(f"{count:,} more {severity.value}{'s' if count > 1 else ''}")
    return ", ".join(parts)


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """`2 errors, 1 warning`, or nothing."""
    found = list(diagnostics)
    parts = []
    for severity in (Severity.ERROR, Severity.WARNING):
        count = sum(item.severity is severity for item in found)
        if count:
            parts.append(f"{count} {severity.value}{'s' if count > 1 else ''}")
    return ", ".join(parts)


def render_json(
    diagnostics: Iterable[Diagnostic],
    filename: str,
    text: str | bytes = "",  # noqa: ARG001
) -> str:
    """An array of {code, severity, message, hint, note, file, line, col, end_line, end_col}."""
    items = [
        {
            "code": item.code,
            "severity": item.severity.value,
            "message": item.message,
            "hint": item.hint,
            "note": item.span.note or None,
            "file": named(filename, item.span.file),
            "line": item.span.line,
            "col": item.span.col,
            "end_line": item.span.end_line,
            "end_col": item.span.end_col,
        }
        for item in sort(diagnostics)
    ]
    return _canonical(items)


def render_sarif(
    diagnostics: Iterable[Diagnostic],
    filename: str,
    text: str | bytes = "",  # noqa: ARG001
) -> str:
    """A SARIF 2.1.0 log with one run; rules are the codes that occur."""
    found = sort(diagnostics)
    codes = sorted({item.code for item in found})
    results = [
        _result(item, named(filename, item.span.file), codes.index(item.code)) for item in found
    ]
    driver = {"name": "tstorm", "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return _canonical(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [run],
        }
    )


def _rule(code: str) -> dict[str, Any]:
    entry = CODES.get(code)
    rule: dict[str, Any] = {"id": code}
    if entry is not None:
        rule["shortDescription"] = {"text": entry.title}
        rule["fullDescription"] = {"text": entry.explanation}
    return rule


def _result(item: Diagnostic, filename: str, rule: int) -> dict[str, Any]:
    notes = [text for text in (item.hint, item.span.note and f"with {item.span.note}") if text]
    message = f"{item.message} ({'; '.join(notes)})" if notes else item.message
    region = {
        "startLine": max(1, item.span.line),
        "startColumn": max(1, item.span.col),
        "endLine": max(1, item.span.end_line),
        "endColumn": max(1, item.span.end_col),
    }
    place = {"artifactLocation": {"uri": _uri(filename)}, "region": region}
    return {
        "ruleId": item.code,
        "ruleIndex": rule,
        "level": item.severity.value,
        "message": {"text": message},
        "locations": [{"physicalLocation": place}],
    }


def _uri(filename: str) -> str:
    """A file name as a URI reference (RFC 3986), byte by byte; absolute names with their scheme."""
    safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"
    scheme = "file://" if filename.startswith("/") else ""
    return scheme + "".join(
        chr(byte) if chr(byte) in safe else f"%{byte:02X}"
        for byte in filename.encode("utf-8", "surrogateescape")
    )


def _canonical(document: object) -> str:
    return json.dumps(document, sort_keys=True, ensure_ascii=False, indent=1) + "\n"
