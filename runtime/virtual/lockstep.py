"""Several guests in virtual time, advanced together, each on a processor of its own.

What a guest does at time t reaches its neighbour over a cable at t + the cable's delay at the
earliest, and that far the neighbour may go alone: the conservative method of parallel simulation,
with the delay as look-ahead. A step:

1. all guests wait; each says when it next has something to do (`next_ns` on its clock page)
2. what they have sent is handed to its receivers, which note it for when it arrives, and wait again
3. each may go as far as nothing that others are going to do reaches it; those that have something
   to do until then run, at the same time

So what a guest hears, and at which of its moments, follows from the guests alone. It does not
depend on which of them ran faster.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.errors import RunError
from runtime.virtual.cable import Cable, CableEnd
from runtime.virtual.clockpage import ClockPage, State

LOOK_S = 0.0005  # while guests run: how often somebody takes what they have sent


@dataclass(frozen=True, slots=True)
class Member:
    """A guest that was started with a limit of 0."""

    name: str
    process: subprocess.Popen[bytes]
    page: ClockPage


@dataclass(slots=True)
class Counts:
    steps: int = 0
    frames: int = 0  # handed over
    unheard: int = 0  # frames to a guest that had not opened its line, or had ended
    late: int = 0  # frames whose receiver had passed the time of their arrival
    late_max_ns: int = 0


def distances(size: int, cables: Sequence[Cable]) -> list[list[int | None]]:
    """The shortest time, in ns, in which what one member does reaches another; from a member to
    itself by way of others. None: never."""
    found: list[list[int | None]] = [[None] * size for _ in range(size)]
    for cable in cables:
        a, b = cable.members
        found[a][b] = found[b][a] = _least(found[a][b], cable.delay_ns)
    for over in range(size):
        for a in range(size):
            for b in range(size):
                first, second = found[a][over], found[over][b]
                if first is not None and second is not None:
                    found[a][b] = _least(found[a][b], first + second)
    return found


def _least(*times: int | None) -> int | None:
    return min((one for one in times if one is not None), default=None)


class Lockstep:
    """Its caller owns processes, pages and cables."""

    def __init__(self, members: Sequence[Member], cables: Sequence[Cable]) -> None:
        """RunError for cables without a delay."""
        if any(cable.delay_ns <= 0 for cable in cables):
            raise RunError("guests are not joined without a delay: it is how far each may go alone")
        self._members = list(members)
        self._distances = distances(len(members), cables)
        self._ends: list[CableEnd] = []
        self._ways: list[tuple[CableEnd, CableEnd, int]] = []  # from, to, whose
        for cable in cables:
            one, other = cable.ends
            self._ends += cable.ends
            self._ways += [(one, other, cable.members[1]), (other, one, cable.members[0])]
        self._running = set(range(len(members)))  # not seen to wait since they were let go
        self._ended: set[int] = set()
        self.counts = Counts()

    def run(self, until_ns: int | None = None) -> Counts:
        """Until all guests have ended, or have nothing more to do up to `until_ns` of their time.
        RunError when one of them is killed, or when nothing is ever going to happen."""
        self._settle()
        while len(self._ended) < len(self._members):
            self._exchange()
            if not self._advance(until_ns):
                break
        return self.counts

    def _advance(self, until_ns: int | None) -> bool:
        """Lets those go on that have something to do; False if there are none."""
        nexts = [self._next_ns(number) for number in range(len(self._members))]
        if _least(*nexts) is None:
            waiting = [one.name for n, one in enumerate(self._members) if n not in self._ended]
            raise RunError(
                f"nothing is ever going to happen in {', '.join(waiting)}: all wait for input"
            )
        for number, next_ns in enumerate(nexts):
            limit_ns = _least(self._limit_ns(number, nexts), until_ns)
            if next_ns is not None and (limit_ns is None or next_ns <= limit_ns):
                self._let_go(number)
                self._members[number].page.limit_ns = limit_ns
        if not self._running:
            return False
        self.counts.steps += 1
        self._settle()
        return True

    def _next_ns(self, number: int) -> int | None:
        return None if number in self._ended else self._members[number].page.read().next_ns

    def _limit_ns(self, number: int, nexts: Sequence[int | None]) -> int | None:
        """Nothing that is done anywhere from now on reaches the member before that."""
        found = None
        for other, next_ns in enumerate(nexts):
            distance_ns = self._distances[other][number]
            if next_ns is not None and distance_ns is not None:
                found = _least(found, next_ns + distance_ns)
        return found

    def _exchange(self) -> None:
        """Hands over all that was sent: to each guest from one cable after the other, and each time
        as much as it takes, so that it hears the same in the same order in every run."""
        self._sort()
        while True:
            for _, to, number in self._ways:
                if to.has_news and number not in self._running and number not in self._ended:
                    self._let_go(number)
                    to.hand_over()
            if not self._running:
                return
            self._settle()
            self._sort()

    def _sort(self) -> None:
        """All guests wait: what they have sent is complete."""
        self._collect()
        for sender, to, number in self._ways:
            for due_ns, record in sender.frames():
                if number in self._ended or not to.is_open:
                    self.counts.unheard += 1
                    continue
                late_ns = self._members[number].page.read().now_ns - due_ns
                self.counts.late += late_ns > 0
                self.counts.late_max_ns = max(self.counts.late_max_ns, late_ns)
                self.counts.frames += 1
                to.put(record)

    def _collect(self) -> None:
        for end in self._ends:
            end.collect()

    def _let_go(self, number: int) -> None:
        self._members[number].page.goes_on()
        self._running.add(number)

    def _settle(self) -> None:
        """Until all guests wait or have ended."""
        for number in sorted(self._running):
            member = self._members[number]
            while (state := member.page.wait(LOOK_S)) in (State.BOOTS, State.RUNS):
                self._collect()
                _look_after(member)
            if state == State.ENDED:
                self._ended.add(number)
        self._running.clear()


def _look_after(member: Member) -> None:
    """RunError if it cannot go on."""
    status = member.process.poll()
    if status is None or member.page.read().state == State.ENDED:
        return
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    raise RunError(f"guest {member.name}: its kernel {how} before its time")
