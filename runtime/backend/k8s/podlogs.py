"""What the containers of instances write, followed from the first line into logs/NAME.log.

Kubelet throws old parts of a log away, so each is followed while the run goes on. A stream that
breaks goes on after the last line that came, by its time; a container that was started again goes
on in the same file. Lines of tstorm-hold are no output of the program, and left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

from runtime.backend.base import Notice
from runtime.backend.k8s.api import Api, ApiError
from runtime.backend.k8s.pods import INSTANCE
from runtime.rundir import directory
from runtime.rundir.runfiles import LOGS

PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.5, 5.0
AT_ONCE = 64  # connections that are being made
QUIET_SECONDS, LAST_SECONDS = 0.4, 5.0  # at the end, for what is on its way
OWN = b'{"tstorm_hold":"'


class PodLogs:
    """`pods` are their names, by the name of the instance."""

    def __init__(self, api: Api, run: Path, pods: Mapping[str, str], notice: Notice) -> None:
        self._api = api
        self._directory = run / LOGS
        self._pods = pods
        self._notice = notice
        self._few = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = False
        self._complained = False
        self._lines = 0
        self._since: dict[str, str] = {}  # instance -> time of the last line that came

    def begin(self) -> None:
        for instance, pod in self._pods.items():
            task = asyncio.get_running_loop().create_task(self._follow(instance, pod))
            self._tasks.add(task)

    async def _follow(self, instance: str, pod: str) -> None:
        path = self._directory / f"{instance}.log"
        pause = PAUSE_SECONDS
        while True:
            before, reason = self._since.get(instance, ""), ""
            try:
                await self._copy(path, instance, pod)
            except ApiError as error:
                reason = "" if error.status == 400 else error.message  # 400: it has not started
            except OSError as error:
                reason = f"cannot write {path}: {error.strerror}"
            if reason and not self._complained:
                self._complained = True
                self._notice(f"the output of {instance} is not followed now: {reason}")
            if self._ending:
                return
            moved = self._since.get(instance, "") != before
            pause = PAUSE_SECONDS if moved else min(2 * pause, LAST_PAUSE_SECONDS)
            await asyncio.sleep(pause)

    async def _copy(self, path: Path, instance: str, pod: str) -> None:
        """Appends what has come since the last line that it has."""
        since = self._since.get(instance, "")
        file = directory.append(path)
        with open(file, "ab", buffering=0) as log:  # noqa: PTH123  # a descriptor
            lines = self._api.log(pod, INSTANCE, since)
            async with aclosing(lines):
                async for line in lines:
                    stamp, _, text = line.partition(b" ")
                    at = stamp.decode("ascii", "replace")
                    if at <= since:
                        continue  # the server knows seconds only
                    since = self._since[instance] = at
                    self._lines += 1
                    if not text.startswith(OWN):
                        log.write(text + b"\n")

    async def end(self) -> None:
        """Containers go on running: ends when nothing has come for a moment."""
        self._ending = True
        loop = asyncio.get_running_loop()
        deadline, before = loop.time() + LAST_SECONDS, -1
        while self._tasks and self._lines != before and loop.time() < deadline:
            before = self._lines
            await asyncio.sleep(QUIET_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
