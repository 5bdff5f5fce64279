"""Loops of a TDL text: without some of their rounds, and without those that have become empty.

Input: a text that compiles. Output: texts in which a loop has fewer rounds. Rounds that follow each
other stay a loop; a single round is written out, without its loop, unless something in it is
defined for one round only. A loop that declares something, or says what is expected, is left alone,
and so is one over a list, over pairs or with a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tdl.diagnostics import Sink
from tdl.preprocess import heads
from tdl.preprocess.blocks import Item, LoopBlock, blocks
from tdl.preprocess.variables import VARIABLE, named
from tdl.tokens.lexer import LogicalLine, Token, logical_lines
from tstorm.shrink.text import Range, SourceText, Subset

if TYPE_CHECKING:
    from tstorm.shrink.script import Script

_ROUND = re.compile(r"\$(\w+) = ([0-9]+)")
_IN_TEXT = re.compile(rf"\\.|{VARIABLE.pattern}")


@dataclass(frozen=True, slots=True)
class _Found:
    """A loop, and which of its rounds have statements of the timeline."""

    loop: LoopBlock
    name: str
    bounds: Token
    numbers: tuple[int, ...]

    @property
    def first(self) -> int:
        return self.bounds.line

    @property
    def last(self) -> int:
        return _end(self.loop).line


def without_empty(text: str) -> str:
    """Without the loops in which there is nothing."""
    where = SourceText(text)
    gone = [_lines(loop) for loop in _outermost_empty(_items(text)) if _stands_alone(where, loop)]
    for first, last in reversed(gone):
        text = SourceText(text).with_lines(first, last, "")
    return text


def rounds(script: Script) -> Iterator[Subset]:
    """For each loop, which of its rounds are left."""
    for found in _shrinkable(script, _items(script.text), 0):
        yield _choice(SourceText(script.text), found)


def _items(text: str) -> list[Item]:
    return list(blocks(logical_lines(text, Sink()), Sink()))


def _outermost_empty(items: Iterable[Item]) -> Iterator[LoopBlock]:
    for item in items:
        if isinstance(item, LoopBlock):
            if any(True for _ in _inner(item)):
                yield from _outermost_empty(item.body)
            else:
                yield item


def _inner(loop: LoopBlock) -> Iterator[LogicalLine]:
    """Its statements, with those of the loops in it."""
    for item in loop.body:
        if isinstance(item, LoopBlock):
            yield from _inner(item)
        elif item.tokens:
            yield item


def _end(loop: LoopBlock) -> Token:
    assert loop.end is not None, "the text compiles"
    return loop.end.tokens[0]


def _lines(loop: LoopBlock) -> tuple[int, int]:
    return loop.head.tokens[0].line, _end(loop).line


def _stands_alone(text: SourceText, loop: LoopBlock) -> bool:
    """Whether its first and last line have nothing else in them."""
    head, end = loop.head.tokens, _end(loop)
    before = text.line(head[0].line)[: head[0].col - 1] + text.line(end.line)[: end.col - 1]
    after = text.line(head[-1].line)[head[-1].end_col - 1 :]
    return not before.strip() and (not after.strip() or after.lstrip().startswith("#"))


def _shrinkable(script: Script, items: Iterable[Item], depth: int) -> Iterator[_Found]:
    for item in items:
        if not isinstance(item, LoopBlock):
            continue
        yield from _shrinkable(script, item.body, depth + 1)
        said = heads.loop(item.head, Sink())
        bounds = said.only if said is not None else None
        if said is None or bounds is None or not _of_events(script, item):
            continue
        if depth and not all(map(str.isdecimal, bounds)):
            continue  # other rounds in each round of the loop around it
        name = said.names[0].text
        numbers = _numbers(script, item, name)
        if len(numbers) > 1:
            yield _Found(item, name, said.items[0], numbers)


def _of_events(script: Script, loop: LoopBlock) -> bool:
    """Whether all that stands in it are statements of the timeline."""
    first, last = _lines(loop)
    if any(first <= line <= last for line, _ in script.others):
        return False
    return all(line.tokens[0].type != "INCLUDE" for line in _inner(loop))


def _numbers(script: Script, loop: LoopBlock, name: str) -> tuple[int, ...]:
    first, last = _lines(loop)
    notes = {
        node.span.note
        for place, one in script.written.items()
        if first <= place.begin[0] <= last
        for node in one.nodes
    }
    found = (dict(_ROUND.findall(note)) for note in notes)
    return tuple(sorted({int(values[name]) for values in found if name in values}))


def _choice(text: SourceText, found: _Found) -> Subset:
    head = found.loop.head.tokens[0]

    def without(kept: Sequence[int]) -> str | None:
        return _written(text, found, [found.numbers[at] for at in kept])

    what = f"rounds of the loop in line {head.line}"
    return Subset((head.line, head.col), what, len(found.numbers), without)


def _written(text: SourceText, found: _Found, kept: Sequence[int]) -> str | None:
    """None where the loop stands on lines with other things, and these are no rounds in a row."""
    runs = list(_runs(kept))
    single = not any(line.tokens[0].type == "LET" for line in _inner(found.loop))
    alone = _stands_alone(text, found.loop)
    bounds = Range.of([found.bounds])
    if len(runs) == 1 and (runs[0][0] < runs[0][1] or not (single and alone)):
        return text.changed([(bounds, "{}..{}".format(*runs[0]))])
    if not alone:
        return None
    parts = []
    for first, last in runs:
        if first == last and single:
            parts.append(_round(text, found, first))
        else:
            whole = text.changed([(bounds, f"{first}..{last}")])
            parts.append(SourceText(whole).lines(*_lines(found.loop)))
    return text.with_lines(*_lines(found.loop), "".join(parts))


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last of those that follow each other."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] + 1 == number:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return iter(spans)


def _round(text: SourceText, found: _Found, number: int) -> str:
    """The lines of the loop as they are in this round, as far left as the loop is."""
    first, last = _lines(found.loop)
    body = [text.line(at) for at in range(first + 1, last)]
    outer = text.indent(first)
    deep = min((len(text.indent(line.tokens[0].line)) for line in _inner(found.loop)), default=0)
    surplus = max(deep - len(outer), 0)

    def value(match: re.Match[str]) -> str:
        if match[0].startswith("\\") or found.name not in named(match):
            return match[0]
        if found.name in (match[1], match[2]):
            return str(number)
        return re.sub(rf"\b{found.name}\b", str(number), match[0])  # in a sum

    return "".join(
        _IN_TEXT.sub(value, line[surplus:] if not line[:surplus].strip() else line) for line in body
    )
