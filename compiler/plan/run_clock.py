"""When what stands in a text happens in a run whose planned events were held, or skipped, by hand.

The walk (compiler/expand) knows the times of the text only; here its events get those of the run.
While events are held the text's time stands still; what is skipped happens at one moment. Texts of
actions say it in comments (compiler/plan/parts/action_texts.py), in the order of their numbers:

    #: hold T      from time T of the text on everything waits
    #: go R        until R, a time of the run
    #: skip T U    what is after T, up to U, happens at T
    #: now R       what this action does at once, while events are held, happens at R
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from compiler.plan.parts import action_texts
from compiler.plan.types import Event

_DIRECTIVE = re.compile(rb"^#: (hold|go|skip|now) ([0-9]{1,19})(?: ([0-9]{1,19}))?$", re.M)


@dataclass(frozen=True, slots=True)
class _Piece:
    """From `text_ns` on, without it: `run_ns` then; None: not before somebody says go."""

    text_ns: int
    run_ns: int | None
    stands: bool = False  # all of it happens then


@dataclass(slots=True)
class RunClock:
    """`is_plain`: nobody has held or skipped anything. `told_ns`: the last time of the run that was
    told, -1 if none was."""

    pieces: list[_Piece] = field(default_factory=lambda: [_Piece(-1, -1)])
    at_once: dict[int, tuple[int, int]] = field(default_factory=dict)  # by action: text, run
    told_ns: int = -1

    @property
    def is_plain(self) -> bool:
        return len(self.pieces) == 1

    @property
    def held_ns(self) -> int | None:
        """Where the text's time stands still."""
        last = self.pieces[-1]
        return last.text_ns if last.run_ns is None else None

    @property
    def free_ns(self) -> int:
        """From then on something can be done, time of the run: after all that was told, and where
        the text goes on, after it went on."""
        told_ns = self.told_ns
        goes_on = not self.is_plain and self.held_ns is None
        return told_ns + (goes_on and self.run(self.text(told_ns)) != told_ns)

    def run(self, text_ns: int, action: int = 0) -> int | None:
        """None: it waits."""
        at_once = self.at_once.get(action)
        if at_once is not None and at_once[0] == text_ns:
            return at_once[1]
        piece = next(one for one in reversed(self.pieces) if one.text_ns < text_ns)
        if piece.run_ns is None:
            return None
        return piece.run_ns + (0 if piece.stands else text_ns - piece.text_ns)

    def text(self, run_ns: int) -> int:
        """The time of the text at a later moment of the run than any that was told."""
        last = self.pieces[-1]
        return last.text_ns + (0 if last.run_ns is None else run_ns - last.run_ns)

    def tell(self, action: int, word: str, first: int, second: int) -> None:
        """A directive, as it stands in the text of an action."""
        now_ns: int | None = first
        if word == "hold":
            now_ns = self.run(first)
            self.pieces.append(_Piece(first, None))
        elif word == "go" and self.held_ns is not None:
            self.pieces[-1] = replace(self.pieces[-1], run_ns=first)
        elif word == "skip":
            now_ns = self.run(first) if self.pieces[-1].text_ns != first else self.pieces[-1].run_ns
            self.pieces += [_Piece(first, now_ns, stands=True), _Piece(second, now_ns)]
        elif word == "now" and self.held_ns is not None:
            self.at_once[action] = self.held_ns, first
        self.told_ns = max(self.told_ns, -1 if now_ns is None else now_ns)

    def carried_out(self, events: Iterable[Event]) -> Iterator[Event]:
        """Those that do not wait, with their times in the run."""
        for event in events:
            at_ns = self.run(event.at_ns, action_texts.number_of(event.file))
            if at_ns is None:
                return
            yield replace(event, at_ns=at_ns)


def moves_events(text: bytes) -> bool:
    """Whether an action with this text holds events, lets them go or skips some."""
    return any(word != b"now" for word, _, _ in _DIRECTIVE.findall(text))


def read(texts: Mapping[str, bytes]) -> RunClock:
    """Of included texts, by name."""
    clock = RunClock()
    found = {action_texts.number_of(name): data for name, data in texts.items()}
    for number in sorted(found.keys() - {0}):
        for word, first, second in _DIRECTIVE.findall(found[number]):
            clock.tell(number, word.decode(), int(first), int(second or 0))
    return clock
