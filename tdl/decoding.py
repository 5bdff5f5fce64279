"""Bytes to the text of a TDL file, or why they are none."""

from __future__ import annotations

import re

from tdl.ast import Span
from tdl.bounds import MAX_FILE_BYTES
from tdl.diagnostics import Sink
from tdl.tokens.lexer import source_lines

_SAMPLE = 65_536  # bytes of a file that tell whether it is text
_STRAY = 8  # control characters that a text may have by mistake
_BLANK = re.compile(r"(?:[ \t]*(?:#[^\n\r]*)?(?:\r\n?|\n))*")
# What other files begin with, and TDL does not: the kind, and a pattern.
_KINDS = (
    ("an XML", re.compile(r"\s*<[A-Za-z!?]")),
    ("a JSON", re.compile(r"\s*(?:\{\s*(?:\"|\})|\[\s*[\[{\"])")),
    ("a YAML", re.compile(r"---(?:\s|$)|%YAML\b|(?:- +)?[\w./-]+ *:(?:[ \t]|[\r\n]|$)")),
    ("a TOML or INI", re.compile(r"\[\[?[\w. \"'-]+\]\]?[ \t]*(?:#|[\r\n]|$)")),
    (
        "a TOML or INI",
        re.compile(r"[\w.-]+ *= *[^\r\n]*(?:\r\n?|\n)(?s:.*)^\[[\w.-]+\][ \t]*$", re.MULTILINE),
    ),
)
_ODD = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def decode(text: str | bytes, sink: Sink, file: str = "") -> str:
    """Bytes as UTF-8; what is not UTF-8 is reported and replaced by a question mark.

    What is no text at all, or too much, is reported and becomes an empty text. `file` is what spans
    call it.
    """
    start = Span(1, 1, 1, 2, file)
    problem = _not_text(text)
    if problem is not None:
        sink.error("TS0029", start, "this is not a text file", problem)
        return ""
    if len(text) > MAX_FILE_BYTES:
        message = f"the file has more than {MAX_FILE_BYTES >> 20} MiB"
        sink.error("TS0030", start, message, "an experiment cannot hold so much")
        return ""
    read = text if isinstance(text, str) else _utf8(text, sink, file)
    kind, line = _other_kind(read)
    if kind:
        message = f"this is {kind} file, and not TDL"
        hint = "write what it says as service, bridge and link; docs/language-tour.md shows how"
        if kind == "a YAML":
            hint = 'a Compose file is read by its name: include "docker-compose.yml"'
        sink.error("TS0033", Span(line, 1, line, 2, file), message, hint)
        return ""
    return read


def _not_text(text: str | bytes) -> str | None:
    """Why it is no text, if it is none: a hint."""
    if isinstance(text, bytes) and text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "it looks like UTF-16: save it as UTF-8"
    zero = "\0" in text if isinstance(text, str) else b"\0" in text
    sample = text[:_SAMPLE]
    raw = sample if isinstance(sample, bytes) else sample.encode("utf-8", "replace")
    odd = len(_ODD.findall(raw))
    if zero or (odd > _STRAY and odd * 10 > len(raw)):
        return "a TDL file is UTF-8 text; this looks like a program, an archive or an image"
    return None


def _other_kind(text: str) -> tuple[str, int]:
    """What sort of file it is that is no TDL, by its first line that says something, and which line
    that is. The sort is empty for all that may be TDL."""
    start = text[:_SAMPLE].removeprefix("\ufeff")
    blank = _BLANK.match(start)
    first = blank.end() if blank else 0
    kind = next((kind for kind, pattern in _KINDS if pattern.match(start, first)), "")
    return kind, len(source_lines(start[:first]))


def _utf8(text: bytes, sink: Sink, file: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as problem:
        before = source_lines(text[: problem.start])
        line, col = len(before), len(before[-1]) + 1
        byte = text[problem.start]
        message = f"byte 0x{byte:02x} is not UTF-8"
        sink.error(
            "TS0001", Span(line, col, line, col + 1, file), message, "save the file as UTF-8"
        )
        return text.decode("utf-8", "replace").replace("\ufffd", "?")
