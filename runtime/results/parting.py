"""The first event, packet or line of a log at which two runs in virtual time part.

Their plans may differ (two seeds): events are compared by moment, target and kind, and counters
are left out. Of a line only bounds of its moment are known (loglines.py): it is the first if it was
there before anything else differs, and named beside the first if it may have been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from runtime.results.everything import packet_differences
from runtime.results.filetree import RunDifference, Tally, first_difference, shortened
from runtime.results.loglines import LogRecord, Merger
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import read_lines
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import EVENTS, HEADER, LOGS, PACKETS

Moment = tuple[int, str, str]  # when, target, kind


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """Where two runs part, as far as what they have recorded tells."""

    earliest: RunDifference | None  # None: nothing that was compared differs
    not_compared: tuple[str, ...]  # in words; if any, an earlier difference is possible
    maybe_earlier: tuple[RunDifference, ...] = ()  # lines of logs, at the latest

    @property
    def is_first(self) -> bool:
        known = not self.not_compared and not self.maybe_earlier
        return self.earliest is not None and known


def part(first: RunDirectory, second: RunDirectory) -> FirstDifference:
    """RunError if something in the directories is damaged."""
    left_out = ["counters of links and pairs", "files of instances", "measurements of probes"]
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
    lines = list(_lines(first, second, left_out))
    found += [one for _, one in lines]
    earliest = min(found, key=lambda one: (one.at_ns or 0, one.what, one.subject), default=None)
    at_ns = 0 if earliest is None else earliest.at_ns or 0
    maybe = (one for from_ns, one in lines if one is not earliest and from_ns < at_ns)
    return FirstDifference(earliest, tuple(left_out), tuple(maybe))


def _lines(
    first: RunDirectory, second: RunDirectory, left_out: list[str]
) -> Iterator[tuple[int, RunDifference]]:
    """The first line of each log that differs, and when it was not there yet."""
    if not all(LOGS in run.names() for run in (first, second)):
        left_out.append("logs: not both runs have them")
        return
    mine, theirs = Merger(first), Merger(second)
    both = set(mine.instances()), set(theirs.instances())
    for name in sorted(both[0] | both[1]):
        pairs = zip_longest(*(_of_log(run, name) for run in (mine, theirs)))
        found = next((pair for pair in pairs if _text(pair[0]) != _text(pair[1])), None)
        if found is None:
            continue
        known = [one for one in found if one is not None]
        until = [one.until_ns for one in known if one.until_ns is not None]
        if not until:
            left_out.append(f"the log of {name}, whose line {_shown(known[0])!r} has no moment")
            continue
        from_ns = min(-1 if one.from_ns is None else one.from_ns for one in known)
        yield from_ns, RunDifference("log", name, min(until), _shown(found[0]), _shown(found[1]))


def _of_log(run: Merger, name: str) -> Iterator[LogRecord]:
    return run.lines(name) if name in run.instances() else iter(())


def _text(line: LogRecord | None) -> str | None:
    return None if line is None else line.text


def _shown(line: LogRecord | None) -> str:
    return "" if line is None else shortened(line.text) or "an empty line"


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
