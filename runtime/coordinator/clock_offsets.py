"""How far another clock is from ours, within which bound, and how fast it moves away.

Input: exchanges of four times (t1 asked, here; t2 received, t3 answered, there; t4 answer received,
here), as in NTP (RFC 5905, section 8). Both directions take at least no time, so the true offset
(there minus here) lies between t3 - t4 and t2 - t1, however the round trip is split: the middle is
wrong by half the round trip at most. To that comes what two clocks can drift apart while the
exchange lasts (the kernel slews CLOCK_MONOTONIC by 500 ppm at most, adjtimex(2)). So the bound is a
fact, not an estimate. Of several exchanges the one with the least bound is taken, which is the one
with the shortest round trip (the others waited somewhere). All times are ns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

EXCHANGES = 8  # a measurement, unless there are many hosts to watch
WATCH_EXCHANGES = 160  # a second, of all hosts together: they cost 2 to 4 % of a core
APART_PPM = 1000  # two clocks, one fast and one slow


class ClockError(ValueError):
    """Four times that no two clocks can have shown."""


@dataclass(frozen=True, slots=True)
class Offset:
    """At `at_ns` (here) the other clock showed at_ns + offset_ns, give or take bound_ns."""

    at_ns: int
    offset_ns: int
    bound_ns: int

    def there(self, here_ns: int) -> int:
        """The other clock's time at a moment of ours, without drift."""
        return here_ns + self.offset_ns

    def here(self, there_ns: int) -> int:
        return there_ns - self.offset_ns


@dataclass(frozen=True, slots=True)
class ClockExchange:
    """Four times; `t1_ns` and `t4_ns` of our clock, the two between of the other one."""

    t1_ns: int
    t2_ns: int
    t3_ns: int
    t4_ns: int

    def __post_init__(self) -> None:
        if self.t4_ns < self.t1_ns or self.t3_ns < self.t2_ns:
            raise ClockError("a clock ran backwards")
        if self.round_trip_ns < -self._apart_ns:
            raise ClockError(
                "the time that it reports for its answer is longer than the wait for the answer"
            )

    @property
    def round_trip_ns(self) -> int:
        """On the way; without the time between question and answer over there."""
        return (self.t4_ns - self.t1_ns) - (self.t3_ns - self.t2_ns)

    @property
    def _apart_ns(self) -> int:
        """What the clocks can have drifted apart, rounded up."""
        return -(-(self.t4_ns - self.t1_ns) * APART_PPM // 10**6)

    def offset(self) -> Offset:
        """Rounded so that the interval holds both its ends."""
        low, high = self.t3_ns - self.t4_ns, self.t2_ns - self.t1_ns
        middle = (low + high) // 2
        bound = max(high - middle, 0) + self._apart_ns
        return Offset((self.t1_ns + self.t4_ns) // 2, middle, bound)


def measured(exchanges: Iterable[ClockExchange]) -> Offset:
    """The offset by the best of them, the first of equal ones."""
    return min((exchange.offset() for exchange in exchanges), key=lambda found: found.bound_ns)


def watching(hosts: int, seconds: float) -> tuple[int, float]:
    """How many exchanges a measurement of a running clock has, and how many seconds there are
    between two of the same, `seconds` if possible.

    With many hosts measurements have fewer exchanges, then there are fewer measurements: all of
    them together have WATCH_EXCHANGES in `seconds` at most.
    """
    exchanges = min(max(WATCH_EXCHANGES // hosts, 1), EXCHANGES)
    return exchanges, seconds * max(1.0, hosts * exchanges / WATCH_EXCHANGES)


@dataclass(frozen=True, slots=True)
class Drift:
    """How much faster the other clock runs, in ns a second (= ppb), give or take `bound_ppb`."""

    ppb: int
    bound_ppb: int


class ClockRecord:
    """One host's offsets through a run: the first, the last, and the widest bound."""

    def __init__(self) -> None:
        self.first: Offset | None = None
        self.last: Offset | None = None
        self.largest_bound_ns = 0
        self.count = 0

    def add(self, offset: Offset) -> None:
        self.first = self.first or offset
        self.last = offset
        self.largest_bound_ns = max(self.largest_bound_ns, offset.bound_ns)
        self.count += 1

    def restart(self) -> None:
        """Another clock is measured from now on; the widest bound is kept."""
        self.first = self.last = None

    def drift(self) -> Drift | None:
        """From the first to the last; None before there are two."""
        first, last = self.first, self.last
        if first is None or last is None or last.at_ns <= first.at_ns:
            return None
        elapsed = last.at_ns - first.at_ns
        moved = last.offset_ns - first.offset_ns
        unsure = first.bound_ns + last.bound_ns
        return Drift(moved * 10**9 // elapsed, -(-unsure * 10**9 // elapsed))

    def away_ns(self, since: Offset) -> int:
        """By how much the clock may have moved since `since`, at least (bounds taken off)."""
        if self.last is None:
            return 0
        moved = abs(self.last.offset_ns - since.offset_ns)
        return max(0, moved - self.last.bound_ns - since.bound_ns)

    def as_record(self) -> dict[str, object]:
        """For a run's manifest."""
        drift = self.drift()
        return {
            "first": _offset_record(self.first),
            "last": _offset_record(self.last),
            "largest_bound_ns": self.largest_bound_ns,
            "measurements": self.count,
            "drift_ppb": drift.ppb if drift else None,
            "drift_bound_ppb": drift.bound_ppb if drift else None,
        }


def _offset_record(offset: Offset | None) -> dict[str, int] | None:
    if offset is None:
        return None
    return {
        "at_ns": offset.at_ns,
        "offset_ns": offset.offset_ns,
        "bound_ns": offset.bound_ns,
    }
