"""Builds the actions on instances that have a count: join, leave, crash, churn and their like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

from tdl import ast, some_packets, values
from tdl.bounds import MAX_TIME_NS
from tdl.building.builder import cover, join_spans
from tdl.building.class_actions import ClassActions, Option
from tdl.tokens.lexer import Token

_COUNTED: dict[str, type[ast.Counted]] = {
    kind.__name__.lower(): kind for kind in get_args(ast.Counted)
}
_TAILS = {"disconnect": "for", "pause": "for", "restart": "after"}
_TAIL_HINTS = {
    "crash": "'restart after' brings the same instances back",
    "leave": "write when they join again: 'at T … join'",
    "reject": "'from … to … reject' ends it",
}


class Clause(NamedTuple):
    """One selector and action; no selectors stands for everything."""

    selectors: tuple[ast.Selector, ...]
    action: ast.Action
    verb: Token
    span: ast.Span


@dataclass(frozen=True, slots=True)
class Amount:
    """A count, and `for 5s` or `after 2s` as two tokens, or `sometime`; and `only=`."""

    count: Token | None
    tail: list[Token]
    option: Option


class MemberActions(ClassActions):
    """Actions of the rules for counted actions and churn."""

    # --- actions with a count ---

    def counted_all(self, verb: Token, amount: Amount) -> Clause:
        return self.counted((), verb, amount)

    def counted_verb(
        self, verb: Token, selectors: tuple[ast.Selector, ...], amount: Amount
    ) -> Clause:
        return self.counted(selectors, verb, amount)

    def counted(self, selectors: tuple[ast.Selector, ...], verb: Token, amount: Amount) -> Clause:
        number = None if amount.count is None else self.count(amount.count, selectors)
        words = [verb, *filter(None, (amount.count, *amount.tail))]
        span = cover(verb, words[-1])
        action = self._action(verb, number, amount.tail, span)
        only = self.option(verb, amount.option)
        if only is not None or verb.text == "reject":
            action = self._cut(verb, words[1:], span, only)
        return self.clause(selectors, action, verb)

    def _cut(
        self, verb: Token, words: Sequence[Token], span: ast.Span, only: ast.Only | None
    ) -> ast.Set:
        """Of some packets, or with an answer: the links stay, and none of them are drawn."""
        wrong = ("VALUE",) if verb.text == "reject" else ("VALUE", "SOMETIME")
        if words and words[0].type in wrong:
            what = f"{verb.text} only=" if only else verb.text
            hint = "name the links, or give those that it is for a tag"
            if words[0].type != "VALUE":
                hint = "leave it out: 'from … to …' says how long"
            message = f"{what} has no '{words[0].text}'"
            self.error("TS0221", cover(words[0], words[-1]), message, hint)
        span = span if only is None else join_spans([span, only.span])
        return some_packets.cut(verb.text, span, only)

    def _action(
        self, verb: Token, number: ast.Count | None, tail: Sequence[Token], span: ast.Span
    ) -> ast.Action:
        """With `for 5s` (of disconnect and pause), `after 2s` (of restart) or `sometime` (of leave)
        behind it."""
        sometime = bool(tail) and tail[0].type == "SOMETIME"
        length = None if not tail or sometime else self.number(tail[1], values.time)
        wanted = _TAILS.get(verb.text)
        if sometime and verb.text != "leave":
            message = f"{verb.text} has no 'sometime'"
            only = "leave it out: only `leave` of links and bridges needs it"
            self.error("TS0221", tail[0].span, message, only)
        elif tail and not sometime and tail[0].text != wanted:
            message = f"{verb.text} has no '{tail[0].text}'"
            hint = f"write '{wanted} {tail[1].text}'" if wanted else _TAIL_HINTS.get(verb.text)
            self.error("TS0221", tail[0].span, message, hint)
        elif length == 0 and wanted == "for":
            self.error("TS0222", tail[1].span, f"{verb.text} for no time does nothing")
        match verb.text:
            case "leave":
                return ast.Leave(number, span, sometime)
            case "disconnect":
                return ast.Disconnect(number, span, length)
            case "pause":
                return ast.Pause(number, span, length)
            case "restart":
                return ast.Restart(number, span, length or 0)
        return _COUNTED.get(verb.text, ast.Leave)(number, span)

    def amount_all(self, tail: list[Token], option: Option) -> Amount:
        return Amount(None, tail, option)

    def amount(self, count: Token, tail: list[Token], option: Option) -> Amount:
        return Amount(count, tail, option)

    def tail(self, word: Token, length: Token) -> list[Token]:
        return [word, length]

    def sometime(self, word: Token) -> list[Token]:
        return [word]

    def check_moment(self, clause: Clause) -> None:
        """At one, nothing is left to be drawn."""
        if isinstance(clause.action, ast.Leave) and clause.action.sometime:
            message = "'sometime' is for an interval: this says when"
            hint = "leave it out, or write 'from … to … leave sometime'"
            self.error("TS0221", clause.action.span, message, hint)

    def check_length(self, clause: Clause, start_ns: int) -> None:
        """What comes after it must not be beyond the times that there are."""
        match clause.action:
            case ast.Disconnect(for_ns=length) | ast.Pause(for_ns=length):
                later = length or 0
            case ast.Restart(after_ns=later):
                pass
            case _:
                return
        if start_ns + later > MAX_TIME_NS:
            span = clause.action.span
            self.error("TS0025", span, "this ends too late", "at most 292 years after the start")

    def check_tail(self, clause: Clause) -> None:
        """In an interval, whose end says it."""
        action = clause.action
        if isinstance(action, ast.Disconnect | ast.Pause) and action.for_ns is not None:
            message = f"the interval says how long this {clause.verb.text} lasts"
            hint = f"write 'at T … {clause.verb.text} for …', or leave 'for' out"
            self.error("TS0221", action.span, message, hint)

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

    def churn_count(
        self, count: Token, _replace: Token | None = None, share: Token | None = None
    ) -> tuple[Token, Token | None]:
        return count, share

    def churn_all(self, verb: Token, what: tuple[Token, Token | None]) -> Clause:
        return self.churn((), verb, what)

    def churn_verb(
        self, verb: Token, selectors: tuple[ast.Selector, ...], what: tuple[Token, Token | None]
    ) -> Clause:
        return self.churn(selectors, verb, what)

    def churn(
        self,
        selectors: tuple[ast.Selector, ...],
        verb: Token,
        what: tuple[Token, Token | None],
    ) -> Clause:
        token, share = what
        replace = 0
        if share is not None:
            replace = self.number(share, values.percent)
            if replace > values.PPB:
                message = f"{share.text} is more than every one of them"
                self.error("TS0208", share.span, message, "at most 100%")
        span = cover(verb, share or token)
        count = self.count(token, selectors, churn=True)
        return self.clause(selectors, ast.Churn(count, replace, span), verb)

    def clause(
        self, selectors: tuple[ast.Selector, ...], action: ast.Action, verb: Token
    ) -> Clause:
        span = join_spans([action.span, *(selector.span for selector in selectors)])
        return Clause(selectors, action, verb, span)
