"""Files of variables: `.env`, and those of `env_file`. NAME=value on each line.

Values in single quotes are as they are; in double quotes a backslash and n, t or r stand for a
line feed, a tab, a return; others end at ` #`. Source: docker's page on the syntax of env files.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tdl.ast import Span
from tdl.diagnostics import Sink

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*(?:=\s*(.*))?", re.ASCII)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$$"}
Expand = Callable[[str, Span], str]


Variables = dict[str, tuple[Span, str | None]]


def read(data: bytes, file: str, expand: Expand, sink: Sink) -> Variables:
    """By name, the place and the value; None of a name alone, which is to be had elsewhere."""
    found: Variables = {}
    read_into(found, data, file, expand, sink)
    return found


def read_into(found: Variables, data: bytes, file: str, expand: Expand, sink: Sink) -> None:
    """The same, line by line, so that `expand` can look at what stands before."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        span = Span(number, 1, number, max(2, len(line) + 1), file)
        match = _LINE.fullmatch(line)
        if match is None:
            sink.error("TS0504", span, "this is not NAME=value", "one variable a line")
            continue
        value = match[2]
        found[match[1]] = (span, None if value is None else _value(value.strip(), span, expand))


def _value(text: str, span: Span, expand: Expand) -> str:
    quote = text[:1]
    end = _end(text) if quote in ("'", '"') else 0
    if not end:
        return expand(re.split(r"\s#", text)[0].rstrip(), span)
    inner = text[1:end]
    if quote == "'":
        return inner
    known = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), inner)
    return expand(known, span)


def _end(text: str) -> int:
    """Where the quote that the text begins with is closed; 0: it is not."""
    at = 1
    while at < len(text):
        if text[at] == "\\" and text[0] == '"':
            at += 1
        elif text[at] == text[0]:
            return at
        at += 1
    return 0
