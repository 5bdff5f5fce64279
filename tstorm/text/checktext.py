"""What `tstorm replay --check` found, in words and as records."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.say import some
from tstorm import output

if TYPE_CHECKING:
    from runtime.results.event_comparison import EventDifference
    from runtime.results.filetree import RunDifference

SHOWN_NAMES = 20
SHOWN_DIFFERENCES = 10  # of everything; the others are counted
EVENTS, EVERYTHING = "events", "everything"
COMPUTING_DIFFERS = (
    "computing took virtual time (--cpu), as much as it took this machine, so no two runs are the"
    " same to the last byte: events and outcomes alone were compared"
)


@dataclass(frozen=True, slots=True)
class ReplayComparison:
    """What a comparison found. `everything` is None where events alone were compared."""

    events: Sequence[EventDifference] = ()
    everything: Sequence[RunDifference] | None = None
    compared: str = ""  # of everything: what, in words
    why_no_more: str = ""  # of events alone, where more might be expected

    @property
    def holds(self) -> bool:
        """Events, which the plan decides, are the same, and every program that was to start did so
        in both runs; with everything compared, all of it is the same.

        Of events alone, programs that ended by themselves in only one of the runs are told, but
        decide nothing: in real time the plan fixes what is done to programs, not what they make of
        it.
        """
        return not self.everything and all(one.what == "exit" for one in self.events)

    def records(self) -> dict[str, Any]:
        """For JSON."""
        events = self.events
        if self.everything is not None:
            events = [one for one in events if one.what == "start"]
        whole = [one.to_record() for one in self.everything or ()]
        return {
            "compared": EVENTS if self.everything is None else EVERYTHING,
            "differences": [*whole, *map(_record, events)],
            **({"why_no_more": self.why_no_more} if self.why_no_more else {}),
        }

    def tell(self, form: str) -> None:
        """Differences on stdout, unless `form` is json; what they come to on stderr."""
        if form == "text":
            with output.product_kept_going():
                _list(self)
        with output.kept_going(sys.stderr):
            _sum_up(self)


def _record(difference: EventDifference) -> dict[str, Any]:
    return {
        "what": difference.what,
        "seq": difference.seq,
        "recorded": difference.first,
        "replayed": difference.second,
    }


def _list(check: ReplayComparison) -> None:
    if check.everything is None:
        for event in check.events:
            place = f"event {event.seq}" if event.what == "event" else "program"
            _line(place, event.first, event.second)
        return
    for one in check.everything[:SHOWN_DIFFERENCES]:
        when = "" if one.at_ns is None else f"at {one.at_ns / 1e9:.9f} s "
        more = f"; {one.more:,} more after it" if one.more else ""
        _line(f"{when}{one.what} {one.subject}", one.first, one.second, more)
    hidden = len(check.everything) - SHOWN_DIFFERENCES
    if hidden > 0:
        output.line(f"… and {hidden:,} more places")


def _line(place: str, recorded: str, replayed: str, more: str = "") -> None:
    output.line(
        f"{place}: recorded: {recorded or 'nothing'}; replayed: {replayed or 'nothing'}{more}"
    )


def _sum_up(check: ReplayComparison) -> None:
    starts = [one.target for one in check.events if one.what == "start"]
    if check.why_no_more:
        output.note(f"check: {check.why_no_more}")
    if check.everything is None:
        _sum_up_events(check, starts)
    elif check.everything:
        first = min((one.at_ns for one in check.everything if one.at_ns is not None), default=None)
        since = "" if first is None else f"; the first moment is {first / 1e9:.9f} s"
        count = len(check.everything)
        places = "one place" if count == 1 else f"{count:,} places"
        output.note(f"check: the runs differ in {places}{since}")
    else:
        output.note(f"check: everything is the same: {check.compared}")
    if starts:
        output.note(
            f"check: programs that could not start in one of the runs or in both prove nothing:"
            f" {some(starts, SHOWN_NAMES)}"
        )


def _sum_up_events(check: ReplayComparison, starts: Sequence[str]) -> None:
    differ = sum(one.what == "event" for one in check.events)
    if differ:
        output.note(f"check: {differ} events differ")
    elif not starts:
        output.note("check: the same events, on the same targets, in the same order")
