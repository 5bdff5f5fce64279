"""What other hosts have told of their flows.

Input: messages that were found authentic and new. Output: the remote flows as they stand. For each
flow the message with the highest sequence number wins, in whatever order they come; a flow that was
not told of for AGE_NS is forgotten. docs/metadata.md (loss, reordering, age, restart) is the
specification. No I/O; time is an argument.

Flows come by the thousand and every 25 ms, so a message is entered by a few dict.update(), and no
object is made for a flow in it. The RemoteFlow of a flow is made when it is asked for, and again
only when it would be another one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import compress, repeat
from operator import ne

from runtime.agent.metadata.codec import ENDED, MAX_VALUE, WAIT_UNIT_NS, rate_of
from runtime.agent.vocabulary import RemoteFlow

AGE_NS = 3_000_000_000  # a flow lives that long after it was last told of
AGE_STEP_NS = 500_000_000  # the age of a RemoteFlow is in whole ones: 0 as long as it is refreshed
LOOK_NS = 100_000_000  # how often ages are looked at

_AMOUNTS = tuple(rate_of(value >> 1) for value in range(MAX_VALUE + 1))
_RATES = tuple(0 if value & 1 else amount for value, amount in enumerate(_AMOUNTS))
_WAITS = tuple(amount * WAIT_UNIT_NS if value & 1 else 0 for value, amount in enumerate(_AMOUNTS))
_SETTERS = tuple(getattr(RemoteFlow, field.name).__set__ for field in fields(RemoteFlow))
_GREEDY = tuple(value & 1 == 1 for value in range(MAX_VALUE + 1))


class _Account:
    """What one host has told: path -> value, and path -> number and time of the message."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.stamps: dict[int, tuple[int, int]] = {}
        self.look_ns = 0  # when ages are looked at next
        self.flows: dict[int, RemoteFlow] = {}  # those that have not ended, as of some time ago
        self.changed: dict[int, None] = {}  # paths whose entry in `flows` may be wrong

    def grow_old(self, now_ns: int) -> int:
        """Forgets what is too old, ended flows too; how many flows were lost by it."""
        self.look_ns = now_ns + LOOK_NS
        limit, stamps = now_ns - AGE_NS, self.stamps
        old = [path for path, (_, told_ns) in stamps.items() if told_ns < limit]
        for path in old:
            del stamps[path], self.values[path]
            self.changed.pop(path, None)
        lost = sum(self.flows.pop(path, None) is not None for path in old)
        step = AGE_STEP_NS
        self.changed.update(
            (path, None)
            for path, flow in self.flows.items()
            if not 0 <= now_ns - stamps[path][1] - flow.age_ns < step
        )
        return lost


class Ledger:
    """One account a sender."""

    def __init__(self, hosts: int, instances: int, placement: Sequence[int]) -> None:
        self._instances = instances
        self._placement = placement  # instance -> host
        self._accounts = [_Account() for _ in range(hosts)]
        self.aged = 0  # flows that were forgotten because nobody told of them any more

    def forget(self, host: int) -> None:
        """That host has started again: what it told before is void."""
        self._accounts[host] = _Account()

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
        account = self._accounts[host]
        before = list(map(account.values.get, paths))
        if None in before and not self._owns(host, paths):
            return False
        if not newest:
            paths, values = _newer(account.stamps, sequence, paths, values)
            before = list(map(account.values.get, paths))
        if before != values:
            moved = compress(paths, map(ne, values, before))
            account.changed.update(zip(moved, repeat(None), strict=False))
            account.values.update(zip(paths, values, strict=True))
        account.stamps.update(zip(paths, repeat((sequence, now_ns)), strict=False))
        return True

    def _owns(self, host: int, paths: Sequence[int]) -> bool:
        count, placement = self._instances, self._placement
        if paths[-1] >= count * count:
            return False
        return all(
            placement[path // count] == host and path // count != path % count for path in paths
        )

    def flows(self, now_ns: int) -> list[RemoteFlow]:
        """All flows that are told of and have not ended, by host."""
        found: list[RemoteFlow] = []
        for host, account in enumerate(self._accounts):
            if not account.values:
                continue
            if now_ns >= account.look_ns:
                self.aged += account.grow_old(now_ns)
            if account.changed:
                self._renew(host, account, now_ns)
            found += account.flows.values()
        return found

    def _renew(self, host: int, account: _Account, now_ns: int) -> None:
        """Makes the flows anew that may be others now; all at once, which is twice as fast."""
        paths, count = list(account.changed), self._instances
        account.changed.clear()
        values = [account.values[path] for path in paths]
        made = _made(
            len(paths),
            [path // count for path in paths],
            [path % count for path in paths],
            map(_RATES.__getitem__, values),
            map(_GREEDY.__getitem__, values),
            repeat(host),
            [_age(now_ns - account.stamps[path][1]) for path in paths],
            map(_WAITS.__getitem__, values),
        )
        flows = account.flows
        flows.update(zip(paths, made, strict=True))
        if ENDED in values:
            for path, value in zip(paths, values, strict=True):
                if value == ENDED:
                    del flows[path]


def _age(waited_ns: int) -> int:
    """In whole steps; what came a little after now is of age 0 too."""
    return waited_ns // AGE_STEP_NS * AGE_STEP_NS if waited_ns > 0 else 0


def _newer(
    stamps: Mapping[int, tuple[int, int]],
    sequence: int,
    paths: Sequence[int],
    values: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Those of a message that no later one has spoken of."""
    kept = [
        (path, value)
        for path, value in zip(paths, values, strict=True)
        if path not in stamps or stamps[path][0] < sequence
    ]
    return [path for path, _ in kept], [value for _, value in kept]


def _made(count: int, *columns: Iterable[object]) -> list[RemoteFlow]:
    """So many flows, from one column for each of their fields. Does what their __init__ does, by
    column instead of by flow: in a third of the time."""
    made = list(map(object.__new__, repeat(RemoteFlow, count)))
    for put, column in zip(_SETTERS, columns, strict=True):
        deque(map(put, made, column), maxlen=0)
    return made
