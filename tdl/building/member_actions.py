"""Builds the actions on instances that have a count: join, leave, crash, churn and their like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from tdl import ast, some_packets, values
from tdl.building.builder import cover, join_spans
from tdl.building.class_actions import Option
from tdl.building.drawn_actions import Clause, DrawnActions
from tdl.tokens.lexer import Token

_COUNTED: dict[str, type[ast.Counted]] = {
    kind.__name__.lower(): kind for kind in get_args(ast.Counted)
}


@dataclass(frozen=True, slots=True)
class Amount:
    """A count, and `for 5s` or `after 2s` as two tokens, or `sometime`; and `only=`."""

    count: Token | None
    tail: list[Token]
    option: Option


class MemberActions(DrawnActions):
    """Actions of the rules for counted actions and churn."""

    # --- actions with a count ---

    def counted_all(self, verb: Token, amount: Amount) -> Clause:
        return self.counted((), verb, amount)

    def counted_verb(
        self, verb: Token, selectors: tuple[ast.Selector, ...], amount: Amount
    ) -> Clause:
        return self.counted(selectors, verb, amount)

    def counted(self, selectors: tuple[ast.Selector, ...], verb: Token, amount: Amount) -> Clause:
        some = selectors[0] if selectors else None
        number = None if amount.count is None else self.count(amount.count, selectors)
        if isinstance(some, ast.Some) and amount.count is not None:
            message = "a number in front and one behind"
            self.error("TS0209", amount.count.span, message, "leave one of the two out")
        tail = amount.tail
        span = cover(verb, [verb, *filter(None, (amount.count, *tail))][-1])
        only = self.option(verb, amount.option)
        if only is not None or verb.text == "reject":
            return self.clause(selectors, self._cut(verb, number, span, only), verb, tail)
        if isinstance(some, ast.Some):  # `3 of tags=x crash` is `tags=x crash 3`
            number, selectors = some.count, (some.of,)
        if verb.text == "leave":
            sometime = bool(tail) and tail[0].type == "SOMETIME"
            leave = ast.Leave(number, span, sometime)
            return self.clause(selectors, leave, verb, [] if sometime else tail)
        if tail and tail[0].type == "POWER":
            return self.clause(selectors, ast.Crash(number, span, power=True), verb)
        return self.clause(selectors, _COUNTED[verb.text](number, span), verb, tail)

    def _cut(
        self, verb: Token, number: ast.Count | None, span: ast.Span, only: ast.Only | None
    ) -> ast.Set:
        """Of some packets, or with an answer: the links stay, and no number of them is drawn."""
        if number is not None:
            what = f"{verb.text} only=" if only else verb.text
            hint = "write '2 of tags=x' in front, name the links, or give them a tag"
            self.error("TS0221", number.span, f"{what} has no number behind it", hint)
        span = span if only is None else join_spans([span, only.span])
        return some_packets.cut(verb.text, span, only)

    def amount_all(self, option: Option, tail: list[Token]) -> Amount:
        return Amount(None, tail, option)

    def amount(self, count: Token, option: Option, tail: list[Token]) -> Amount:
        return Amount(count, tail, option)

    def check_moment(self, clause: Clause) -> None:
        """At one, nothing is left to be drawn."""
        if isinstance(clause.action, ast.Leave) and clause.action.sometime:
            message = "'sometime' is for an interval: this says when"
            hint = "leave it out, or write 'from … to … leave sometime'"
            self.error("TS0221", clause.action.span, message, hint)

    def churn_count(
        self, count: Token, _replace: Token | None = None, share: Token | None = None
    ) -> tuple[Token, Token | None]:
        return count, share

    def churn_all(self, verb: Token, what: tuple[Token, Token | None], tail: list[Token]) -> Clause:
        return self.churn((), verb, what, tail)

    def churn_verb(
        self,
        verb: Token,
        selectors: tuple[ast.Selector, ...],
        what: tuple[Token, Token | None],
        tail: list[Token],
    ) -> Clause:
        return self.churn(selectors, verb, what, tail)

    def churn(
        self,
        selectors: tuple[ast.Selector, ...],
        verb: Token,
        what: tuple[Token, Token | None],
        tail: list[Token],
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
        return self.clause(selectors, ast.Churn(count, replace, span), verb, tail)
