"""What the containers of instances write, followed from the first line into logs/NAME.log.

Kubelet throws old parts of a log away, so each is followed while the run goes on. A stream that
breaks goes on after the last line that came, by its time; a container that was started again goes
on in the same file. Times do not tell lines apart: CRI-O gives all lines of one read the same, and
a node's clock may step back. A last line without an end is written as far as it is there, and its
rest when that comes. Lines of tstorm-hold are no output of the program, and left out; marks of the
run say where a setup begins and ends.

An open stream takes 0.3 MB, for its TLS. With more than FOLLOWED instances logs are read in turn
instead, again and again.

A stream that hangs looks like one of a program that is silent. So at the end each log is read once
more without following it. A log is whole if that answer was a good one and came to its end, and no
answer went on behind the last line that was there. `incomplete` has the others.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from runtime.backend.base import Notice
from runtime.backend.k8s.api import Api, ApiError
from runtime.backend.k8s.logtimes import LogTimes, Moment, unix_ns
from runtime.backend.k8s.pods import INSTANCE
from runtime.rundir import held_directory, logmarks
from runtime.rundir.runfiles import LOGS

PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.5, 5.0
FOLLOWED = 200  # instances with a stream each
AT_ONCE, LOOK_SECONDS = 16, 0.02  # where they take turns: connections, and time for each look
ANSWER_SECONDS = 10.0  # for one of them: kubelet may hang, and others wait for the connection
QUIET_SECONDS, LAST_SECONDS = 0.4, 5.0  # at the end, for what is on its way; for last answers
TIMES_SECONDS = 0.25  # between rows of logs.jsonl
OWN = b'{"tstorm_hold":"'
UNANSWERED = "the API server had not answered at the end of the run"
LATE = "more of it was still coming after the end of the run"
LOST = "a part of it was gone before it was read"
REASON_CHARACTERS = 160
_TIME = re.compile(r"\d{4}-\d\d-\d\dT")  # how a line begins, unless kubelet speaks for itself
_WAITING = "waiting to start"  # what kubelet says of a container that has never run (status 400)


class _Place(NamedTuple):
    """How far a log was taken: up to the last line, the `same`th in a row with the time `last`."""

    last: str = ""
    same: int = 0
    latest: str = ""  # of all times; later than `last` where the clock has stepped back
    rest: bytes = b""  # what is there of the line after it, which has no end yet
    ended: bool = False  # the container had, with that

    def after(self, at: str) -> _Place:
        """With one more line, of this time."""
        return _Place(at, self.same + 1 if at == self.last else 1, max(at, self.latest))


class PodLogs:
    """`pods` are their names, by the name of the instance. `times` are told of each line; `moment`:
    see LogTimes."""

    def __init__(
        self,
        api: Api,
        run: Path,
        pods: Mapping[str, str],
        notice: Notice,
        times: LogTimes | None = None,
        moment: Moment = lambda _instance, _unix_ns: None,
    ) -> None:
        self._api = api
        self._directory = run / LOGS
        self._pods = pods
        self._notice = notice
        self._times = times
        self._moment = moment
        self._few = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = asyncio.Event()
        self._complained = False
        self._places: dict[str, _Place] = {}  # by instance
        self._unread = dict.fromkeys(pods, UNANSWERED)  # why its last lines may not be here
        self._lost: set[str] = set()  # of which lines are missing for good

    def begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._writing = loop.create_task(self._write_times())
        if self._take_turns:
            self._tasks.add(loop.create_task(self._read_in_turn()))
            return
        for instance, pod in self._pods.items():
            self._tasks.add(loop.create_task(self._follow(instance, pod)))

    @property
    def _take_turns(self) -> bool:
        return len(self._pods) > FOLLOWED

    async def _read_in_turn(self) -> None:
        """A last time after the end was asked for."""
        loop = asyncio.get_running_loop()
        last = False
        while not last:
            last, due = self._ending.is_set(), loop.time() + len(self._pods) * LOOK_SECONDS
            await asyncio.gather(*(self._look(*names) for names in self._pods.items()))
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._ending.wait()

    async def _look(self, instance: str, pod: str) -> None:
        async with self._few:
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._try(instance, pod, follow=False)

    async def _follow(self, instance: str, pod: str) -> None:
        pause = PAUSE_SECONDS
        while not self._ending.is_set():
            before = self._places.get(instance)
            await self._try(instance, pod, follow=True)
            moved = self._places.get(instance) != before
            pause = PAUSE_SECONDS if moved else min(2 * pause, LAST_PAUSE_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._ending.wait()

    async def _try(self, instance: str, pod: str, *, follow: bool) -> None:
        """Copies what there is; tells, once, why that is not possible."""
        path = self._directory / f"{instance}.log"
        before, self._unread[instance] = self._unread.get(instance, ""), UNANSWERED
        try:
            try:
                await self._copy(path, instance, pod, follow=follow)
            except ApiError as error:
                self._refused(path, instance, error, before)
        except OSError as error:
            self._fail(instance, f"cannot write {path}: {error.strerror}")

    def _refused(self, path: Path, instance: str, error: ApiError, before: str) -> None:
        """A container that has never run has written nothing: its log is whole, and empty."""
        place = self._place(instance)
        if error.status != 400 or _WAITING not in error.message:
            status = f"the API server answered with status {error.status}"
            self._fail(instance, error.message, status if error.status else "")
        elif place.ended or not (place.last or place.rest):
            os.close(held_directory.append(path))
            self._unread.pop(instance, None)
        else:
            self._unread[instance] = before or LOST

    def _fail(self, instance: str, reason: str, short: str = "") -> None:
        """It is not read now; `short`: the reason as it is kept, of thousands of instances."""
        self._unread[instance] = (short or reason)[:REASON_CHARACTERS]
        if not self._complained:
            self._complained = True
            self._notice(f"the output of {instance} is not followed now: {reason}")

    async def _copy(self, path: Path, instance: str, pod: str, *, follow: bool) -> None:
        """Appends what has come since the last line that it has.

        There is no file before there is an answer: an empty one would say that nothing was written.
        """
        begin = self._place(instance)
        async with self._api.log(pod, INSTANCE, begin.last, follow=follow) as lines:
            file = held_directory.append(path)
            with open(file, "ab", buffering=0) as log:  # noqa: PTH123  # a descriptor
                if follow:
                    self._unread.pop(instance, None)
                told = await self._take_all(instance, begin, lines, log)
        if told:
            self._unread.pop(instance, None)
        if told and follow:
            self._places[instance] = self._place(instance)._replace(ended=True)

    async def _take_all(
        self, instance: str, begin: _Place, lines: AsyncIterator[bytes], log: FileIO
    ) -> bool:
        """What is new in an answer, to its end. False if kubelet did not tell the log.

        The server knows whole seconds only, and sends what that one's had before it again: where
        it does not, the log goes on behind a gap, unless its container had ended before.
        """
        again = begin.same  # lines of the time `begin.last` that are still to be seen again
        told = True
        async for line in lines:
            at = line.partition(b" ")[0].decode("ascii", "replace")
            if not _TIME.match(at):
                told = False
                self._fail(instance, line.decode("utf-8", "replace").strip())
            elif again and at <= begin.latest:
                again -= at == begin.last
            else:
                self._note_gap(instance, begin, again)
                again = 0
                self._take(instance, at, line, log)
        if told:
            self._note_gap(instance, begin, again)
        return told

    def _note_gap(self, instance: str, begin: _Place, again: int) -> None:
        if again and not begin.ended:
            self._lost.add(instance)

    def _take(self, instance: str, at: str, line: bytes, log: FileIO) -> None:
        """A line that is new, or what is there by now of one that has no end yet."""
        place, whole = self._place(instance), line.endswith(b"\n")
        text = line.partition(b" ")[2]
        if not whole and OWN.startswith(text[: len(OWN)]):
            return  # nobody knows yet whether it is the program's
        if place.rest and not line.startswith(place.rest):
            log.write(b"\n")  # another container's: that one has ended without
            place = place._replace(rest=b"")
        more = line.removeprefix(place.rest) if place.rest else text
        self._places[instance] = (
            place.after(at) if whole else place._replace(rest=line, ended=False)
        )
        if not text.startswith(OWN):
            log.write(more)
        elif mark := self._mark(instance, text):
            log.write(logmarks.line(mark, cut=False))
        if more:
            self._time(instance, at, log)

    def _place(self, instance: str) -> _Place:
        return self._places.get(instance, _Place())

    def _time(self, instance: str, at: str, log: FileIO) -> None:
        """A line of this time is there."""
        written_ns = unix_ns(at)
        if self._times is not None and written_ns is not None:
            self._times.add(instance, written_ns, log.seek(0, os.SEEK_END))

    async def _write_times(self) -> None:
        while self._times is not None:
            await asyncio.sleep(TIMES_SECONDS)
            self._times.write()

    def _mark(self, instance: str, text: bytes) -> str:
        """What stands in the log for a line of tstorm-hold: where its setup begins and ends, so
        that this output is told from the program's. '' for all others."""
        try:
            found = json.loads(text)
            what, at_ns = str(found["tstorm_hold"]), int(found["unix_ns"])
        except (ValueError, KeyError, TypeError):
            return ""
        known = self._moment(instance, at_ns)
        since_ns = None if known is None else known[0]
        if what == "setup":
            return logmarks.words(since_ns, "setup")
        how = f"by signal {found['signal']}" if "signal" in found else f"with {found.get('status')}"
        return logmarks.words(since_ns, f"setup ended {how}") if what == "set_up" else ""

    async def end(self) -> None:
        """Containers go on running: ends when nothing has come for a moment, or all had a turn."""
        self._ending.set()
        loop = asyncio.get_running_loop()
        if self._take_turns:
            self._unread = dict.fromkeys(self._pods, UNANSWERED)
            most = LAST_SECONDS + 2 * len(self._pods) * LOOK_SECONDS
            await asyncio.wait(self._tasks, timeout=most)
        elif self._tasks:
            moved = await self._until_quiet(loop.time() + LAST_SECONDS)
            await self._stop()
            self._tasks = {loop.create_task(self._last_look(*one)) for one in self._pods.items()}
            await asyncio.wait(self._tasks, timeout=LAST_SECONDS)
            self._unread.update(dict.fromkeys(moved, LATE))
        self._tasks.add(self._writing)
        await self._stop()
        if self._times is not None:
            self._times.close()

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _last_look(self, instance: str, pod: str) -> None:
        """A second time where the first one failed."""
        await self._try(instance, pod, follow=False)
        if instance in self._unread:
            await asyncio.sleep(PAUSE_SECONDS)
            await self._try(instance, pod, follow=False)

    async def _until_quiet(self, deadline: float) -> list[str]:
        """Until nothing has come for a moment; instances of which something still does, in the
        end."""
        loop = asyncio.get_running_loop()
        before: dict[str, _Place] = {}
        while loop.time() < deadline:
            before = dict(self._places)
            await asyncio.sleep(QUIET_SECONDS)
            if before == self._places:
                return []
        return [name for name, place in self._places.items() if before.get(name) != place]

    def incomplete(self) -> dict[str, str]:
        """After `end`: instances of whose logs lines may be missing, and why."""
        return dict(sorted({**self._unread, **dict.fromkeys(self._lost, LOST)}.items()))
