"""Runs of several points at a time (of a campaign, or branches of a run), each in a process of its
own that ends with this one.

A signal that asks to stop reaches the runs that go on as it reaches a single run, and then no other
begins. The processes are in sessions of their own: they hear of signals from here alone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

from runtime.launch import stops
from runtime.system import procs

Point = TypeVar("Point")
Result = TypeVar("Result")
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class JobEnd(Generic[Point, Result]):
    point: Point
    said: Result | None  # None: its process did not come to say it
    why: str = ""  # then


def shares(jobs: int | None, most: int, *, virtual: bool) -> list[list[int]]:
    """Processors of each job, `most` of them at most. None: as many as are good.

    In virtual time a guest stays on one processor: two do not choose the same one while another has
    nothing to do. In real time every run may use all, and is alone unless somebody says more.
    """
    allowed = sorted(os.sched_getaffinity(0))
    count = min(jobs or (len(allowed) if virtual else 1), most)
    if not virtual:
        return [allowed] * count
    return [allowed[number::count] or [allowed[number % len(allowed)]] for number in range(count)]


def carry_out(
    work: Callable[[Point], Result], points: Iterable[Point], shares: Sequence[list[int]]
) -> Iterator[JobEnd[Point, Result]]:
    """As they end; those that were stopped before they had begun are left out."""
    waiting, free = iter(points), list(shares)
    going: dict[Connection, _Job[Point, Result]] = {}
    with stops.noted() as signals:
        try:
            while True:
                while free and (point := next(waiting, None)) is not None:
                    job = _Job(work, point, free.pop())
                    going[job.answer] = job
                if not going:
                    return
                for ready in wait([*going, signals]):
                    if isinstance(ready, Connection):
                        job = going.pop(ready)
                        free.append(job.share)
                        yield from job.ended()
                        continue
                    waiting = iter(())
                    for number in signals.recv(64):
                        for job in going.values():
                            job.send(number)
        finally:
            for job in going.values():
                job.send(signal.SIGKILL)


class _Job(Generic[Point, Result]):
    def __init__(self, work: Callable[[Point], Result], point: Point, share: list[int]) -> None:
        self.share = share
        self._point = point
        self._stopped = False
        self.answer, theirs = _FORK.Pipe(duplex=False)
        arguments = (work, point, share, theirs, os.getpid())
        self._process = _FORK.Process(target=_carry_out, args=arguments, daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)  # no handler of ours is its own
        try:
            with theirs:
                self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def send(self, number: int) -> None:
        self._stopped = True
        if self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, number)

    def ended(self) -> Iterator[JobEnd[Point, Result]]:
        said = None
        with self.answer, suppress(EOFError, OSError):
            said = self.answer.recv()
        self._process.join()
        code = self._process.exitcode or 0
        if said is not None or not self._stopped:
            killed = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
            yield JobEnd(self._point, said, f"its process {killed}")


def _carry_out(
    work: Callable[[Point], Result],
    point: Point,
    share: list[int],
    answer: Connection,
    parent: int,
) -> None:
    """In a process of its own."""
    procs.die_with(parent)
    os.setsid()
    for number in _STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    os.sched_setaffinity(0, share)
    found = work(point)
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
    answer.send(found)
