"""Carries out let, param, for, include and ranges of names: lines in, what they stand for out.

Input: a text, and values for its parameters. Output: logical lines without `let`, `param`, `for`,
`include` and variables, each token with the place of what was written, and in a loop with the round
as a note. A parameter has the value that was given for it, else the one in its line. A line in
which something is wrong is reported and comes out broken. A loop is refused before its first round
if all loops together have more rounds than an experiment can have statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tdl import ast
from tdl.bounds import MAX_DEPTH, MAX_PARAM, MAX_PARAMS, MAX_ROUNDS
from tdl.diagnostics import Sink
from tdl.lexer import LogicalLine, Token, logical_lines
from tdl.preprocess import heads, variables
from tdl.preprocess.blocks import Item, Loop, blocks
from tdl.preprocess.includes import NO_TEXTS, Includes, Texts
from tdl.preprocess.variables import Scope

NO_PARAMS: Mapping[str, str] = {}
UNFINISHED = frozenset(
    {
        *("TS0140", "TS0141", "TS0142", "TS0143", "TS0144", "TS0145", "TS0146", "TS0147"),
        *("TS0150", "TS0151", "TS0152", "TS0153", "TS0155", "TS0156"),
    }
)  # after these statements are missing that the text may have
_STRING_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", '\\"': '"', "\\'": "'", "\\$": "$"}


class Preprocessor:
    """Of one file and those that it includes, with the variables that are defined so far."""

    def __init__(
        self, sink: Sink, texts: Texts = NO_TEXTS, params: Mapping[str, str] = NO_PARAMS
    ) -> None:
        self._sink = sink
        self._included = Includes(texts, sink)
        self._given = params
        self.params: dict[str, str] = {}  # that the text has so far, and their values
        self._rounds = 0
        self._stopped = False

    @property
    def includes(self) -> Mapping[str, bytes]:
        """The included texts so far, by the names that spans have for them."""
        return self._included.read

    def lines(self, source: str) -> Iterator[LogicalLine]:
        yield from self._run(blocks(logical_lines(source, self._sink), self._sink), Scope(), "", 0)

    def _run(
        self, items: Iterable[Item], scope: Scope, note: str, depth: int
    ) -> Iterator[LogicalLine]:
        for item in items:
            if self._stopped or self._sink.full:
                return
            if isinstance(item, Loop):
                yield from self._loop(item, scope, note, depth)
            elif item.tokens and item.tokens[0].type in ("LET", "PARAM"):
                if not item.broken:
                    self._let(_noted(item.tokens, note), scope, depth)
            elif item.tokens and item.tokens[0].type == "INCLUDE":
                if not item.broken:
                    yield from self._include(_noted(item.tokens, note), scope, note, depth)
            else:
                yield self._line(item, scope, note)

    def _line(self, line: LogicalLine, scope: Scope, note: str) -> LogicalLine:
        tokens = line.tokens
        if line.broken or not (note or any(map(_has_variable, tokens))):
            return line
        sink = Sink() if self._included.failed else self._sink
        found = variables.substituted(_noted(tokens, note), scope, sink)
        if sink is not self._sink:  # what a file that cannot be read defines is not known
            for problem in sink.found:
                if problem.code != "TS0141":
                    self._sink.error(problem.code, problem.span, problem.message, problem.hint)
        return LogicalLine(tokens if found is None else found, line.comments, found is None)

    # --- include ---

    def _include(
        self, tokens: list[Token], scope: Scope, note: str, depth: int
    ) -> Iterator[LogicalLine]:
        """The lines of a file, as if they stood here."""
        said = heads.include(LogicalLine(tokens), self._sink)
        if said is None:
            return
        name = self._value(said, scope)
        found = None if name is None else self._included.enter(name, said)
        if found is None:
            return
        file, source = found
        lines = logical_lines(source, self._sink, file)
        yield from self._run(blocks(lines, self._sink), scope, note, depth)
        self._included.leave()

    def _value(self, token: Token, scope: Scope) -> str | None:
        """What a STRING or a WORD means."""
        if token.type == "WORD":
            return variables.bare(token, scope, self._sink)
        return _meaning(variables.text(token, scope).text)

    # --- let and param ---

    def _let(self, tokens: list[Token], scope: Scope, depth: int) -> None:
        said = heads.let(LogicalLine(tokens), self._sink)
        if said is None:
            return
        value = self._value(said.value, scope)
        if not self._is_new(said.name, scope) or value is None:
            return
        name = said.name.text
        if tokens[0].type == "PARAM":
            if not self._may_be_param(said.name, depth):
                return
            value = self._given.get(name, value)
            if len(value) > MAX_PARAM:
                message = f"the value of '{name}' has more than {MAX_PARAM:,} characters"
                self._sink.error("TS0156", said.name.span, message)
                return
            self.params[name] = value
        scope.values[name] = value
        scope.places[name] = said.name.span.place

    def _may_be_param(self, name: Token, depth: int) -> bool:
        if depth:
            hint = "put the line before the loop"
            self._sink.error("TS0155", name.span, "a param in a loop has no one value", hint)
        elif len(self.params) >= MAX_PARAMS:
            message = f"more than {MAX_PARAMS:,} params"
            self._sink.error("TS0156", name.span, message, "define others with let")
        else:
            return True
        return False

    def _is_new(self, name: Token, scope: Scope) -> bool:
        other = scope.find(name.text)
        if other is None:
            return True
        message = f"'{name.text}' is defined already, on {ast.said(other.places[name.text])}"
        self._sink.error("TS0142", name.span, message, "give one of them another name")
        return False

    # --- for ---

    def _loop(self, loop: Loop, scope: Scope, note: str, depth: int) -> Iterator[LogicalLine]:
        head = LogicalLine(_noted(loop.head.tokens, note))
        said = None if loop.head.broken else self._head(head, scope, depth)
        if said is None:
            yield from _unread(loop)
            return
        name, bounds = said
        if not self._affordable(loop, len(bounds), head.tokens):
            self._stopped = True
            return
        before = f"{note}, " if note else ""
        for number in bounds:
            self._rounds += 1
            inner = Scope({name.text: str(number)}, {name.text: name.span.place}, scope)
            yield from self._run(loop.body, inner, f"{before}${name.text} = {number}", depth + 1)
            if self._stopped:
                return

    def _head(self, head: LogicalLine, scope: Scope, depth: int) -> tuple[Token, range] | None:
        tokens = [_range(token, scope, self._sink) for token in head.tokens]
        read = [token for token in tokens if token is not None]
        if len(read) < len(tokens):
            return None
        said = heads.loop(LogicalLine(read), self._sink)
        if said is None or not self._is_new(said.name, scope):
            return None
        if depth >= MAX_DEPTH:
            message = f"more than {MAX_DEPTH} loops in one another"
            self._sink.error("TS0145", said.name.span, message)
            return None
        bounds = variables.numbers(said.first, said.last, said.bounds, self._sink)
        return None if bounds is None else (said.name, bounds)

    def _affordable(self, loop: Loop, count: int, tokens: list[Token]) -> bool:
        total = self._rounds + count * (1 + sum(map(_least_rounds, loop.body)))
        if total <= MAX_ROUNDS:
            return True
        message = f"loops of {total:,} rounds; the file is not read any further"
        hint = f"an experiment has at most {MAX_ROUNDS:,} statements"
        self._sink.error("TS0145", tokens[-2].span, message, hint)
        return False


def _least_rounds(item: Item) -> int:
    """The rounds of a loop and those in it, as far as they can be told without variables."""
    if not isinstance(item, Loop):
        return 0
    said = None if item.head.broken else heads.loop(item.head, Sink())
    if said is None or not (said.first.isdecimal() and said.last.isdecimal()):
        return 1
    if max(len(said.first), len(said.last)) > variables.MAX_DIGITS:
        return 1
    count = max(0, int(said.last) - int(said.first) + 1)
    return count * (1 + sum(map(_least_rounds, item.body)))


def _unread(loop: Loop) -> Iterator[LogicalLine]:
    """The lines of a loop that cannot be read, for the names in them only."""
    for item in loop.body:
        if isinstance(item, Loop):
            yield from _unread(item)
        else:
            yield LogicalLine(item.tokens, item.comments, True)


def _range(token: Token, scope: Scope, sink: Sink) -> Token | None:
    """A word of the head of a loop with the values in it."""
    if token.type != "MIXED":
        return token
    new = variables.bare(token, scope, sink)
    width = token.end_col - token.col
    return None if new is None else token._replace(type="VALUE", text=new, width=width)


def _noted(tokens: list[Token], note: str) -> list[Token]:
    return [token._replace(note=note) for token in tokens] if note else tokens


def _has_variable(token: Token) -> bool:
    return token.type == "MIXED" or "$" in token.text


def _meaning(string: str) -> str:
    """What a STRING means; an escape that there is not stays as it is."""
    inner = string[1:-1]
    if string[0] in "“‘":
        return inner
    return variables.ESCAPE.sub(lambda match: _STRING_ESCAPES.get(match[0], match[0]), inner)
