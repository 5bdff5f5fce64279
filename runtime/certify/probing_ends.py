"""When probing had an end: instances leave, crash or are killed, and the run is over.

A probe that was under way then is told of as arrived if it was there, and not as lost, which takes
longer to know: it is open, or, where nobody reported at the end, told nowhere. So the last ones
before an end say nothing of loss. Times are real ns since the
start of the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from compiler.plan.event_kinds import ENDINGS
from runtime.certify.planned_paths import Pair
from runtime.probing.probe_record import LOST_AT_END_NS, LOST_NS, REPORT_NS

SLACK_NS = 500_000_000  # between an end and the report that it makes
WAIT_NS = SLACK_NS + LOST_NS + REPORT_NS  # then a lost probe was told of, whatever the end
_ENDS = frozenset({*ENDINGS, "killed"})


class ProbingEnds:
    """`records` of events.jsonl; `reached_ns`: how far the run came. `ended_well`: it was there to
    report at its end, which shortens the wait for what is lost; `both`: probes go there and
    back."""

    def __init__(
        self,
        records: Iterable[Mapping[str, Any]],
        numbers: Mapping[str, int],
        reached_ns: int,
        *,
        ended_well: bool,
        both: bool,
    ) -> None:
        self.reached_ns = reached_ns
        self._ends: dict[int, list[int]] = defaultdict(list)
        for record in records:
            node = numbers.get(str(record.get("target", "")))
            if node is not None and record.get("kind") in _ENDS and "applied_ns" in record:
                self._ends[node].append(int(record["applied_ns"]))
        for ends in self._ends.values():
            ends.sort()
        at_end_ns = LOST_NS if both else LOST_AT_END_NS
        self._wait_ns = SLACK_NS + at_end_ns if ended_well else WAIT_NS

    def next_end(self, pair: Pair, at_ns: int) -> int:
        """The first one at this moment or later."""
        found = self.reached_ns
        for node in pair:
            ends = self._ends.get(node, ())
            place = bisect_left(ends, at_ns)
            if place < len(ends):
                found = min(found, ends[place])
        return found

    def known_until(self, pair: Pair, begin_ns: int, end_ns: int, planned_ns: int) -> int:
        """Until when everything is known that was sent in a span in which both are there by the
        plan; `planned_ns`: see knows_loss."""
        return min(end_ns, self.next_end(pair, begin_ns)) - self._wait_ns - planned_ns

    def knows_loss(self, pair: Pair, sent_ns: int, planned_ns: int) -> bool:
        """Whether a probe of this moment would have been told of, had it been lost; `planned_ns`:
        the longest time that the plan ever has for its way."""
        return sent_ns + planned_ns + self._wait_ns <= self.next_end(pair, sent_ns)
