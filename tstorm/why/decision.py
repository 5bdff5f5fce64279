"""What `tstorm why` has found, as text and as JSON."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tstorm.shrink.failures import Failure
from tstorm.why.decision_search import SURE, Estimate, Jump, Search
from tstorm.why.happenings import Happening

SHOWN = 30  # happenings of a jump in the text
MOST = 1000  # in JSON and on the page
BEFORE, AFTER = 1, 2  # further ones around it: what draws need not be seen itself


@dataclass(frozen=True, slots=True)
class Decision:
    """`failed` of `run` is known to have failed at `failed_ns`. `happenings` by their moments."""

    run: str
    failed: Sequence[Failure]
    failed_ns: int
    search: Search
    happenings: Sequence[Happening]
    stopped: bool = False  # before it was done
    # By the moment before a jump: events that were drawn in it
    drawn: Mapping[int, Sequence[Happening]] = field(default_factory=dict)
    knows_packets: bool = True  # they are among `happenings`

    @property
    def by_plan(self) -> bool:
        """All branches at the earliest moment fail."""
        return self.search.decided == (-1, 0)

    @property
    def branches(self) -> int:
        return self.search.most - self.search.left

    def within(self, jump: Jump) -> Sequence[Happening]:
        """What was drawn in a jump first; then what may have happened between its two moments, both
        included, and what is known to have been before and after it."""
        begin_ns, end_ns = jump.before.at_ns, self._end_ns(jump)
        low = bisect_left(self.happenings, begin_ns, key=_moment)
        high = bisect_right(self.happenings, end_ns, key=_moment)
        around = self.happenings[max(low - BEFORE, 0) : high + AFTER]
        late = self.happenings[high + AFTER :]  # lines of logs, whose moments are bounds
        drawn = self.drawn.get(begin_ns, ())
        return [*drawn, *around, *(one for one in late if one.may_be_within(begin_ns, end_ns))]

    def _end_ns(self, jump: Jump) -> int:
        return self.failed_ns if jump.after is None else jump.after.at_ns

    def text(self) -> Iterator[str]:
        if self.stopped:
            asked = f"{self.branches} of {self.search.most} branches"
            yield f"INCOMPLETE: interrupted after {asked}; the moment may be told wrongly"
        for one in self.failed:
            yield f"failed at {_s(self.failed_ns)}: {one.words}"
        yield f"{'branches from':>16}  {'failed':>9}  probability (95 of 100 intervals hold it)"
        for estimate in self.search.course:
            yield _row(estimate)
        if self.by_plan:
            yield "decided at the start, by the plan: nothing that is drawn later has changed it;"
            yield f"the shortest timeline that fails so: tstorm shrink {self.run}"
            return
        if not self.knows_packets:
            yield "packets are not told: where they are recorded, the run is another one"
        jumps = self.search.jumps()
        for jump in jumps:
            yield from self._jump_text(jump, last=jump is jumps[-1])
        if not self.search.is_narrow:
            yield "the moment is not known better than that: more branches (--branches) tell"
        elif not self.search.is_tried_again:
            few = f"fewer than {2 * SURE} branches of that moment were tried"
            yield f"{few}: more branches (--branches) tell"

    def _jump_text(self, jump: Jump, *, last: bool) -> Iterator[str]:
        what = "decided" if last else "became more likely"
        after = "the failure" if jump.after is None else _of(jump.after)
        end = _s(self._end_ns(jump))
        yield ""
        yield f"{what} between {_s(jump.before.at_ns)} ({_of(jump.before)}) and {end} ({after})"
        found = self.within(jump)
        for one in found[:SHOWN]:
            yield f"  {_when(one):>14}  {one.what:6}  {one.words}"
        if len(found) > SHOWN:
            yield f"  and {len(found) - SHOWN} more (--format json has {MOST})"

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "failures": [one.words for one in self.failed],
            "failed_ns": self.failed_ns,
            "decided_by_plan": self.by_plan,
            "narrow": self.search.is_narrow,
            "stopped": self.stopped,
            "knows_packets": self.knows_packets,
            "branches": self.branches,
            "course": [_estimate(one) for one in self.search.course],
            "jumps": [self._jump_json(jump) for jump in self.search.jumps()],
        }

    def _jump_json(self, jump: Jump) -> dict[str, Any]:
        found = self.within(jump)
        return {
            "before": _estimate(jump.before),
            "after": None if jump.after is None else _estimate(jump.after),
            "after_ns": self._end_ns(jump),
            "happenings": [one._asdict() for one in found[:MOST]],
            "more": max(len(found) - MOST, 0),
        }


def row(one: Estimate) -> str:
    """A line of progress."""
    return f"branches from {_s(one.at_ns)}: {_of(one)}"


def _row(one: Estimate) -> str:
    low, high = one.interval
    span = f"{100 * one.share:.0f} % ({100 * low:.0f} to {100 * high:.0f} %)"
    cut = "" if one.is_whole else ", one that passes is enough here"
    return f"{_s(one.at_ns):>16}  {one.fails:3d} of {one.runs:2d}  {span}{cut}"


def _of(one: Estimate) -> str:
    return f"{one.fails} of {one.runs} fail"


def _estimate(one: Estimate) -> dict[str, Any]:
    low, high = one.interval
    return {
        "at_ns": one.at_ns,
        "runs": one.runs,
        "fails": one.fails,
        "share": one.share,
        "whole": one.is_whole,
        "interval": [low, high],
    }


def _when(one: Happening) -> str:
    return _s(one.at_ns) if one.from_ns == one.at_ns else f"until {one.at_ns / 1e9:.3f} s"


def _moment(one: Happening) -> int:
    return one.at_ns


def _s(at_ns: int) -> str:
    return f"{at_ns / 1e9:.9f} s"
