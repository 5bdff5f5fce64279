"""Builds the `path` statement, and what `set` says of a path: a network between two instances that
was measured at its ends, and whose routers nobody knows.

Source: docs/tdl.md, "Measured paths".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tdl import ast, values
from tdl.bounds import MAX_FLOWS, MAX_ROWS
from tdl.building.builder import WrittenProperty, cover, name, shown
from tdl.building.static import StaticActions
from tdl.tokens.lexer import Token
from tdl.tokens.words import BOTTLENECK_PROPERTIES, LINK_ALIASES, PATH_PROPERTIES

AUTO = "auto"
DEFAULT_CAPACITY_BPS = 100_000_000  # as in the paper: of the routers that are not narrow
_FALL = 2  # a table that falls to less than one part in this is not what networks do
_TABLE = "N:RATE, several separated by ';', such as 1:4Mb;2:6Mb"


class PathActions(StaticActions):
    """Actions of the rules for measured paths."""

    def path(
        self, _word: Token, a: Token, _dash: Token, b: Token, properties: list[WrittenProperty]
    ) -> tuple[ast.Statement, ...]:
        ends = self.link_ends(a, b, directed=False)
        found = self.collect(properties, "path", PATH_PROPERTIES, LINK_ALIASES)
        self.check_path_words({word: prop.name_span for word, prop in found.items()})
        terms = self._terms(found, cover(a, b))
        amounts: dict[str, Any] = self._amounts(found, terms.rtt_ns // 2)
        amounts["latency_ns"] = 0  # it is in the terms
        necks = self._necks(found)
        return (
            ast.LinkStatement(
                a=ends[0].name,
                b=ends[1].name,
                span=self.whole_span,
                distribution=self.distribution(found.get("dist")),
                tags=self._tags(found),
                a_index=ends[0].index,
                b_index=ends[1].index,
                path=terms,
                name=self.link_name(found.get("name")),
                neck_up=necks[0],
                neck_down=necks[1],
                **amounts,
            ),
        )

    def bottleneck(
        self, _word: Token, token: Token, properties: list[WrittenProperty]
    ) -> tuple[ast.Statement, ...]:
        found = self.collect(properties, "bottleneck", BOTTLENECK_PROPERTIES, {})
        capacity = found.get("capacity")
        return (
            ast.Bottleneck(
                name(token),
                self.whole_span,
                self.path_rate(capacity) if capacity else DEFAULT_CAPACITY_BPS,
                self.path_queue(found.get("queue")),
            ),
        )

    def _necks(self, found: dict[str, WrittenProperty]) -> list[ast.Name | None]:
        """Of both directions. What is the bottleneck's is not said of the path, too."""
        ways = ("bottleneck-up", "bottleneck-down")
        if "bottleneck" in found:
            said = [word for word in ("bottleneck", *ways) if word in found]
            self._only_one(said, {word: found[word].name_span for word in said})
        written = [found.get("bottleneck") or found.get(way) for way in ways]
        necks = [self._neck(prop) for prop in written]
        both = all(written)
        for word, theirs in (
            ("queue", any(written)),
            ("queue-up", written[0]),
            ("queue-down", written[1]),
            ("capacity", both),
        ):
            if theirs and word in found and not _is_auto(found[word]):
                what = word.partition("-")[0]
                hint = f"write {what}= of the bottleneck, or leave it out"
                message = f"{word}= is that of the bottleneck that this path shares with others"
                self.error("TS0187", found[word].name_span, message, hint)
        up, down = necks
        if "bottleneck" not in found and up and down and up.text == down.text:
            message = f"{up.text!r} is one queue, and the directions of a path wait in two"
            hint = f"write bottleneck={up.text}, which has a queue for each direction"
            self.error("TS0187", found[ways[1]].name_span, message, hint)
        return necks

    def _neck(self, prop: WrittenProperty | None) -> ast.Name | None:
        token = None if prop is None else self.single(prop, ("NAME",), "a bottleneck's name")
        return None if token is None else name(token)

    def check_path_words(self, found: Mapping[str, ast.Span]) -> None:
        """Of a statement or a `set`, by word: whether two say the same thing."""
        for way in ("up", "down"):
            for both in ("abw", "queue"):
                alike = (both, f"{both}-flows", f"{both}-{way}", f"{both}-flows-{way}")
                self._only_one([word for word in alike if word in found], found)
        self._only_one([word for word in ("rtt", "latency") if word in found], found)

    def _only_one(self, words: list[str], found: Mapping[str, ast.Span]) -> None:
        for word in words[1:]:
            message = f"{words[0]}= and {word}= say the same thing"
            self.error("TS0013", found[word], message, "keep one of them")

    def _terms(self, found: dict[str, WrittenProperty], span: ast.Span) -> ast.PathTerms:
        up = self._table_of(found, "up")
        down = self._table_of(found, "down")
        for way, rows in (("up", up), ("down", down)):
            if rows is None:
                hint = f"add abw=RATE, or abw-{way}=RATE"
                self.error("TS0183", span, f"how much of this path is available {way}?", hint)
        if "rtt" not in found and "latency" not in found:
            hint = "add rtt=TIME, of a path that carries nothing else"
            self.error("TS0183", span, "how long is the round trip of this path?", hint)
        capacity, wmax = found.get("capacity"), found.get("wmax")
        return ast.PathTerms(
            abw_up=up or ((1, 1),),
            abw_down=down or ((1, 1),),
            capacity_bps=self.path_rate(capacity) if capacity else DEFAULT_CAPACITY_BPS,
            wmax_bytes=self._size(wmax) if wmax else None,
            rtt_ns=self._round_trip(found),
            queue_up=self.path_queue(found.get("queue-up") or found.get("queue")),
            queue_down=self.path_queue(found.get("queue-down") or found.get("queue")),
        )

    def _round_trip(self, found: dict[str, WrittenProperty]) -> int:
        prop = found.get("rtt")
        if prop is not None:
            return self.measure(prop, values.latency, "a time such as 50ms")
        latency = found.get("latency")
        return 2 * self.measured(latency, "latency") if latency is not None else 0

    def _table_of(self, found: dict[str, WrittenProperty], way: str) -> ast.FlowTable | None:
        for word in ("abw", f"abw-{way}"):
            if word in found:
                return ((1, self.path_rate(found[word])),)
        for word in ("abw-flows", f"abw-flows-{way}"):
            if word in found:
                return self.flow_table(found[word])
        return None

    def path_rate(self, prop: WrittenProperty) -> int:
        """A path is never unlimited."""
        token = self.single(prop, ("VALUE",), "a rate such as 4Mb")
        rate = None if token is None else self.number(token, values.rate, default=1)
        if rate == 0:
            self.error("TS0104", prop.span, "a rate of zero carries nothing")
        return rate or 1

    def path_queue(self, prop: WrittenProperty | None) -> int | None:
        """None: it follows from the rest."""
        if prop is None or _is_auto(prop):
            return None
        return self.path_bytes(prop)

    def path_bytes(self, prop: WrittenProperty) -> int | None:
        """What follows from a path's terms are bytes, and so is what stands in their place."""
        size = self.queue_size(prop)
        if size is not None and size.unit != "bytes":
            hint = "write it as 64KB, or leave it out: it follows from the path"
            self.error("TS0168", prop.span, "the queue of a measured path is in bytes", hint)
        return None if size is None else size.value

    def flow_table(self, prop: WrittenProperty) -> ast.FlowTable:
        """How much is available to how many flows."""
        rows: list[tuple[int, int]] = []
        for token in prop.values:
            flows, colon, _ = token.text.partition(":")
            if prop.array or not colon or not flows.isdecimal():
                message = f"{shown(token)} is no row of {prop.key_name}"
                self.error("TS0184", token.span, message, f"write {_TABLE}")
                continue
            errors = self.errors
            number = self.number(token._replace(text=flows), values.whole)
            bps = self.number(token.within("VALUE", len(flows) + 1), values.rate)
            if self.errors == errors:
                self._check_row(token, rows, number, bps)
                rows.append((number, bps or 1))
        return tuple(rows) or ((1, 1),)

    def _check_row(self, token: Token, before: list[tuple[int, int]], flows: int, bps: int) -> None:
        last, rate = max(before, default=(0, 0))
        if len(before) == MAX_ROWS:
            message = f"a table has at most {MAX_ROWS} rows"
            self.error("TS0184", token.span, message, "what lies between them is on a line")
        if not last and flows != 1:
            message = f"the first row is of one flow, not of {flows}"
            self.error("TS0184", token.span, message, "a flow by itself is what all else rests on")
        elif not last < flows <= MAX_FLOWS:
            message = f"{flows} flows do not come after {last}"
            if flows > MAX_FLOWS:
                message = f"no table has more than {MAX_FLOWS:,} flows"
            self.error("TS0184", token.span, message, "rows ascend by flows")
        elif bps == 0:
            self.error("TS0104", token.span, "a rate of zero carries nothing")
        elif rate > _FALL * bps:
            message = f"{flows} flows together get less than half of what {last} get"
            self.sink.warning("TS0951", token.span, message, "it is the rate of all together")


def _is_auto(prop: WrittenProperty) -> bool:
    return [token.text for token in prop.values] == [AUTO]
