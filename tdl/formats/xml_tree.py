"""XML to elements in which each attribute has its place, within bounds of time and memory.

Input: the bytes of a file. Output: its root element. Entities and document types are refused: no
file of a topology needs them, and they can stand for anything. Source: XML 1.0, by expat.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats.attributes import Attribute, Attributes
from tdl.formats.bad_file import BadFileError

MAX_BYTES = 16 << 20
MAX_NESTING = 64
MAX_ELEMENTS = 200_000
_ATTRIBUTE = re.compile(r"([^\s=/>\"']+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


@dataclass(slots=True)
class XmlElement:
    """`name` without its namespace; `text` is what stands directly in it."""

    name: str
    span: Span
    attributes: Attributes
    children: list[XmlElement] = field(default_factory=list)
    text: str = ""

    def get(self, name: str) -> Attribute | None:
        return self.attributes.get(name)


def read(data: bytes, file: str, sink: Sink) -> XmlElement | None:
    """The root of a document; None after a report."""
    try:
        return _Reader(data, file).root()
    except BadFileError as bad:
        sink.error(*bad.problem)
    return None


class _Reader:
    def __init__(self, data: bytes, file: str) -> None:
        self._data, self._file = data, file
        if len(data) > MAX_BYTES:
            message = f"the file has more than {MAX_BYTES >> 20} MiB"
            raise BadFileError("TS0506", Span(1, 1, 1, 2, file), message)
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._open: list[XmlElement] = []
        self._root: XmlElement | None = None
        self._count = 0

    def root(self) -> XmlElement:
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            said = expat.errors.messages.get(error.code, str(error))
            span = Span(error.lineno, error.offset + 1, error.lineno, error.offset + 2, self._file)
            raise BadFileError("TS0508", span, f"this is not XML: {said}") from None
        except ValueError as error:  # an encoding that it does not have
            span = Span(1, 1, 1, 2, self._file)
            raise BadFileError("TS0508", span, f"this is not XML: {error}") from None
        assert self._root is not None
        return self._root

    def _here(self, width: int = 1) -> Span:
        line, col = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        return Span(line, col, line, col + width, self._file)

    def _refuse(self, *_: object) -> None:
        hint = "take the document type out: a topology needs none"
        raise BadFileError("TS0506", self._here(), "document types and entities are not read", hint)

    def _start(self, name: str, found: dict[str, str]) -> None:
        self._count += 1
        name = name.rpartition(" ")[2]
        span = self._here(len(name) + 1)
        if len(self._open) >= MAX_NESTING:
            raise BadFileError("TS0506", span, f"more than {MAX_NESTING} elements in one another")
        if self._count > MAX_ELEMENTS:
            raise BadFileError("TS0506", span, f"more than {MAX_ELEMENTS:,} elements")
        element = XmlElement(name, span, self._attributes(found, span))
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, _name: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].text += text

    def _attributes(self, found: dict[str, str], span: Span) -> Attributes:
        """With their places, which the parser does not tell: they are looked for in the tag."""
        if not found:
            return {}
        start = self._parser.CurrentByteIndex
        tag = self._data[start : start + 16384].decode("utf-8", "replace")
        places: dict[str, Span] = {}
        line, last = span.line, 0
        line_start = 1 - span.col  # where the line of the tag began, seen from the tag
        for one in _ATTRIBUTE.finditer(tag):
            line += tag.count("\n", last, one.start())
            newline = tag.rfind("\n", 0, one.start())
            before = newline + 1 if newline >= 0 else line_start
            col = one.start() - before + 1
            places.setdefault(
                one[1].rpartition(":")[2],
                Span(line, col, line, col + len(one[0].split("\n")[0]), self._file),
            )
            last = one.start()
            if len(places) == len(found):
                break
        attributes: Attributes = {}
        for name, value in found.items():
            short = name.rpartition(" ")[2]
            attributes[short] = Attribute(value, places.get(short, span))
        return attributes
