"""Text to syntax tree. All errors of a file in one go: each statement is parsed by itself.

Two ways in: `parse` raises when there is an error; `parse_partial` gives what could be read along
with the diagnostics, for callers that have more to check before they report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any

from tdl import ast, lalr, values
from tdl.bounds import (
    MAX_BRIDGES,
    MAX_ERRORS,
    MAX_EVENTS,
    MAX_EXPECTATIONS,
    MAX_FIGURES,
    MAX_LINKS,
    MAX_REACTIONS,
    MAX_SERVICES,
)
from tdl.building.dynamic import Actions
from tdl.building.reaction_actions import from_the_firing
from tdl.decoding import decode
from tdl.diagnostics import Diagnostic, Severity, Sink, TdlError, sort
from tdl.preprocess.blocks import is_end, is_hunt, is_kept, is_node
from tdl.preprocess.includes import NO_TEXTS, Texts
from tdl.preprocess.translated import Translation
from tdl.preprocess.unroll import NO_PARAMS, UNFINISHED, Preprocessor
from tdl.syntax_errors import explain
from tdl.tokens.lexer import LogicalLine, PlainLink, Token
from tdl.tokens.words import STATEMENTS
from tdl.values import ValueProblem

# After these something was not read, of which nobody knows what it says.
ENDS = UNFINISHED | {"TS0029", "TS0030", "TS0031", "TS0032", "TS0033"}
_OF_NODES = ("SERVICE", "BRIDGE", "BRIDGES", "LAN", "LINK", "PATH")  # what stands in their blocks
_BLOCKS = (ast.When, ast.NodeStatement, ast.Hunt)
_OWN = ("a", "b", "span", "latency_ns")  # of a plain link
_MOST: dict[type, tuple[int, str]] = {
    ast.ServiceStatement: (MAX_SERVICES, "services"),
    ast.Bridges: (MAX_BRIDGES, "bridges"),
    ast.LinkStatement: (MAX_LINKS, "links"),
    ast.Dynamic: (MAX_EVENTS, "events"),
    ast.Expect: (MAX_EXPECTATIONS, "expectations"),
    ast.Figure: (MAX_FIGURES, "figures"),
    ast.When: (MAX_REACTIONS, "reactions (`when`)"),
}


_MOST_KEPT = 1024
_KEPT: dict[tuple[Token, ...], tuple[ast.Statement, ...]] = {}


@dataclass(frozen=True, slots=True)
class Partial:
    """What could be read of a file that may have errors.

    `mentioned` are the words of the statements that had errors: a pass that looks for undeclared
    names should not complain about these. `whole` is false when a limit ended the reading: then
    nothing can be said about what the statements make together, and `file` is empty. `includes` are
    the included texts, by the names that spans have for them; `params` the parameters that the text
    has, with the values that they had; `translations` what files of other tools say.
    """

    file: ast.File
    diagnostics: tuple[Diagnostic, ...]
    failed: bool
    mentioned: frozenset[str]
    whole: bool = True
    includes: Mapping[str, bytes] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    translations: tuple[Translation, ...] = ()


def parse(
    text: str | bytes,
    filename: str = "",  # noqa: ARG001
    texts: Texts = NO_TEXTS,
) -> tuple[ast.File, tuple[Diagnostic, ...]]:
    """The tree of a TDL file, and warnings.

    Raises TdlError with every error (and warning) of the file, sorted by place. `filename` is only
    for the caller's own messages; nothing is read from disk. `texts` has the included files.
    """
    partial = parse_partial(text, texts)
    if partial.failed:
        raise TdlError(partial.diagnostics)
    return partial.file, partial.diagnostics


def parse_partial(
    text: str | bytes, texts: Texts = NO_TEXTS, params: Mapping[str, str] = NO_PARAMS
) -> Partial:
    """As `parse`, but returns the statements that are right beside the errors of the others.

    `params` are the values of parameters that have others than in the text.
    """
    sink = Sink()
    source = decode(text, sink)
    statements: list[ast.Statement] = []
    mentioned: set[str] = set()
    preprocessor = Preprocessor(sink, texts, params)
    # The second is asked when the first has nothing more: then all statements are there.
    lines = chain.from_iterable((preprocessor.lines(source), preprocessor.unsaid(statements)))
    for found in _statements(lines, sink, mentioned):
        statements.extend(found)
    whole = all(found.code not in ENDS for found in sink.found)
    file = ast.File(tuple(statements) if whole else ())
    known = frozenset(mentioned)
    return Partial(
        file,
        sort(sink.found),
        sink.failed,
        known,
        whole,
        preprocessor.includes,
        preprocessor.params,
        tuple(preprocessor.translations),
    )


def _statements(
    lines: Iterable[LogicalLine], sink: Sink, mentioned: set[str]
) -> Iterator[tuple[ast.Statement, ...]]:
    """The statements of every line, loops unrolled.

    Ends where the file has more than there may be, which is reported.
    """
    reader = StatementReader(sink)
    held: ast.When | ast.NodeStatement | ast.Hunt | None = None  # whose block goes on
    body: list[ast.Statement] = []
    for line in lines:
        inside = reader.in_block
        found = reader.read(line)
        if not found and line.tokens:
            for token in line.tokens:
                mentioned.update(_words(token.text))
        if reader.ended:
            break
        if not inside and not reader.in_block:
            yield found
        elif not inside:
            heads = (one for one in found if isinstance(one, _BLOCKS))
            held, body = next(heads, None), []
        elif reader.in_block:
            body += found
        elif held is not None and body:
            yield (replace(held, body=tuple(body)),)  # type: ignore[arg-type]
    report_full(sink)


class StatementReader:
    """Reads lines, one after the other. `ended`: there was no room for what the last one says.
    `in_block`: the next line stands in the block of a `node`, of a `hunt`, or of a `when`, whose
    times count from the firing: 0 is what happens at once."""

    def __init__(self, sink: Sink) -> None:
        self._actions = Actions(sink)
        self._table = lalr.callbacks(self._actions)
        self._room = _Room(sink)
        self._sink = sink
        self.ended = False
        self.in_block = False
        self._links: dict[str, dict[str, Any]] = {}  # of plain ones, what is always the same
        self._lines = 0  # of the block
        self._head: LogicalLine | None = None  # of the block
        self._deeper = 0  # blocks in this one, which are wrong

    def read(self, line: LogicalLine) -> tuple[ast.Statement, ...]:
        """What it says; nothing for a blank line and one with errors, which are reported."""
        found: tuple[ast.Statement, ...] = ()
        if line.plain is not None and not self.in_block:
            found = self._link(line.plain)
        elif line.plain is not None:
            found = self._in_block(LogicalLine(line.plain.tokens()))
        elif self.in_block and line.tokens:
            found = self._in_block(line)
        elif line.tokens:
            self._begin(line)
            found = () if line.broken else self._statement(line)
        self.ended = not all(map(self._room.take, found)) or self._sink.full
        return found

    def _statement(self, line: LogicalLine) -> tuple[ast.Statement, ...]:
        """One of an included text in which nothing was found is kept: whoever compiles a run's text
        again and again has all actions before in it."""
        if not line.tokens[0].file or self._actions.reads_as:
            return _statement(line, self._actions, self._table)
        key = tuple(line.tokens)
        found = _KEPT.get(key)
        if found is None:
            before = len(self._sink.found)
            found = _statement(line, self._actions, self._table)
            if found and len(self._sink.found) == before and not self._actions.reads_as:
                if len(_KEPT) >= _MOST_KEPT:
                    _KEPT.clear()
                _KEPT[key] = found
        return found

    def _link(self, said: PlainLink) -> tuple[ast.Statement, ...]:
        """As the grammar reads it: each but the first differs from that in these words alone."""
        known = self._links.get(said.mark)
        try:
            latency_ns = values.latency(said.latency)
        except ValueProblem:
            known = None
        if known is None:
            before = len(self._sink.found)
            found = _statement(LogicalLine(said.tokens()), self._actions, self._table)
            if len(self._sink.found) == before and isinstance(found[0], ast.LinkStatement):
                link = found[0]
                names = (one.name for one in fields(link) if one.name not in _OWN)
                self._links[said.mark] = {name: getattr(link, name) for name in names}
            return found
        at = said.span
        span = at.over(at.line, at.col, at.line, max(at.end_col, at.col + 1))
        a, b = ast.Name(said.a, span), ast.Name(said.b, span)
        return (ast.LinkStatement(a=a, b=b, span=span, latency_ns=latency_ns, **known),)

    def _begin(self, line: LogicalLine) -> None:
        if is_kept(line):
            self.enter(line)

    def enter(self, head: LogicalLine) -> None:
        """The next line stands in the block with this first line."""
        self.in_block, self._lines, self._head, self._deeper = True, 0, head, 0

    def _in_block(self, line: LogicalLine) -> tuple[ast.Statement, ...]:
        if is_end(line):
            self._end_block()
            return ()
        self._lines += 1
        if self._deeper or not self._may_stand(line):
            self._deeper += is_kept(line)
            return ()
        if line.broken:
            return ()
        if self._is_hunt:
            return self._actions.bounds(line.tokens)
        if self._is_node:
            return _statement(line, self._actions, self._table)
        tokens = from_the_firing(line.tokens, self._sink)
        timed = LogicalLine(tokens, line.comments)
        return _statement(timed, self._actions, self._table) if tokens else ()

    def _end_block(self) -> None:
        if self._deeper:
            self._deeper -= 1
            return
        self.in_block = False
        if self._lines or self._head is None:
            return
        span = self._head.tokens[-1].span
        if self._is_hunt:
            hint = "write what storms are made of between { and }, such as `crash server.*`"
            self._sink.error("TS0340", span, "this hunt has no bounds", hint)
        elif self._is_node:
            hint = 'write its parts between { and }, such as `service app exec="./app"`'
            self._sink.error("TS0622", span, "this machine has no part", hint)
        else:
            hint = "write what happens between { and }, such as `it disconnect for 5s`"
            self._sink.error("TS0330", span, "nothing happens here", hint)

    @property
    def _is_node(self) -> bool:
        return self._head is not None and is_node(self._head)

    @property
    def _is_hunt(self) -> bool:
        return self._head is not None and is_hunt(self._head)

    def _may_stand(self, line: LogicalLine) -> bool:
        """Whether it stands in this block; reported if not. Of a hunt, whose bounds say themselves
        what is wrong with them, blocks do not."""
        first = line.tokens[0]
        if self._is_hunt:
            if not is_kept(line):
                return True
            message = f"'{first.text}' does not stand in the block of a hunt"
            self._sink.error("TS0340", first.span, message, "write it behind the '}'")
            return False
        if self._is_node:
            if first.type in _OF_NODES:
                return True
            message = f"'{first.text}' does not stand in the block of a node"
            hint = "there are services, bridges, lans and links in it; the rest stands behind it"
            self._sink.error("TS0621", first.span, message, hint)
            return False
        if first.type not in STATEMENTS.values() or first.type in ("AT", "FROM"):
            return True
        message = f"'{first.text}' does not stand in the block of a when"
        hint = "there are actions in it, such as `it disconnect for 5s`"
        self._sink.error("TS0330", first.span, message, hint)
        return False


def report_full(sink: Sink) -> None:
    """Says that reading ended because of all the errors, if it did."""
    if sink.full:
        message = "so much is wrong here that the rest of the file is not read"
        hint = f"mend the first of these errors ({MAX_ERRORS:,} are enough)"
        sink.error("TS0032", sort(sink.found)[-1].span, message, hint)


class _Room:
    """How many statements of each kind there may still be."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._left = {kind: most for kind, (most, _) in _MOST.items()}

    def take(self, statement: ast.Statement) -> bool:
        """False, and a report, when there are too many with this one."""
        kind = type(statement)
        if kind not in self._left:
            return True
        names = statement.names if isinstance(statement, ast.Bridges) else ()
        left = self._left[kind] = self._left[kind] - (len(names) or 1)
        if left >= 0:
            return True
        span = names[left].span if names else statement.span
        most, what = _MOST[kind]
        message = f"more than {most:,} {what}; the file is not read any further"
        self._sink.error("TS0031", span, message, "an experiment cannot hold so many")
        return False


def _words(text: str) -> set[str]:
    """The names that a token may stand for: `a-b` may have been meant as `a--b`."""
    parts = text.partition(".")[0].split("-")
    if len(parts) > 8:
        return {text}
    count = len(parts) + 1
    return {"-".join(parts[i:j]) for i in range(count) for j in range(i + 1, count)} - {""}


def _statement(
    line: LogicalLine, actions: Actions, table: lalr.Callbacks
) -> tuple[ast.Statement, ...]:
    actions.tokens = line.tokens
    errors, before = actions.errors, len(actions.sink.found)
    try:
        found: tuple[ast.Statement, ...] = lalr.run(line.tokens, table)
    except lalr.UnexpectedTokenError as stop:
        # Warnings about the part that was read would only distract from the error.
        found_so_far = actions.sink.found
        found_so_far[before:] = [d for d in found_so_far[before:] if d.severity is Severity.ERROR]
        said = explain(line.tokens, stop.index, stop.expected)
        actions.sink.error(said.code, said.span, said.message, said.hint)
        return ()
    return found if actions.errors == errors else ()
