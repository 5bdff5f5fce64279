"""Files of variables: `.env`, and those of `env_file`. NAME=value on each line.

Values in single quotes are as they are; in double quotes a backslash and n, t or r stand for a
line feed, a tab, a return. What is in quotes may have several lines. Others end at a blank with #
behind it. With `format: raw` all behind = is the value. Source: docker's page on the syntax of env
files, and what its reader makes of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tdl.ast import Span
from tdl.diagnostics import Sink

_NAME = re.compile(
    r"[^\S\n]*(?:export[^\S\n]+)?([A-Za-z_][A-Za-z0-9_.-]*)[^\S\n]*(=[^\S\n]*|$)",
    re.ASCII | re.MULTILINE,
)
_QUOTED = re.compile(r"(?P<quote>[\"'])(?P<inner>(?:(?!(?P=quote)|\\).|\\.)*)(?P=quote)", re.DOTALL)
_REST = re.compile(r".*")
_NOTHING = re.compile(r"\s*(?:#.*)?")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$$"}
Expand = Callable[[str, Span], str]


Variables = dict[str, tuple[Span, str | None]]


def read_into(found: Variables, data: bytes, file: str, expand: Expand, sink: Sink) -> None:
    """By name, the place and the value; None of a name alone, which is to be had elsewhere. One
    after the other, so that `expand` can look at what stands before."""
    text = re.sub("\r\n?", "\n", data.decode("utf-8", "replace").removeprefix("\ufeff"))
    at = number = 0
    while at < len(text):
        number += 1
        line = _at(_REST, text, at)[0]
        span = Span(number, 1, number, max(2, len(line) + 1), file)
        name = _NAME.match(text, at)
        quoted = _QUOTED.match(text, name.end()) if name else None
        if _NOTHING.fullmatch(line):
            pass
        elif name is None:
            sink.error("TS0504", span, "this is not NAME=value", "one variable a line")
        elif quoted:
            found[name[1]] = (span, _unquoted(quoted, span, expand))
            number += quoted[0].count("\n")
            at = quoted.end()
            line = _at(_REST, text, at)[0]
            if not _NOTHING.fullmatch(line):
                message = f"'{line.strip()[:40]}' stands behind the quote that ends {name[1]}"
                end = Span(number, 1, number, 2, file)
                sink.error("TS0504", end, message, f"{name[1]} begins in line {span.line}")
        elif text[name.end() : name.end() + 1] in ('"', "'"):
            sink.error("TS0504", span, "the quote is never closed", "close it, or leave it out")
            return  # all that follows would be its
        elif name[2]:
            value, _, _ = line[name.end() - at :].partition(" #")
            found[name[1]] = (span, expand(value.rstrip(), span))
        else:
            found[name[1]] = (span, None)
        at += len(line) + 1


def read_raw(found: Variables, data: bytes, file: str, sink: Sink) -> None:
    """The same of a file in which nothing stands for anything else."""
    lines = data.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    for number, whole in enumerate(lines, 1):
        line = whole.removesuffix("\r").lstrip()
        if not line or line.startswith("#"):
            continue
        span = Span(number, 1, number, max(2, len(whole) + 1), file)
        name, sign, value = line.partition("=")
        if name and not re.search(r"\s", name):
            found[name] = (span, value if sign else None)
        else:
            sink.error("TS0504", span, "this is not NAME=value", "one variable a line")


def _at(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    match = pattern.match(text, at)
    assert match is not None  # it matches nothing, too
    return match


def _unquoted(quoted: re.Match[str], span: Span, expand: Expand) -> str:
    inner = quoted["inner"]
    if quoted["quote"] == "'":
        return inner.replace("\\'", "'")
    return expand(re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[0]), inner), span)
