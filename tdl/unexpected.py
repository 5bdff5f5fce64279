"""Says what is wrong with an `expect` statement, or a `when`, where the grammar stops, and what to
write.

Each kind has one form, which the hints show.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from tdl.ast import Span
from tdl.building.builder import cover, shown
from tdl.diagnostics import Diagnostic, Severity
from tdl.suggest import did_you_mean, nearest
from tdl.tokens.lexer import Token
from tdl.tokens.words import CONDITIONS, EXPECTED, MODELS, OTHER_EXPECTATIONS, RESERVED
from tdl.values import time_unit

_FORMS = {
    "rtt": "expect rtt client server < 60ms from 10s to 20s",
    "throughput": "expect throughput a b > 90% of plan at 30s within 2s",
    "loss": "expect loss a b < 1% from 5s",
    "unreachable": "expect unreachable a b at 20s within 100ms",
    "log": 'expect log db.* "leader elected" within 30s after 40s',
    "no": 'expect no log * "panic"',
    "exit": "expect exit client 0",
    "run": 'expect run "pg_isready -h db.0" ok within 10s after 25s',
    "valid": "expect valid",
    "linearizable": 'expect linearizable client "history.jsonl" model=register',
    "serializable": 'expect serializable client "history.jsonl"',
    "always": 'expect always log server.* "took ([0-9]+) ms" < 500',
    "sometimes": 'expect sometimes log server.* "leader changed"',
    "eventually": 'expect eventually log db.* "lag ([0-9]+)" < 10 within 10s after faults',
    "assertions": "expect assertions server.*",
    "drivers": 'expect drivers client "test/main"',
}


def explain(tokens: Sequence[Token], index: int, expected: frozenset[str]) -> Diagnostic:
    """The diagnostic for the statement `tokens`, which stopped making sense at `index`."""
    token = tokens[index] if index < len(tokens) else None
    if index == 1:
        return _kind(tokens[0], token)
    form = f"write {_FORMS[tokens[1].text]}"
    if token is None:
        end = tokens[-1].span
        place = end.over(end.end_line, end.end_col, end.end_line, end.end_col + 1)
        return _error("TS0402", place, "the expectation ends too early", form)
    before = tokens[index - 1]
    if before.type == "VALUE" and before.text.isdecimal() and token.type == "NAME":
        unit = time_unit(token.text)
        if unit is not None:
            message = "a space between the number and its unit"
            return _error("TS0402", cover(before, token), message, f"write {before.text}{unit}")
    names_only = "NAME" in expected and not expected & {"OP", "FROM", "STRING", "VALUE"}
    if token.text in RESERVED and names_only:
        message = f"'{token.text}' is a reserved word"
        return _error("TS0007", token.span, message, "services have other names")
    if "STRING" in expected and token.type in ("NAME", "VALUE"):
        message = f"unexpected {shown(token)}"
        return _error("TS0402", token.span, message, f"quote it: {form.removeprefix('write ')}")
    if "MODEL" in expected:
        message = f"unexpected {shown(token)}"
        hint = "behind the file stands model=" + ", model=".join(MODELS)
        return _error("TS0402", token.span, message, hint)
    if "OK" in expected:
        return _error("TS0402", token.span, "'ok' stands after the command", form)
    return _error("TS0402", token.span, f"unexpected {shown(token)}", form)


def _kind(word: Token, token: Token | None) -> Diagnostic:
    if token is None:
        known = ", ".join(EXPECTED)
        return _error("TS0402", word.span, "what is expected?", f"one of {known}")
    better = OTHER_EXPECTATIONS.get(token.text) or nearest(token.text, EXPECTED)
    hint = f"did you mean '{better}'?" if better else "expect has: " + ", ".join(EXPECTED)
    return _error("TS0401", token.span, f"nothing can be expected of {shown(token)}", hint)


_WHEN_FORMS = {
    "LOG": 'when log db.* "became leader" every at most 3 {',
    "EXIT": "when exit db with 1 {",
    "READY": "when ready db {",
    "FILE": 'when file db "data/leader" {',
}
_OFTEN = {"ONCE": "once", "EACH": "every", "AT": "at", "MOST": "most", "WITH": "with"}


def in_when(tokens: Sequence[Token], index: int, expected: frozenset[str]) -> str:
    """What to write in the first line of a `when` that stopped making sense at `index`, not 0."""
    kinds = f"when has: {', '.join(CONDITIONS)}"
    form = _WHEN_FORMS.get(tokens[1].type, "") if index > 1 else ""
    if index >= len(tokens):
        return f"write {form}" if form else kinds
    token = tokens[index]
    if index == 1:
        return did_you_mean(token.text, CONDITIONS) or kinds
    if "STRING" in expected and token.type in ("NAME", "VALUE", "INSTANCE"):
        return f'a text stands in quotes: "{_bare(tokens[index:])}"'
    if token.type in ("ONCE", "EACH") and any(one.text == "after" for one in tokens[2:index]):
        return f"write {token.text} before after TIME, and at most N behind it"
    before = tokens[index - 1].type
    if token.type == "MOST" or before == "MOST" or (token.type == "VALUE" and before == "AT"):
        return "write at most 3"
    if token.type == "VALUE" and "WITH" in expected:
        return f"write with {token.text}: its exit status"
    words = [word for terminal, word in _OFTEN.items() if terminal in expected]
    meant = nearest(token.text, [*words, "after"] if "TAIL" in expected else words)
    return f"did you mean '{meant}'?" if meant else f"write {form}"


def _bare(tokens: Sequence[Token]) -> str:
    """The words that seem to be a text."""
    words = takewhile(lambda one: one.type in ("NAME", "VALUE", "INSTANCE"), tokens)
    return " ".join(one.text for one in words)


def _error(code: str, span: Span, message: str, hint: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, code, span, message, hint)
