"""When instances are there, from the events of the timeline.

Input: events. Output: for each instance the intervals [from, to) in which it is joined. What is
disconnected or paused is there, too. Two questions: is an instance there in an interval, and are
two at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler.plan.format import MAX_INT
from compiler.plan.types import Event

Interval = tuple[int, int]
_ENDS = ("leave", "crash")


class Presence:
    """`there` asks about a closed interval, as expectations have them."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._since: dict[str, int] = {}
        self._spans: dict[str, list[Interval]] = {}
        for event in events:
            if event.kind == "join":
                self._since[event.target] = event.at_ns
            elif event.kind in _ENDS:
                self._end(event.target, event.at_ns)
        for name in list(self._since):
            self._end(name, MAX_INT)

    def _end(self, name: str, at_ns: int) -> None:
        since = self._since.pop(name, None)
        if since is not None and since < at_ns:
            self._spans.setdefault(name, []).append((since, at_ns))

    def there(self, name: str, from_ns: int, to_ns: int) -> bool:
        return any(since <= to_ns and from_ns < end for since, end in self._spans.get(name, ()))

    def together(self, a: str, b: str, from_ns: int, to_ns: int) -> bool:
        """Whether both are there at some moment of the interval."""
        for first_since, first_end in self._spans.get(a, ()):
            for since, end in self._spans.get(b, ()):
                moment = max(first_since, since, from_ns)
                if moment <= to_ns and moment < min(first_end, end):
                    return True
        return False
