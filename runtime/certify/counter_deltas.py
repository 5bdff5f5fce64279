"""What counters have gained since they were told last, in sums of a bucket.

Samples come oftener than buckets end, and mostly tell of the same keys again. So a sample is only
compared with the one before, column by column, and what was gained is summed up when the bucket
ends, or when a sample tells of other keys. A counter that fell has begun anew: it gained nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import lt, sub

from runtime.certify.byte_buckets import BUCKET_NS

Columns = Sequence[Sequence[int]]  # of each counter its values, in the order of keys
Tell = Callable[[Sequence[int], int, Columns], None]


class Gains:
    """Calls `tell` with keys, a time in the bucket, and what each counter has gained in it."""

    def __init__(self, width: int, tell: Tell) -> None:
        """`width`: counters of each key."""
        self._tell = tell
        self._nothing = (0,) * width
        self._before: dict[int, tuple[int, ...]] = {}  # of keys that are not in `_keys`
        self._keys: Sequence[int] = ()
        self._told: Columns = ()
        self._last: Columns = ()
        self._at_ns = 0

    def take(self, at_ns: int, keys: Sequence[int], columns: Columns) -> None:
        """A sample; a key may be there several times."""
        if not keys:
            return
        if keys != self._keys:
            if len(set(keys)) < len(keys):
                for place, key in enumerate(keys):
                    self.take(at_ns, (key,), [(column[place],) for column in columns])
                return
            self.end()
            self._begin(keys)
        elif at_ns // BUCKET_NS != self._at_ns // BUCKET_NS:
            self._sum_up()
        self._at_ns = at_ns
        if any(any(map(lt, now, before)) for now, before in zip(columns, self._last, strict=True)):
            self._sum_up()
            self._told = [
                tuple(map(min, now, before))
                for now, before in zip(columns, self._last, strict=True)
            ]
        self._last = columns

    def _begin(self, keys: Sequence[int]) -> None:
        self._keys = keys
        found = [self._before.pop(key, self._nothing) for key in keys]
        self._told = self._last = list(zip(*found, strict=True))

    def _sum_up(self) -> None:
        gained = [
            tuple(map(sub, now, before)) for now, before in zip(self._last, self._told, strict=True)
        ]
        self._told = self._last
        self._tell(self._keys, self._at_ns, gained)

    def end(self) -> None:
        """Tells the rest."""
        if self._keys:
            self._sum_up()
            self._before.update(zip(self._keys, zip(*self._last, strict=True), strict=True))
            self._keys = ()
