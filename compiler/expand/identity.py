"""Who a statement is, for its random draws: its canonical text and its place among equal ones.

So a statement draws the same numbers wherever it stands in the file and whatever else is edited.
What is done to a running experiment draws by the number of the action, whenever that was, and what
a `when` does by its own text and how often it has happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compiler.declare.steps import Member, StatementStep
from compiler.draws import UNDER_WAY_NS, statement_key
from compiler.plan.parts import action_texts
from tdl import ast
from tdl.formatter import format_statement


@dataclass(frozen=True, slots=True)
class DrawIdentity:
    """What the key of a statement's draws is made of, beside the seed."""

    text: str  # canonical
    ordinal: int  # among statements that draw and have the same text

    def key(self, seed: int | str) -> bytes:
        return statement_key(seed, self.text, self.ordinal)


def identities(
    steps: Iterable[StatementStep], whens: Sequence[ast.When]
) -> dict[int, DrawIdentity]:
    """Of every step that may draw, by order. `whens`: those of the file."""
    seen: dict[str, int] = {}
    found: dict[int, DrawIdentity] = {}
    texts = _texts(whens)
    for step in steps:
        action = step.statement.action
        at_once = step.end_ns is None or step.outage
        if isinstance(action, ast.Crash) and action.power:
            at_once = False  # what its disk keeps
        some = isinstance(action, Member) and not (action.count is None and at_once)
        fails = isinstance(action, ast.SetDisk) and action.fault == "error"
        if not some and not fails and not step.draws_itself:
            continue  # everything legal, at once: nothing to draw
        text = _text(step, texts)
        ordinal = seen.get(text, 0)
        seen[text] = ordinal + 1
        found[step.order] = DrawIdentity(text, ordinal)
    return found


def _texts(whens: Sequence[ast.When]) -> list[str]:
    """Canonical, each with its place among equal ones."""
    texts = list(map(format_statement, whens))
    return [f"{text}, {texts[: place + 1].count(text)}" for place, text in enumerate(texts)]


def _text(step: StatementStep, whens: Sequence[str]) -> str:
    file = step.statement.span.file
    firing, number = action_texts.firing_of(file), action_texts.number_of(file)
    if firing is not None and firing.reaction <= len(whens):
        return f"firing {firing.time} of {whens[firing.reaction - 1]}"
    return f"do {number}" if number else format_statement(step.statement)


class Seeds:
    """The seeds of a walk: by which one a statement draws at a moment."""

    def __init__(self, seed: int, later: Sequence[tuple[int, int]]) -> None:
        self._seed = seed
        self._later = [(at_ns + UNDER_WAY_NS, f"{other} from {at_ns}") for at_ns, other in later]

    def at(self, now_ns: int) -> int | str:
        found = [seed for begin_ns, seed in self._later if begin_ns <= now_ns]
        return found[-1] if found else self._seed

    def changes_in(self, begin_ns: int, end_ns: int) -> list[int]:
        """The moments between these at which there is another one."""
        return [at_ns for at_ns, _ in self._later if begin_ns < at_ns < end_ns]
