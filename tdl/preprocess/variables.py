"""Puts values into the words of a line: `$NAME`, `${NAME}`, and the ranges of `b[0..49]`.

A bare word with a variable (MIXED) is read again with the value in it, and may become several
tokens; a string, a bare text and an environment variable stay one, and keep what no let and no loop
has defined, since shells have variables too. All tokens keep the place of what was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tdl.bounds import MAX_VALUE, MAX_VALUES, MAX_WORDS
from tdl.building.builder import quotes_in_quotes
from tdl.diagnostics import Sink
from tdl.preprocess import arithmetic
from tdl.preprocess.arithmetic import MAX_DIGITS, NoNumberError
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import Token, expected_words, words
from tdl.tokens.words import MAX_NAME, RUN_VARIABLES

VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z0-9_+*() \t-]+)\})")
ESCAPE = re.compile(r"\\.")
_IN_STRING = re.compile(rf"\\.|{VARIABLE.pattern}")
_RANGE = re.compile(r"\[([0-9]+)\.\.([0-9]+)\]")
_TEXTS = ("STRING", "WORD", "ENVITEM")
_NO_LISTS = (
    "LINK",
    "SERVICE",
    "BRIDGE",
    "LAN",
    "AIR",
    "EXTERNAL",
)  # statements without lists of names, but for tags=


@dataclass(frozen=True, slots=True)
class Scope:
    """What the variables stand for where a line is; `parent` has those around the loop."""

    values: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[str, int]] = field(default_factory=dict)  # where they are defined
    parent: Scope | None = None
    put_in: list[int] = field(default_factory=lambda: [0])  # characters, of the outermost

    def find(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and name not in scope.values:
            scope = scope.parent
        return scope

    def get(self, name: str) -> str | None:
        scope = self.find(name)
        return None if scope is None else scope.values[name]

    def outermost(self) -> Scope:
        return self if self.parent is None else self.parent.outermost()

    def names(self) -> list[str]:
        return [*self.values, *(self.parent.names() if self.parent else ())]


def named(match: re.Match[str]) -> list[str]:
    """The variables in what VARIABLE has found: one, or those of a sum."""
    return [match[1]] if match[1] else arithmetic.names(match[2])


def _is_sum(match: re.Match[str]) -> bool:
    return not match[1] and named(match) != [match[2]]


def _value(match: re.Match[str], scope: Scope) -> str:
    """What stands for it; all its variables are known. NoNumberError."""
    if _is_sum(match):
        return str(arithmetic.value(match[2], scope.get))
    return scope.get(named(match)[0]) or ""


def substituted(tokens: list[Token], scope: Scope, sink: Sink) -> list[Token] | None:
    """The tokens with all values in them; None after a report."""
    if quotes_in_quotes(tokens) is not None:
        return tokens  # the parser says so; a `$` behind it was for a shell
    out: list[Token] = []
    failed = False
    for position, token in enumerate(tokens):
        if token.type == "MIXED":
            found = _mixed(token, out, tokens[position + 1 :], scope, sink)
            failed = failed or found is None
            out += found or ()
        elif token.type in _TEXTS and "$" in token.text:
            whole = text(token, scope, sink)
            failed = failed or whole is None
            out += () if whole is None else (whole,)
        else:
            out.append(token)
        if len(out) > MAX_WORDS:
            message = f"a statement of more than {MAX_WORDS:,} words"
            sink.error("TS0146", token.span, message, "make several of it")
            return None
    return None if failed else out


def bare(token: Token, scope: Scope, sink: Sink) -> str | None:
    """A bare word with its values; None after the report of a variable that there is not."""
    found = [(match, name) for match in VARIABLE.finditer(token.text) for name in named(match)]
    missing = [(match, name) for match, name in found if scope.get(name) is None]
    for match, name in missing:
        hint = did_you_mean(name, scope.names()) or f"define it before: let {name} = …"
        if name.startswith(RUN_VARIABLES):
            hint = "the run sets it, for programs only: write it in exec= or another command"
        sink.error("TS0141", token.part(*match.span()), f"there is no variable ${name}", hint)
    if missing or not _affordable(token, scope, sink):
        return None
    try:
        return VARIABLE.sub(lambda match: _value(match, scope), token.text)
    except NoNumberError as problem:
        sink.error("TS0148", token.span, str(problem), "such as ${i*15} or ${2*(n-1)}")
        return None


def too_long(token: Token, scope: Scope) -> bool:
    """Whether a word would have more than MAX_VALUE characters with its values in it."""
    return len(token.text) + _growth(token, scope) > MAX_VALUE


def _growth(token: Token, scope: Scope) -> int:
    found = (name for match in VARIABLE.finditer(token.text) for name in named(match))
    return sum(len(scope.get(name) or "") for name in found)


def _affordable(token: Token, scope: Scope, sink: Sink) -> bool:
    """Values in values grow without end, and so do many long ones; TS0157 if they do."""
    growth, total = _growth(token, scope), scope.outermost().put_in
    if growth and len(token.text) + growth > MAX_VALUE:
        message = f"with its values this has {len(token.text) + growth:,} characters"
        sink.error("TS0157", token.span, message, f"at most {MAX_VALUE:,}")
        return False
    within, total[0] = total[0] <= MAX_VALUES, total[0] + growth
    if total[0] <= MAX_VALUES:
        return True
    if within:
        message = f"all values that are put in have more than {MAX_VALUES >> 20} MiB"
        sink.error("TS0157", token.span, message, "put what is long into files (files=)")
    return False


def text(token: Token, scope: Scope, sink: Sink) -> Token | None:
    """A string or bare text with the values of the variables that are defined; None after a
    report."""
    if not _affordable(token, scope, sink):
        return None
    quote = token.text[0] if token.type == "STRING" else ""
    if token.type == "ENVITEM":
        quote = token.text.partition(":")[2][:1]
    escaped = quote in ("'", '"') and bool(quote)

    def value(match: re.Match[str]) -> str:
        names = named(match) if match[1] or match[2] else []
        if not names or any(scope.get(name) is None for name in names):
            return match[0]
        try:
            known = _value(match, scope)
        except NoNumberError:  # ${x-1} means something to a shell
            return match[0]
        return _escaped(known, quote) if escaped else known

    pattern = _IN_STRING if escaped else VARIABLE
    new = pattern.sub(value, token.text)
    if new == token.text:
        return token
    return token._replace(text=new, width=token.end_col - token.col)


def _escaped(value: str, quote: str) -> str:
    value = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return value.replace(quote, "\\" + quote)


def _mixed(
    token: Token, before: list[Token], after: list[Token], scope: Scope, sink: Sink
) -> list[Token] | None:
    """The tokens that a bare word with variables or a range stands for."""
    word = bare(token, scope, sink)
    if word is None:
        return None
    width = token.end_col - token.col
    if "[" in token.text:
        if not _may_be_list(token, before, after, sink):
            return None
        names = _names(word, token, sink)
        if names is None:
            return None
        return list(_separated(names, token._replace(width=width), before))
    found = _words(word, before)
    if found is None:
        message = f"{token.text} stands for {word[:40]!r}, which cannot be part of a statement"
        sink.error("TS0147", token.span, message, "a value with spaces or signs fits into a string")
        return None
    return [token._replace(type=kind, text=part, width=width) for kind, part in found]


def _words(word: str, before: list[Token]) -> tuple[tuple[str, str], ...] | None:
    first = before[0].type if before else ""
    if first == "EXPECT" or (first == "FIGURE" and len(before) > 1):  # behind a figure's name
        return expected_words(word, before)
    if word.endswith(":"):  # in front of a link that is called so
        found = words(word[:-1])
        is_name = found in ((("NAME", word[:-1]),), (("INSTANCE", word[:-1]),))
        return (("LABEL", word),) if is_name else None
    return words(word)


def _may_be_list(token: Token, before: list[Token], after: list[Token], sink: Sink) -> bool:
    """Whether a list of names can stand where a range does."""
    first = before[0].type if before else ""
    neighbours = {other.type for other in (*before[-1:], *after[:1])}
    of_groups = any(token.type == "PARTITION" for token in before)
    if (
        _in_tags(before)
        or of_groups
        or (first not in _NO_LISTS and not neighbours & {"DASH", "ARROW"})
    ):
        return True
    hint = f"write bridges {token.text}"
    if first != "BRIDGE":
        hint = "write a loop: for i in FIRST..LAST {, with $i in the name"
    sink.error("TS0146", token.span, "a list of names cannot stand here", hint)
    return False


def _in_tags(before: list[Token]) -> bool:
    kinds = (token.type for token in reversed(before) if token.type not in ("NAME", "SEMI"))
    return next(kinds, "") == "TAGS"


def _names(word: str, token: Token, sink: Sink) -> list[tuple[str, str]] | None:
    """Types and names of a range such as b[0..49]."""
    ranges = list(_RANGE.finditer(word))
    if len(ranges) != 1:
        sink.error("TS0146", token.span, "a name has one range at most, of whole numbers")
        return None
    bounds = numbers(ranges[0][1], ranges[0][2], token, sink)
    if bounds is None:
        return None
    if len(bounds) > MAX_WORDS:
        message = f"a list of {len(bounds):,} names"
        sink.error("TS0146", token.span, message, f"at most {MAX_WORDS:,} in a statement")
        return None
    head, tail = word[: ranges[0].start()], word[ranges[0].end() :]
    long = len(head) + len(tail) > 2 * MAX_NAME  # of an instance the name is a part
    found = None if long else words(f"{head}{bounds[0]}{tail}")
    if found is None or len(found) != 1 or found[0][0] not in ("NAME", "INSTANCE"):
        shown = f"{head[:MAX_NAME]}{bounds[0]}{tail[:MAX_NAME]}"
        sink.error("TS0147", token.span, f"'{shown}' is not a name")
        return None
    return [(found[0][0], f"{head}{number}{tail}") for number in bounds]


def numbers(first: str, last: str, token: Token, sink: Sink, step: int = 1) -> range | None:
    """The whole numbers from first on, at most last; None after a report."""
    if not (first.isdecimal() and last.isdecimal()):
        wrong = last if first.isdecimal() else first
        message = f"'{wrong}' is not a whole number"
        sink.error("TS0146", token.span, message, "a range is FIRST..LAST, such as 0..49")
        return None
    if max(len(first), len(last)) > MAX_DIGITS:
        sink.error("TS0145", token.span, "a range beyond all that an experiment can hold")
        return None
    if int(last) < int(first):
        message = f"the range from {first} to {last} is empty"
        sink.error(
            "TS0146", token.span, message, "a range goes up, and its last number belongs to it"
        )
        return None
    return range(int(first), int(last) + 1, step)


def _separated(names: list[tuple[str, str]], token: Token, before: list[Token]) -> Iterator[Token]:
    """The names as a list is written where they stand: with spaces, `;`, or several `tags=`."""
    between = [token._replace(type="SEMI", text=";")]
    in_groups = any(other.type == "PARTITION" for other in before)
    if in_groups:
        between = [before[-1]] if before[-1].type == "TAGS" else []
    elif before and before[0].type == "BRIDGES" and not _in_tags(before):
        between = []
    for position, (kind, text) in enumerate(names):
        if position:
            yield from between
        yield token._replace(type=kind, text=text)
