"""Builds what actions say of some packets: `only=`, behind values and behind cuts without any."""

from __future__ import annotations

from collections.abc import Sequence

from tdl import ast, some_packets
from tdl.building.builder import WrittenProperty, cover
from tdl.building.static import StaticActions
from tdl.tokens.lexer import Token
from tdl.tokens.words import ONLY
from tdl.values import ValueProblem

Option = WrittenProperty | list[WrittenProperty]  # none of it is an empty list
_CUTS = ("leave", "partition")  # of some packets with `only=`
_HINTS = {
    "join": "'set only=none' ends what an only= has begun, and so does the end of an interval",
    "flap": "write 'from … to … leave only=…' for each time that they are cut",
}


class ClassActions(StaticActions):
    """Actions on some of the packets of links."""

    def packets(
        self, some: Sequence[WrittenProperty], verb: Token, words: Sequence[str]
    ) -> ast.Only | None:
        """Of which packets the values of these words are."""
        prop = some[0]
        span = cover(prop.values[0], prop.values[-1])
        if len(some) > 1:
            self.error("TS0013", some[1].name_span, "only is given twice", "separate them with ';'")
        if prop.op != "=" or prop.array:
            self.error("TS0214", prop.key.span, "only= takes a list, with ';' between", None)
            return None
        try:
            found = some_packets.read(prop.values, span)
            some_packets.check_properties(found, words, verb.text)
        except ValueProblem as problem:
            self.error(problem.code, span, problem.message, problem.hint)
            return None
        return found

    def option(self, verb: Token, option: Option) -> ast.Only | None:
        """`only=` behind an action without values."""
        if not isinstance(option, WrittenProperty):
            return None
        if option.name == ONLY and verb.text in (*_CUTS, "reject"):
            return self.packets([option], verb, [some_packets.cut_word(verb.text)])
        hint = _HINTS.get(verb.text, "write 'a--b leave only=…', for links")
        if option.name != ONLY:
            hint = f"properties are for set: 'set {option.name}=…'"
        self.error("TS0221", option.span, f"{verb.text} has no '{option.name}='", hint)
        return None
