"""The first event and the first packet at which two runs in virtual time part.

Their plans may differ (two seeds): events are compared by moment, target and kind, and counters
are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from runtime.results.everything import packet_differences
from runtime.results.filetree import RunDifference, Tally, first_difference
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import read_lines
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import EVENTS, HEADER, PACKETS

Moment = tuple[int, str, str]  # when, target, kind


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """Where two runs part, as far as what they have recorded tells."""

    earliest: RunDifference | None  # None: nothing that was compared differs
    not_compared: tuple[str, ...]  # in words; if any, an earlier difference is possible

    @property
    def is_first(self) -> bool:
        return self.earliest is not None and not self.not_compared


def part(first: RunDirectory, second: RunDirectory) -> FirstDifference:
    """RunError if something in the directories is damaged."""
    left_out = ["counters of links and pairs", "logs and files of instances"]
    mine, theirs = (_Events(run) for run in (first, second))
    left_out += sorted(f"events without a moment: {kind}" for kind in mine.undated ^ theirs.undated)
    found = [*_event(mine.moments, theirs.moments)]
    if first.has(PACKETS) and second.has(PACKETS):
        for one in packet_differences(first, second, Tally()):
            if one.at_ns is None:
                left_out.append(f"packets of {one.subject}")
            else:
                found.append(one)
    else:
        left_out.append("packets: not both runs have recorded them")
    earliest = min(found, key=lambda one: (one.at_ns or 0, one.what, one.subject), default=None)
    return FirstDifference(earliest, tuple(left_out))


class _Events:
    """Those of a run: moments, sorted since events of one moment have no order that both runs must
    share; and what is known of others, how often each kind was recorded."""

    def __init__(self, run: HeldDirectory) -> None:
        self.moments: list[Moment] = []
        without: Counter[str] = Counter()
        for line in read_lines(run, EVENTS) if run.has(EVENTS) else ():
            at_ns, kind = line.get("applied_ns"), str(line.get("kind", ""))
            if type(at_ns) is int:
                self.moments.append((at_ns, str(line.get("target", "")), kind))
            elif kind != HEADER:
                words = (kind, line.get("target"), line.get("state"), line.get("error"))
                without[" ".join(str(word) for word in words if word)] += 1
        self.moments.sort()
        self.undated = {f"{words} ({count})" for words, count in without.items()}


def _event(first: list[Moment], second: list[Moment]) -> Iterator[RunDifference]:
    found = first_difference(zip_longest(first, second))
    if found is None:
        return
    mine, theirs, more = found
    one = min(moment for moment in (mine, theirs) if moment)
    yield RunDifference("event", one[1], one[0], _words(mine), _words(theirs), more)


def _words(moment: Moment | None) -> str:
    return "" if moment is None else f"{moment[0] / 1e9:.9f} s {moment[2]} {moment[1]}".rstrip()
