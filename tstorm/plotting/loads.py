"""What each direction of a link carried around a moment of a run.

Input: a run's samples and a moment T. Output: mean rates between the last sample at T or before and
the first one a fiftieth of the run later, or why there are none. Where the run ends sooner, it is
its last fiftieth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtime.rundir.sample_reader import LINKS
from tstorm.plotting.marks import BUCKETS
from tstorm.plotting.subject import SECOND, Subject

LEAST_NS = 500_000_000  # of real time: samples come every 100 ms


@dataclass(frozen=True, slots=True)
class Loads:
    rates_bps: Mapping[int, float]  # by link; what is not there carried nothing
    begin_ns: int
    end_ns: int


def loads(what: Subject, at_ns: int) -> Loads | str:
    """In words why there are none. RunError."""
    schedule = what.schedule()
    start_ns, end_ns = schedule.options.start_at_ns, schedule.end_ns
    pace = schedule.options.pace
    width_ns = max((end_ns - start_ns) // BUCKETS, LEAST_NS * pace)
    from_ns = max(min(at_ns, end_ns - width_ns), start_ns)
    if not start_ns <= at_ns <= end_ns:
        return "the run did not go on then"
    before, last = _counters(what, start_ns, from_ns, from_ns + width_ns)
    if not last.counted:
        return "the run has no counters of links: nothing moved, or no process saw links"
    if last.at_ns <= max(before.at_ns, at_ns - width_ns):
        return "the run has recorded nothing then"
    real_s = (last.at_ns - before.at_ns) / pace / SECOND
    rates = {
        link: 8 * max(count - before.counted.get(link, 0), 0) / real_s
        for link, count in sorted(last.counted.items())
    }
    return Loads(rates, before.at_ns, last.at_ns)


@dataclass(frozen=True, slots=True)
class _Counted:
    at_ns: int
    counted: Mapping[int, int]  # bytes that have left each link


def _counters(
    what: Subject, start_ns: int, from_ns: int, until_ns: int
) -> tuple[_Counted, _Counted]:
    """At the last sample up to `from_ns`, and at the first from `until_ns` on, else the last."""
    counted: dict[int, int] = {}
    before = _Counted(start_ns, {})
    last_ns = start_ns
    for sample in what.samples():
        if sample.at_ns > from_ns >= last_ns:
            before = _Counted(last_ns, dict(counted))
        for _, row in sample.rows(LINKS):
            if "out_bytes" in row:
                counted[row["link"]] = row["out_bytes"]
        last_ns = sample.at_ns
        if last_ns >= until_ns:
            break
    else:
        if last_ns <= from_ns:
            before = _Counted(last_ns, dict(counted))
    return before, _Counted(last_ns, counted)
