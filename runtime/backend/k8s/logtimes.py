"""When lines of pods' logs were written, as logs.jsonl says it (backend/local/log_watch.py).

Kubelet has a time for each line: that of the node's wall clock when the container runtime read it
from the program. So it was written up to LAG_NS before, and the clock is known within a bound.
Lines of one log are in the order in which they were written, whatever the clock says.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime

from runtime.rundir.line_files import LineFile

LAG_NS = 100_000_000  # from a write until the container runtime has read it
INTERVAL_NS = 100_000_000  # rows of lines that are nearer to each other are one
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")

Moment = Callable[[str, int], tuple[int, int] | None]
"""Of an instance's node and a time of its wall clock (ns since 1970): ns since time 0, and by how
much that may be wrong. None if it is not known."""


def unix_ns(stamp: str) -> int | None:
    """Of a time as kubelet writes it (RFC 3339); None for anything else."""
    found = _STAMP.fullmatch(stamp)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00"))
    except ValueError:
        return None
    seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _SECOND
    return seconds * 10**9 + int((found[2] or "").ljust(9, "0"))


_SECOND = datetime(1970, 1, 1, 0, 0, 1) - datetime(1970, 1, 1)


class LogTimes:
    """`add` for each line, in the order of its log; rows are written by `write`."""

    def __init__(self, file: LineFile, moment: Moment) -> None:
        self._file = file
        self._moment = moment
        self._reached: dict[str, tuple[int, int]] = {}  # from, until, of the last line of each
        self._early: dict[str, int] = {}  # sizes
        self._rows: dict[int, tuple[int, int, dict[str, int]]] = {}  # from, until, sizes

    def add(self, instance: str, at_unix_ns: int, size: int) -> None:
        """With this line the log has `size` bytes."""
        known = self._moment(instance, at_unix_ns)
        if known is None:
            self._early[instance] = size
            return
        self._early.pop(instance, None)
        at_ns, bound_ns = known
        before = self._reached.get(instance, (at_ns - bound_ns - LAG_NS, at_ns + bound_ns))
        from_ns = max(at_ns - bound_ns - LAG_NS, before[0])
        until_ns = max(at_ns + bound_ns, before[1])
        self._reached[instance] = from_ns, until_ns
        begun, ended, sizes = self._rows.get(until_ns // INTERVAL_NS, (from_ns, until_ns, {}))
        sizes[instance] = size
        row = min(begun, from_ns), max(ended, until_ns), sizes
        self._rows[until_ns // INTERVAL_NS] = row

    def write(self) -> None:
        """What was added since; of what came before time 0 was known, once that is over."""
        for instance, size in sorted(self._early.items()):
            now = self._moment(instance, time.time_ns())
            if now is not None and now[0] > 0:
                self._rows.setdefault(0, (0, 0, {}))[2][instance] = size
                self._reached[instance] = 0, 0
                del self._early[instance]
        for _, (from_ns, until_ns, sizes) in sorted(self._rows.items()):
            moments = {"from_ns": from_ns, "elapsed_ns": until_ns}
            self._file.append({**moments, "bytes": dict(sorted(sizes.items()))})
        self._rows.clear()

    def close(self) -> None:
        self.write()
        self._file.close()
