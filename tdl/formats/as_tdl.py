"""A translation as the text of a TDL file, in canonical form where a statement has one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tdl.formatter import wrap
from tdl.preprocess.translated import Line, Translation
from tdl.text_layout import format_text


def text(found: Translation) -> str:
    """All of it: what holds where a text says nothing is said."""
    blocks: tuple[Iterable[Line], ...] = (
        found.settings[:1],
        found.services.values(),
        found.lines,
        found.networks.values(),
        (one.line for one in found.attachments),
    )
    written = ("".join(map(_statement, block)) for block in blocks)
    return format_text("\n".join(block for block in written if block))


def _statement(line: Line) -> str:
    return "\n".join(wrap(list(_words(line)))) + "\n"


def _words(line: Line) -> Iterator[str]:
    """The words of the statement; what a list has after a `;` belongs to the word before."""
    word = ""
    for piece in line:
        if word and not piece.text.startswith(";"):
            yield word
            word = ""
        word += piece.text
    yield word
