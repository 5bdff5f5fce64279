"""`tstorm fmt`: a file in canonical form, line by line, with its comments and single blank lines.

A statement is printed from its tree (tdl/formatter.py), a long one broken with backslashes. The
lines of let, param, for and include have one spelling, too; what stands in a loop is indented, and
the bounds of a hunt have a line each. A
statement with a variable or a range of names has no tree before these are replaced: it stays as
written.
"""

from __future__ import annotations

from collections.abc import Iterable

from tdl import ast
from tdl.decoding import decode
from tdl.diagnostics import Sink, TdlError, sort
from tdl.formatter import WIDTH, format_statement, words_of, wrap
from tdl.parser import StatementReader, report_full
from tdl.preprocess import heads
from tdl.preprocess.blocks import Item, LoopBlock, blocks, is_kept
from tdl.preprocess.variables import VARIABLE, named
from tdl.tokens.lexer import LogicalLine, Token, logical_lines, source_lines
from tdl.tokens.words import RUN_VARIABLES

_INDENT = "    "


def format_text(text: str | bytes) -> str:
    """The canonical form of a file. Raises TdlError, with all errors, if it does not parse."""
    sink = Sink()
    source = decode(text, sink)
    out = _Layout(source, sink).lines()
    if sink.failed:
        raise TdlError(sort(sink.found))
    while out and not out[-1]:
        out.pop()
    return "".join(line + "\n" for line in out)


class _Layout:
    def __init__(self, source: str, sink: Sink) -> None:
        self._sink = sink
        self._source = source
        self._physical = source_lines(source)
        self._defined, self._includes = _defined(source)
        self._reader = StatementReader(sink)
        self._out: list[str] = []

    def lines(self) -> list[str]:
        self._items(blocks(logical_lines(self._source, self._sink), self._sink), "")
        report_full(self._sink)
        return self._out

    def _items(self, items: Iterable[Item], indent: str) -> None:
        for item in items:
            if isinstance(item, LoopBlock) and is_kept(item.head):
                self._kept(item, indent)
            elif isinstance(item, LoopBlock):
                heads.loop(item.head, self._sink)
                self._put(item.head, [_spaced(item.head.tokens)], indent)
                self._items(item.body, indent + _INDENT)
                if item.end is not None:
                    self._put(item.end, ["}"], indent)
            elif item.tokens or item.comments:
                self._put(item, self._body(item, len(indent)), indent)
            elif self._out and self._out[-1]:
                self._out.append("")
            if self._reader.ended:
                return

    def _kept(self, block: LoopBlock, indent: str) -> None:
        self._put(block.head, self._body(block.head, len(indent)), indent)
        self._reader.enter(block.head)  # also where it has a variable, and is not read
        self._items(block.body, indent + _INDENT)
        self._reader.in_block = False
        if block.end is not None:
            self._put(block.end, ["}"], indent)

    def _put(self, line: LogicalLine, body: list[str], indent: str) -> None:
        """One logical line: comments that had a line to themselves, then the statement.

        The last comment stays behind the statement if it stood behind its last physical line.
        """
        comments = list(line.comments)
        if line.tokens and self._is_raw(line) and len(body) > 1:  # they have their own place there
            first, last = line.tokens[0].line, line.tokens[-1].line
            comments = [one for one in comments if not first <= one.line < last]
        last_line = line.tokens[-1].line if line.tokens else 0
        if body and comments and comments[-1].line == last_line and not comments[-1].alone:
            body = [*body[:-1], body[-1] + "  " + comments.pop().text]
        texts = (*(one.text for one in comments), *body)
        self._out += [(indent + text).rstrip() for text in texts]

    def _body(self, line: LogicalLine, taken: int) -> list[str]:
        """The text of a line without its comments."""
        if not line.tokens or line.broken:
            return []
        kind = line.tokens[0].type
        if kind in ("LET", "PARAM"):
            said = heads.let(line, self._sink)
            word = line.tokens[0].text
            return [f"{word} {said.name.text} = {said.value.text}"] if said else []
        if kind == "INCLUDE":
            files = heads.include(line, self._sink)
            if not files:
                return []
            if line.tokens[0].text == "matrix":
                return [f"matrix {_quoted(files[0].text)} {files[1].text}"]
            return [" ".join(("include", *(_quoted(file.text) for file in files)))]
        if self._is_raw(line):
            return self._raw(line)
        inside = self._reader.in_block
        statements = self._reader.read(line)
        if statements and isinstance(statements[0], ast.HuntBound):
            return list(map(format_statement, statements))  # a line each
        words = words_of(statements, from_the_firing=inside) if statements else []
        return wrap(words, WIDTH - taken) if words else []

    def _is_raw(self, line: LogicalLine) -> bool:
        """Whether a statement has something that is replaced before it is read."""
        return any(map(self._is_replaced, line.tokens))

    def _is_replaced(self, token: Token) -> bool:
        if token.type == "MIXED":
            return True
        if "$" not in token.text or token.type not in ("STRING", "WORD", "ENVITEM"):
            return False
        names = [name for match in VARIABLE.finditer(token.text) for name in named(match)]
        if token.type == "STRING":
            foreign = self._includes and not all(one.startswith(RUN_VARIABLES) for one in names)
            return "\\$" in token.text or foreign or not self._defined.isdisjoint(names)
        return any(not name.startswith(RUN_VARIABLES) for name in names)

    def _raw(self, line: LogicalLine) -> list[str]:
        """The statement as it is written, but for the space before its lines and behind them."""
        first, last = line.tokens[0], line.tokens[-1]
        rows = self._physical[first.line - 1 : last.line]
        rows[-1] = rows[-1][: last.end_col - 1]
        rows[0] = rows[0][first.col - 1 :]
        more = (_INDENT + row.strip() for row in rows[1:])
        return [row.rstrip() for row in (rows[0].strip(), *more)]


def _defined(source: str) -> tuple[frozenset[str], bool]:
    """The variables that a text defines anywhere, and whether it may have others by an include."""
    if "$" not in source:
        return frozenset(), False
    names = set()
    includes = False
    for line in logical_lines(source, Sink()):
        if len(line.tokens) > 1 and line.tokens[0].type in ("LET", "PARAM"):
            names.add(line.tokens[1].text.rstrip("= \t\u00a0"))
        elif line.tokens and line.tokens[0].type == "FOR":
            names.update(token.text for token in line.tokens if token.type == "NAME")
        includes = includes or bool(line.tokens and line.tokens[0].type == "INCLUDE")
    return frozenset(names), includes


def _spaced(tokens: Iterable[Token]) -> str:
    """With a blank between two of them, but none around a `;`, which strings may have, too."""
    text, apart = "", ""
    for token in tokens:
        is_semi = token.type == "SEMI"
        text += token.text if is_semi else apart + token.text
        apart = "" if is_semi else " "
    return text


def _quoted(name: str) -> str:
    return name if name[0] in "\"'“‘" else f'"{name}"'
