"""Builds what `set` says of the hosts of instances: `clock= drift=` of their real-time clocks,
`disk=` of their disks (docs/tdl.md, "Clocks" and "Disks")."""

from __future__ import annotations

from collections.abc import Callable

from tdl import ast, values
from tdl.bounds import MAX_DRIFT_PPB
from tdl.building.builder import WrittenProperty
from tdl.building.static import StaticActions
from tdl.tokens.lexer import Token
from tdl.tokens.words import CLOCK_WORDS, DISK_FAULTS
from tdl.values import ValueProblem

_OPS = {"=": ast.Op.ASSIGN, "+=": ast.Op.ADD, "-=": ast.Op.SUB}
_DISKS = "slow:20ms, full, error:1% or ok"


class HostActions(StaticActions):
    """What `set` says of clocks and disks."""

    def set_clock(
        self, verb: Token, assignments: list[WrittenProperty], span: ast.Span
    ) -> ast.SetClock:
        found: dict[str, WrittenProperty] = {}
        for prop in assignments:
            if prop.name not in CLOCK_WORDS:
                message = f"'{prop.name}' is no part of a clock"
                hint = "clocks are of instances, all else is of links: write two statements"
                self.error("TS0260", prop.span, message, hint)
            elif prop.name in found:
                message = f"{prop.name} is set twice"
                self.error("TS0013", prop.name_span, message, "keep one of them")
            else:
                found[prop.name] = prop
        if verb.text != "set":
            hint = "write 'at T … set', or 'from … to … set', which sets it back at the end"
            self.error("TS0260", span, f"a clock has no '{verb.text}'", hint)
        clock = found.get("clock")
        op = ast.Op.ASSIGN if clock is None else _OPS[clock.op]
        return ast.SetClock(self._offset(clock, op), op, self._drift(found.get("drift")), span)

    def _offset(self, prop: WrittenProperty | None, op: ast.Op) -> int | None:
        if prop is None:
            return None
        if op is ast.Op.ASSIGN:
            return self.measure(prop, values.signed_time, "how far it is off, such as +200ms")
        found = self.measure(prop, values.time, "by how much it steps, such as 3s", 1)
        if not found:
            self.error("TS0222", prop.span, "a step of no time does nothing")
        return found

    def _drift(self, prop: WrittenProperty | None) -> int | None:
        if prop is None:
            return None
        if prop.op != "=":
            message = f"drift is how fast a clock goes wrong; {prop.op} has no meaning"
            self.error("TS0214", prop.span, message, "write drift=…")
            return None
        found = self.measure(prop, values.drift, "a drift such as 50ppm")
        if abs(found) > MAX_DRIFT_PPB:
            message = f"a clock that drifts by {prop.values[0].text} is none"
            self.error("TS0261", prop.span, message, "drift= goes from -10% to 10%")
            return None
        return found

    def set_disk(
        self, verb: Token, assignments: list[WrittenProperty], span: ast.Span
    ) -> ast.SetDisk:
        for prop in assignments:
            if prop.name != "disk":
                message = f"'{prop.name}' is no part of a disk"
                hint = "disks are of instances, and have one fault at a time: write two statements"
                self.error("TS0262", prop.span, message, hint)
        first, *more = [prop for prop in assignments if prop.name == "disk"]
        for prop in more:
            message = "a disk has one fault at a time"
            self.error("TS0013", prop.name_span, message, "keep one of them")
        if verb.text != "set":
            hint = "write 'at T … set', or 'from … to … set', which sets it back at the end"
            self.error("TS0262", span, f"a disk has no '{verb.text}'", hint)
        if first.op != "=":
            message = f"a disk has a fault or has none; {first.op} has no meaning"
            self.error("TS0214", first.span, message, "write disk=…")
        token = self.single(first, ("WORD",), _DISKS)
        fault, amount = ("ok", 0) if token is None else self._fault(token)
        return ast.SetDisk(fault, amount, span)

    def _fault(self, token: Token) -> tuple[str, int]:
        """Its word, and how much of it. ("ok", 0) after a report."""
        word, colon, text = token.text.partition(":")
        amounts: dict[str, Callable[[str], int]] = {"slow": values.time, "error": _share_of_calls}
        if word not in DISK_FAULTS or bool(colon) != (word in amounts):
            message = f"a disk is not '{token.text}'"
            self.error("TS0263", token.span, message, f"write {_DISKS}")
            return "ok", 0
        if not colon:
            return word, 0
        try:
            amount = amounts[word](text)
        except ValueProblem as problem:
            self.error(problem.code, token.span, problem.message, problem.hint)
            return "ok", 0
        if not amount:
            message = f"'{token.text}' changes nothing"
            self.error("TS0263", token.span, message, "write ok for a disk without a fault")
        return word, amount


def _share_of_calls(text: str) -> int:
    return values.probability(text, "share of errors")
