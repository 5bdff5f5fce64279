"""What the containers of instances write, followed from the first line into logs/NAME.log.

Kubelet throws old parts of a log away, so each is followed while the run goes on. A stream that
breaks goes on after the last line that came, by its time; a container that was started again goes
on in the same file. Times do not tell lines apart: CRI-O gives all lines of one read the same, and
a node's clock may step back. Lines of tstorm-hold are no output of the program, and left out; marks
of the run say where a setup begins and ends.

An open stream takes 0.3 MB, for its TLS. With more than FOLLOWED instances logs are read in turn
instead, again and again.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from contextlib import aclosing, suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from runtime.backend.base import Notice
from runtime.backend.k8s.api import Api, ApiError
from runtime.backend.k8s.logtimes import LogTimes, Moment, unix_ns
from runtime.backend.k8s.pods import INSTANCE
from runtime.rundir import directory, logmarks
from runtime.rundir.runfiles import LOGS

PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.5, 5.0
FOLLOWED = 200  # instances with a stream each
AT_ONCE, LOOK_SECONDS = 16, 0.02  # where they take turns: connections, and time for each look
QUIET_SECONDS, LAST_SECONDS = 0.4, 5.0  # at the end, for what is on its way
TIMES_SECONDS = 0.25  # between rows of logs.jsonl
OWN = b'{"tstorm_hold":"'
_TIME = re.compile(r"\d{4}-\d\d-\d\dT")  # how a line begins, unless kubelet speaks for itself


class _Place(NamedTuple):
    """How far a log was taken: up to the last line, the `same`th in a row with the time `last`."""

    last: str = ""
    same: int = 0
    latest: str = ""  # of all times; later than `last` where the clock has stepped back

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
        self._lines = 0
        self._places: dict[str, _Place] = {}  # by instance

    def begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._writing = loop.create_task(self._write_times())
        if len(self._pods) > FOLLOWED:
            self._tasks.add(loop.create_task(self._take_turns()))
            return
        for instance, pod in self._pods.items():
            self._tasks.add(loop.create_task(self._follow(instance, pod)))

    async def _take_turns(self) -> None:
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
            await self._try(instance, pod, follow=False)

    async def _follow(self, instance: str, pod: str) -> None:
        pause = PAUSE_SECONDS
        while True:
            before = self._places.get(instance)
            await self._try(instance, pod, follow=True)
            if self._ending.is_set():
                return
            moved = self._places.get(instance) != before
            pause = PAUSE_SECONDS if moved else min(2 * pause, LAST_PAUSE_SECONDS)
            await asyncio.sleep(pause)

    async def _try(self, instance: str, pod: str, *, follow: bool) -> None:
        """Copies what there is; tells, once, why that is not possible."""
        path, reason = self._directory / f"{instance}.log", ""
        try:
            await self._copy(path, instance, pod, follow=follow)
        except ApiError as error:
            reason = "" if error.status == 400 else error.message  # 400: it has not started
        except OSError as error:
            reason = f"cannot write {path}: {error.strerror}"
        if reason:
            self._complain(instance, reason)

    def _complain(self, instance: str, reason: str) -> None:
        if not self._complained:
            self._complained = True
            self._notice(f"the output of {instance} is not followed now: {reason}")

    async def _copy(self, path: Path, instance: str, pod: str, *, follow: bool) -> None:
        """Appends what has come since the last line that it has.

        The server knows whole seconds only, and sends what that one's had before it again.
        """
        begin = place = self._places.get(instance, _Place())
        again = begin.same  # lines of the time `begin.last` that are still to be seen again
        file = directory.append(path)
        with open(file, "ab", buffering=0) as log:  # noqa: PTH123  # a descriptor
            lines = self._api.log(pod, INSTANCE, begin.last, follow=follow)
            async with aclosing(lines):
                async for line in lines:
                    stamp, _, text = line.partition(b" ")
                    at = stamp.decode("ascii", "replace")
                    if not _TIME.match(at):
                        self._complain(instance, line.decode("utf-8", "replace"))
                        continue
                    if again and at <= begin.latest:
                        again -= at == begin.last
                        continue
                    again = 0
                    place = self._places[instance] = place.after(at)
                    self._lines += 1
                    if not text.startswith(OWN):
                        log.write(text + b"\n")
                    elif mark := self._mark(instance, text):
                        log.write(logmarks.line(mark, cut=False))
                    self._time(instance, at, log)

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
        deadline, before = loop.time() + LAST_SECONDS, -1
        if len(self._pods) > FOLLOWED:
            most = LAST_SECONDS + 2 * len(self._pods) * LOOK_SECONDS
            await asyncio.wait(self._tasks, timeout=most)
        while self._tasks and self._lines != before and loop.time() < deadline:
            before = self._lines
            await asyncio.sleep(QUIET_SECONDS)
        for task in (*self._tasks, self._writing):
            task.cancel()
        await asyncio.gather(*self._tasks, self._writing, return_exceptions=True)
        if self._times is not None:
            self._times.close()
