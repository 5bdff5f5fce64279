"""Says what is wrong with an `expect` statement where the grammar stops, and what to write.

Each kind has one form, which the hints show.
"""

from __future__ import annotations

from collections.abc import Sequence

from tdl.ast import Span
from tdl.building.builder import cover, shown
from tdl.diagnostics import Diagnostic, Severity
from tdl.suggest import nearest
from tdl.tokens.lexer import Token
from tdl.tokens.words import EXPECTED, OTHER_EXPECTATIONS, RESERVED
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


def _error(code: str, span: Span, message: str, hint: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, code, span, message, hint)
