"""What other hosts have told of their flows.

Input: messages that were found authentic and new. Output: the remote flows as they stand. For each
flow the message with the highest sequence number wins, in whatever order they come; a flow that was
not told of for AGE_NS is forgotten. docs/metadata.md (loss, reordering, age, restart) is the
specification. No I/O; time is an argument.

Flows come by the thousand and every 25 ms, so one message is one dict.update(), and RemoteFlow
objects are made only for whoever iterates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import overload

from runtime.agent.codec import ENDED, MAX_VALUE, rate_of
from runtime.agent.types import RemoteFlow

AGE_NS = 3_000_000_000  # a flow lives that long after it was last told of

_Stamp = tuple[int, int]  # sequence, when it came
_Entry = tuple[int, _Stamp]  # value, and the message that said so
_RATES = tuple(rate_of(value >> 1) for value in range(MAX_VALUE + 1))


class RemoteFlows(Sequence[RemoteFlow]):
    """The flows at one moment, by host and path. `rows()` is the fast way through them."""

    __slots__ = ("_entries", "_hosts", "_instances", "_now_ns")

    def __init__(
        self, entries: list[tuple[int, _Entry]], hosts: list[int], instances: int, now_ns: int
    ) -> None:
        self._entries = entries
        self._hosts = hosts  # of each entry
        self._instances = instances
        self._now_ns = now_ns

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, at: int) -> RemoteFlow: ...
    @overload
    def __getitem__(self, at: slice) -> list[RemoteFlow]: ...
    def __getitem__(self, at: int | slice) -> RemoteFlow | list[RemoteFlow]:
        if isinstance(at, slice):
            return [self._flow(i) for i in range(*at.indices(len(self)))]
        return self._flow(at)

    def __iter__(self) -> Iterator[RemoteFlow]:
        return map(self._flow, range(len(self._entries)))

    def _flow(self, at: int) -> RemoteFlow:
        path, (value, (_, told_ns)) = self._entries[at]
        src, dst = divmod(path, self._instances)
        age_ns = self._now_ns - told_ns
        return RemoteFlow(src, dst, _RATES[value], bool(value & 1), self._hosts[at], age_ns)

    def rows(self) -> Iterator[tuple[int, int, bool]]:
        """(src × instances + dst, demand_bps, greedy) of each flow."""
        rates = _RATES
        return ((path, rates[entry[0]], entry[0] & 1 == 1) for path, entry in self._entries)


class Ledger:
    """One account a sender."""

    def __init__(self, hosts: int, instances: int, placement: Sequence[int]) -> None:
        self._instances = instances
        self._placement = placement  # instance -> host
        self._told: list[dict[int, _Entry]] = [{} for _ in range(hosts)]
        self._oldest_ns = [0] * hosts  # nothing of that sender is older
        self.aged = 0  # flows that were forgotten because nobody told of them any more

    def forget(self, host: int) -> None:
        """That host has started again: what it told before is void."""
        self._told[host].clear()

    def take(
        self,
        host: int,
        sequence: int,
        newest: bool,
        now_ns: int,
        paths: Sequence[int],
        values: Sequence[int],
    ) -> bool:
        """Enters one message; False, and nothing entered, if a flow in it is not that host's.

        `newest`: no message of that host has had a higher sequence number. Paths ascend.
        """
        told = self._told[host]
        if not told:
            self._oldest_ns[host] = now_ns
        if not all(map(told.__contains__, paths)) and not self._owns(host, paths):
            return False
        stamp = (sequence, now_ns)
        if newest:
            told.update(zip(paths, zip(values, repeat(stamp)), strict=False))
            return True
        for path, value in zip(paths, values, strict=True):
            entry = told.get(path)
            if entry is None or entry[1][0] < sequence:
                told[path] = (value, stamp)
        return True

    def _owns(self, host: int, paths: Sequence[int]) -> bool:
        count, placement = self._instances, self._placement
        if paths[-1] >= count * count:
            return False
        return all(
            placement[path // count] == host and path // count != path % count for path in paths
        )

    def flows(self, now_ns: int) -> RemoteFlows:
        """All flows that are told of and have not ended."""
        entries: list[tuple[int, _Entry]] = []
        hosts: list[int] = []
        for host, told in enumerate(self._told):
            if not told:
                continue
            if now_ns - self._oldest_ns[host] > AGE_NS:
                self._expire(host, now_ns)
            found = [item for item in told.items() if item[1][0] != ENDED]
            entries += found
            hosts += [host] * len(found)
        return RemoteFlows(entries, hosts, self._instances, now_ns)

    def _expire(self, host: int, now_ns: int) -> None:
        """Forgets what is too old, ended flows too, and notes when the next one can be."""
        told, limit = self._told[host], now_ns - AGE_NS
        old = [path for path, entry in told.items() if entry[1][1] < limit]
        for path in old:
            self.aged += told.pop(path)[0] != ENDED
        self._oldest_ns[host] = min((entry[1][1] for entry in told.values()), default=now_ns)
