"""The Job of a coordinator's pod: leads one run from its assignment to its end, then waits until
its results are fetched. Nobody outside is needed for any of it.

Requests come over its socket (runtime.job.coordinator_commands): stop, fetched.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from compiler.plan.format import PlanError
from runtime.backend.base import MakeBackend
from runtime.driver import driver_messages
from runtime.driver.driver import carry_out
from runtime.driver.driver_messages import REPORT_SECONDS, DriverConfig, Said
from runtime.driver.progress import Progress
from runtime.errors import MachineError, RunError, unexpected, unwritten
from runtime.job import assignment
from runtime.job.assignment import JobAssignment
from runtime.job.container_paths import FINAL, MESSAGES, PROGRESS, ContainerPaths
from runtime.judge.run_end import RunEnd
from runtime.options import COMPLETED, FAILED, INTERRUPTED
from runtime.rpc.control import ControlServer, Reply, answered_by
from runtime.rundir import reserve
from runtime.rundir.held_directory import HeldDirectory, write_all
from runtime.rundir.line_files import encode
from runtime.rundir.runfiles import DRIVER_LOG

# What the driver says, kept in files: whoever follows the run may come late, or come back.
#
# MESSAGES grows by whole lines and has what must not be missed; PROGRESS is the latest record;
# FINAL is there once the run has ended and nothing of it grows any more. Space for FINAL is put
# aside (runtime.rundir.reserve), so that a disk that has filled up still gets it.

FINAL_BYTES = 4 << 20  # an end over 1,000 hosts takes 2 MB: clocks and counters of each


class Journal:
    """See runtime.driver.driver (FollowerChannel). `say` is told what a person may want to read."""

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        """OSError if the folder cannot be written."""
        self.stop = asyncio.Event()
        self._say = say
        self._home = HeldDirectory.hold(home)
        self._messages = self._home.create(MESSAGES, os.O_APPEND)
        self._bytes = 0
        reserve.put_aside(self._home, FINAL_BYTES // 2)

    def report_seconds(self, _planned_seconds: float) -> float:
        return REPORT_SECONDS

    def send(self, said: Said) -> None:
        """What a full disk does not take is lost: the run's own files tell the driver of that."""
        if isinstance(said, Progress):
            with suppress(OSError):
                latest = replace(said, message="", warning=False)  # it is told once, below
                self._home.write(PROGRESS, encode(driver_messages.write(latest)))
            if not said.message:
                return
            self._say(said.message)
        line = encode(driver_messages.write(said))
        try:
            write_all(self._messages, line)
        except OSError:
            os.ftruncate(self._messages, self._bytes)  # a part of a line would spoil the next one
        else:
            self._bytes += len(line)

    def close(self, end: RunEnd) -> RunEnd:
        """Writes the run's end; one that finds no room is replaced by one that says so. Returns
        what was written. OSError."""
        os.close(self._messages)
        try:
            reserve.spend(self._home, FINAL, encode(driver_messages.write(end)))
        except OSError as error:
            reason = f"; the run: {end.message}" if end.message else ""
            end = RunEnd(FAILED, f"{unwritten(error).message}{reason}"[:4096])
            reserve.spend(self._home, FINAL, encode(driver_messages.write(end)))
        self._say(f"{end.outcome}: {end.message}".removesuffix(": "))
        return end


LINGER_SECONDS = 600.0  # of a run that did not get as far as to know
WIND_DOWN_SECONDS = 24.0  # with what follows less than the pod is given to end
TERMINATED_SECONDS = 3.0  # after SIGTERM: the pod is about to go
BackendOf = Callable[[JobAssignment], MakeBackend]


class Job:
    def __init__(self, places: ContainerPaths, backend_of: BackendOf) -> None:
        """Raises OSError if there is no place to keep anything of the run."""
        self._places = places
        self._backend_of = backend_of
        self._server = ControlServer(places.socket, answered_by(self._answer))
        self._journal = Journal(places.home, _say)
        self._ended = ""  # the outcome, once all of it is written
        self._fetched = asyncio.Event()
        self._linger_seconds = LINGER_SECONDS
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._terminate)

    async def run(self, variables: Mapping[str, str]) -> int:
        """The whole of it; the exit status. Raises OSError if not even the end can be written."""
        try:
            end = await self._lead(variables)
            self._ended = self._journal.close(end).outcome
            await self._linger()
        finally:
            self._server.close()
        return 0 if self._ended == COMPLETED else 1

    async def _lead(self, variables: Mapping[str, str]) -> RunEnd:
        """Whatever goes wrong, there is an end to tell whoever follows."""
        try:
            return await self._carry_out(variables)
        except (RunError, PlanError, OSError) as error:
            said = unexpected(error) if isinstance(error, OSError) else error
            return RunEnd(FAILED, str(said), refused=isinstance(said, MachineError))
        except Exception as error:
            traceback.print_exc()
            return RunEnd(FAILED, f"the coordinator failed: {error!r}")

    async def _carry_out(self, variables: Mapping[str, str]) -> RunEnd:
        places = self._places
        given = await asyncio.to_thread(assignment.read, places, variables)
        self._linger_seconds = given.linger_seconds
        await asyncio.to_thread(assignment.unpack, places, given)
        config = DriverConfig(
            run_id=given.run_id,
            directory=str(places.run),
            socket=str(places.control),
            options=given.options,
        )
        descriptor = HeldDirectory.hold(places.run).append_to(DRIVER_LOG)
        with os.fdopen(descriptor, "ab", buffering=0) as log:
            whole = carry_out(config, self._backend_of(given), self._journal, log)
            return await self._in_time(asyncio.create_task(whole))

    async def _in_time(self, work: asyncio.Task[RunEnd]) -> RunEnd:
        """What comes of it; it is given up if it does not end although it was asked to."""
        stop = asyncio.create_task(self._journal.stop.wait())
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        await asyncio.wait({work}, timeout=WIND_DOWN_SECONDS)
        if work.done():
            return work.result()
        work.cancel()
        await asyncio.wait({work}, timeout=1.0)  # nothing shall grow after the end
        message = f"given up: it had not wound down after {WIND_DOWN_SECONDS:.0f} s"
        return RunEnd(INTERRUPTED, message)

    async def _linger(self) -> None:
        """Until the results are fetched, nobody can be expected any more, or the pod is to go."""
        try:
            await asyncio.wait_for(self._fetched.wait(), self._linger_seconds)
        except TimeoutError:
            _say("nobody has fetched the results")

    def _terminate(self) -> None:
        self._journal.stop.set()
        if self._ended:
            self._fetched.set()
        self._linger_seconds = TERMINATED_SECONDS

    async def _answer(self, request: Mapping[str, Any]) -> Reply:
        asked = request["ask"]
        if asked == "stop":
            self._journal.stop.set()
        elif asked == "fetched":
            if not self._ended:
                raise RunError("the run has not ended: there is nothing to fetch yet")
            self._fetched.set()
        elif asked == "state":  # there is no driver to ask
            when = f"has ended: {self._ended}" if self._ended else "has not begun"
            raise RunError(f"the run {when}")
        else:
            raise RunError(f"cannot answer {asked!r}")
        return {}, None


def _say(text: str) -> None:
    """For `kubectl logs`; its last lines are what the pod's status says of a failure, too."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - this is a program of its own
