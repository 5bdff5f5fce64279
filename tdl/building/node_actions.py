"""Builds the first line of a `node`: how many machines of this kind there are, and their bounds.

Source: docs/tdl.md, "Machines with parts".
"""

from __future__ import annotations

from tdl import ast
from tdl.building.builder import WrittenProperty, name
from tdl.building.static import StaticActions
from tdl.tokens.lexer import Token
from tdl.tokens.words import NODE_PROPERTIES, SERVICE_ALIASES


class NodeActions(StaticActions):
    """The action of the rule for machines."""

    def node(
        self, _word: Token, token: Token, properties: list[WrittenProperty], _brace: Token
    ) -> tuple[ast.Statement, ...]:
        aliases = {short: word for short, word in SERVICE_ALIASES.items() if word == "mem"}
        found = self.collect(properties, "node", NODE_PROPERTIES, aliases)
        replicas, cpu, mem = found.get("replicas"), found.get("cpu"), found.get("mem")
        return (
            ast.NodeStatement(
                name(token),
                self.whole_span,
                1 if replicas is None else self._replicas(replicas),
                None if cpu is None else self._cpu(cpu),
                None if mem is None else self._size(mem),
                self._tags(found),
            ),
        )
