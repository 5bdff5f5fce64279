"""Carries out let, param, for, include and ranges of names: lines in, what they stand for out.

Input: a text, and values for its parameters. Output: logical lines without `let`, `param`, `for`,
`include` and variables, each token with the place of what was written, and in a loop with the round
as a note. A parameter has the value that was given for it, else the one in its line. A line in
which something is wrong is reported and comes out broken. A loop is refused before its first round
if all loops together have more rounds than an experiment can have statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, combinations, takewhile
from math import comb

from tdl import ast
from tdl.bounds import MAX_DEPTH, MAX_PARAM, MAX_PARAMS, MAX_ROUNDS
from tdl.diagnostics import Sink
from tdl.preprocess import heads, translated, variables
from tdl.preprocess.arithmetic import MAX_DIGITS
from tdl.preprocess.blocks import Item, LoopBlock, blocks, is_kept
from tdl.preprocess.includes import NO_TEXTS, Includes, Texts
from tdl.preprocess.variables import Scope
from tdl.tokens.lexer import LogicalLine, Token, logical_lines

NO_PARAMS: Mapping[str, str] = {}
UNFINISHED = frozenset(
    {
        *("TS0140", "TS0141", "TS0142", "TS0143", "TS0144", "TS0145", "TS0146", "TS0147", "TS0148"),
        *("TS0150", "TS0151", "TS0152", "TS0153", "TS0155", "TS0156", "TS0157"),
    }
)  # after these statements are missing that the text may have
_STRING_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", '\\"': '"', "\\'": "'", "\\$": "$"}


_SMALL = 4096  # characters


@lru_cache(512)
def _kept_lines(source: str, file: str) -> tuple[LogicalLine, ...] | None:
    """Of an included text in which nothing is wrong: whoever compiles a run's text again and again
    has all actions before in it. None for any other."""
    sink = Sink()
    found = tuple(logical_lines(source, sink, file))
    return None if sink.found else found


class Preprocessor:
    """Of one file and those that it includes, with the variables that are defined so far."""

    def __init__(
        self, sink: Sink, texts: Texts = NO_TEXTS, params: Mapping[str, str] = NO_PARAMS
    ) -> None:
        self._sink = sink
        self._included = Includes(texts, sink)
        self._given = params
        self.params: dict[str, str] = {}  # that the text has so far, and their values
        self.translations: list[translated.Translation] = []
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
            if self._stopped or self._sink.full or self._included.stopped:
                return
            if isinstance(item, LoopBlock) and is_kept(item.head):
                yield from self._kept(item, scope, note, depth)
            elif isinstance(item, LoopBlock):
                yield from self._loop(item, scope, note, depth)
            elif item.tokens and item.tokens[0].type in ("LET", "PARAM"):
                if not item.broken:
                    self._let(_noted(item.tokens, note), scope, depth)
            elif item.tokens and item.tokens[0].type == "INCLUDE":
                if not item.broken:
                    yield from self._include(_noted(item.tokens, note), scope, note, depth)
            else:
                yield self._line(item, scope, note)

    def _kept(self, block: LoopBlock, scope: Scope, note: str, depth: int) -> Iterator[LogicalLine]:
        """All of its lines, with what its own loops and variables stand for."""
        yield self._line(block.head, scope, note)
        yield from self._run(block.body, Scope({}, {}, scope), note, depth + 1)
        if block.end is not None:
            yield block.end

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
        is_matrix = tokens[0].text == "matrix"
        words = [said.pop().text] if is_matrix else []
        names = [self._value(token, scope) for token in said]
        known = [name for name in names if name is not None]
        if len(known) < len(names):
            return
        if is_matrix or heads.is_foreign(said[0]):
            yield from self._translated(known, said, words, scope, note)
            return
        found = self._included.enter(known[0], said[0])
        if found is None:
            return
        file, source = found
        kept = _kept_lines(source, file) if len(source) <= _SMALL else None
        lines = logical_lines(source, self._sink, file) if kept is None else iter(kept)
        yield from self._run(blocks(lines, self._sink), scope, note, depth)
        self._included.leave()

    def _translated(
        self, names: list[str], said: list[Token], words: list[str], scope: Scope, note: str
    ) -> Iterator[LogicalLine]:
        """The statements of files of another tool. Their variables are parameters, too."""

        def variable(name: str) -> str | None:
            known = scope.get(name)
            return self._given.get(name) if known is None else known

        found = self._included.translate(names, said, variable, words)
        if found is None:
            return
        for name, value in found.values.items():
            if scope.get(name) is None and self._may_be_value(name, value, said[0]):
                self.params[name] = value
        self.translations.append(found)
        yield from translated.tokens(found.lines, self._sink, note)

    def unsaid(self, statements: Sequence[ast.Statement]) -> Iterator[LogicalLine]:
        """What files of another tool say where these statements, which are all, say nothing."""
        yield from translated.unsaid(self.translations, statements, self._sink)

    def _may_be_value(self, name: str, value: str, place: Token) -> bool:
        """Whether a variable of another tool's file can be a parameter."""
        if len(self.params) < MAX_PARAMS and len(value) <= MAX_PARAM:
            return True
        message = f"more than {MAX_PARAMS:,} variables have values"
        if len(value) > MAX_PARAM:
            message = f"the value of '{name}' has more than {MAX_PARAM:,} characters"
        self._sink.error("TS0156", place.span, message, "write them where they are used")
        return False

    def _value(self, token: Token, scope: Scope) -> str | None:
        """What a STRING or a WORD means."""
        if token.type == "WORD":
            return variables.bare(token, scope, self._sink)
        text = variables.text(token, scope, self._sink)
        return None if text is None else _meaning(text.text)

    # --- let and param ---

    def _let(self, tokens: list[Token], scope: Scope, depth: int) -> None:
        said = heads.let(LogicalLine(tokens), self._sink)
        if said is None:
            return
        value = self._value(said.value, scope)
        if value is None and variables.too_long(said.value, scope):
            value = ""  # reported; those that use it are right
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

    def _loop(self, loop: LoopBlock, scope: Scope, note: str, depth: int) -> Iterator[LogicalLine]:
        head = LogicalLine(_noted(loop.head.tokens, note))
        said = None if loop.head.broken else self._head(head, scope, depth)
        values = None if said is None else self._values(said)
        if said is None or values is None:
            yield from _unread(loop)
            return
        if not self._affordable(loop, comb(sum(map(len, values)), len(said.names)), said):
            self._stopped = True
            return
        names = [name.text for name in said.names]
        places = {name.text: name.span.place for name in said.names}
        before = f"{note}, " if note else ""
        every = map(str, chain.from_iterable(values))
        for chosen in combinations(every, len(names)) if names[1:] else zip(every, strict=True):
            self._rounds += 1
            known = dict(zip(names, chosen, strict=True))
            here = ", ".join(f"${name} = {value}" for name, value in known.items())
            inner = Scope(known, places, scope)
            yield from self._run(loop.body, inner, before + here, depth + 1)
            if self._stopped or self._included.stopped:
                return

    def _head(self, head: LogicalLine, scope: Scope, depth: int) -> heads.For | None:
        names = takewhile(lambda token: token.text != "in", head.tokens)
        wrong = next(filter(_has_variable, names), None)
        if wrong is not None:
            message = "the name of a loop's variable stands without '$'"
            self._sink.error("TS0142", wrong.span, message, "such as for i in 0..9 {")
            return None
        read = variables.substituted(head.tokens, scope, self._sink)
        said = None if read is None else heads.loop(LogicalLine(read), self._sink)
        if said is None or not all(self._is_new(name, scope) for name in said.names):
            return None
        if len({name.text for name in said.names}) < len(said.names):
            self._sink.error("TS0142", said.names[-1].span, "the names of a loop differ")
            return None
        if depth >= MAX_DEPTH:
            message = f"more than {MAX_DEPTH} loops in one another"
            self._sink.error("TS0145", said.names[0].span, message)
            return None
        return said

    def _values(self, said: heads.For) -> list[Sequence[int | str]] | None:
        """Of all items, a sequence each; None after a report."""
        step = said.step.text if said.step else "1"
        if not (_is_number(step) and int(step)):
            message = f"a step is a whole number from 1 on, not '{step}'"
            self._sink.error("TS0146", (said.step or said.items[0]).span, message)
            return None
        if said.step and not any(map(said.bounds, said.items)):
            hint = "write it after a range, such as 0..60 step 15"
            self._sink.error("TS0146", said.step.span, "only ranges have steps", hint)
            return None
        found: list[Sequence[int | str]] = []
        for item in said.items:
            bounds = said.bounds(item)
            if bounds is None:
                found.append((_meaning(item.text) if item.type == "STRING" else item.text,))
                continue
            numbers = variables.numbers(*bounds, item, self._sink, int(step))
            if numbers is None:
                return None
            found.append(numbers)
        if sum(map(len, found)) < len(said.names):
            message = f"there are no {len(said.names)} values here"
            self._sink.error("TS0146", said.items[0].span, message, "each name has another value")
            return None
        return found

    def _affordable(self, loop: LoopBlock, count: int, said: heads.For) -> bool:
        total = self._rounds + count * (1 + sum(map(_least_rounds, loop.body)))
        if total <= MAX_ROUNDS:
            return True
        message = f"loops of {total:,} rounds; the file is not read any further"
        hint = f"an experiment has at most {MAX_ROUNDS:,} statements"
        self._sink.error("TS0145", said.items[0].span, message, hint)
        return False


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= MAX_DIGITS


def _least_rounds(item: Item) -> int:
    """The rounds of a loop and those in it, as far as they can be told without variables."""
    if not isinstance(item, LoopBlock):
        return 0
    if is_kept(item.head):
        return sum(map(_least_rounds, item.body))
    said = None if item.head.broken else heads.loop(item.head, Sink())
    if said is None:
        return 1
    step = said.step.text if said.step else "1"
    count = 0
    for one in said.items:
        first, last = said.bounds(one) or ("0", "0")
        known = all(map(_is_number, (first, last, step))) and int(step)
        count += len(range(int(first), int(last) + 1, int(step))) if known else 1
    return comb(count, len(said.names)) * (1 + sum(map(_least_rounds, item.body)))


def _unread(loop: LoopBlock) -> Iterator[LogicalLine]:
    """The lines of a loop that cannot be read, for the names in them only."""
    for item in loop.body:
        if isinstance(item, LoopBlock):
            yield from _unread(item)
        else:
            yield LogicalLine(item.tokens, item.comments, True)


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
