"""A TDL text, and what can be taken out of it: the statements of its timeline, and time at its end.

Input: a text that compiles. Output: texts without some of its statements, or that quit earlier.
Taken out is what stands in the file itself, as it was written: a statement in a loop goes with all
its rounds, one with `and` as a whole, and a loop of which nothing is left goes, too. Declarations,
what is expected, and included files stay. A line of which only a comment would be left goes with
its statement; all others stay as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tdl import ast
from tdl.diagnostics import Sink, TdlError
from tdl.parser import parse_partial
from tdl.preprocess.includes import NO_TEXTS, Texts
from tdl.preprocess.unroll import NO_PARAMS
from tdl.tokens.lexer import Token, logical_lines
from tstorm import units
from tstorm.shrink import loops
from tstorm.shrink.text import Place, Range, SourceText


@dataclass(frozen=True, slots=True)
class Written:
    """A statement of the timeline where it stands: its words as they are written, and its nodes, in
    a loop those of all rounds."""

    place: Range
    words: tuple[Token, ...]
    nodes: tuple[ast.Dynamic, ...]

    @property
    def rounds(self) -> int:
        return len({node.span.note for node in self.nodes})

    @property
    def clauses(self) -> list[list[ast.Dynamic]]:
        """The nodes of each part that `and` joins, of a statement in a loop those of one round."""
        found: dict[ast.Span, list[ast.Dynamic]] = {}
        for node in self.nodes:
            if node.span.note == self.nodes[0].span.note:
                found.setdefault(node.action.span, []).append(node)
        return list(found.values())

    @property
    def is_single(self) -> bool:
        """Whether it is one action, in no loop of several rounds."""
        return self.rounds == 1 and len(self.clauses) == 1


# What lasts for an interval and is the same all the time, whenever that ends.
_UNTIL_THEIR_END = (
    *(ast.Set, ast.SetClock, ast.SetDisk, ast.Background),
    *(ast.Disconnect, ast.Pause, ast.Partition),
)


@dataclass(frozen=True, slots=True)
class Script:
    """`quit` is the statement that ends the experiment, at `end_ns`, if there is one to change;
    `written` has what is known of each statement in `events`; `others` are the places of all
    statements that are none of the timeline."""

    text: str
    events: tuple[Range, ...]
    quit: Range | None = None
    end_ns: int = 0
    written: Mapping[Range, Written] = field(default_factory=dict)
    others: tuple[Place, ...] = ()

    def keeping(self, kept: Collection[Range], end_ns: int | None = None) -> str:
        """The text with these statements only; `end_ns`: it quits then, and what would come later
        goes, so that the compiler has nothing to warn of that nobody wrote."""
        changes = [(one, "") for one in self.events if one not in kept]
        if end_ns is not None and self.quit is not None:
            for one in self.events:
                changes += _ended(self.written[one], end_ns) if one in kept else ()
            changes.append((self.quit, f"at {units.duration(end_ns)} quit"))
        gone = not all(words for _, words in changes)
        text = SourceText(self.text).changed(changes)
        return loops.without_empty(text) if gone else text


def _ended(one: Written, end_ns: int) -> Iterator[tuple[Range, str]]:
    """What changes in a statement if the experiment quits then: it goes if it begins later, and an
    interval ends with the experiment."""
    if all(node.start_ns > end_ns for node in one.nodes):
        yield one.place, ""
    elif len(one.nodes) == 1:
        (node,) = one.nodes
        action, words = node.action, one.words
        lasts = node.end_ns is not None and node.end_ns > end_ns and node.drawn is None
        if lasts and isinstance(action, _UNTIL_THEIR_END):
            yield Range.of([words[3]]), units.duration(end_ns)
        elif (
            isinstance(action, ast.Restart)
            and node.end_ns is None
            and node.start_ns + action.after_ns > end_ns
            and words[-3].text == "restart"
        ):
            yield Range.of(words[-3:]), "crash"


def read(raw: bytes, texts: Texts = NO_TEXTS, params: Mapping[str, str] = NO_PARAMS) -> Script:
    """Raises TdlError."""
    partial = parse_partial(raw, texts, params)
    if partial.failed:
        raise TdlError(partial.diagnostics)
    text = raw.decode("utf-8")
    dynamic = [one for one in partial.file.statements if isinstance(one, ast.Dynamic)]
    own = _written(text, [one for one in dynamic if not one.span.file])
    quits = [one for one in dynamic if isinstance(one.action, ast.Quit)]
    ends = [place for place, one in own.items() if any(end in one.nodes for end in quits)]
    events = tuple(one for one in own if one not in ends)
    others = tuple(
        (one.span.line, one.span.col)
        for one in partial.file.statements
        if not (isinstance(one, ast.Dynamic) or one.span.file)
    )
    written = {place: own[place] for place in events}
    alone = len(quits) == 1 and len(ends) == 1 and own[ends[0]].nodes == (quits[0],)
    if not alone or quits[0].span.note:
        return Script(text, events, None, 0, written, others)
    return Script(text, events, ends[0], quits[0].start_ns, written, others)


def _written(text: str, nodes: Iterable[ast.Dynamic]) -> dict[Range, Written]:
    """Each logical line is a statement: rounds of a loop, and all parts of one with `and`."""
    lines = [tuple(one.tokens) for one in logical_lines(text, Sink()) if one.tokens]
    begins = [(words[0].line, words[0].col) for words in lines]
    found: dict[int, list[ast.Dynamic]] = {}
    for node in nodes:
        place = (node.span.line, node.span.col)
        found.setdefault(bisect_right(begins, place) - 1, []).append(node)
    made = (Written(Range.of(lines[at]), lines[at], tuple(found[at])) for at in sorted(found))
    return {one.place: one for one in made}
