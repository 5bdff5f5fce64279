"""Builds what a statement draws of itself: `for 1s..2s`, `sometime`, `3 of tags=place`."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tdl import ast, values
from tdl.bounds import MAX_TIME_NS
from tdl.building.builder import cover, join_spans
from tdl.building.class_actions import ClassActions
from tdl.tokens.lexer import Token

# Over after some time, as an interval is at its end.
_LASTING = (ast.Disconnect, ast.Pause, ast.Leave, ast.Set, ast.SetClock, ast.SetDisk, ast.Ramp,
            ast.Background, ast.Partition, ast.Flap, ast.Churn)  # fmt: skip
# At one moment, which an interval may leave open.
_SOMETIME = (ast.Disconnect, ast.Reconnect, ast.Pause, ast.Resume, ast.Restart, ast.Set,
             ast.SetClock, ast.SetDisk, ast.Background, ast.Partition, ast.Heal)  # fmt: skip
_EACH = (ast.Join, ast.Crash, ast.Kill)  # each at a moment of its own
_HINTS = {
    "crash": "'restart after' brings the same instances back",
    "leave": "write when they join again: 'at T … join'",
    "set": "'from … to … set' sets it back at the end, and so does 'for'",
}


class Clause(NamedTuple):
    """One selector and action; no selectors stands for everything. `tail`: `for TIME`, `after
    TIME` or `sometime` as written behind it."""

    selectors: tuple[ast.Selector, ...]
    action: ast.Action
    verb: Token
    span: ast.Span
    tail: tuple[Token, ...] = ()


class DrawnActions(ClassActions):
    """What stands behind an action, and a number of what it is about."""

    def tail(self, word: Token, length: Token) -> list[Token]:
        return [word, length]

    def sometime(self, word: Token) -> list[Token]:
        return [word]

    def lasting(self, tail: list[Token]) -> list[Token]:
        return tail

    def step_and_length(self, *words: Token) -> list[Token]:
        return [*words]

    def clause(
        self,
        selectors: tuple[ast.Selector, ...],
        action: ast.Action,
        verb: Token,
        tail: list[Token] | None = None,
    ) -> Clause:
        words = tail or []
        if len(words) > 2:
            message = f"'{words[2].text} {words[3].text}' is one too many"
            hint = "only `ramp` has two: 'ramp … every 100ms for 5s'"
            self.error("TS0221", cover(words[2], words[3]), message, hint)
        spans = [action.span, *(selector.span for selector in selectors)]
        span = join_spans([*spans, *(word.span for word in words)])
        return Clause(selectors, action, verb, span, tuple(words[:2]))

    def timed(
        self, clause: Clause, last_ns: int, *, interval: bool
    ) -> tuple[ast.Action, ast.DrawnTiming | None]:
        """The action, and what is drawn of it. It begins at `last_ns` at the latest."""
        action, verb, tail = clause.action, clause.verb.text, clause.tail
        if not tail:
            return action, None
        if tail[0].type == "POWER":
            return action, None  # of a crash: the lexer knows it nowhere else
        if tail[0].type == "SOMETIME":
            self._check_sometime(action, verb, tail[0], interval=interval)
            return action, ast.DrawnTiming(interval)
        wanted = "after" if isinstance(action, ast.Restart) else "for"
        if tail[0].text != wanted or not isinstance(action, (*_LASTING, ast.Restart)):
            hint = _HINTS.get(verb)
            if isinstance(action, (*_LASTING, ast.Restart)):
                hint = f"write '{wanted} {tail[1].text}'"
            self.error("TS0221", tail[0].span, f"{verb} has no '{tail[0].text}'", hint)
            return action, None
        shortest, longest = self._lengths(tail[1])
        if wanted == "for" and not shortest:
            self.error("TS0222", tail[1].span, f"{verb} for no time does nothing")
        if last_ns + longest > MAX_TIME_NS:
            hint = "at most 292 years after the start"
            self.error("TS0025", clause.span, "this ends too late", hint)
        if not interval and shortest == longest:
            if isinstance(action, ast.Disconnect | ast.Pause):
                return replace(action, for_ns=shortest), None
            if isinstance(action, ast.Restart):
                return replace(action, after_ns=shortest), None
        return action, ast.DrawnTiming(interval, shortest, longest)

    def _check_sometime(
        self, action: ast.Action, verb: str, word: Token, *, interval: bool
    ) -> None:
        if not interval:
            hint = f"leave it out, or write 'from … to … {verb} sometime'"
            self.error("TS0221", word.span, "'sometime' is for an interval: this says when", hint)
        elif not isinstance(action, _SOMETIME):
            hint = "leave it out" if isinstance(action, ast.Quit) else "say how long: 'for 1s..2s'"
            if isinstance(action, _EACH):
                hint = "leave it out: in an interval each of them has a drawn moment anyway"
            self.error("TS0221", word.span, f"{verb} has no 'sometime'", hint)

    def _lengths(self, token: Token) -> tuple[int, int]:
        """`2s`, or `1s..2s`: the shortest and the longest."""
        first, dots, last = token.text.partition("..")
        width = token.width if token.width >= 0 else len(first)
        shortest = self.number(token._replace(text=first, width=width), values.time)
        if not dots:
            return shortest, shortest
        if not last:
            self.error("TS0220", token.span, "the longest time is missing", "write for 1s..2s")
            return shortest, shortest
        longest = self.number(token.within("VALUE", len(first) + 2), values.time)
        if longest < shortest:
            message = f"{last} is shorter than {first}"
            self.error("TS0301", token.span, message, f"write {last}..{first}")
        return shortest, longest

    # --- so many of ---

    def some(self, count: Token, _of: Token, found: list[ast.Selector]) -> tuple[ast.Selector, ...]:
        return self._some(count, tuple(found))

    def some_tagged(
        self, count: Token, _of: Token, key: Token, names: list[Token]
    ) -> tuple[ast.Selector, ...]:
        tagged = ast.Tagged(self.names(names, "tag"), cover(key, names[-1]))
        return self._some(count, (tagged,))

    def _some(self, token: Token, selectors: tuple[ast.Selector, ...]) -> tuple[ast.Selector, ...]:
        count = self.count(token, selectors)
        of = selectors[0]
        assert not isinstance(of, ast.Everything | ast.Some)
        return (ast.Some(count, of, join_spans([token.span, of.span])),)

    def count(
        self, token: Token, selectors: tuple[ast.Selector, ...], churn: bool = False
    ) -> ast.Count:
        """`3` or `40%`, and whether the selection can have a number at all."""
        if len(selectors) > 1:
            hint = "give them a common tag and write tags=…"
            self.error("TS0217", token.span, "a number for a list of names", hint)
        elif selectors and isinstance(selectors[0], ast.Element) and selectors[0].index is not None:
            message = f"'{selectors[0].name.text}.{selectors[0].index}' is one instance"
            hint = "one instance can crash and join" if churn else f"leave out {token.text}"
            self.error("TS0209", token.span, message, hint)
        if not token.text.endswith("%"):
            return ast.Count(ast.Unit.NUMBER, self.number(token, values.amount), token.span)
        share = self.number(token, values.percent)
        if share > values.PPB:
            message = f"{token.text} is more than all of them"
            self.error("TS0208", token.span, message, "at most 100%")
        return ast.Count(ast.Unit.PERCENT, share, token.span)
