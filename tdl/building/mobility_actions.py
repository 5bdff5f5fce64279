"""Builds the `mobility` statement: nodes that move, and what their positions make of links.

Source: docs/mobility.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tdl import ast, values
from tdl.building.builder import WrittenProperty, shown
from tdl.building.path_actions import PathActions
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import Token
from tdl.tokens.words import ALLOCATIONS, LENGTHS, MOBILITY_PROPERTIES, MOTION_FORMATS
from tdl.values import ValueProblem

MOST_TRANSCEIVERS = 512
DISTANCE = "distance"  # as a latency: what light takes
_WORD = r"[A-Za-z_][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*"
_NAME = re.compile(rf"{_WORD}(\.{_WORD})?")
_NODES = "SERVICE:PREFIX, such as sat:BIIF"


def reads_as_file(text: str) -> bool:
    """Whether a rate or a loss in bare text is a file: it has a `/`, or does not begin as a
    number does."""
    return "/" in text or not text.lstrip("+-.")[:1].isdigit()


class MobilityActions(PathActions):
    """The action of the rule for nodes that move."""

    def mobility(
        self, _word: Token, file: Token, properties: list[WrittenProperty]
    ) -> tuple[ast.Statement, ...]:
        found = self.collect(properties, "mobility", MOBILITY_PROPERTIES, {})
        source = self.named_file(file)
        if not source.strip("./") or "\0" in source:
            message = f"{shown(file)} names no file"
            self.error("TS0125", file.span, message, "such as mobility orbits.json")
        rate_bps, rate_file = self._value_or_file(found.get("rate"))
        loss_ppb, loss_file = self._value_or_file(found.get("loss"))
        statement = ast.Mobility(
            source,
            self.whole_span,
            file.span,
            self._word_of(found.get("format"), MOTION_FORMATS),
            self._word_of(found.get("unit"), LENGTHS),
            self._mobile_nodes(found.get("nodes")),
            self._distance(found.get("range")),
            self._distance(found.get("body")),
            self._sample_time(found.get("every")),
            self._mobile_latency(found.get("latency")),
            self._latency_step(found.get("latency-step")),
            rate_bps,
            rate_file,
            loss_ppb,
            loss_file,
            self._transceivers(found.get("transceivers")),
            self._word_of(found.get("allocate"), ALLOCATIONS),
        )
        self._check_mobility(statement, found)
        return (statement,)

    def _check_mobility(self, said: ast.Mobility, found: dict[str, WrittenProperty]) -> None:
        if (said.transceivers is None) != (said.allocate is None) and ("transceivers" in found) != (
            "allocate" in found
        ):
            word = "allocate" if said.allocate is not None else "transceivers"
            other = (
                "transceivers=N" if word == "allocate" else "allocate=nearest, or allocate=program"
            )
            message = f"{word}= says half of who is linked: how many radios a node has, and to whom"
            self.error("TS0194", found[word].span, message, f"add {other}")
        if "latency-step" in found and said.latency_ns is not None:
            message = "latency-step= is about a latency that follows the distance"
            hint = "leave one of latency= and latency-step= out"
            self.error("TS0194", found["latency-step"].span, message, hint)
        if said.format == "gpx" and "unit" in found:
            message = "GPX has degrees and metres, whatever unit= says"
            self.error("TS0194", found["unit"].span, message, "leave it out")

    def _word_of(self, prop: WrittenProperty | None, known: Sequence[str]) -> str | None:
        if prop is None:
            return None
        listed = ", ".join(known)
        token = self.single(prop, ("NAME",), f"one of {listed}" if len(known) > 1 else listed)
        if token is not None and token.text not in known:
            hint = did_you_mean(token.text, known) or f"{prop.key_name} is {' or '.join(known)}"
            self.error("TS0194", token.span, f"no {prop.key_name} is '{token.text}'", hint)
        return None if token is None else token.text

    def _mobile_nodes(self, prop: WrittenProperty | None) -> tuple[ast.MobileNodes, ...]:
        found: list[ast.MobileNodes] = []
        if prop is None:
            return ()
        for token, service, prefix in self._items(prop, _NODES):
            if not _NAME.fullmatch(service):
                hint = f"write {_NODES}; several are separated by ';'"
                self.error("TS0194", token.span, f"{service!r} is no service", hint)
            elif any(one.service.text == service for one in found):
                self.error("TS0013", token.span, f"{service} stands here twice", "keep one of them")
            else:
                found.append(ast.MobileNodes(ast.Name(service, token.span), prefix))
        return tuple(found)

    def _distance(self, prop: WrittenProperty | None) -> int | None:
        if prop is None:
            return None
        return self._positive(
            self.measure(prop, values.distance, "a distance such as 5km", 1), prop
        )

    def _sample_time(self, prop: WrittenProperty | None) -> int | None:
        if prop is None:
            return None
        return self._positive(self.measure(prop, values.time, "a time such as 1s", 1), prop)

    def _latency_step(self, prop: WrittenProperty | None) -> int | None:
        if prop is None:
            return None
        return self._positive(self.measure(prop, values.latency, "a time such as 100us", 1), prop)

    def _mobile_latency(self, prop: WrittenProperty | None) -> int | None:
        """None: it follows the distance."""
        if prop is None:
            return None
        token = self.single(prop, ("VALUE", "NAME"), "distance, or a time such as 5ms")
        if token is None:
            return None
        if token.type == "NAME":
            if token.text != DISTANCE:
                hint = did_you_mean(token.text, [DISTANCE]) or "latency is distance, or a time"
                self.error("TS0194", token.span, f"no latency is '{token.text}'", hint)
            return None
        return self.number(token, values.latency)

    def _transceivers(self, prop: WrittenProperty | None) -> int | None:
        if prop is None:
            return None
        count = self.measure(prop, values.whole, "a number such as 4", default=1)
        if not 1 <= count <= MOST_TRANSCEIVERS:
            message = f"a node has 1 to {MOST_TRANSCEIVERS} transceivers"
            self.error("TS0194", prop.span, message, "without transceivers= it has enough of them")
        return count

    def _value_or_file(self, prop: WrittenProperty | None) -> tuple[int | None, str | None]:
        wanted = "a value, or a file with values by distance"
        token = None if prop is None else self.single(prop, ("WORD", "STRING"), wanted)
        if prop is None or token is None:
            return None, None
        text = self.text(token)
        if token.type == "STRING" or reads_as_file(text):
            if not text.strip("./") or "\0" in text:
                self.error("TS0125", token.span, f"{shown(token)} names no file")
            return None, self.named_file(token)
        try:
            if prop.name == "loss":
                return values.probability(text, what="loss"), None
            bps = values.rate(text)
        except ValueProblem as problem:
            hint = problem.hint or "a file whose name begins with a digit stands in quotes"
            self.error(problem.code, token.span, problem.message, hint)
            return None, None
        if not bps:
            self.error("TS0104", prop.span, "a rate of zero carries nothing")
        return bps, None
