"""The LALR(1) tables of grammar.lark, which Lark has made beforehand.

Input: grammar.lark, and lalr_tables.json, one rule or state a line. Output: Tables. Those in the
file hold for the grammar whose digest stands there; for another one Lark makes them at every start,
which takes a quarter of what `tstorm check` does. `python -m tdl.lalr_tables` writes the file, and
a test holds it equal to what Lark makes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

END = "$END"
GRAMMAR = Path(__file__).with_name("grammar.lark")
FILE = Path(__file__).with_name("lalr_tables.json")


class Rule(NamedTuple):
    action: str  # the name of the method that is called with its values
    makes: str
    size: int  # values


class Tables(NamedTuple):
    """`states` say for a terminal, or for what a rule has made, the next state; ~number says that
    this rule is complete. The first state is 0."""

    digest: str
    end: int
    rules: Sequence[Rule]
    states: Sequence[Mapping[str, int]]


@cache
def tables() -> Tables:
    """Those that hold for the grammar, read or made once a process."""
    try:
        found = Tables(**json.loads(FILE.read_bytes()))
    except (OSError, ValueError, TypeError):
        return make_tables()
    if found.digest != _digest():
        return make_tables()
    return found._replace(rules=[Rule(*rule) for rule in found.rules])


def make_tables() -> Tables:
    """By Lark. States have their number in the order in which the first one leads to them."""
    from lark import Lark

    grammar: Any = Lark.open(str(GRAMMAR), parser="lalr", lexer="basic")  # not wholly typed
    table = grammar.parser.parser._parse_table
    numbers = {rule: ~number for number, rule in enumerate(grammar.rules)}
    order = [table.start_states["start"]]
    states: list[dict[str, int]] = []
    for state in order:  # it grows
        steps = {}
        for symbol, (_action, target) in sorted(table.states[state].items()):
            if target not in numbers and target not in order:
                order.append(target)
            steps[symbol] = numbers[target] if target in numbers else order.index(target)
        states.append(steps)
    rules = [
        Rule(rule.alias or str(rule.origin.name), str(rule.origin.name), len(rule.expansion))
        for rule in grammar.rules
    ]
    return Tables(_digest(), order.index(table.end_states["start"]), rules, states)


def _digest() -> str:
    return hashlib.sha256(GRAMMAR.read_bytes()).hexdigest()


def text(made: Tables) -> str:
    """The file of these tables."""
    lists = ("rules", "states")
    fields = [f'"{name}": {json.dumps(getattr(made, name))}' for name in ("digest", "end")]
    for name in lists:
        lines = ",\n".join(json.dumps(row) for row in getattr(made, name))
        fields.append(f'"{name}": [\n{lines}\n]')
    return "{" + ",\n".join(fields) + "}\n"


if __name__ == "__main__":
    FILE.write_text(text(make_tables()), encoding="utf-8")
